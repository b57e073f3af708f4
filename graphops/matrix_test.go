package graphops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// compute runs an expression of x and y, fused and expanded, and returns its value as a tensor of the given shape.
func computeExpr(t *testing.T, dt tensor.Dtype, xs, ys []int, x, y []float64, f func(x, y Expr) Expr) (shape tensor.Shape, out []float64) {
	for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
		g := G.NewGraph()
		e := f(Of(input(g, dt, "x", xs, x...)), Of(input(g, dt, "y", ys, y...)))
		require.NoError(t, e.Err())
		target := input(g, dt, "out", e.Shape())
		run(t, must(NewMachine(must(Commit([]Update{{target, e}}, opts...)))))
		got := floats(target)
		if out != nil {
			sameBits(t, out, got)
		}
		shape, out = e.Shape(), got
	}
	return shape, out
}

func TestMatrixOperations(t *testing.T) {
	six, two := []float64{1, 2, 3, 4, 5, 6}, []float64{1, -1}
	for _, dt := range dtypes {
		for name, c := range map[string]struct {
			xs, ys []int
			x, y   []float64
			f      func(x, y Expr) Expr
			shape  tensor.Shape
			want   []float64
		}{
			"product":        {[]int{2, 3}, []int{3, 2}, six, six, Expr.MatMul, tensor.Shape{2, 2}, []float64{22, 28, 49, 64}},
			"of expressions": {[]int{2, 3}, []int{3, 2}, six, six, func(x, y Expr) Expr { return x.Neg().MatMul(y.Add(y)).Neg() }, tensor.Shape{2, 2}, []float64{44, 56, 98, 128}},
			"row by column":  {[]int{1, 2}, []int{2, 1}, two, two, Expr.MatMul, tensor.Shape{1, 1}, []float64{2}},
			"transpose":      {[]int{2, 3}, []int{1}, six, []float64{1}, func(x, _ Expr) Expr { return x.Transpose() }, tensor.Shape{3, 2}, []float64{1, 4, 2, 5, 3, 6}},
			"gram":           {[]int{2, 3}, []int{1}, six, []float64{1}, func(x, _ Expr) Expr { return x.MatMul(x.Transpose()) }, tensor.Shape{2, 2}, []float64{14, 32, 32, 77}},
			"sum rows":       {[]int{2, 3}, []int{1}, six, []float64{1}, func(x, _ Expr) Expr { return x.SumAlong(0) }, tensor.Shape{1, 3}, []float64{5, 7, 9}},
			"mean columns":   {[]int{2, 3}, []int{1}, six, []float64{1}, func(x, _ Expr) Expr { return x.MeanAlong(-1) }, tensor.Shape{2, 1}, []float64{2, 5}},
			"sum of rank 3":  {[]int{1, 3, 2}, []int{1}, six, []float64{1}, func(x, _ Expr) Expr { return x.SumAlong(0, 1) }, tensor.Shape{1, 1, 2}, []float64{9, 12}},
			"sum of nothing": {[]int{2, 3}, []int{1}, six, []float64{1}, func(x, _ Expr) Expr { return x.SumAlong() }, tensor.Shape{2, 3}, six},
			"broadcast":      {[]int{1, 2}, []int{1}, two, []float64{1}, func(x, _ Expr) Expr { return x.BroadcastTo(tensor.Shape{3, 2}) }, tensor.Shape{3, 2}, []float64{1, -1, 1, -1, 1, -1}},
			"outer": {[]int{2, 1}, []int{1, 2}, two, []float64{3, 4}, func(x, y Expr) Expr {
				return x.BroadcastTo(tensor.Shape{2, 2}).Mul(y.BroadcastTo(tensor.Shape{2, 2}))
			}, tensor.Shape{2, 2}, []float64{3, 4, -3, -4}},
			"reduction": {[]int{2, 3}, []int{3, 2}, six, six, func(x, y Expr) Expr { return x.Mul(x.MatMul(y).Sum()) }, tensor.Shape{2, 3}, []float64{163, 326, 489, 652, 815, 978}},
		} {
			shape, got := computeExpr(t, dt, c.xs, c.ys, c.x, c.y, c.f)
			require.Equal(t, c.shape, shape, name)
			require.Equal(t, c.want, got, name)
		}
	}
}

// The first pair of singular vectors; of zero, and of what is not finite.
func TestSingularPair(t *testing.T) {
	pair := func(x ...float64) []float64 {
		_, got := computeExpr(t, tensor.Float64, []int{2, 2}, []int{1}, x, []float64{0}, func(x, _ Expr) Expr { return x.SingularPair() })
		return got
	}
	require.InDeltaSlice(t, []float64{0, 0, 0, 1}, pair(1, 0, 0, 3), 1e-15)
	require.InDeltaSlice(t, []float64{-.5, .5, -.5, .5}, pair(-2, 2, -2, 2), 1e-15)
	require.Equal(t, []float64{0, 0, 0, 0}, pair(0, 0, 0, 0))
	for _, x := range pair(1, math.NaN(), 0, 3) {
		require.True(t, math.IsNaN(x))
	}
}

func TestMatrixRefusals(t *testing.T) {
	g := G.NewGraph()
	m, v := Of(input(g, tensor.Float64, "m", []int{2, 3}, 1)), Of(input(g, tensor.Float64, "v", []int{3}, 1))
	f := Of(input(g, tensor.Float32, "f", []int{3, 2}, 1))
	for name, e := range map[string]Expr{
		"inner": m.MatMul(m), "vector": m.MatMul(v), "dtype": m.MatMul(f), "scalar": m.MatMul(Const(1)), "zero": m.MatMul(Expr{}),
		"transpose": v.Transpose(), "axis": m.SumAlong(2), "negative axis": m.MeanAlong(-3), "axis of a scalar": Const(1).SumAlong(0),
		"broadcast": m.BroadcastTo(tensor.Shape{4, 3}), "rank": v.BroadcastTo(tensor.Shape{3, 3}), "of zero": Expr{}.SumAlong(0), "svd": v.SingularPair(),
	} {
		require.Error(t, e.Err(), name)
	}
}

// Derivatives of the matrix operations against finite differences.
func TestMatrixDerivatives(t *testing.T) {
	at := []float64{.3, -.2, .5, .7, .1, -.4}
	cost := func(x []float64, grad bool) (float64, []float64) {
		g := G.NewGraph()
		n := input(g, tensor.Float64, "x", []int{2, 3}, x...)
		e := Of(n)
		p := e.MatMul(e.Transpose()).MatMul(e)
		p = p.Mul(e.SumAlong(0).BroadcastTo(tensor.Shape{2, 3})).Add(e.MeanAlong(1).Square().BroadcastTo(tensor.Shape{2, 3}))
		c := must(Expand(p.Exp().Sum()))
		if !grad {
			return evaluate(t, c)[0][0], nil
		}
		return 0, evaluate(t, must(Gradients(c, G.Nodes{n}))[0])[0]
	}
	_, d := cost(at, true)
	for i := range at {
		x := append([]float64(nil), at...)
		x[i] += 1e-6
		up, _ := cost(x, false)
		x[i] -= 2e-6
		down, _ := cost(x, false)
		require.InDelta(t, (up-down)/2e-6, d[i], 1e-7)
	}
}

// A commit may write what a matrix operation reads: that is the old value.
func TestMatrixReadsOldValues(t *testing.T) {
	g := G.NewGraph()
	a, b := input(g, tensor.Float64, "a", []int{2, 2}, 1, 2, 3, 4), input(g, tensor.Float64, "b", []int{2, 2}, 0, 1, 1, 0)
	op := must(Commit([]Update{{a, Of(a).MatMul(Of(b))}, {b, Of(a).Transpose()}}))
	vm := must(NewMachine(op))
	run(t, vm)
	require.Equal(t, []float64{2, 1, 4, 3, 1, 3, 2, 4}, floats(a, b))
	run(t, vm)
	require.Equal(t, []float64{4, 10, 10, 24, 2, 4, 1, 3}, floats(a, b))
}
