package graphops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// noise is updates that add random numbers to w and count the draw, and its nodes: w, seed and draw.
func noise(dt tensor.Dtype, shape []int, stream string) ([]Update, []*G.Node) {
	g := G.NewGraph()
	w := input(g, dt, "w", shape, make([]float64, tensor.Shape(shape).TotalSize())...)
	seed, draw := input(g, tensor.Float32, "seed", nil, 1), G.NewScalar(g, tensor.Int, G.WithName("draw"))
	if err := G.Let(draw, 1); err != nil {
		panic(err)
	}
	n := Of(w).TruncatedNormal(ScalarOf(seed), ScalarOf(draw), stream)
	return []Update{{w, Of(w).Add(n.Mul(Const(.5)))}, {draw, ScalarOf(draw).Add(Const(1))}}, []*G.Node{w, seed, draw}
}

// All hosts draw the same numbers, in every run others, on tensors of all ranks and on scalars.
func TestTruncatedNormalHosts(t *testing.T) {
	for _, dt := range dtypes {
		for _, shape := range [][]int{nil, {1}, {5}, {3, 4}, {1, 1}, {2, 3, 5}, {2, 1, 3, 7}, {0, 3}} {
			var want [3][]float64
			us, ns := noise(dt, shape, "w")
			p := must(Compile(us))
			for i := range want {
				require.NoError(t, runOn(p, func(n *G.Node) G.Value { return n.Value() }))
				want[i] = floats(ns[0])
			}
			for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
				us, ns := noise(dt, shape, "w")
				vm := must(NewMachine(must(Commit(us, opts...))))
				for i := range want {
					run(t, vm)
					sameBits(t, want[i], floats(ns[0]), shape)
				}
			}
			for i := range want[0] {
				first, second := want[0][i], want[1][i]-want[0][i]
				require.NotEqual(t, first, second)
				require.NotZero(t, first)
			}
		}
	}
}

// Seed, draw and stream make other numbers; the element's index does, whatever the shape.
func TestTruncatedNormalStreams(t *testing.T) {
	seen := map[string]bool{}
	for _, stream := range []string{"w", "v", ""} {
		for seed := range 3 {
			us, ns := noise(tensor.Float64, []int{2, 3}, stream)
			require.NoError(t, G.Let(ns[1], float32(seed)))
			require.NoError(t, runOn(must(Compile(us)), func(n *G.Node) G.Value { return n.Value() }))
			for _, x := range floats(ns[0]) {
				require.False(t, seen[fmt.Sprint(x)])
				seen[fmt.Sprint(x)] = true
			}
		}
	}
	flat, n := noise(tensor.Float64, []int{6}, "w")
	require.NoError(t, runOn(must(Compile(flat)), func(n *G.Node) G.Value { return n.Value() }))
	for _, x := range floats(n[0]) {
		require.True(t, seen[fmt.Sprint(x)])
	}
}

// Two expressions of the same numbers are one, and they are constants to derivatives.
func TestTruncatedNormalExpanded(t *testing.T) {
	g := G.NewGraph()
	x, seed := input(g, tensor.Float32, "x", []int{2, 2}, 1, 2, 3, 4), input(g, tensor.Float64, "seed", nil, 1)
	noise := func() Expr { return Of(x).TruncatedNormal(ScalarOf(seed), Const(1), "x") }
	a, b := must(Expand(noise())), must(Expand(noise()))
	require.Same(t, a, b)
	other := must(Expand(Of(x).TruncatedNormal(ScalarOf(seed), Const(1), "y")))
	require.NotSame(t, a, other)
	require.NotEqual(t, a.Hashcode(), other.Hashcode())
	cost := must(Expand(Of(x).Add(noise().Mul(ScalarOf(seed))).Square().Sum()))
	grads := must(Gradients(cost, G.Nodes{x, seed}))
	v := evaluate(t, a, grads[0], grads[1])
	var bySeed float64
	for i, n := range v[0] {
		require.InDelta(t, 2*(float64(i+1)+n), v[1][i], 1e-6)
		bySeed += v[1][i] * n
	}
	require.InDelta(t, bySeed, v[2][0], 1e-5) // through the product alone
	_, err := Gradients(must(Expand(noise().Sum())), G.Nodes{seed})
	require.ErrorContains(t, err, "does not depend")
}

func TestTruncatedNormalRefusals(t *testing.T) {
	x, one := Of(input(G.NewGraph(), tensor.Float64, "x", []int{2}, 1)), Const(1)
	for name, e := range map[string]Expr{
		"of a scalar": one.TruncatedNormal(one, one, ""), "zero": Expr{}.TruncatedNormal(one, one, ""),
		"seed": x.TruncatedNormal(x, one, ""), "zero seed": x.TruncatedNormal(Expr{}, one, ""),
		"draw": x.TruncatedNormal(one, x, ""), "zero draw": x.TruncatedNormal(one, Expr{}, ""),
	} {
		require.Error(t, e.Err(), name)
	}
	_, err := Expand(x.TruncatedNormal(one, one, ""))
	require.ErrorContains(t, err, "reads no node")
}

// A plan with noise allocates nothing when it runs again.
func TestNoisyPlanAllocatesNothing(t *testing.T) {
	us, _ := noise(tensor.Float32, []int{300, 300}, "w")
	p := must(Compile(us))
	values := make([]G.Value, len(p.Leaves()))
	for i, n := range p.Leaves() {
		values[i] = n.Value()
	}
	require.NoError(t, p.Run(values))
	require.Zero(t, testing.AllocsPerRun(5, func() { _ = p.Run(values) }))
}
