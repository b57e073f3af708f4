package updater

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
)

// The table says which variables no loss trains.
func TestTableOfIdleVariables(t *testing.T) {
	g, loss, w, b := model()
	idle := G.NewScalar(g, G.Float64, G.WithName("idle"), G.WithValue(1.0))
	u := must(New(loss, G.Nodes{w, b, idle}, Config{}))
	require.Regexp(t, `(?m)^idle .*not trained: no loss depends on it$`, u.Table())
	require.NotRegexp(t, `(?m)^w .*not trained`, u.Table())
	require.NoError(t, u.AddLoss(G.Must(G.Square(idle)), idle))
	require.NotContains(t, u.Table(), "not trained")
}
