package loop

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// What fails before a monitor began is told to the callbacks behind it.
func TestErrorBeforeTheMonitor(t *testing.T) {
	n := G.NewScalar(G.NewGraph(), tensor.Float64, G.WithName("n"))
	for _, first := range []Callback{
		Do(func(Event) error { return oddError{} }, BeforeTraining),
		MonitorTraining(nil, Names{}),
	} {
		told := 0
		l := &Loop{Algorithm: &observable{}, Data: ten, Callbacks: []Callback{
			first, MonitorTraining([]Quantity{Mean(n)}, Names{}), Do(func(Event) error { told++; return nil }, OnError)}}
		require.ErrorContains(t, l.Run(t.Context()), "before training")
		require.Equal(t, 1, told)
	}
}
