package graphops

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A model has the same masks on any graph, however many were built before, and each of its dropouts has one of its own.
func TestMasksOfGraphs(t *testing.T) {
	gen, err := NewGenerator(NewStore(), "dropout", 3)
	require.NoError(t, err)
	var want []float64
	for range 3 {
		g := G.NewGraph()
		x := G.NewVector(g, G.Float64, G.WithShape(40), G.WithName("x"), G.WithValue(tensor.Ones(G.Float64, 40)))
		first, err := Dropout(x, .5, gen)
		require.NoError(t, err)
		_, err = Gradients(G.Must(G.Sum(first)), G.Nodes{x}) // has a mask of the first again, and is no new one
		require.NoError(t, err)
		second, err := Dropout(x, .5, gen)
		require.NoError(t, err)
		both, err := G.Concat(0, first, second)
		require.NoError(t, err)
		vm := G.NewTapeMachine(g.SubgraphRoots(both))
		require.NoError(t, vm.RunAll())
		got := both.Value().Data().([]float64)
		require.NotEqual(t, got[:40], got[40:])
		if want == nil {
			want = got
		}
		require.Equal(t, want, got)
		require.NoError(t, vm.Close())
	}
}
