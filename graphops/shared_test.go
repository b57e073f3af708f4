package graphops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A product of a reshaped tanh: its derivative by the weights reads the reshaped value. That of tanh, made for an earlier gradient,
// writes over what shares memory with it. Our machines keep that, a plain one does not.
func TestMachinesKeepSharedMemory(t *testing.T) {
	for _, dt := range dtypes {
		build := func() (w, v *G.Node, d G.Nodes) {
			g := G.NewGraph()
			w, v = input(g, dt, "w", []int{2, 2}, .5, 1, 1.5, 2), input(g, dt, "v", []int{4, 1}, 2, 3, 4, 5)
			y := must(G.Reshape(must(G.Tanh(w)), tensor.Shape{1, 4}))
			cost := must(G.Sum(must(G.Mul(y, v))))
			must(Gradients(cost, G.Nodes{w}))
			d = must(Gradients(cost, G.Nodes{w, v}))
			return w, v, d
		}
		var want []float64
		for _, x := range []float64{.5, 1, 1.5, 2} {
			want = append(want, math.Tanh(x))
		}
		_, _, plain := build()
		require.NoError(t, G.NewTapeMachine(plain[0].Graph().SubgraphRoots(plain...)).RunAll())
		require.Greater(t, math.Abs(floats(plain[1])[0]-want[0]), .1)

		_, _, kept := build()
		require.NoError(t, must(NewEvalMachine(kept...)).RunAll())
		require.InDeltaSlice(t, want, floats(kept[1]), 1e-6)

		w, v, d := build()
		op := must(Commit([]Update{{w, Of(w).Sub(Of(d[0]))}, {v, Of(v).Sub(Of(d[1]))}}))
		must(NewMachine(op))
		nodes := len(w.Graph().AllNodes())
		vm := must(NewMachine(op, d...))
		require.Len(t, w.Graph().AllNodes(), nodes)
		before := floats(v)
		require.NoError(t, vm.RunAll())
		for i, x := range floats(v) {
			require.InDelta(t, before[i]-want[i], x, 1e-6)
		}
		require.NoError(t, G.NewTapeMachine(w.Graph()).RunAll(), "the node that keeps is no reader of the new values")
	}
}
