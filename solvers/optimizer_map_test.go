package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// counts are the numbers of steps of rules, by their full names; −1 of one that has no counter.
func counts(t *testing.T, s *Solver, rules ...string) (out []float64) {
	t.Helper()
	for _, r := range rules {
		st := s.Store().Lookup(r + "/step")
		if st == nil {
			out = append(out, -1)
			continue
		}
		out = append(out, must(graphops.ScalarValue(must(st.Value()))))
	}
	return out
}

// scalars is a problem of parameters of one number with gradient 1.
func scalars(start float64, names ...string) *goldenFile {
	f := &goldenFile{}
	f.Problem.Repeat, f.Problem.Gradients = 1, [][][]float64{nil}
	for i, n := range names {
		f.Problem.Params = append(f.Problem.Params, struct {
			Name  string
			Shape []int
			Value []float64
		}{n, nil, []float64{start + float64(i)}})
		f.Problem.Gradients[0] = append(f.Problem.Gradients[0], []float64{1})
	}
	return f
}

// The numbers of Keras' MultiOptimizer: routes, the default, the function that chooses.
func TestOptimizerMap(t *testing.T) {
	f := scalars(2, "dense_1/kernel", "dense_2/kernel", "dense_3/kernel")
	byPattern := func() *Solver {
		return OptimizerMap(sgd(0), Route{"^dense_1/.*", sgd(.1)}, Route{"^dense_2/.*", sgd(1)})
	}
	everyHost(t, f, byPattern, 1, func(what string, tol float64, s *Solver, _ int, params []G.Value) {
		require.InDeltaSlice(t, []float64{1.9, 2, 4}, floats(params...), tol, what)
	})
	choose := func() *Solver {
		return OptimizerBy(func(p Param) int { return len(p.Name) % 2 }, sgd(.01), counting(.1))
	}
	everyHost(t, scalars(1, "ab", "c"), choose, 1, func(what string, tol float64, s *Solver, _ int, params []G.Value) {
		require.InDeltaSlice(t, []float64{.99, 1.9}, floats(params...), tol, what)
	})
	s := byPattern()
	require.Equal(t, []float64{.1, 1, 0}, []float64{must(s.Get("sgd/lr")), must(s.Get("sgd#2/lr")), must(s.Get("sgd#3/lr"))})
	require.NoError(t, s.Set("sgd#2/lr", .5))
	require.ErrorContains(t, s.Set("lr", 1), `several rules have a "lr": say which`)
	require.True(t, s.Optimizes())
	require.False(t, OptimizerMap(NewClipByNorm(1)).Optimizes())
}

// Which route a name takes.
func TestRoutes(t *testing.T) {
	a, b, c := sgd(1), sgd(2), sgd(3)
	for name, x := range map[string]struct {
		routes []Route
		want   float64 // the rate that "layer.1" meets
		err    string
	}{
		"none":                  {nil, 3, ""},
		"exact":                 {[]Route{{"layer.1", a}}, 1, ""},
		"exact before patterns": {[]Route{{"layer.*", b}, {".*1", b}, {"layer.1", a}}, 1, ""},
		"full match":            {[]Route{{"layer", a}, {"ayer.1", a}, {"layer.1|", b}}, 2, ""},
		"case":                  {[]Route{{"LAYER.1", a}}, 3, ""},
		"alternatives":          {[]Route{{"x|layer.1", a}, {"layer|1", b}}, 1, ""},
		"two":                   {[]Route{{"layer.*", a}, {".*1", b}}, 0, `"layer.*" and ".*1" both match parameter "layer.1"`},
		"two of one rule":       {[]Route{{"layer.*", a}, {".*1", a}}, 0, "both match"},
		"bad":                   {[]Route{{"(", a}}, 0, `the pattern "("`},
		"closes":                {[]Route{{"a)(b", a}}, 0, `the pattern "a)(b"`},
		"same":                  {[]Route{{"x", a}, {"x", b}}, 0, `there are two routes for "x"`},
		"nil":                   {[]Route{{"x", nil}}, 0, "the rule is nil"},
		"illegal":               {[]Route{{"x", sgd(-1)}}, 0, "learning_rate is -1"},
	} {
		w := &pair{"layer.1", G.NewF64(10), G.NewF64(1)}
		err := OptimizerMap(c, x.routes...).Step([]G.ValueGrad{w})
		if x.err != "" {
			require.ErrorContains(t, err, x.err, name)
			require.Equal(t, []float64{10}, floats(w.value))
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, []float64{10 - x.want}, floats(w.value), name)
	}
	w := []G.ValueGrad{&pair{"w", G.NewF64(10), G.NewF64(1)}}
	require.ErrorContains(t, OptimizerMap(nil).Err(), "the rule is nil")
	require.ErrorContains(t, OptimizerBy(nil, a).Err(), "the function that chooses rules is nil")
	require.ErrorContains(t, OptimizerBy(func(Param) int { return 0 }).Err(), "there are no rules")
	require.ErrorContains(t, OptimizerBy(func(Param) int { return 2 }, a, b).Step(w), `rule 2 was chosen for "w"; there are 2`)
	require.ErrorContains(t, OptimizerBy(func(Param) int { panic("oh") }, a).Step(w), "oh")
}

// Functions are rules like any.
func TestOptimizerMapOfFunctions(t *testing.T) {
	times := func(x float64) Rule {
		return RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
			return b.Each(in, func(s Step) Expr { return s.Delta.Mul(graphops.Const(x)) })
		})
	}
	everyHost(t, scalars(1, "a", "b", "c"), func() *Solver { return OptimizerMap(times(2), Route{"a", times(3)}, Route{"c", sgd(4)}) }, 2,
		func(what string, tol float64, _ *Solver, step int, params []G.Value) {
			n := float64(step)
			require.InDeltaSlice(t, []float64{1 - 3*n, 2 - 2*n, 3 - 4*n}, floats(params...), tol, what)
		})
}

// Every child counts its own steps: none without parameters, and none in a step without theirs. One object is one child.
func TestOptimizerMapCounts(t *testing.T) {
	shared := counting(.1)
	byName := OptimizerMap(counting(.1), Route{"a", counting(.1)}, Route{"b", shared}, Route{"c", shared}, Route{"nobody", counting(.1)})
	s := New(byName, SkipMissing())
	names := []string{"adam", "adam#2", "adam#3", "adam#4"} // a, shared, nobody, default
	a, b, c, d := &pair{"a", G.NewF64(1), nil}, &pair{"b", G.NewF64(1), nil}, &pair{"c", G.NewF64(1), nil}, &pair{"d", G.NewF64(1), nil}
	step := func(ps ...*pair) {
		for _, p := range ps {
			p.grad = G.NewF64(1)
		}
		require.NoError(t, s.Step([]G.ValueGrad{a, b, c, d}))
		for _, p := range ps {
			p.grad = nil
		}
	}
	step(a, b, c, d)
	require.Equal(t, []float64{1, 1, -1, 1}, counts(t, s, names...))
	step(a)
	step(c, b)
	step(c)
	require.Equal(t, []float64{2, 3, -1, 1}, counts(t, s, names...))
	require.Equal(t, 4, must(s.GlobalStep()))
	// A child that clips by the global norm clips by that of its own parameters.
	clip := OptimizerMap(sgd(1), Route{"[ab]", Chain(NewClipByGlobalNorm(1), sgd(1))})
	x, y, z := &pair{"a", G.NewF64(0), G.NewF64(3)}, &pair{"b", G.NewF64(0), G.NewF64(4)}, &pair{"c", G.NewF64(0), G.NewF64(100)}
	require.NoError(t, clip.Step([]G.ValueGrad{x, z, y}))
	require.InDeltaSlice(t, []float64{-.6, -.8, -100}, floats(x.value, y.value, z.value), 1e-12)
}

// The numbers of TensorFlow Addons' MultiOptimizer: parts, overlap, parameters of no part.
func TestMultiOptimizer(t *testing.T) {
	f := scalars(1, "a", "b", "c")
	everyHost(t, f, func() *Solver {
		return MultiOptimizer(Part{counting(.1), []string{"a"}}, Part{sgd(0), []string{"b"}})
	}, 130, func(what string, tol float64, s *Solver, step int, params []G.Value) {
		require.InDeltaSlice(t, []float64{1 - .1*float64(step), 2, 3}, floats(params...), 100*tol, what)
		require.Equal(t, []float64{float64(step)}, counts(t, s, "adam"), what)
	})
	overlap := func() *Solver {
		decaying := NewSGDW(func(s *SGDW) { s.LearningRate, s.WeightDecay = 1, .5 })
		return MultiOptimizer(Part{counting(.1), []string{"c", "b", "a"}}, Part{decaying, []string{"b"}})
	}
	everyHost(t, f, overlap, 1, func(what string, tol float64, s *Solver, step int, params []G.Value) {
		require.InDeltaSlice(t, []float64{.9, 1.9*.5 - 1, 2.9}, floats(params...), tol, what) // the decay sees the first step
	})
}

// A linear regression under Lookahead, as Addons tests it.
func TestLookaheadRegression(t *testing.T) {
	const batch, steps = 32, 3 * 10000 / 32
	w, x := []float64{.3, -.7, .2}, random(tensor.Float64, 7, batch*10, 3)
	g := G.NewGraph()
	in := G.NewMatrix(g, G.Float64, G.WithShape(batch, 3), G.WithName("x"))
	want := G.NewVector(g, G.Float64, G.WithShape(batch), G.WithName("y"))
	v := vector(g, "v", 0, 0, 0)
	loss := must(G.Mean(must(G.Square(must(G.Sub(must(G.Mul(in, v)), want))))))
	vm := must(graphops.NewMachine(must(Lookahead(sgd(.3)).Minimize(loss, v))))
	for i := range steps {
		k := i % 10 * batch * 3
		part := x.Float64s()[k : k+batch*3]
		y := make([]float64, batch)
		for r := range y {
			for c := range w {
				y[r] += part[r*3+c] * w[c]
			}
		}
		require.NoError(t, G.Let(in, value(tensor.Float64, []int{batch, 3}, part)))
		require.NoError(t, G.Let(want, value(tensor.Float64, []int{batch}, y)))
		require.NoError(t, vm.RunAll())
	}
	require.InDeltaSlice(t, w, floats(v.Value()), 1e-4)
}

// counting is a rule with a counter, whose steps for a constant gradient are its rate.
func counting(rate float64) Rule { return &Adam{LearningRate: rate, Beta1: .9, Beta2: .999} }
