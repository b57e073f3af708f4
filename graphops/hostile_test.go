package graphops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A commit does not change with the caller's slice.
func TestCommitCopiesItsUpdates(t *testing.T) {
	g := G.NewGraph()
	w, u := input(g, tensor.Float64, "w", nil, 1), input(g, tensor.Float64, "u", nil, 1)
	updates := []Update{{w, Const(5)}}
	op := must(Commit(updates))
	updates[0] = Update{u, Const(6)}
	_, err := NewMachine(op, must(G.Square(w)))
	require.ErrorContains(t, err, "built after the optim op")
}

// A broken condition is no condition that always holds.
func TestBrokenWhen(t *testing.T) {
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", nil, 1)
	_, err := Commit([]Update{{w, Const(5)}}, When(Expr{}))
	require.ErrorContains(t, err, "zero Expr")
	yes := Const(1).Less(Const(2))
	op := must(Commit([]Update{{w, Const(5)}}, When(yes, w, w), When(yes)))
	run(t, must(NewMachine(op)))
	require.Equal(t, []float64{5}, floats(w))
}

func TestNoPanics(t *testing.T) {
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", nil, 1)
	must(Commit([]Update{{w, Const(5)}}, Label(nil), nil))
	before := len(g.AllNodes())
	_, err := Commit([]Update{{w, Const(5)}}, Label(func(*G.Node) string { panic("oh") }))
	require.ErrorContains(t, err, "oh")
	shapeless := G.NewMatrix(g, tensor.Float64, G.WithName("shapeless"))
	for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
		_, err = Commit([]Update{{shapeless, Of(shapeless).Add(Const(1))}}, opts...)
		require.ErrorContains(t, err, "no shape")
	}
	require.Len(t, g.AllNodes(), before+1)
	var s Store
	must(s.Counter("c"))
	_, err = s.Slot("x", "", tensor.Float64, tensor.Shape{-1}, 0)
	require.Error(t, err)
	_, err = s.Hyper("x", nil, nil)
	require.Error(t, err)
	require.Len(t, s.States(), 1)
}

func TestZero(t *testing.T) {
	x, y := G.NewF64(3), dense(tensor.Float64, []int{2}, 1, 2)
	var z Zeroer
	require.Error(t, z.After(nothing, []G.Value{x, G.NewB(true)}, nil))
	require.Error(t, z.After(nothing, []G.Value{x, nil}, nil))
	require.Error(t, z.After(nothing, []G.Value{x, (*tensor.Dense)(nil)}, nil))
	require.Error(t, z.After(nothing, []G.Value{x}, []G.Value{nil}))
	require.Equal(t, []float64{3}, valueFloats(x))
	require.NoError(t, z.After(nothing, []G.Value{x, y}, []G.Value{y}))
	require.Equal(t, []float64{0, 1, 2}, append(valueFloats(x), valueFloats(y)...))
	_, err := ScalarValue(y)
	require.Error(t, err)
}

// The derivative of xᵖ is 0 where p is 0, also at x = 0.
func TestPowAtZero(t *testing.T) {
	g := G.NewGraph()
	x, p := input(g, tensor.Float64, "x", []int{3}, 0, 0, 2), input(g, tensor.Float64, "p", []int{3}, 0, 1, 0)
	cost := must(Expand(Of(x).Pow(Of(p)).Sum()))
	d := evaluate(t, must(Gradients(cost, G.Nodes{x, p}))...)
	require.Equal(t, []float64{0, 1, 0}, d[0])
	require.InDeltaSlice(t, []float64{0, 0, math.Log(2)}, d[1], 1e-15)
}

func TestKnownGradsTwice(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float64, "x", nil, 1)
	c := must(G.Square(x))
	_, err := Gradients(c, G.Nodes{x}, KnownGrads(G.Nodes{c, c}, G.Nodes{x, x}))
	require.ErrorContains(t, err, "listed twice")
}

// An update of a strided view does not change what another one, under another condition, reads of the view.
func TestStridedTargetIsReadElsewhere(t *testing.T) {
	g := G.NewGraph()
	v, w := input(g, tensor.Float64, "v", []int{2}), input(g, tensor.Float64, "w", []int{2}, 1, 2)
	all := dense(tensor.Float64, []int{2, 3}, 3, 4, 5, 6, 7, 8)
	view := must(all.Slice(nil, G.S(1)))
	p := must(Compile([]Update{{v, Of(w)}, {w, Of(v)}}, When(Const(1).Less(Const(2)), v)))
	var in []G.Value
	for _, n := range p.Leaves() {
		in = append(in, map[*G.Node]G.Value{v: view, w: w.Value()}[n])
	}
	require.NoError(t, p.Run(in))
	require.Equal(t, []float64{3, 1, 5, 6, 2, 8}, all.Float64s())
	require.Equal(t, []float64{4, 7}, floats(w))
}

// Deep and wide expressions.
func TestDeepExpression(t *testing.T) {
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", nil, 0)
	e := Of(w)
	for range 20_000 {
		e = e.Add(Const(1))
	}
	run(t, must(NewMachine(must(Commit([]Update{{w, e}})))))
	require.Equal(t, []float64{20_000}, floats(w))
}
