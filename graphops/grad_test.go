package graphops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// evaluate runs a graph and returns the values of nodes.
func evaluate(t *testing.T, ns ...*G.Node) [][]float64 {
	t.Helper()
	vals := make([]G.Value, len(ns))
	for i, n := range ns {
		G.Read(n, &vals[i])
	}
	require.NoError(t, G.NewTapeMachine(ns[0].Graph()).RunAll())
	out := make([][]float64, len(ns))
	for i, v := range vals {
		out[i] = valueFloats(v)
	}
	return out
}

// net is a model with the operations of common networks, a weight that is used twice, and a scalar.
func net(dt tensor.Dtype) (cost *G.Node, wrt G.Nodes) {
	g := G.NewGraph()
	x := input(g, dt, "x", []int{2, 3}, .1, -.2, .3, .4, .5, -.6)
	w := input(g, dt, "w", []int{3, 3}, .1, .2, .3, -.1, .5, .2, .7, -.3, .2)
	b := input(g, dt, "b", []int{1, 3}, .01, .02, -.03)
	s := input(g, dt, "s", nil, 1.5)
	h := must(G.Tanh(must(G.BroadcastAdd(must(G.Mul(x, w)), b, nil, []byte{0}))))
	h = must(G.Sigmoid(must(G.Mul(h, w))))
	p := must(G.SoftMax(must(G.HadamardProd(h, s))))
	return must(G.Neg(must(G.Mean(must(G.Log(p)))))), G.Nodes{w, b, s}
}

// Our gradients are gorgonia.Grad's, digit for digit.
func TestGradientsEqualGorgonia(t *testing.T) {
	for _, dt := range dtypes {
		cost, wrt := net(dt)
		ours := evaluate(t, must(Gradients(cost, wrt))...)
		cost, wrt = net(dt)
		theirs := evaluate(t, must(G.Grad(cost, wrt...))...)
		require.Equal(t, theirs, ours)
		// and theirs can still be called after ours
		g := G.NewGraph()
		w := input(g, dt, "w", []int{2}, 1, 2)
		h := must(G.Tanh(w))
		mine := must(Gradients(must(G.Sum(h)), G.Nodes{w}))
		theirsToo, err := G.Grad(must(G.Sum(must(G.Square(h)))), w)
		require.NoError(t, err)
		got := evaluate(t, mine[0], theirsToo[0])
		th := math.Tanh(1)
		require.InDelta(t, 1-th*th, got[0][0], 1e-6)
		require.InDelta(t, 2*th*(1-th*th), got[1][0], 1e-6)
	}
}

// Two costs over a shared hidden node are both right, in either order, where gorgonia.Grad repeats the first.
func TestTwoCosts(t *testing.T) {
	g := G.NewGraph()
	a := input(g, tensor.Float64, "a", []int{2}, 3, 4)
	h := must(G.Square(a))
	c1 := must(G.Sum(h))
	c2 := must(G.Sum(must(G.HadamardProd(h, input(g, tensor.Float64, "three", nil, 3)))))
	d1, d2, again := must(Gradients(c1, G.Nodes{a})), must(Gradients(c2, G.Nodes{a})), must(Gradients(c1, G.Nodes{a}))
	require.Equal(t, [][]float64{{6, 8}, {18, 24}, {6, 8}}, evaluate(t, d1[0], d2[0], again[0]))
	require.Nil(t, a.Deriv())
}

func TestKnownGradsAndConstants(t *testing.T) {
	build := func() (g *G.ExprGraph, x, h, k, cost *G.Node) {
		g = G.NewGraph()
		x = input(g, tensor.Float64, "x", []int{2}, 1, 2)
		h = must(G.Square(x))
		k = input(g, tensor.Float64, "k", []int{2}, 10, 20)
		return g, x, h, k, must(G.Sum(h))
	}
	t.Run("replaces what would be propagated", func(t *testing.T) {
		_, x, h, k, cost := build()
		d := must(Gradients(cost, G.Nodes{x, h}, KnownGrads(G.Nodes{h}, G.Nodes{k})))
		require.Equal(t, [][]float64{{20, 80}, {10, 20}}, evaluate(t, d...))
	})
	t.Run("seed of the cost", func(t *testing.T) {
		g, x, _, _, cost := build()
		seed := input(g, tensor.Float64, "seed", nil, 5)
		d := must(Gradients(cost, G.Nodes{x}, KnownGrads(G.Nodes{cost}, G.Nodes{seed})))
		require.Equal(t, [][]float64{{10, 20}}, evaluate(t, d...))
	})
	t.Run("no cost", func(t *testing.T) {
		_, x, h, k, _ := build()
		d := must(Gradients(nil, G.Nodes{x}, KnownGrads(G.Nodes{h}, G.Nodes{k})))
		require.Equal(t, [][]float64{{20, 80}}, evaluate(t, d...))
	})
	t.Run("an expression beside the cost adds", func(t *testing.T) {
		g, x, _, k, cost := build()
		side := must(G.HadamardProd(x, input(g, tensor.Float64, "c", []int{2}, 2, 2)))
		d := must(Gradients(cost, G.Nodes{x}, KnownGrads(G.Nodes{side}, G.Nodes{k})))
		require.Equal(t, [][]float64{{22, 44}}, evaluate(t, d...))
	})
	t.Run("constant", func(t *testing.T) {
		g, x, h, _, _ := build()
		both := must(G.Sum(must(G.HadamardProd(h, x)))) // Σ h·x with h fixed: h
		d := must(Gradients(both, G.Nodes{x, h}, ConsiderConstant(h)))
		require.Equal(t, [][]float64{{1, 4}, {1, 2}}, evaluate(t, d...))
		_, err := Gradients(must(G.Sum(h)), G.Nodes{x}, ConsiderConstant(h))
		require.ErrorContains(t, err, `does not depend on "x"`)
		y := input(g, tensor.Float64, "y", nil, 1)
		x2 := input(g, tensor.Float64, "x2", nil, 1)
		d = must(Gradients(must(G.Add(x2, y)), G.Nodes{x2}, ConsiderConstant(x2)))
		require.Equal(t, [][]float64{{1}}, evaluate(t, d...))
	})
}

func TestGradientNames(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float64, "x", []int{2}, 1, 2)
	cost := must(G.Sum(must(G.Square(x))))
	G.WithName("loss")(cost)
	require.Equal(t, "(dloss/dx)", must(Gradients(cost, G.Nodes{x}))[0].Name())
	y, z := input(g, tensor.Float64, "y", nil, 1), input(g, tensor.Float64, "z", nil, 2)
	d := must(Gradients(must(G.Mul(y, z)), G.Nodes{y, z}))
	require.NotEqual(t, y.Name(), d[0].Name())
	require.Equal(t, []string{"y", "z"}, []string{y.Name(), z.Name()})
	self := must(Gradients(y, G.Nodes{y}))
	require.Equal(t, [][]float64{{1}}, evaluate(t, self[0]))
}

// Whatever is refused leaves the graph as it was.
func TestGradientsRefuse(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float32, "x", []int{2}, 1, 2)
	u := input(g, tensor.Float32, "u", []int{2}, 1, 2)
	n := G.NewScalar(g, tensor.Int, G.WithName("n"), G.WithValue(1))
	d := input(g, tensor.Float64, "d", nil, 1)
	cost := must(G.Sum(must(G.Square(x))))
	other := input(G.NewGraph(), tensor.Float32, "other", nil, 1)
	panics := must(G.ApplyOp(&hook{id: 1, panic: true}, d))
	fails := must(G.ApplyOp(&hook{id: 2, fail: errHook}, d))
	stmt := G.Read(x, new(G.Value))
	must(G.Add(d, G.NewConstant(1.0)))
	tanh := must(G.Sum(must(G.Tanh(x))))
	before := len(g.AllNodes())
	for _, c := range []struct {
		name string
		cost *G.Node
		wrt  G.Nodes
		opts []GradOpt
		want string
	}{
		{"nil cost", nil, G.Nodes{x}, nil, "nil cost"},
		{"nothing", cost, nil, nil, "with respect to nothing"},
		{"nil node", cost, G.Nodes{nil}, nil, "nil"},
		{"vector cost", must(G.Square(x)), G.Nodes{x}, nil, "only a scalar has gradients"},
		{"integer cost", n, G.Nodes{x}, nil, "int"},
		{"statement", cost, G.Nodes{stmt}, nil, "statement"},
		{"unused", cost, G.Nodes{x, u}, nil, `does not depend on "u"`},
		{"another graph", cost, G.Nodes{other}, nil, "not on the graph"},
		{"known without gradient", cost, G.Nodes{x}, []GradOpt{KnownGrads(G.Nodes{cost}, nil)}, "1 nodes, 0 gradients"},
		{"known of another shape", cost, G.Nodes{x}, []GradOpt{KnownGrads(G.Nodes{x}, G.Nodes{d})}, "shape"},
		{"a derivative that panics", panics, G.Nodes{d}, nil, "no derivative today"},
		{"a derivative that fails", fails, G.Nodes{d}, nil, "boom"},
		{"a float64 constant on a float32 graph", tanh, G.Nodes{x}, nil, "use a named scalar input"},
	} {
		_, err := Gradients(c.cost, c.wrt, c.opts...)
		require.ErrorContains(t, err, c.want, c.name)
		_, err = TryGradients(c.cost, c.wrt, c.opts...)
		require.ErrorContains(t, err, c.want, c.name)
	}
	require.Equal(t, []bool{true, false}, must(TryGradients(cost, G.Nodes{x, u}, AllowUnused())))
	require.Equal(t, before, len(g.AllNodes()))
	grads := must(Gradients(cost, G.Nodes{x, u}, AllowUnused()))
	require.NotNil(t, grads[0])
	require.Nil(t, grads[1])
}

// The derivative of every primitive against finite differences, through an expression that uses all.
func TestPrimitiveDerivatives(t *testing.T) {
	two := Const(2)
	exprs := map[string]func(x, y, s Expr) Expr{
		"neg":        func(x, y, s Expr) Expr { return x.Neg() },
		"square":     func(x, y, s Expr) Expr { return x.Square() },
		"sqrt":       func(x, y, s Expr) Expr { return x.Sqrt() },
		"abs":        func(x, y, s Expr) Expr { return x.Sub(y).Abs() },
		"sign":       func(x, y, s Expr) Expr { return x.Sub(y).Sign().Mul(x) },
		"floor":      func(x, y, s Expr) Expr { return x.Floor().Mul(y) },
		"exp":        func(x, y, s Expr) Expr { return x.Exp() },
		"log":        func(x, y, s Expr) Expr { return x.Log() },
		"tanh":       func(x, y, s Expr) Expr { return x.Tanh() },
		"cos":        func(x, y, s Expr) Expr { return x.Cos().Mul(s.Cos()) },
		"add":        func(x, y, s Expr) Expr { return x.Add(s).Add(y) },
		"sub":        func(x, y, s Expr) Expr { return s.Sub(x).Sub(y) },
		"mul":        func(x, y, s Expr) Expr { return x.Mul(y).Mul(s) },
		"div":        func(x, y, s Expr) Expr { return s.Div(x).Div(y) },
		"min":        func(x, y, s Expr) Expr { return x.Min(y).Mul(s.Min(x)) },
		"max":        func(x, y, s Expr) Expr { return x.Max(y).Mul(s.Max(x)) },
		"pow":        func(x, y, s Expr) Expr { return x.Pow(s).Add(s.Pow(y)) },
		"select":     func(x, y, s Expr) Expr { return x.Less(y).Select(x.Square(), y.Mul(s)) },
		"and":        func(x, y, s Expr) Expr { return x.Less(y).And(y.Greater(s)).Or(x.Equal(y)).Not().Select(x, y) },
		"isfinite":   func(x, y, s Expr) Expr { return x.IsFinite().Select(x, y) },
		"sum":        func(x, y, s Expr) Expr { return x.Mul(y).Sum().Mul(y) },
		"sumsquares": func(x, y, s Expr) Expr { return x.Mul(y).SumSquares().Mul(x) },
		"norm":       func(x, y, s Expr) Expr { return x.Div(x.Norm()) },
		"mean":       func(x, y, s Expr) Expr { return x.Mul(x.Mean()) },
		"maxall":     func(x, y, s Expr) Expr { return x.MaxAll().Mul(y) },
		"scalars": func(x, y, s Expr) Expr {
			return s.Square().Sqrt().Exp().Log().Tanh().Pow(two).Min(two).Max(s.Neg()).Mul(x)
		},
	}
	at := [][]float64{{.7, 1.3, 2.9}, {1.1, .4, 3.2}, {1.7}}
	eval := func(f func(x, y, s Expr) Expr, at [][]float64, grad bool) [][]float64 {
		g := G.NewGraph()
		x, y := input(g, tensor.Float64, "x", []int{3}, at[0]...), input(g, tensor.Float64, "y", []int{3}, at[1]...)
		s := input(g, tensor.Float64, "s", nil, at[2]...)
		w := input(g, tensor.Float64, "weights", []int{3}, 1, -2, .5)
		cost, err := Expand(f(Of(x), Of(y), ScalarOf(s)).Mul(Of(w)).Sum())
		require.NoError(t, err)
		if !grad {
			return evaluate(t, cost)
		}
		all := G.Nodes{x, y, s}
		var used G.Nodes
		for i, ok := range must(TryGradients(cost, all, AllowUnused())) {
			if ok {
				used = append(used, all[i])
			}
		}
		ours := must(Gradients(cost, all, AllowUnused()))
		theirs := must(G.Grad(cost, used...))
		out := make([][]float64, 3)
		var read G.Nodes
		for _, n := range append(ours, theirs...) {
			if n != nil {
				read = append(read, n)
			}
		}
		got := evaluate(t, read...)
		k := 0
		for i, n := range ours {
			out[i] = make([]float64, len(at[i]))
			if n != nil {
				out[i] = got[k]
				require.Equal(t, got[k], got[k+len(used)]) // gorgonia.Grad, through the same operations
				k++
			}
		}
		return out
	}
	for name, f := range exprs {
		grads := eval(f, at, true)
		for i := range at {
			for k := range at[i] {
				x, h := at[i][k], 1e-6
				at[i][k] = x + h
				up := eval(f, at, false)[0][0]
				at[i][k] = x - h
				down := eval(f, at, false)[0][0]
				at[i][k] = x
				want := (up - down) / (2 * h)
				require.InDelta(t, want, grads[i][k], 1e-7*max(1, math.Abs(want)), "%s: input %d, element %d", name, i, k)
			}
		}
	}
}

// A second derivative, and one through a float32 update with respect to a float64 learning rate.
func TestHigherDerivatives(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float64, "x", nil, 2)
	y := must(Expand(ScalarOf(x).Pow(Const(3)).Exp()))
	d := must(Gradients(y, G.Nodes{x}))
	dd := must(Gradients(d[0], G.Nodes{x}))
	got := evaluate(t, d[0], dd[0])
	require.InEpsilon(t, 12*math.Exp(8), got[0][0], 1e-12)
	require.InEpsilon(t, (144+12)*math.Exp(8), got[1][0], 1e-12)

	g = G.NewGraph()
	w := input(g, tensor.Float32, "w", []int{2}, 1, 2)
	lr := input(g, tensor.Float64, "lr", nil, .1)
	loss := must(G.Sum(must(G.Square(w))))
	grads := must(Gradients(loss, G.Nodes{w}))
	next := must(Expand(Of(w).Sub(ScalarOf(lr).Mul(Of(grads[0])))))
	after := must(G.Sum(must(G.Square(next))))
	d = must(Gradients(after, G.Nodes{lr}))
	require.InEpsilon(t, -2*2*(1-.2)*(1+4), evaluate(t, d[0])[0][0], 1e-6)
}
