package solvers

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

var nan = math.NaN()

// shown makes what the rules before it want to subtract the parameter's value, with every bit.
var shown = RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
	return b.eachStep(in, func(s Step) Step { return replace(s, s.Delta) })
})

// given is a parameter with its gradients of several steps; of length 1 it is a scalar.
type given struct {
	name  string
	grads [][]float64
}

func param(name string, grads ...[]float64) given { return given{name, grads} }

func (p *given) shape() []int {
	if n := len(p.grads[0]); n > 1 {
		return []int{n}
	}
	return nil
}

// transformed is what rules make of gradients, in the last step.
func transformed(t *testing.T, dt tensor.Dtype, host string, rule Rule, params ...given) (out [][]float64) {
	t.Helper()
	var opts []Option
	if host == "expanded" {
		opts = append(opts, Expanded())
	}
	s := New(Chain(rule, shown), opts...)
	g := G.NewGraph()
	var vars, inputs G.Nodes
	var loss *G.Node
	var model []G.ValueGrad
	for _, p := range params {
		shape := p.shape()
		start := value(dt, shape, make([]float64, len(p.grads[0])))
		model = append(model, &pair{p.name, start, nil})
		w := G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(p.name))
		d := G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName("gradient of "+p.name))
		require.NoError(t, G.Let(w, start))
		vars, inputs = append(vars, w), append(inputs, d)
		term := must(G.HadamardProd(w, d))
		if shape != nil {
			term = must(G.Sum(term))
		}
		if loss == nil {
			loss = term
		} else {
			loss = must(G.Add(loss, term))
		}
	}
	var vm G.VM
	if host != "step" {
		op, err := s.Minimize(loss, vars...)
		require.NoError(t, err)
		vm = must(graphops.NewMachine(op))
	}
	for step := range params[0].grads {
		for i, p := range params {
			d := value(dt, p.shape(), p.grads[step])
			model[i].(*pair).grad = d
			require.NoError(t, G.Let(inputs[i], must(G.CloneValue(d))))
		}
		if host == "step" {
			require.NoError(t, s.Step(model))
		} else {
			require.NoError(t, vm.RunAll())
		}
	}
	for i, v := range vars {
		if host == "step" {
			out = append(out, floats(model[i].Value()))
		} else {
			out = append(out, floats(v.Value()))
		}
	}
	return out
}

// requireTransformed checks it in all hosts and both dtypes, to a tolerance, and that the hosts agree in every bit.
func requireTransformed(t *testing.T, rule func() Rule, want [][]float64, params ...given) {
	t.Helper()
	for dt, tol := range map[tensor.Dtype]float64{tensor.Float32: 1e-6, tensor.Float64: 1e-8} {
		var first [][]float64
		for _, host := range []string{"step", "fused", "expanded"} {
			got := transformed(t, dt, host, rule(), params...)
			if first == nil {
				first = got
			}
			for i := range want {
				require.Len(t, got[i], len(want[i]))
				for k, x := range want[i] {
					what := fmt.Sprintf("%v, %s: %v, want %v", dt, host, got, want)
					y := got[i][k]
					if math.IsNaN(x) {
						require.True(t, math.IsNaN(y) && math.IsNaN(first[i][k]), what)
						continue
					}
					require.True(t, math.Abs(x-y) <= tol*max(1, math.Abs(x)) || x == y, what)
					require.True(t, x != 0 || y == 0 && math.Signbit(x) == math.Signbit(y), what)
					require.Equal(t, math.Float64bits(first[i][k]), math.Float64bits(y), what)
				}
			}
		}
	}
}

func clipGlobal(c float64, raw bool, over ...string) Rule {
	return NewClipByGlobalNorm(c, func(r *ClipByGlobalNorm) { r.Raw, r.Over = raw, over })
}

func zeroGlobal(c float64, raw bool, over ...string) Rule {
	return NewZeroByGlobalNorm(c, func(r *ZeroByGlobalNorm) { r.Raw, r.Over = raw, over })
}

// all are the transformations in RETURNN's order.
func all(value, norm, average, global, highest float64) Rule {
	return Chain(NewClipByValue(value), NewClipByNorm(norm), NewClipByAverageNorm(average), clipGlobal(global, true),
		NewFilterNotFinite(), zeroGlobal(highest, true))
}

// The numbers of an independent simulation of RETURNN.
func TestTransformationsPublished(t *testing.T) {
	g := []float64{3, 4}
	for _, c := range []struct {
		rule func() Rule
		want []float64
	}{
		{func() Rule { return NewClipByValue(3.5) }, []float64{3, 3.5}},
		{func() Rule { return Chain(NewClipByValue(3.5), NewClipByNorm(4)) }, []float64{2.60316549, 3.03702641}},
		{func() Rule { return Chain(NewClipByValue(3.5), NewClipByNorm(4), NewClipByAverageNorm(1)) }, []float64{1.30158275, 1.5185132}},
		{func() Rule { return all(3.5, 4, 1, 2, 0) }, []float64{.5206331, .60740528}},
		{func() Rule { return all(3.5, 4, 1, 2, 5) }, []float64{.5206331, .60740528}}, // the norm of the raw gradients is 5
		{func() Rule { return all(3.5, 4, 1, 2, 4.9) }, []float64{0, 0}},
		{func() Rule { return NewClipByNorm(1) }, []float64{.6, .8}},
		{func() Rule { return NewClipByAverageNorm(1) }, []float64{1.2, 1.6}},
		{func() Rule { return NewClipByAverageNorm(3) }, []float64{3, 4}},
		{func() Rule { return clipGlobal(1, false) }, []float64{.6, .8}},
		{func() Rule { return clipGlobal(10, true) }, []float64{3, 4}},
		{func() Rule { return zeroGlobal(5, false) }, []float64{3, 4}},
		{func() Rule { return zeroGlobal(4.9, false) }, []float64{0, 0}},
		{func() Rule { return all(0, 0, 0, 0, 0) }, []float64{3, 4}},
	} {
		want := [][]float64{c.want}
		requireTransformed(t, c.rule, want, param("w", g))
	}
	requireTransformed(t, func() Rule { return clipGlobal(1, true) }, [][]float64{{.6}, {.8}}, param("v", []float64{3}), param("w", []float64{4}))
	requireTransformed(t, func() Rule { return all(0, 0, 0, 1, 0) }, [][]float64{{0}, {0, 0}}, param("v", []float64{nan}), param("w", g))

	sums := func() Rule { // the raw gradient is that of the last step, what is clipped the sum
		return Chain(RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
			return b.Each(in, func(s Step) Expr { m := b.Slot(s, "sum"); return m.Set(m.Add(s.Delta)) })
		}), clipGlobal(1, true))
	}
	requireTransformed(t, sums, [][]float64{{30.3, 40.4}}, param("w", []float64{30, 40}, []float64{.3, .4}))
	requireTransformed(t, sums, [][]float64{{.606, .808}}, param("w", []float64{.3, .4}, []float64{30, 40}))
}

// What is not finite, and zero, as each doc comment has it.
func TestTransformationsAtTheEdges(t *testing.T) {
	minus0 := math.Copysign(0, -1)
	minusInf := -inf
	value := func() Rule { return NewClipByValue(2) }
	norm := func() Rule { return NewClipByNorm(2) }
	average := func() Rule { return NewClipByAverageNorm(2) }
	global := func() Rule { return clipGlobal(2, false) }
	raw := func() Rule { return Chain(NewClipByValue(1), clipGlobal(2, true)) }
	filter := func() Rule { return NewFilterNotFinite() }
	highest := func() Rule { return zeroGlobal(2, false) }
	finite := func() Rule { return Chain(NewFilterNotFinite(), zeroGlobal(inf, true)) }
	for _, c := range []struct {
		rule    func() Rule
		g, want []float64
	}{
		{value, []float64{nan, inf, minusInf, 1, minus0}, []float64{nan, 2, -2, 1, minus0}},
		{norm, []float64{nan, 1}, []float64{nan, nan}},
		{norm, []float64{minusInf, 1, -1}, []float64{nan, 0, minus0}},
		{norm, []float64{0, minus0}, []float64{0, minus0}},
		{norm, []float64{0}, []float64{0}},
		{norm, []float64{-4}, []float64{-2}},
		{average, []float64{nan, 1}, []float64{nan, nan}},
		{average, []float64{inf, 1}, []float64{nan, 0}},
		{average, []float64{0, minus0}, []float64{0, minus0}},
		{average, []float64{-4}, []float64{-2}},
		{average, []float64{4, 0, 0}, []float64{4, 0, 0}},
		{global, []float64{nan, 1}, []float64{nan, nan}},
		{global, []float64{inf, 1}, []float64{nan, nan}},
		{global, []float64{0, minus0}, []float64{0, minus0}},
		{raw, []float64{inf, 1}, []float64{nan, nan}},
		{filter, []float64{nan, inf, minusInf, 3, minus0, 0}, []float64{0, 0, minus0, 3, minus0, 0}},
		{filter, []float64{minusInf}, []float64{minus0}},
		{highest, []float64{nan, 1}, []float64{0, 0}},
		{highest, []float64{inf, 1}, []float64{0, 0}},
		{highest, []float64{2, 0}, []float64{2, 0}},
		{highest, []float64{minus0, -1}, []float64{minus0, -1}},
		{finite, []float64{1e3, -1}, []float64{1e3, -1}},
		{finite, []float64{minusInf, -1}, []float64{0, 0}},
	} {
		requireTransformed(t, c.rule, [][]float64{c.want}, param("w", c.g))
	}
	// one that is not finite is all
	for _, bad := range []float64{nan, inf, minusInf} {
		v, w := param("v", []float64{bad, 1}), param("w", []float64{3})
		requireTransformed(t, global, [][]float64{{nan, nan}, {nan}}, v, w)
		requireTransformed(t, highest, [][]float64{{0, 0}, {0}}, v, w)
		requireTransformed(t, norm, [][]float64{{nan}, {2}}[1:], w, v)
		requireTransformed(t, func() Rule { return all(0, 0, 0, 2, 0) }, [][]float64{{0, 0}, {0}}, v, w)
	}
	// sums of squares are of float64
	big := transformed(t, tensor.Float32, "step", NewClipByNorm(1), param("w", []float64{3e38, 3e38}))
	require.InDeltaSlice(t, []float64{math.Sqrt(.5), math.Sqrt(.5)}, big[0], 1e-6)
	require.Equal(t, []float64{0, 0}, after(t, Chain(zeroGlobal(inf, false), shown), []float64{1, 1}, []float64{1e200, 1}))
}

// The norm can be that of some parameters, or of what other rules and Restrict hide.
func TestGlobalNormOver(t *testing.T) {
	enc, dec, bias := param("enc/w", []float64{3, 4}), param("dec/w", []float64{6, 8}), param("dec/b", []float64{24})
	for _, c := range []struct {
		rule func() Rule
		want [][]float64
	}{
		{func() Rule { return clipGlobal(1, false, "enc/w") }, [][]float64{{.6, .8}, {1.2, 1.6}, {4.8}}},
		{func() Rule { return clipGlobal(1, false, "dec/*") }, [][]float64{{3. / 26, 4. / 26}, {6. / 26, 8. / 26}, {24. / 26}}},
		{func() Rule { return clipGlobal(1, false, "*/w") }, [][]float64{{3 / math.Sqrt(125), 4 / math.Sqrt(125)}}},
		{func() Rule { return clipGlobal(1, false, "enc/w", "*/w", "enc/*") }, [][]float64{{3 / math.Sqrt(125), 4 / math.Sqrt(125)}}},
		{func() Rule { return zeroGlobal(5, false, "enc/*") }, [][]float64{{3, 4}, {6, 8}, {24}}},
		{func() Rule { return zeroGlobal(25, true, "dec/?") }, [][]float64{{0, 0}, {0, 0}, {0}}},
		// Restrict says what is scaled, and, but for raw, what counts
		{func() Rule { return Restrict(clipGlobal(1, false), "enc/w") }, [][]float64{{.6, .8}, {6, 8}, {24}}},
		{func() Rule { return Restrict(clipGlobal(1, true, "dec/*"), "enc/w") }, [][]float64{{3. / 26, 4. / 26}, {6, 8}, {24}}},
		{func() Rule { return Restrict(zeroGlobal(26, true), "enc/w") }, [][]float64{{0, 0}, {6, 8}, {24}}},
		{func() Rule {
			return Chain(NewScale(func(s *Scale) { s.LearningRate = 10 }), clipGlobal(26, false, "dec/*"))
		}, [][]float64{{3, 4}, {6, 8}, {24}}},
		{func() Rule {
			return Chain(NewScale(func(s *Scale) { s.LearningRate = 10 }), clipGlobal(26, true, "dec/*"))
		}, [][]float64{{30, 40}, {60, 80}, {240}}},
	} {
		requireTransformed(t, c.rule, c.want, enc, dec, bias)
	}
	// a name is itself, also where it reads as a pattern of others
	requireTransformed(t, func() Rule { return clipGlobal(1, true, "w[0]") }, [][]float64{{1}, {.5}}, param("w[0]", []float64{2}), param("u", []float64{1}))

	model := func() []G.ValueGrad {
		return []G.ValueGrad{vec("v", []float64{1, 1}, []float64{3, 4}), &pair{"w", G.NewF64(1), nil}, &pair{"u", G.NewF64(1), G.NewF64(2)}}
	}
	for want, r := range map[string]Rule{
		`clipbyglobalnorm: over: no parameter is called "x*"`:    clipGlobal(1, true, "v", "x*"),
		`zerobyglobalnorm: over: no parameter is called "V"`:     zeroGlobal(1, false, "V"),
		`zerobyglobalnorm: over: "[" is no pattern`:              zeroGlobal(1, false, "["),
		`the rule gets no step of ["v"]: with raw`:               Restrict(clipGlobal(1, false, "v"), "u"),
		"clipbyglobalnorm/max_norm is -1":                        clipGlobal(-1, false),
		"zerobyglobalnorm/max_norm is NaN":                       zeroGlobal(nan, false),
		"clipbynorm/max_norm is -1":                              NewClipByNorm(-1),
		"clipbyaveragenorm/max_norm is +Inf":                     NewClipByAverageNorm(inf),
		"clipbyvalue/max_value is -0.1; it must be in [0, +Inf)": NewClipByValue(-.1),
	} {
		require.ErrorContains(t, New(Chain(r, NewSGD()), SkipMissing()).Step(model()), want)
	}
	// a parameter without a gradient does not count
	s := New(Chain(clipGlobal(1, false, "v", "w"), shown), SkipMissing())
	m := model()
	require.NoError(t, s.Step(m))
	require.InDeltaSlice(t, []float64{.6, .8, .4}, floats(m[0].Value(), m[2].Value()), 1e-12)
	m = model()[2:]
	require.NoError(t, s.Step(append(m, &pair{"w", G.NewF64(1), G.NewF64(0)})))
	require.NoError(t, s.Step(m)) // the others are known from before
	require.Equal(t, 0.0, floats(m[0].Value())[0])
}

// Which rules are no optimizers, and what libraries call their options.
func TestTransformationsByName(t *testing.T) {
	var none []string
	for _, p := range own {
		if !New(p.factory()).Optimizes() {
			none = append(none, p.name)
		}
	}
	require.Equal(t, []string{"box", "centralize_gradients", "clip_by_average_norm", "clip_by_global_norm", "clip_by_norm", "clip_by_value",
		"coupled_decay", "filter_not_finite", "gradient_noise", "l1_ball", "l2_ball", "max_norm", "min_max_norm", "non_negative", "regularize",
		"remove_not_finite", "simplex", "step_clipping", "unit_norm", "variable_clipping", "zero_by_global_norm"}, none)
	require.NotContains(t, Optimizers(), "returnn/gradient_clip")
	require.Subset(t, Optimizers(), []string{"adam", "torch/adam", "gorgonia/adam", "blocks/scale"})
	require.False(t, New(nil).Optimizes())
	require.False(t, NewSGD(func(s *SGD) { s.LearningRate = -1 }).Optimizes())

	for name, raw := range map[string]bool{"clip_by_global_norm": false, "returnn/gradient_clip_global_norm": true} {
		r := must(FromConfig(name, map[string]any{"clipnorm": 2, "over": []any{"w*"}})).rule.(*ClipByGlobalNorm)
		require.Equal(t, &ClipByGlobalNorm{2, GlobalNorm{raw, []string{"w*"}}}, r)
	}
	z := must(FromConfig("returnn/grad_norm_to_clip_to_zero", map[string]any{"over": "b"})).rule
	require.Equal(t, &ZeroByGlobalNorm{0, GlobalNorm{true, []string{"b"}}}, z)
	for _, option := range []string{"clipvalue", "clip_value", "max_delta"} {
		require.Equal(t, 3.0, must(must(FromConfig("clip_by_value", map[string]any{option: 3})).Get("max_value")))
	}
	require.Equal(t, 1.0, must(FromConfig("adam", map[string]any{"clipnorm": 1})).rule.(*Base).ClipNorm)
	_, err := FromConfig("remove_not_finite", map[string]any{"clipnorm": 1})
	require.ErrorContains(t, err, "unknown option")
}
