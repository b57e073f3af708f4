package graphops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// special are values on which implementations differ.
var special = []float64{0, math.Copysign(0, -1), 1, -1, .5, -2.5, 3, 1e-40, -1e-310, 1e30, -1e30, math.Inf(1), math.Inf(-1), math.NaN(),
	math.MaxFloat32, math.SmallestNonzeroFloat32}

// primitives with what they mean, on float64s.
var meaning = map[string]struct {
	expr func(a, b Expr) Expr
	f    func(a, b float64) float64
}{
	"neg":      {func(a, _ Expr) Expr { return a.Neg() }, func(a, _ float64) float64 { return -a }},
	"square":   {func(a, _ Expr) Expr { return a.Square() }, func(a, _ float64) float64 { return a * a }},
	"sqrt":     {func(a, _ Expr) Expr { return a.Sqrt() }, func(a, _ float64) float64 { return math.Sqrt(a) }},
	"abs":      {func(a, _ Expr) Expr { return a.Abs() }, func(a, _ float64) float64 { return math.Abs(a) }},
	"sign":     {func(a, _ Expr) Expr { return a.Sign() }, sign},
	"floor":    {func(a, _ Expr) Expr { return a.Floor() }, func(a, _ float64) float64 { return math.Floor(a) }},
	"exp":      {func(a, _ Expr) Expr { return a.Exp() }, func(a, _ float64) float64 { return math.Exp(a) }},
	"log":      {func(a, _ Expr) Expr { return a.Log() }, func(a, _ float64) float64 { return math.Log(a) }},
	"tanh":     {func(a, _ Expr) Expr { return a.Tanh() }, func(a, _ float64) float64 { return math.Tanh(a) }},
	"cos":      {func(a, _ Expr) Expr { return a.Cos() }, func(a, _ float64) float64 { return math.Cos(a) }},
	"add":      {Expr.Add, func(a, b float64) float64 { return a + b }},
	"sub":      {Expr.Sub, func(a, b float64) float64 { return a - b }},
	"mul":      {Expr.Mul, func(a, b float64) float64 { return a * b }},
	"div":      {Expr.Div, func(a, b float64) float64 { return a / b }},
	"min":      {Expr.Min, func(a, b float64) float64 { return min(a, b) }},
	"max":      {Expr.Max, func(a, b float64) float64 { return max(a, b) }},
	"pow":      {Expr.Pow, math.Pow},
	"<":        {func(a, b Expr) Expr { return choice(a.Less(b)) }, func(a, b float64) float64 { return pick(a < b) }},
	"<=":       {func(a, b Expr) Expr { return choice(a.LessEqual(b)) }, func(a, b float64) float64 { return pick(a <= b) }},
	">":        {func(a, b Expr) Expr { return choice(a.Greater(b)) }, func(a, b float64) float64 { return pick(a > b) }},
	">=":       {func(a, b Expr) Expr { return choice(a.GreaterEqual(b)) }, func(a, b float64) float64 { return pick(a >= b) }},
	"=":        {func(a, b Expr) Expr { return choice(a.Equal(b)) }, func(a, b float64) float64 { return pick(a == b) }},
	"≠":        {func(a, b Expr) Expr { return choice(a.NotEqual(b)) }, func(a, b float64) float64 { return pick(a != b) }},
	"isfinite": {func(a, _ Expr) Expr { return choice(a.IsFinite()) }, func(a, _ float64) float64 { return pick(!math.IsNaN(a) && !math.IsInf(a, 0)) }},
	"and": {func(a, b Expr) Expr { return choice(a.Less(b).And(b.Less(Const(1)))) },
		func(a, b float64) float64 { return pick(a < b && b < 1) }},
	"or": {func(a, b Expr) Expr { return choice(a.Less(b).Or(b.Less(Const(1)))) },
		func(a, b float64) float64 { return pick(a < b || b < 1) }},
	"not":    {func(a, b Expr) Expr { return choice(a.Less(b).Not()) }, func(a, b float64) float64 { return pick(!(a < b)) }},
	"select": {func(a, b Expr) Expr { return a.Less(b).Select(a, b.Neg()) }, func(a, b float64) float64 { return map[bool]float64{true: a, false: -b}[a < b] }},
}

func choice(c Expr) Expr { return c.Select(Const(3), Const(7)) }

func pick(c bool) float64 { return map[bool]float64{true: 3, false: 7}[c] }

func sign(a, _ float64) float64 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return a
}

// Every primitive means what it says, for every pair of special values, elementwise in both dtypes and scalar, fused and
// expanded.
func TestPrimitives(t *testing.T) {
	var as, bs []float64
	for _, a := range special {
		for _, b := range special {
			as, bs = append(as, a), append(bs, b)
		}
	}
	n := len(as)
	for name, p := range meaning {
		for _, dt := range dtypes {
			round := func(x float64) float64 {
				if dt == tensor.Float32 {
					return float64(float32(x))
				}
				return x
			}
			for _, expanded := range []bool{false, true} {
				var opts []CommitOpt
				if expanded {
					opts = append(opts, Expanded())
				}
				g := G.NewGraph()
				a, b := input(g, dt, "a", []int{n}, as...), input(g, dt, "b", []int{n}, bs...)
				out := input(g, dt, "out", []int{n})
				run(t, must(NewMachine(must(Commit([]Update{{out, p.expr(Of(a), Of(b))}}, opts...)))))
				want := make([]float64, n)
				for i := range want {
					want[i] = round(p.f(round(as[i]), round(bs[i])))
				}
				sameBits(t, want, floats(out), "%s %v expanded=%v", name, dt, expanded)
			}
		}
		for _, expanded := range []bool{false, true} {
			g := G.NewGraph()
			a, b, out := input(g, tensor.Float64, "a", nil, 0), input(g, tensor.Float64, "b", nil, 0), input(g, tensor.Float64, "out", nil, 0)
			var opts []CommitOpt
			if expanded {
				opts = append(opts, Expanded())
			}
			vm := must(NewMachine(must(Commit([]Update{{out, p.expr(ScalarOf(a), ScalarOf(b))}}, opts...))))
			for i := range as {
				require.NoError(t, G.Let(a, as[i]))
				require.NoError(t, G.Let(b, bs[i]))
				run(t, vm)
				sameBits(t, []float64{p.f(as[i], bs[i])}, floats(out), "%s(%v, %v) scalar", name, as[i], bs[i])
			}
		}
	}
}

// Reductions, at sizes around the strips of the kernel, against a plain float64 loop.
func TestReductions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 8, 255, 256, 257, 1000, 70000} {
		for _, dt := range dtypes {
			for _, expanded := range []bool{false, true} {
				x := make([]float64, n)
				var sum, squares float64
				largest := math.Inf(-1)
				for i := range x {
					x[i] = float64(float32(r.NormFloat64()))
					sum, squares, largest = sum+x[i], squares+x[i]*x[i], max(largest, x[i])
				}
				g := G.NewGraph()
				a := input(g, dt, "a", []int{n}, x...)
				var updates []Update
				for name, e := range map[string]Expr{"sum": Of(a).Sum(), "norm": Of(a).Norm(), "mean": Of(a).Mean(), "max": Of(a).MaxAll(),
					"all": Of(a).Less(Const(largest)).All().Select(Const(1), Const(0)), "finite": Of(a).IsFinite().All().Select(Const(1), Const(0))} {
					updates = append(updates, Update{input(g, tensor.Float64, name, nil, 0), e})
				}
				var opts []CommitOpt
				if expanded {
					opts = append(opts, Expanded())
				}
				run(t, must(NewMachine(must(Commit(updates, opts...)))))
				for name, want := range map[string]float64{"sum": sum, "norm": math.Sqrt(squares), "mean": sum / float64(n), "max": largest,
					"all": map[bool]float64{true: 1}[n == 0], "finite": 1} {
					got := floats(g.ByName(name)[0])[0]
					if math.IsNaN(want) || math.IsInf(want, 0) {
						sameBits(t, []float64{want}, []float64{got}, name)
					} else {
						require.InDelta(t, want, got, 1e-12*max(1, float64(n)), "%s of %d", name, n)
					}
				}
			}
		}
	}
	g := G.NewGraph()
	big := input(g, tensor.Float32, "big", []int{2}, 3e30, 4e30)
	norm := input(g, tensor.Float64, "norm", nil, 0)
	nan := input(g, tensor.Float64, "nan", []int{3}, 1, math.NaN(), 2)
	out := input(g, tensor.Float64, "out", nil, 0)
	run(t, must(NewMachine(must(Commit([]Update{{norm, Of(big).Norm()}, {out, Of(nan).MaxAll()}})))))
	require.InEpsilon(t, 5e30, floats(norm)[0], 1e-6) // the squares do not overflow
	require.True(t, math.IsNaN(floats(out)[0]))
}

// Scalars are computed in float64 and rounded once, where they meet a tensor.
func TestScalarsAreFloat64(t *testing.T) {
	for _, expanded := range []bool{false, true} {
		var opts []CommitOpt
		if expanded {
			opts = append(opts, Expanded())
		}
		g := G.NewGraph()
		w := input(g, tensor.Float32, "w", []int{1}, 1)
		beta := input(g, tensor.Float64, "beta", nil, .999)
		half := input(g, tensor.Float32, "half", nil, .5)
		p := input(g, tensor.Float32, "p", nil, 3)
		step := Const(1).Sub(ScalarOf(beta).Pow(Const(1000)))
		op := must(Commit([]Update{{w, Of(w).Mul(step)}, {half, ScalarOf(half).Div(Const(3))}, {p, Of(p).Div(Const(7)).Mul(Const(7))}}, opts...))
		run(t, must(NewMachine(op)))
		third := float32(3) / 7 * 7
		require.Equal(t, []float64{float64(float32(1 - math.Pow(.999, 1000))), float64(float32(.5 / 3.0)), float64(third)}, floats(w, half, p))
	}
}

// randomExpr builds an expression of depth d over leaves.
func randomExpr(r *rand.Rand, leaves []Expr, d int) Expr {
	if d == 0 || r.IntN(8) == 0 {
		if r.IntN(4) == 0 {
			return Const(special[r.IntN(len(special))])
		}
		return leaves[r.IntN(len(leaves))]
	}
	next := func() Expr { return randomExpr(r, leaves, d-1) }
	switch k := r.IntN(24); k {
	case 0:
		return next().Neg()
	case 1:
		return next().Square()
	case 2:
		return next().Sqrt()
	case 3:
		return next().Abs()
	case 4:
		return next().Sign()
	case 5:
		return next().Floor()
	case 6:
		return next().Exp()
	case 7:
		return next().Tanh()
	case 8:
		return next().Sum()
	case 9:
		return next().MaxAll()
	case 10:
		return next().Norm()
	case 11:
		return next().Less(next()).Or(next().IsFinite()).Select(next(), next())
	case 12:
		return next().Min(next())
	case 13:
		return next().Max(next())
	case 14:
		return next().Log()
	case 15:
		return next().Pow(next())
	case 16, 17:
		return next().Div(next())
	case 18, 19:
		return next().Sub(next())
	case 20, 21:
		return next().Mul(next())
	}
	return next().Add(next())
}

// Random lists of updates: fused, expanded and through a plan give the same bits, whatever reads and writes whatever.
func TestRandomUpdates(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		dt := dtypes[seed%2]
		shape := [][]int{nil, {1}, {7}, {3, 100}, {2, 3, 64}, {257}}[r.IntN(6)]
		n := tensor.Shape(shape).TotalSize()
		var results [][]float64
		start := make([][]float64, 4)
		for i := range start {
			start[i] = make([]float64, n)
			for k := range start[i] {
				if start[i][k] = r.NormFloat64(); r.IntN(10) == 0 {
					start[i][k] = special[r.IntN(len(special))]
				}
			}
		}
		again := r.Uint64()
		for _, host := range []string{"fused", "expanded", "plan"} {
			r := rand.New(rand.NewPCG(again, 7))
			g := G.NewGraph()
			var nodes G.Nodes
			var leaves []Expr
			for i, x := range start {
				nodes = append(nodes, input(g, dt, fmt.Sprint("n", i), shape, x...))
				leaves = append(leaves, Of(nodes[i]))
			}
			scalar := input(g, tensor.Float64, "scalar", nil, .75)
			leaves = append(leaves, ScalarOf(scalar))
			var updates []Update
			for _, i := range r.Perm(3) {
				e := randomExpr(r, leaves, 4)
				if e.IsScalar() {
					e = e.Add(leaves[r.IntN(4)])
				}
				updates = append(updates, Update{nodes[i], e})
			}
			updates = append(updates, Update{scalar, leaves[0].Sum().Tanh()})
			if host == "plan" {
				p := must(Compile(updates))
				var vals []G.Value
				for _, l := range p.Leaves() {
					vals = append(vals, l.Value())
				}
				require.NoError(t, p.Run(vals))
			} else {
				var opts []CommitOpt
				if host == "expanded" {
					opts = append(opts, Expanded())
				}
				run(t, must(NewMachine(must(Commit(updates, opts...)))))
			}
			results = append(results, floats(append(nodes, scalar)...))
		}
		sameBits(t, results[0], results[1], "seed %d", seed)
		sameBits(t, results[0], results[2], "seed %d", seed)
	}
}
