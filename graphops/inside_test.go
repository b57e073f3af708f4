package graphops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Gorgonia's graphs have the fields that make building fast, and what is written to them agrees with their methods, also where
// Gorgonia removed nodes.
func TestInside(t *testing.T) {
	for _, remove := range []bool{false, true} {
		g := G.NewGraph()
		require.NotNil(t, byHash(g))
		require.NotNil(t, evac(g))
		require.NotNil(t, byID(g))
		require.NotNil(t, counter(g))
		w := input(g, tensor.Float64, "w", []int{2, 2}, 1, 2, 3, 4)
		if remove {
			G.NewVector(g, tensor.Float64, G.WithShape(3), G.WithName("x"))
			g.RemoveNode(g.AllNodes()[1])
		}
		loss := must(G.Sum(must(G.HadamardProd(must(G.Tanh(w)), must(G.Mul(w, w))))))
		grads, err := Gradients(loss, G.Nodes{w})
		require.NoError(t, err)
		s := NewStore()
		_, err = Commit([]Update{{w, Of(w).Sub(Of(grads[0]))}, {must(must(s.Counter("n")).Node(g)), Const(1)}}, From(s))
		require.NoError(t, err)
		all := g.AllNodes()
		for _, n := range all {
			require.Same(t, n, g.Node(n.ID()), fmt.Sprint(n.ID()))
			require.Same(t, n, taken(g, n.Hashcode()))
		}
		require.LessOrEqual(t, len(*byID(g)), len(all))
		require.Nil(t, g.Node(all[len(all)-1].ID()+1))
	}
}

// What a graph was told of nodes that were not made is taken back.
func TestSoon(t *testing.T) {
	g := G.NewGraph()
	done := soon(g, 3)
	n := G.NewScalar(g, tensor.Float64, G.WithName("n"))
	done()
	require.Equal(t, map[int64]int{n.ID(): 0}, *byID(g))
}
