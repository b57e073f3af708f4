package updater

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// What Initialize compiled before goes when it compiles anew: the graph, which keeps the nodes, does not keep the memory of the machine.
func TestInitializeLetsGo(t *testing.T) {
	for _, dt := range bothTypes {
		a, _ := regression(t, dt)
		require.NoError(t, a.Observe(a.TotalStepNorm()))
		require.NoError(t, a.Initialize())
		require.NoError(t, a.ProcessBatch(rowsOf(dt, 1, 3)))
		old := weak.Make(a.run)
		require.NoError(t, a.Initialize())
		for i := 0; i < 10 && old.Value() != nil; i++ {
			runtime.GC()
		}
		require.Nil(t, old.Value())
		require.NoError(t, a.ProcessBatch(rowsOf(dt, 1, 3)))
	}
}
