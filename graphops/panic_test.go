package graphops

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// every has a node of each kind of operation of this package, and the commit.
func every(t *testing.T) (ops G.Nodes, x, c *G.Node) {
	g := G.NewGraph()
	x = input(g, tensor.Float32, "x", []int{2, 2}, 1, 2, 3, 4)
	c = input(g, tensor.Float64, "c", nil, 2)
	e := Of(x)
	gen := must(NewGenerator(NewStore(), "random", 1))
	for _, v := range []Expr{e.Mul(e), e.Sqrt(), e.Sum(), e.MaxAll(), e.Mul(ScalarOf(c)), e.SumAlong(0), ScalarOf(c).Add(Const(1)).Mul(e.Mean())} {
		ops = append(ops, must(Expand(v)))
	}
	ops = append(ops, must(newProduct(x, x, false, true)), must(Dropout(x, .5, gen)), must(reshape(x, tensor.Shape{4})), must(constant(math.Pi, x)))
	checks := must(CheckNumerics(slices.Clone(ops)))
	ops = append(ops, checks...)
	op := must(Commit([]Update{{x, e.Sub(Of(ops[0]))}}, Expanded(), Before(func() error { return nil })))
	ops = append(ops, op)
	for _, n := range children(op) { // also what is made for people to look at
		if n.Op() != nil {
			ops = append(ops, n)
		}
	}
	return ops, x, c
}

// broken are values that no operation can use: nothing, nil pointers, other types, dtypes and shapes, damaged tensors.
func brokenValues() []G.Value {
	masked := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{1, 2, 3, 4}, []bool{true, false, true, false}))
	return []G.Value{
		nil, (*tensor.Dense)(nil), (*G.F64)(nil), (*G.F32)(nil), G.NewB(true), G.NewU8(1), G.NewI(3),
		dense(tensor.Float64, []int{2, 2}, 1, 2, 3, 4), dense(tensor.Float32, []int{3}, 1, 2, 3), dense(tensor.Float32, nil, 1),
		tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]string{"a", "b", "c", "d"})), masked, &tensor.Dense{},
	}
}

// Whatever an operation gets, it returns, and mostly an error, which names it.
func TestOperationsNeverPanic(t *testing.T) {
	ops, _, _ := every(t)
	seen := map[string]bool{}
	for _, n := range ops {
		seen[strings.TrimPrefix(fmt.Sprintf("%T", n.Op()), "*graphops.")] = true
		kids := children(n)
		for _, bad := range brokenValues() {
			for at := range kids {
				in := make([]G.Value, len(kids))
				for i, k := range kids {
					if in[i] = k.Value(); in[i] == nil {
						in[i] = G.NewF64(0)
					}
				}
				in[at] = bad
				requireNamed(t, n, in)
			}
		}
		requireNamed(t, n, nil)
		requireNamed(t, n, make([]G.Value, len(kids)+3))
	}
	for _, name := range []string{"primitive", "product", "dropout", "reshaped", "constantOp", "numericsOp", "commitOp", "beforeOp"} {
		require.True(t, seen[name], name)
	}
}

// requireNamed runs an operation. What it says must tell which one it is.
func requireNamed(t *testing.T, n *G.Node, in []G.Value) {
	t.Helper()
	require.NotPanics(t, func() {
		if _, err := n.Op().Do(in...); err != nil {
			require.Contains(t, err.Error(), "graphops")
		}
	}, "%v of %v", n.Op(), in)
}

// The error of a panic has the operation, its node, and what it got.
func TestPanicIsNamed(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float64, "x", []int{2}, 1, 2)
	n := must(Expand(Of(x).Sqrt()))
	p := n.Op().(*primitive)
	p.prog = nil
	_, err := p.Do(x.Value())
	require.ErrorContains(t, err, "graphops: "+p.name+" (node ")
	require.ErrorContains(t, err, "of float64 (2))")
	_, err = p.Do(make([]G.Value, 12)...)
	require.ErrorContains(t, err, "operand 0")
	o := &op{name: "o"}
	err = nil
	func() {
		defer o.rescue(&err, append(make([]G.Value, 9), (*G.F64)(nil)))
		panic("oh")
	}()
	require.ErrorContains(t, err, "and 2 more): oh")
}

// A value of another dtype, which gorgonia.Let takes and with which Gorgonia's operations would end the process.
func TestWrongValuesOfInputs(t *testing.T) {
	g := G.NewGraph()
	x, w := input(g, tensor.Float32, "x", []int{2}, 1, 2), input(g, tensor.Float32, "w", nil, 3)
	y := must(G.Sum(must(G.Mul(x, w))))
	op := must(Commit([]Update{{w, Of(w).Sub(Of(y).Mul(Const(.1)))}}, After(y)))
	for _, vm := range []G.VM{must(NewMachine(op, y)), must(NewEvalMachine(y))} {
		good := w.Value()
		require.NoError(t, G.Let(w, 2.0)) // Gorgonia does not look
		require.ErrorContains(t, vm.RunAll(), `"w": its value is float64 (); it must be float32 ()`)
		require.NoError(t, G.Let(w, good))
		require.NoError(t, x.Value().(*tensor.Dense).Reshape(1, 2))
		require.ErrorContains(t, vm.RunAll(), `"x": its value is float32 (1, 2); it must be float32 (2)`)
		require.NoError(t, x.Value().(*tensor.Dense).Reshape(2))
		require.NoError(t, vm.RunAll())
	}
}
