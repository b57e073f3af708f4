package graphops

import (
	"math"
	"regexp"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// checked runs a machine over the checks and reports what the run found.
func checked(t *testing.T, checks G.Nodes) (found *NotFiniteError, err error) {
	t.Helper()
	vm, err := NewEvalMachine(checks...)
	require.NoError(t, err)
	err = vm.RunAll()
	var e NotFiniteError
	if errors.As(err, &e) {
		return &e, err
	}
	require.NoError(t, err)
	return nil, nil
}

func TestCheckNumerics(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	logs := regexp.MustCompile("^(ln|log2)$")
	div := func(x *G.Node) *G.Node { return must(G.HadamardDiv(x, x)) }
	ours := func(f func(Expr) Expr) func(x *G.Node) *G.Node {
		return func(x *G.Node) *G.Node { return must(Expand(f(Of(x)))) }
	}
	cases := []struct {
		name  string
		x     []float64
		f     func(x *G.Node) *G.Node
		opts  []NumericsOpt
		value float64 // 0: passes
		at    int
	}{
		{"log 9", []float64{9, 1}, logOf, nil, 0, 0},
		{"log 0", []float64{9, 0}, logOf, nil, -inf, 1},
		{"log -1", []float64{-1, 0}, logOf, nil, nan, 0},
		{"ours, log 9", []float64{9, 1}, ours(Expr.Log), nil, 0, 0},
		{"ours, log 0", []float64{9, 0}, ours(Expr.Log), nil, -inf, 1},
		{"ours, a scalar", []float64{-3, -3}, ours(func(e Expr) Expr { return e.Sum().Sqrt() }), nil, nan, 0},
		{"division", []float64{1, 0}, div, nil, inf, 1},
		{"softmax of an infinity", []float64{1, inf}, func(x *G.Node) *G.Node { return must(G.SoftMax(x)) }, nil, nan, 0},
		{"what only passes on", []float64{1, inf}, func(x *G.Node) *G.Node { return must(G.Sum(must(G.Neg(x)))) }, nil, 0, 0},
		{"ours that only passes on", []float64{1, inf}, ours(Expr.Neg), nil, 0, 0},
		{"all operations", []float64{1, inf}, func(x *G.Node) *G.Node { return must(G.Neg(x)) }, []NumericsOpt{CheckAllOps()}, -inf, 1},
		{"inputs", []float64{1, inf}, func(x *G.Node) *G.Node { return must(G.Neg(x)) }, []NumericsOpt{CheckInputs(), nil}, inf, 1},
		{"an input itself", []float64{nan, inf}, func(x *G.Node) *G.Node { return x }, []NumericsOpt{CheckInputs()}, nan, 0},
		{"inner", []float64{1, 0}, func(x *G.Node) *G.Node { return must(G.Sum(must(G.Tanh(logOf(x))))) }, nil, -inf, 1},
		{"ignored by a regular expression", []float64{1, 0}, func(x *G.Node) *G.Node { return must(G.Sum(logOf(x))) },
			[]NumericsOpt{IgnoreNodes(func(n *G.Node) bool { return logs.MatchString(n.Op().String()) })}, 0, 0},
	}
	for _, c := range cases {
		for _, dt := range dtypes {
			g := G.NewGraph()
			y := c.f(input(g, dt, "x", []int{2}, c.x...))
			checks, err := CheckNumerics(G.Nodes{y}, c.opts...)
			require.NoError(t, err)
			if len(checks) == 0 {
				require.Zero(t, c.value, c.name)
				continue
			}
			e, err := checked(t, checks)
			if c.value == 0 {
				require.Nil(t, e, c.name)
				continue
			}
			require.NotNil(t, e, c.name)
			require.Equal(t, c.at, e.Element, c.name)
			require.True(t, c.value == e.Value || math.IsNaN(c.value) && math.IsNaN(e.Value), "%s: %v", c.name, e.Value)
			require.ErrorContains(t, err, "is "+fmtFloat(c.value))
		}
	}
}

func logOf(x *G.Node) *G.Node { return must(G.Log(x)) }

func fmtFloat(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case x < 0:
		return "-Inf"
	}
	return "+Inf"
}

// The error names the node and the operation; a scalar has one element.
func TestNotFiniteError(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float32, "x", nil, 0)
	y := logOf(x)
	G.WithName("the log")(y)
	e, err := checked(t, must(CheckNumerics(G.Nodes{must(G.Neg(y))})))
	require.Equal(t, &NotFiniteError{y, 0, math.Inf(-1)}, e)
	require.ErrorContains(t, err, `element 0 of node 1, "the log" of shape () (operation ln), is -Inf`)
	_, err = checked(t, must(CheckNumerics(G.Nodes{input(g, tensor.Float64, "nan", nil, math.NaN())}, CheckInputs())))
	require.ErrorContains(t, err, `"nan" of shape () (operation input), is NaN`)
}

func TestCheckNumericsRefuses(t *testing.T) {
	x := input(G.NewGraph(), tensor.Float64, "x", nil, 0)
	for _, ns := range []G.Nodes{nil, {nil}, {x, nil}, {x, input(G.NewGraph(), tensor.Float64, "y", nil, 0)}} {
		_, err := CheckNumerics(ns)
		require.Error(t, err)
	}
	_, err := CheckNumerics(G.Nodes{logOf(x)}, IgnoreNodes(func(*G.Node) bool { panic("no") }))
	require.ErrorContains(t, err, "no")
	require.Len(t, must(CheckNumerics(G.Nodes{logOf(x)})), 1)
	require.Equal(t, must(CheckNumerics(G.Nodes{logOf(x)})), must(CheckNumerics(G.Nodes{logOf(x), logOf(x)}, IgnoreNodes(nil))))
}

// Elements that lie apart in memory are found, and what lies between them is not looked at.
func TestCheckNumericsOfViews(t *testing.T) {
	for _, dt := range dtypes {
		for _, bad := range []int{-1, 0, 5} {
			g := G.NewGraph()
			x := G.NewTensor(g, dt, 2, G.WithShape(3, 2), G.WithName("x"))
			c := newCell(x, 2)
			for i := range c.all() {
				c.set(i, math.Inf(1))
			}
			for i, at := range c.at {
				if c.set(at, 1); i == bad {
					c.set(at, math.NaN())
				}
			}
			require.NoError(t, G.Let(x, c.value))
			e, _ := checked(t, must(CheckNumerics(G.Nodes{x}, CheckInputs())))
			if bad < 0 {
				require.Nil(t, e)
			} else {
				require.Equal(t, bad, e.Element)
			}
		}
	}
}

// Gorgonia writes the result of an operation over an operand that nobody reads any more, also by way of a reshaped one.
func TestCheckNumericsSeesWhatIsOverwritten(t *testing.T) {
	for _, through := range []func(*G.Node) *G.Node{
		func(n *G.Node) *G.Node { return n },
		func(n *G.Node) *G.Node { return must(G.Reshape(n, tensor.Shape{4})) },
		func(n *G.Node) *G.Node { return must(G.Dropout(n, .5)) },
	} {
		build := func() (q, sum *G.Node) {
			g := G.NewGraph()
			x := input(g, tensor.Float64, "x", []int{2, 2}, 1, 0, 3, 4)
			one := input(g, tensor.Float64, "one", nil, 1)
			q = must(G.Inverse(x))
			return q, must(G.Sum(must(G.Lt(through(q), one, true))))
		}
		q, _ := build()
		require.NoError(t, G.NewTapeMachine(q.Graph(), G.EvalMode()).RunAll())
		require.Equal(t, []float64{0, 0, 1, 1}, floats(q), "nothing was written over")
		q, sum := build()
		must(CheckNumerics(G.Nodes{sum}))
		var e NotFiniteError
		require.ErrorAs(t, opened(G.NewTapeMachine(q.Graph(), G.EvalMode()).RunAll()), &e)
		require.Equal(t, 1, e.Element)
	}
}

// The derivative of 1/x at 0, on a graph that has its gradients already.
func TestCheckNumericsOfGradients(t *testing.T) {
	for _, dt := range dtypes {
		g := G.NewGraph()
		x := input(g, dt, "x", []int{2}, 1, 2)
		grads := must(Gradients(must(G.Sum(must(G.Inverse(x)))), G.Nodes{x}))
		onlyGradient := IgnoreNodes(func(n *G.Node) bool { return n != grads[0] })
		checks := must(CheckNumerics(grads, CheckAllOps(), onlyGradient))
		all := must(CheckNumerics(grads))
		e, _ := checked(t, append(checks, all...))
		require.Nil(t, e)
		require.NoError(t, G.Let(x, dense(dt, []int{2}, 1, 0)))
		e, _ = checked(t, checks)
		require.Same(t, grads[0], e.Node)
		require.Equal(t, 1, e.Element)
		e, _ = checked(t, all)
		require.Equal(t, "inv", e.Node.Op().String())
	}
}

// A run that fails writes nothing: ln w from w = 1 with rate 1 comes to 0, and stays there.
func TestCheckNumericsBeforeCommit(t *testing.T) {
	for _, dt := range dtypes {
		for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
			g := G.NewGraph()
			w, n := input(g, dt, "w", nil, 1), input(g, tensor.Float64, "n", nil, 0)
			loss := logOf(w)
			grads := must(Gradients(loss, G.Nodes{w}))
			checks := must(CheckNumerics(append(grads, loss)))
			op, err := Commit([]Update{{w, Of(w).Sub(Of(grads[0]))}, {n, Of(n).Add(Const(1))}}, append(opts, After(checks...))...)
			require.NoError(t, err)
			vm := must(NewMachine(op))
			require.NoError(t, vm.RunAll())
			for range 2 {
				err := vm.RunAll()
				var e NotFiniteError
				require.ErrorAs(t, err, &e)
				require.Same(t, loss, e.Node)
				sameBits(t, []float64{0, 1}, floats(w, n))
			}
		}
	}
}
