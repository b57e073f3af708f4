package solvers

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers/schedule"
)

// gradients is a problem like constant, with the gradients of each step: grads[step][param].
func gradients(w [][]float64, grads ...[][]float64) *goldenFile {
	var wg [][]float64
	for _, x := range w {
		wg = append(wg, x, x)
	}
	f := constant(wg...)
	f.Problem.Repeat, f.Problem.Gradients = 0, grads
	return f
}

// numbers is gradients of a single number.
func numbers(w float64, grads ...float64) *goldenFile {
	var all [][][]float64
	for _, g := range grads {
		all = append(all, [][]float64{{g}})
	}
	return gradients([][]float64{{w}}, all...)
}

// remembered reads a slot or number by its full name.
func remembered(t *testing.T, s *Solver, name string) []float64 {
	t.Helper()
	st := s.Store().Lookup(name)
	require.NotNil(t, st, name)
	return floats(must(st.Value()))
}

func based1(r Rule, options ...func(*Base)) func() *Solver {
	return func() *Solver { return WithBase(r, options...) }
}

// The numbers of Keras' tests and of runs of its classes: parameters, averages and accumulators by step.
func TestBaseNumbers(t *testing.T) {
	ema := func(m, f float64) func(*Base) {
		return func(b *Base) { b.UseEMA, b.EMAMomentum, b.EMAOverwriteFrequency = true, m, f }
	}
	strict := func(b *Base) { b.KerasStrict, b.GradientAccumulationSteps = true, 2 }
	means := func(b *Base) { b.GradientAccumulationSteps = 2 }
	from := func(x float64) []float64 { return []float64{x, x + 1, x + 2, x + 3} }
	firm := func(b *Base) { b.OverwriteWithGradient = []string{"w0"} }
	for name, c := range map[string]struct {
		f           *goldenFile
		solver      func() *Solver
		steps       int
		w           map[int][]float64
		average     map[int][]float64
		accumulator map[int][]float64
	}{
		"ema, accumulated, strict": {pulled(10), based1(sgd(1), ema(.9, 0), strict), 8,
			each(10, 9, 9, 8, 8, 7, 7, 6), each(10, 9, 9, 8.9, 8.81, 8.629, 8.4661, 8.21949), nil},
		"ema, accumulated, overwritten, strict": {pulled(10), based1(sgd(1), ema(.9, 2), strict), 10,
			each(10, 9, 9, 8.9, 8.9, 7.9, 8.71, 8.61, 8.61, 7.61), each(10, 9, 9, 8.9, 8.9, 8.8, 8.71, 8.61, 8.61, 8.51), nil},
		"ema, accumulated": {pulled(10), based1(sgd(1), ema(.9, 0), means), 6,
			each(10, 9, 9, 8, 8, 7), map[int][]float64{2: {9}, 3: {9}, 4: {8.9}, 5: {8.9}, 6: {8.71}}, nil},
		"ema, accumulated, overwritten": {pulled(10), based1(sgd(1), ema(.9, 2), means), 8,
			each(10, 9, 9, 8.9, 8.9, 7.9, 7.9, 8.61), nil, nil},
		"ema, overwritten": {pulled(10), based1(sgd(1), ema(.9, 1)), 4, each(9, 8.9, 8.8, 8.7), nil, nil},
		"ema 0":            {pulled(10), based1(sgd(1), ema(0, 0)), 3, each(9, 8, 7), each(9, 8, 7), nil},
		"ema 1":            {pulled(10), based1(sgd(1), ema(1, 0)), 3, each(9, 8, 7), each(9, 9, 9), nil},
		"ema, in part":     {pulled(1), based1(sgd(1), ema(.5, 0)), 2, each(0, -1), map[int][]float64{2: {-.5}}, nil},
		"ema, ten steps": {pulled(10), based1(sgd(.01), ema(.99, 0)), 10,
			map[int][]float64{10: {9.9}}, map[int][]float64{10: {9.985617924991}}, nil},
		"ema of a matrix": {constant(from(3), []float64{1, 1, 1, 1}), based1(sgd(1), ema(.9, 3)), 3,
			map[int][]float64{1: from(2), 2: from(1), 3: from(1.71)},
			map[int][]float64{1: from(2), 2: from(1.9), 3: from(1.71)}, nil},
		"ema before the constraint": {numbers(1, .8, .8, .8), based1(sgd(1), ema(.5, 0), func(b *Base) { b.Constraints = []Rule{NewNonNegative()} }), 3,
			each(.2, 0, 0), each(.2, -.2, -.5), nil},
		"non-negative": {constant([]float64{-1, -.5, -.1}, []float64{0, 0, 0}),
			based1(sgd(1e-4), func(b *Base) { b.Constraints = []Rule{NewNonNegative()} }), 1, map[int][]float64{1: {0, 0, 0}}, nil, nil},
		"constraint, accumulated, strict": {numbers(-1, 1, 1), based1(sgd(1), strict, func(b *Base) { b.Constraints = []Rule{NewNonNegative()} }), 2,
			each(0, 0), nil, nil},
		"constraint, accumulated": {numbers(-1, -1, -1), based1(sgd(.5), means, func(b *Base) { b.Constraints = []Rule{NewNonNegative()} }), 2,
			each(-1, 0), nil, nil},
		"loss scale": {constant([]float64{1, 2, 3, 4}, []float64{1024, 2048, 3072, 4096}),
			based1(sgd(1), func(b *Base) { b.LossScaleFactor = 1024 }), 1, map[int][]float64{1: {0, 0, 0, 0}}, nil, nil},
		"accumulated": {constant(from(1), []float64{1, 1, 1, 1}), based1(sgd(1), func(b *Base) { b.GradientAccumulationSteps = 3 }), 4,
			map[int][]float64{1: from(1), 2: from(1), 3: from(0), 4: from(0)}, nil,
			map[int][]float64{1: {1, 1, 1, 1}, 2: {2, 2, 2, 2}, 3: {0, 0, 0, 0}, 4: {1, 1, 1, 1}}},
		"the mean is clipped": {numbers(0, 4, -3), based1(sgd(1), means, func(b *Base) { b.ClipValue = 1 }), 2, each(0, -.5), nil, nil},
		"overwritten":         {constant([]float64{5}, []float64{1}, []float64{1}, []float64{1}), based1(sgd(1), firm), 1, map[int][]float64{1: {1, 0}}, nil, nil},
		"overwritten, accumulated": {gradients([][]float64{{5}, {1}}, [][]float64{{1}, {1}}, [][]float64{{2}, {2}}, [][]float64{{1}, {1}}),
			based1(sgd(1), firm, means), 3, map[int][]float64{1: {5, 1}, 2: {2, -.5}, 3: {2, -.5}}, nil, each(1, 0, 1)},
		"overwritten is lifted to 0": {numbers(5, -2, -1), based1(sgd(1), firm, means), 2, each(5, 0), nil, nil},
		"only the others in order": {constant([]float64{1}, []float64{8}, []float64{1}, []float64{8}), based1(sgd(1), firm, func(b *Base) {
			b.LossScaleFactor, b.WeightDecay, b.ClipNorm = 4, .5, .1
			b.UseEMA = true
			b.Constraints = []Rule{NewBox(-2, 2)}
		}), 1, map[int][]float64{1: {8, .4}}, nil, nil},
	} {
		everyHost(t, c.f, c.solver, c.steps, func(what string, tol float64, s *Solver, step int, params []G.Value) {
			if c.w[step] != nil {
				require.InDeltaSlice(t, c.w[step], floats(params...), 10*tol, "%s: %s", name, what)
			}
			if c.average[step] != nil {
				require.InDeltaSlice(t, c.average[step], averagesOf(t, s, 1), 10*tol, "%s: %s", name, what)
			}
			if c.accumulator[step] != nil {
				require.InDeltaSlice(t, c.accumulator[step], remembered(t, s, "w0/base/gradient_accumulator"), tol, "%s: %s", name, what)
			}
		})
	}
}

// hosts runs a problem in float64, in the graph and by Step, and returns the parameters after each step.
func hosts(t *testing.T, f *goldenFile, solver func(...Option) *Solver, steps int) (all [][][]float64) {
	for _, host := range []string{"step", "fused", "expanded"} {
		var opts []Option
		if host == "expanded" {
			opts = append(opts, Expanded())
		}
		var got [][]float64
		goldenHost(t, f, tensor.Float64, solver(opts...), host != "step", steps, func(_ int, params []G.Value) {
			got = append(got, floats(params...))
		})
		all = append(all, got)
	}
	return all
}

// Schedules see every run, also those that only accumulate.
func TestBaseSchedules(t *testing.T) {
	for _, got := range hosts(t, pulled(1), func(opts ...Option) *Solver {
		s := New(WithBase(sgd(0), func(b *Base) { b.GradientAccumulationSteps = 2 }), opts...)
		rate := schedule.NewPiecewiseConstantDecay([]float64{0, 1, 2, 3}, []float64{1, .1, .01, .001, .0001})
		require.NoError(t, s.Schedule("learning_rate", rate))
		return s
	}, 4) {
		require.InDeltaSlice(t, []float64{1, .9, .9, .899}, slices.Concat(got...), 1e-12)
	}
	for _, got := range hosts(t, constant([]float64{2}, []float64{0}), func(opts ...Option) *Solver { // the decay follows one, from none
		s := New(WithBase(sgd(.5)), opts...)
		require.NoError(t, s.Schedule("weight_decay", schedule.NewPiecewiseConstantDecay([]float64{0}, []float64{0, .5})))
		return s
	}, 3) {
		require.InDeltaSlice(t, []float64{2, 1.5, 1.125}, slices.Concat(got...), 1e-12)
	}
}

// kerasDecaying are the optimizers of Keras' test of weight decay.
var kerasDecaying = []string{"adam", "adamw", "adagrad", "adadelta", "adamax", "nadam", "rmsprop", "sgd", "lion", "lamb", "adafactor", "adabelief"}

// Weight decay alone is geometric, in every optimizer, and excluded parameters stay.
func TestBaseWeightDecay(t *testing.T) {
	f := constant([]float64{2}, []float64{0}, []float64{2}, []float64{0})
	for _, name := range kerasDecaying {
		options := map[string]any{"learning_rate": 1, "weight_decay": .004, "exclude_from_weight_decay": "1$"}
		for _, got := range hosts(t, f, func(opts ...Option) *Solver { return must(FromConfig("keras/"+name, options, opts...)) }, 3) {
			for i, w := range []float64{1.992, 1.984032, 1.976095872} {
				require.InDeltaSlice(t, []float64{w, 2}, got[i], 1e-12, name)
			}
		}
	}
	for _, r := range []Rule{NewAdamW(), NewRAdam(), NewNovoGrad(), NewMuon(), NewScheduleFreeAdamW(), NewRanger(), NewLAMB(), NewSGDW(),
		Chain(NewCoupledDecay(0), NewSGD()), NewAdaBelief(func(a *AdaBelief) { a.Decay = "coupled" })} {
		s := WithBase(r, func(b *Base) { b.ExcludeFromWeightDecay = []string{"1$"} })
		require.NoError(t, s.Set(s.rules[1].name+"/weight_decay", .5))
		got := hosts(t, f, func(opts ...Option) *Solver { return New(s, opts...) }, 2)[0]
		require.NotEqual(t, 2., got[1][0], s.rules[1].name)
		require.Equal(t, 2., got[1][1], s.rules[1].name)
	}
}

// Which names an expression excludes.
func TestExcludeFromWeightDecay(t *testing.T) {
	kernel, bias, gamma := &pair{"dense/kernel", nil, nil}, &pair{"dense/bias", nil, nil}, &pair{"norm_layer/gamma", nil, nil}
	model := []G.ValueGrad{kernel, bias, gamma}
	train := func(s *Solver) (excluded []string) {
		for _, m := range model {
			p := m.(*pair)
			p.value, p.grad = G.NewF64(2), G.NewF64(0)
		}
		require.NoError(t, s.Step(model))
		for _, m := range model {
			if p := m.(*pair); floats(p.value)[0] == 2 {
				excluded = append(excluded, p.name)
			}
		}
		return excluded
	}
	decaying := func() *Solver { return WithBase(sgd(1), func(b *Base) { b.WeightDecay = .004 }) }
	for _, c := range []struct{ names, want []string }{
		{[]string{"bias"}, []string{"dense/bias"}},
		{[]string{"ia"}, []string{"dense/bias"}},
		{[]string{"^k"}, []string{"dense/kernel"}},
		{[]string{"BIAS"}, nil},
		{nil, nil},
		{[]string{""}, []string{"dense/kernel", "dense/bias", "norm_layer/gamma"}},
		{[]string{"norm"}, nil},
		{[]string{"^g", "bias"}, []string{"dense/bias", "norm_layer/gamma"}},
		{[]string{"(?i)BIAS", "KERNEL", `\Qga`, "^x$"}, []string{"dense/bias", "norm_layer/gamma"}}, // each by itself
	} {
		s := decaying()
		require.NoError(t, s.ExcludeFromWeightDecay([]string{"kernel"}, bias)) // replaced by the next
		require.NoError(t, s.ExcludeFromWeightDecay(c.names))
		require.Equal(t, c.want, train(s), "%q", c.names)
		require.ErrorContains(t, s.ExcludeFromWeightDecay(nil), "before the first Step or Minimize")
	}
	g := G.NewGraph() // the second of a name, too
	twins := G.Nodes{vector(g, "bias", 2), vector(g, "bias", 2, 2), vector(g, "bias2", 2)}
	sums := must(G.Add(must(G.Sum(twins[0])), must(G.Add(must(G.Sum(twins[1])), must(G.Sum(twins[2]))))))
	loss := must(G.Mul(sums, G.NewConstant(0.0)))
	d := decaying()
	require.NoError(t, d.ExcludeFromWeightDecay([]string{"^bias$"}))
	fit(t, "fused", d, loss, twins, 1, nil)
	require.Equal(t, []float64{2, 2, 2, 1.992}, floats(values(twins)...))
	s := decaying()
	require.NoError(t, s.ExcludeFromWeightDecay([]string{"^k"}, gamma))
	require.Equal(t, []string{"dense/kernel", "norm_layer/gamma"}, train(s))
	require.ErrorContains(t, decaying().ExcludeFromWeightDecay([]string{"("}), "missing closing")
	require.ErrorContains(t, NewAdam().ExcludeFromWeightDecay(nil), "no rule of the solver is a Base")
	require.ErrorContains(t, decaying().ExcludeFromWeightDecay(nil, nil), "parameter 0 is nil")
}

// Accumulation with decay is the run on the means, in every optimizer.
func TestBaseAccumulationIsOfMeans(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var micro, mean [][][]float64
	for range 8 {
		var sum [2]float64
		for range 3 {
			g := [2]float64{r.Float64(), r.Float64()}
			sum[0], sum[1] = sum[0]+g[0], sum[1]+g[1]
			micro = append(micro, [][]float64{{g[0]}, {g[1]}})
		}
		mean = append(mean, [][]float64{{sum[0] / 3}, {sum[1] / 3}})
	}
	w := [][]float64{{.9}, {.5}}
	for _, name := range append(slices.Clone(kerasDecaying), "ftrl") {
		solver := func(n int) func(...Option) *Solver {
			return func(opts ...Option) *Solver {
				return must(FromConfig("keras/"+name, map[string]any{"weight_decay": .05, "gradient_accumulation_steps": n, "clipnorm": .5}, opts...))
			}
		}
		want := hosts(t, gradients(w, mean...), solver(0), len(mean))
		for host, got := range hosts(t, gradients(w, micro...), solver(3), len(micro)) {
			for i := range mean {
				require.InDeltaSlice(t, want[host][i], got[3*i+2], 1e-9, "%s, round %d", name, i)
				require.Equal(t, got[3*i+2], got[min(3*i+4, len(got)-1)], name) // but nothing in between, and not in the next two
			}
		}
	}
}

// What must make no difference makes none.
func TestBaseProperties(t *testing.T) {
	random := func(n int, scale float64) (all [][][]float64) {
		r := rand.New(rand.NewPCG(1, 2))
		for range n {
			a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
			all = append(all, [][]float64{{a * scale, b * scale}, {c * scale}})
		}
		return all
	}
	w := [][]float64{{.5, -1}, {2}}
	all := func(b *Base) { b.WeightDecay, b.GlobalClipNorm, b.UseEMA, b.EMAOverwriteFrequency = .1, 1.5, true, 3 }
	plain := hosts(t, gradients(w, random(12, 1)...), func(o ...Option) *Solver { return New(WithBase(NewAdam(), all), o...) }, 12)
	for _, got := range plain[1:] {
		require.Equal(t, plain[0], got)
	}
	scaled := hosts(t, gradients(w, random(12, 1<<10)...), func(o ...Option) *Solver {
		return New(WithBase(NewAdam(), all, func(b *Base) { b.LossScaleFactor = 1 << 10 }), o...)
	}, 12)
	require.Equal(t, plain, scaled)
	dynamic := hosts(t, gradients(w, random(12, 1<<10)...), func(o ...Option) *Solver {
		return New(WithLossScale(WithBase(NewAdam(), all), func(l *LossScale) { l.InitialScale = 1 << 10 }), o...)
	}, 12)
	require.Equal(t, plain, dynamic)

	var equal [][][]float64 // four times each
	for _, g := range random(5, 1) {
		equal = append(equal, g, g, g, g)
	}
	once := hosts(t, gradients(w, random(5, 1)...), func(o ...Option) *Solver { return New(WithBase(NewAdam(), all), o...) }, 5)
	four := hosts(t, gradients(w, equal...), func(o ...Option) *Solver {
		return New(WithBase(NewAdam(), all, func(b *Base) { b.GradientAccumulationSteps = 4 }), o...)
	}, 20)
	for host := range once {
		for i := range 5 {
			require.Equal(t, once[host][i], four[host][4*i+3])
		}
	}

	f := gradients(w, random(12, 1)...) // the other order
	slices.Reverse(f.Problem.Params)
	for _, g := range f.Problem.Gradients {
		slices.Reverse(g)
	}
	for host, got := range hosts(t, f, func(o ...Option) *Solver { return New(WithBase(NewAdam(), all), o...) }, 12) {
		for i, x := range got {
			require.Equal(t, plain[host][i], []float64{x[1], x[2], x[0]})
		}
	}

	adamw := hosts(t, gradients(w, random(12, 1)...), func(o ...Option) *Solver { return New(NewAdamW(), o...) }, 12)
	require.Equal(t, adamw, hosts(t, gradients(w, random(12, 1)...), func(o ...Option) *Solver {
		return New(WithBase(NewAdam(), func(b *Base) { b.WeightDecay = .01 }), o...)
	}, 12))
	require.Equal(t, hosts(t, gradients(w, random(12, 1)...), func(o ...Option) *Solver { return New(NewAdam(), o...) }, 12),
		hosts(t, gradients(w, random(12, 1)...), func(o ...Option) *Solver { return New(WithBase(NewAdam()), o...) }, 12))
}

// A parameter that has no gradient in the last run of a group keeps what it accumulated, but with KerasStrict loses it.
func TestBaseMissingGradients(t *testing.T) {
	for strict, want := range map[bool]float64{false: -2, true: -1.5} {
		s := WithBase(sgd(1), func(b *Base) { b.GradientAccumulationSteps, b.KerasStrict = 2, strict })
		a, c := &pair{"a", G.NewF64(0), nil}, &pair{"c", G.NewF64(0), nil}
		for _, run := range [][2]float64{{1, 1}, {0, 1}, {1, 1}, {2, 1}} { // 0: none
			model := []G.ValueGrad{c}
			if c.grad = G.NewF64(run[1]); run[0] != 0 {
				a.grad = G.NewF64(run[0])
				model = append(model, a)
			}
			require.NoError(t, s.Step(model))
		}
		require.Equal(t, []float64{want, -2}, floats(a.value, c.value), strict)
	}
}

// All of it in one another, with several rules of one kind.
func TestBaseNested(t *testing.T) {
	f := gradients([][]float64{{1, 2}, {3}}, [][]float64{{.5, 1}, {2}}, [][]float64{{1, -1}, {.25}}, [][]float64{{2, 1}, {-1}}, [][]float64{{1, 1}, {1}})
	for name, r := range map[string]func() Rule{
		"bases": func() Rule { return WithBase(WithBase(NewAdam(), all2), all2) },
		"in parts": func() Rule {
			return Chain(Restrict(WithBase(sgd(.1), all2), "w0"), Restrict(WithBase(sgd(1), all2), "w1"))
		},
		"accumulate": func() Rule { return Accumulate(2, WithBase(NewAdam(), all2)) },
		"around":     func() Rule { return WithBase(Accumulate(2, NewAdam()), all2) },
		"lookahead":  func() Rule { return Lookahead(WithBase(NewAdam(), all2)) },
		"loss scale": func() Rule {
			return WithBase(WithLossScale(NewAdam(), func(l *LossScale) { l.InitialScale = 1 }), all2)
		},
	} {
		all := hosts(t, f, func(o ...Option) *Solver { return New(r(), o...) }, 4)
		require.Equal(t, all[0], all[1], name)
		require.Equal(t, all[0], all[2], name)
		require.NotEqual(t, []float64{1, 2, 3}, all[0][3], name)
	}
}

func all2(b *Base) {
	b.WeightDecay, b.ClipNorm, b.UseEMA, b.EMAMomentum, b.Constraints = .1, 1, true, .5, []Rule{NewMaxNorm(2), NewMaxNorm(1.5)}
}
