package updater

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// Rules as Blocks calls them.
func scale(rate float64) solvers.Rule {
	return solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = rate })
}

func basicMomentum(m float64) solvers.Rule { return &solvers.BasicMomentum{Momentum: m} }

func momentum(rate, m float64) solvers.Rule {
	return &solvers.Momentum{LearningRate: rate, Momentum: m, RateInside: true}
}

func nesterov(rate, m float64) solvers.Rule {
	return &solvers.Momentum{LearningRate: rate, Momentum: m, RateInside: true, Nesterov: true}
}

func adaDelta(decay, epsilon float64) solvers.Rule {
	return &solvers.Adadelta{LearningRate: 1, Rho: decay, Epsilon: epsilon}
}

func rmsProp(rate, decay, scaling float64) solvers.Rule {
	return solvers.NewBasicRMSprop(func(r *solvers.RMSprop) { r.LearningRate, r.Rho, r.MaxScaling = rate, decay, scaling })
}

func adaGrad(rate float64) solvers.Rule { return &solvers.Adagrad{LearningRate: rate, Epsilon: 1e-6} }

func oldAdam(rate, decay float64) solvers.Rule {
	return solvers.NewBlocksAdamOldBetas(func(a *solvers.BlocksAdam) { a.LearningRate, a.DecayFactor = rate, decay })
}

func newAdam(rate, decay float64) solvers.Rule {
	return solvers.NewBlocksAdam(func(a *solvers.BlocksAdam) { a.LearningRate, a.DecayFactor = rate, decay })
}

func removeNotFinite(scaler float64) solvers.Rule {
	return solvers.NewRemoveNotFinite(func(r *solvers.RemoveNotFinite) { r.Scaler = scaler })
}

func variableClipping(threshold float64, axes ...int) solvers.Rule {
	return solvers.NewVariableClipping(threshold, func(v *solvers.VariableClipping) { v.Axes = axes })
}

const oldDecay = 1 - 1e-8

// stepTest is a "step test" of Blocks: it computes the steps and the updates of the rule, and leaves the parameters alone.
type stepTest struct {
	t *testing.T
	*GradientDescent
	params, grads G.Nodes
	dt            tensor.Dtype
}

// param is a parameter; grads are its gradients in each batch, or what batches give it where that is nil.
type param struct {
	shape []int
	x     []float64
}

func newStepTest(t *testing.T, dt tensor.Dtype, rule solvers.Rule, params ...param) *stepTest {
	t.Helper()
	s, g := &stepTest{t: t, dt: dt}, G.NewGraph()
	var pairs []ParameterGradient
	for i, p := range params {
		name := string(rune('a' + i))
		n, grad := state(g, name, dt, p.shape, p.x...), sourceNode(g, "d"+name, dt, p.shape...)
		s.params, s.grads, pairs = append(s.params, n), append(s.grads, grad), append(pairs, ParameterGradient{n, of(grad)})
	}
	var err error
	s.GradientDescent, err = NewGradientDescent(Descent{Gradients: pairs, StepRule: rule})
	require.NoError(t, err)
	s.SetUpdates(s.StepRuleUpdates())
	for i, p := range s.Steps() {
		step := must(graphops.Expand(of(p.Step).Mul(num(1)))) // a gradient may be a step
		G.WithName(fmt.Sprint("step", i))(step)
		require.NoError(t, s.Observe(step))
	}
	require.NoError(t, s.Initialize())
	return s
}

// step makes one batch of gradients.
func (s *stepTest) step(grads ...[]float64) (steps [][]float64) {
	s.t.Helper()
	batch := map[string]any{}
	for i, n := range s.grads {
		if s.Inputs().Contains(n) {
			batch[n.Name()] = tensorOf(s.dt, n.Shape(), grads[i]...)
		}
	}
	require.NoError(s.t, s.ProcessBatch(batch))
	for i, p := range s.params {
		v := must(s.Observed(fmt.Sprint("step", i)))
		require.Equal(s.t, p.Shape(), v.Shape())
		steps = append(steps, numbers(v))
	}
	return steps
}

// close compares numbers as NumPy's allclose does.
func closeTo(t *testing.T, want, got []float64, tol float64, what ...any) {
	t.Helper()
	require.Len(t, got, len(want), what...)
	for i := range want {
		if math.IsNaN(want[i]) {
			require.True(t, math.IsNaN(got[i]), what...)
			continue
		}
		require.LessOrEqual(t, math.Abs(got[i]-want[i]), tol*math.Abs(want[i]), append([]any{"want %v, got %v: %v", want, got}, what...)...)
	}
}

func tolerance(dt tensor.Dtype, tol float64) float64 {
	if dt == tensor.Float32 {
		return max(tol, 1e-5)
	}
	return tol
}

// S1 to S3, S5, S6, S8, S17, S18, and the numbers of Adam in detail.
func TestStepRules(t *testing.T) {
	same := [][]float64{{6, 8}, {6, 8}, {6, 8}, {6, 8}}
	moving := [][]float64{{6, 8}, {4, 6}, {2, 3}}
	for name, c := range map[string]struct {
		rule  solvers.Rule
		grads [][]float64
		want  [][]float64
		tol   float64
	}{
		"S1":  {basicMomentum(.5), same, [][]float64{{6, 8}, {9, 12}, {10.5, 14}}, 1e-7},
		"S2":  {momentum(.1, .5), same, [][]float64{{.6, .8}, {.9, 1.2}, {1.05, 1.4}}, 1e-7},
		"S3":  {adaDelta(.5, 1e-7), same, [][]float64{{.000447213594, .000447213595}, {.000516397778, .000516397779}, {.000569042636, .000569042637}}, 1e-8},
		"S5":  {rmsProp(1, .5, 1e5), moving, [][]float64{{1.41421356237, 1.41421356237}, {.970142500145, 1.028991510855}, {.617213399848, .646996639221}}, 1e-10},
		"S6":  {rmsProp(1, .5, 1e5), [][]float64{{2e-6, 2e-6}}, [][]float64{{.2, .2}}, 1e-7},
		"S8":  {rmsProp(.1, .5, 1e5), moving, [][]float64{{.141421356237, .141421356237}, {.0970142500145, .1028991510855}, {.0617213399848, .0646996639221}}, 1e-10},
		"S17": {newAdam(.002, 1), moving, [][]float64{{.001999999895, .001999999921}, {.001940704171, .001965150101}, {.001787241175, .001822303264}}, 1e-9},
		"S17 SEED": {oldAdam(.002, oldDecay), moving,
			[][]float64{{.001999999895, .001999999921}, {.001940704234, .00196515017}, {.001787241255, .001822303353}}, 1e-9},
		"S18":        {adaGrad(.002), moving, [][]float64{{.00199999966667, .00199999975}, {.001109400239, .00119999988}, {.000534522412, .000574695716}}, 1e-8},
		"decay":      {newAdam(.002, .9), same, [][]float64{{.001999999895}, {.001576039488}, {.001529789937}, {.001598927597}}, 1e-9},
		"decay SEED": {oldAdam(.002, .9), same, [][]float64{{.001999999895}, {.002852631473}, {.003457999895}, {.003787854276}}, 1e-9},
		"rho 0":      {adaDelta(0, 1e-6), same, [][]float64{{9.999999861e-4, 9.999999922e-4}, {1.414213533e-3, 1.414213546e-3}}, 1e-9},
		"rho 1":      {adaDelta(1, 1e-6), same, same, 1e-7},
		"decay 0":    {rmsProp(1, 0, 1e5), same, [][]float64{{1, 1}}, 1e-7},
		"decay 1":    {rmsProp(1, 1, 1e5), same, [][]float64{{6e5, 8e5}}, 1e-7},
		"zeros":      {adaGrad(.002), [][]float64{{0, 0}, {1, 2}}, [][]float64{{0, 0}, {.001999998, .001999999}}, 1e-9},
		"NaN SEED":   {oldAdam(.002, oldDecay), [][]float64{{math.NaN(), 1}, {1, 1}}, [][]float64{{math.NaN(), .00199999936754}, {math.NaN(), .001999999638}}, 1e-9},
		"NaN":        {newAdam(.002, 1), [][]float64{{math.NaN(), 1}, {1, 1}}, [][]float64{{math.NaN(), .00199999936754}, {math.NaN(), .001999999553}}, 1e-9},
	} {
		for _, dt := range bothTypes {
			s := newStepTest(t, dt, c.rule, param{[]int{2}, []float64{3, 4}})
			for i, want := range c.want {
				closeTo(t, want, s.step(c.grads[i])[0][:len(want)], tolerance(dt, c.tol), name, dt, i)
			}
			require.Equal(t, []float64{3, 4}, numbers(s.params[0].Value()))
		}
	}
	for name, rule := range map[string]solvers.Rule{"AdaDelta": adaDelta(.95, 1e-6), "RMSProp": rmsProp(1, .9, 1e5), "Adam": newAdam(.002, 1)} {
		for _, dt := range bothTypes {
			s := newStepTest(t, dt, rule, param{[]int{2}, []float64{3, 4}})
			require.Equal(t, []float64{0, 0}, s.step([]float64{0, 0})[0], name)
		}
	}
	// S4, S7, S14
	for _, bad := range []solvers.Rule{adaDelta(-1, 1e-6), adaDelta(2, 1e-6), rmsProp(1, -1, 1e5), rmsProp(1, 2, 1e5), rmsProp(1, .5, -1), variableClipping(50, 0, 0)} {
		w, cost := square(G.Float64)
		_, err := NewGradientDescent(Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: bad})
		require.ErrorContains(t, err, "the step rule")
	}
}

// S9 to S13, S15, S19 to S21, and what becomes of numbers that are not finite.
func TestRulesOfSeveral(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	alternate := func(shape []int, signs ...float64) param { return param{shape, signs} }
	scalars := func(x ...float64) (ps []param) {
		for _, v := range x {
			ps = append(ps, param{nil, []float64{v}})
		}
		return ps
	}
	list := func(x ...float64) (xs [][]float64) {
		for _, v := range x {
			xs = append(xs, []float64{v})
		}
		return xs
	}
	eight := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	plus := solvers.RuleFunc(func(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
		return b.Each(in, func(s solvers.Step) Expr { return s.Delta.Add(num(2)) })
	})
	for name, c := range map[string]struct {
		rule   solvers.Rule
		params []param
		grads  [][]float64
		want   [][]float64
		tol    float64
	}{
		"S9, 4":  {solvers.NewStepClipping(4), scalars(0, 0), list(3, 4), list(12./5, 16./5), 1e-7},
		"S9, 5":  {solvers.NewStepClipping(5), scalars(0, 0), list(3, 4), list(3, 4), 0},
		"S10":    {solvers.NewStepClipping(0), scalars(0, 0), list(3, 4), list(3, 4), 0},
		"S11, 1": {variableClipping(5), []param{{[]int{2}, []float64{1, 1}}}, [][]float64{{3, 2}}, [][]float64{{3, 2}}, 0},
		"S11, 2": {variableClipping(5), []param{{[]int{1, 3}, []float64{-1, -1, -1}}}, [][]float64{{3, 9, 2}}, [][]float64{{.78885438, 3.47213595, .34164079}}, 1e-5},
		"S11, 3": {variableClipping(5), []param{{[]int{1, 4, 1}, []float64{1, -1, 1, -1}}}, [][]float64{{1, 2, 3, 2}}, [][]float64{{1, 2, 3, 2}}, 0},
		"S12": {variableClipping(10, 1), []param{alternate([]int{2, 4}, 1, -1, 1, -1, -1, 1, -1, 1)}, [][]float64{eight},
			[][]float64{{1, 2, 3, 4, 3.54858826, 4.79049022, 5.06478435, 6.30668631}}, 1e-5},
		"S13": {variableClipping(10, 1, 2), []param{alternate([]int{2, 2, 2, 1}, 1, -1, -1, 1, -1, 1, 2, -1)}, [][]float64{eight},
			[][]float64{{1, 2, 3, 4, 3.6429394, 4.86911616, 5.86911616, 5.96440909}}, 1e-5},
		"d = 0":          {variableClipping(5), []param{{[]int{2}, []float64{1, 1}}}, [][]float64{{1, 1}}, [][]float64{{1, 1}}, 0},
		"S15":            {solvers.Chain(solvers.NewStepClipping(4), scale(.1)), scalars(0, 0), list(3, 4), list(12./50, 16./50), 1e-7},
		"S16":            {solvers.Chain(plus, solvers.Chain(plus, scale(2))), scalars(0, 0), list(3, 4), list(14, 16), 0},
		"S19":            {removeNotFinite(.1), scalars(1, 2, 3), list(nan, inf, .123), list(.9, 1.8, .123), 1e-7},
		"S19, default":   {removeNotFinite(1), scalars(1, 2, 3), list(nan, inf, .123), list(0, 0, .123), 1e-7},
		"S20":            {solvers.Restrict(scale(.1), "b", "e"), scalars(0, 0, 0, 0, 0, 0), list(0, 1, 4, 9, 16, 25), list(0, .1, 4, 9, 1.6, 25), 1e-7},
		"S21":            {solvers.Restrict(plus, "b", "e"), scalars(0, 0, 0, 0, 0, 0), list(0, 1, 4, 9, 16, 25), list(0, 3, 4, 9, 18, 25), 0},
		"poison NaN":     {solvers.NewStepClipping(1), scalars(0, 0), list(nan, 1), list(nan, nan), 0},
		"poison Inf":     {solvers.NewStepClipping(1), scalars(0, 0), list(inf, 1), list(nan, 0), 0},
		"contained":      {solvers.Chain(removeNotFinite(1), solvers.NewStepClipping(4)), scalars(0, 0, 0), list(nan, 3, 4), list(0, 2.4, 3.2), 1e-7},
		"clip threshold": {solvers.Chain(scale(.1), solvers.NewStepClipping(.5)), []param{{[]int{2, 2}, []float64{1, 2, 3, 4}}}, [][]float64{{2, 4, 6, 8}}, [][]float64{{.09128709292, .1825741858, .2738612788, .3651483717}}, 1e-9},
	} {
		for _, dt := range bothTypes {
			s := newStepTest(t, dt, c.rule, c.params...)
			for i, got := range s.step(c.grads...) {
				closeTo(t, c.want[i], got, tolerance(dt, c.tol), name, dt, i)
			}
		}
	}
	last := newStepTest(t, G.Float64, solvers.Chain(basicMomentum(.5), removeNotFinite(1)), scalars(1)...)
	first := newStepTest(t, G.Float64, solvers.Chain(removeNotFinite(1), basicMomentum(.5)), scalars(1)...)
	for _, s := range []*stepTest{last, first} {
		require.Equal(t, list(0), s.step(list(nan)[0]))
	}
	require.Equal(t, list(0), last.step(list(1)[0])) // the buffer is polluted for good
	require.Equal(t, list(1), first.step(list(1)[0]))
}

// S16 and S21: the updates of rules follow each other in the order of the rules, and are of the parameters that the rules get.
func TestOrderOfRuleUpdates(t *testing.T) {
	keep := func(slot string, by float64) solvers.Rule {
		return solvers.RuleFunc(func(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
			return b.Each(in, func(s solvers.Step) Expr { b.Slot(s, slot).Set(s.Delta.Mul(num(by))); return s.Delta })
		})
	}
	s := newStepTest(t, G.Float64, solvers.Chain(keep("one", 10), solvers.Restrict(keep("two", 100), "b")), param{nil, []float64{1}}, param{nil, []float64{4}})
	require.Equal(t, [][]float64{{1}, {4}}, s.step([]float64{1}, []float64{4}))
	var names []string
	for _, u := range s.StepRuleUpdates() {
		names = append(names, u.Target.Name())
	}
	require.Equal(t, []string{"a/rulefunc/one", "b/rulefunc/one", "b/rulefunc#2/two"}, names)
	require.Equal(t, []float64{10, 40, 400}, all(targets(s.StepRuleUpdates())...))
}

// A rule may leave parameters alone, and a scalar parameter has a scalar gradient of any kind.
func TestStepsOfSome(t *testing.T) {
	for _, dt := range bothTypes {
		g := G.NewGraph()
		w, v := state(g, "w", dt, nil, 5), state(g, "v", dt, []int{2}, 1, 2)
		first := solvers.RuleFunc(func(_ *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) { return in[:1], nil })
		a := descent(t, Descent{Gradients: []ParameterGradient{{w, of(v).Sum()}, {v, of(v)}}, StepRule: first})
		require.Len(t, a.Steps(), 1)
		require.Same(t, w, a.Steps()[0].Parameter)
		require.NoError(t, a.Observe(a.TotalStepNorm(), a.TotalGradientNorm()))
		require.NoError(t, a.Initialize())
		require.NoError(t, a.ProcessBatch(nil))
		require.Equal(t, []float64{2, 1, 2}, all(w, v))
		require.Equal(t, []float64{3}, numbers(must(a.Observed("total_step_norm"))))
		require.InDelta(t, math.Sqrt(14), numbers(must(a.Observed("total_gradient_norm")))[0], 1e-15)
	}
	w, cost := square(G.Float64)
	none := solvers.RuleFunc(func(*solvers.Builder, []solvers.Step) ([]solvers.Step, error) { return nil, nil })
	_, err := NewGradientDescent(Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: none})
	require.ErrorContains(t, err, "no step")
}

// S22: steps and buffers have the shapes of the parameters, with all axes of length 1.
func TestStepShapes(t *testing.T) {
	rules := []solvers.Rule{basicMomentum(.5), momentum(1, .5), rmsProp(1, .5, 1e5), rmsProp(.1, .5, 1e5), solvers.NewStepClipping(.4), variableClipping(1),
		newAdam(.002, 1), adaGrad(.002), removeNotFinite(1), removeNotFinite(.1), adaDelta(.95, 1e-6), variableClipping(1, 0, 2),
		solvers.Restrict(newAdam(.002, 1), "w0", "w3"), solvers.Chain(solvers.NewStepClipping(1), newAdam(.002, 1), scale(.1))}
	shapes := [][]int{{5, 6, 1, 5}, {2, 1, 3}, {3, 4, 1}, {1, 9, 6}, {1, 1, 1}, {1, 5, 1}}
	for i, rule := range rules {
		for _, dt := range bothTypes {
			g := G.NewGraph()
			var params, sums G.Nodes
			for k, shape := range shapes {
				w := state(g, fmt.Sprint("w", k), dt, shape, make([]float64, tensor.Shape(shape).TotalSize())...)
				params, sums = append(params, w), append(sums, G.Must(G.Sum(w)))
			}
			cost := sums[0]
			for _, s := range sums[1:] {
				cost = G.Must(G.Add(cost, s))
			}
			a := descent(t, Descent{Cost: cost, Parameters: params, StepRule: rule})
			require.Len(t, a.Steps(), len(shapes))
			for k, s := range a.Steps() {
				step := must(graphops.Expand(of(s.Step).Mul(num(1))))
				G.WithName(fmt.Sprint("step", k))(step)
				require.NoError(t, a.Observe(step))
			}
			require.NoError(t, a.Initialize())
			require.NoError(t, a.ProcessBatch(nil))
			for k, shape := range shapes {
				require.Equal(t, tensor.Shape(shape), must(a.Observed(fmt.Sprint("step", k))).Shape(), "rule %d", i)
				require.Equal(t, tensor.Shape(shape), params[k].Value().Shape())
			}
			for _, st := range FilterStates(a.Solver().Store().States(), RoleBuffer) {
				if st.Param() != "" {
					k := slices.IndexFunc(params, func(n *G.Node) bool { return n.Name() == st.Param() })
					require.Equal(t, tensor.Shape(shapes[k]), must(st.Value()).Shape(), st.Name())
				}
			}
		}
	}
}

// The order of parameters, and with it of buffers, changes no bit; neither does another run.
func TestOrderOfParameters(t *testing.T) {
	for _, dt := range bothTypes {
		for _, rule := range []func() solvers.Rule{
			func() solvers.Rule { return newAdam(.002, .9) },
			func() solvers.Rule { return solvers.Chain(momentum(.1, .5), variableClipping(1)) },
			func() solvers.Rule { return solvers.Chain(removeNotFinite(1), adaDelta(.5, 1e-7)) },
			func() solvers.Rule { return solvers.Chain(solvers.NewStepClipping(.3), newAdam(.002, .9)) },
			func() solvers.Rule { return solvers.Chain(solvers.NewClipByGlobalNorm(.3), newAdam(.002, .9)) },
			func() solvers.Rule {
				return solvers.WithBase(solvers.NewSGD(), func(b *solvers.Base) { b.GlobalClipNorm = .3 })
			},
		} {
			var want []float64
			for _, order := range [][]int{{0, 1, 2}, {0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
				g, r := G.NewGraph(), rand.New(rand.NewPCG(5, 6))
				var params, sums G.Nodes
				for i := range 3 {
					x := []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
					params = append(params, state(g, string(rune('a'+i)), dt, []int{4}, x...))
				}
				for i := range 3 {
					sums = append(sums, G.Must(G.Sum(G.Must(G.Tanh(G.Must(G.HadamardProd(params[i], params[(i+1)%3])))))))
				}
				cost := G.Must(G.Add(G.Must(G.Add(sums[0], sums[1])), sums[2]))
				a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{params[order[0]], params[order[1]], params[order[2]]}, StepRule: rule()})
				require.NoError(t, a.Observe(a.TotalGradientNorm(), a.TotalStepNorm()))
				require.NoError(t, a.Initialize())
				var got []float64
				for range 5 {
					require.NoError(t, a.ProcessBatch(nil))
					got = append(got, numbers(must(a.Observed("total_gradient_norm")))[0], numbers(must(a.Observed("total_step_norm")))[0])
				}
				got = append(got, all(params...)...)
				for _, p := range params {
					for _, st := range a.Solver().Store().States() {
						if st.Param() == p.Name() {
							got = append(got, numbers(must(st.Value()))...)
						}
					}
				}
				if want == nil {
					want = got
				}
				require.Equal(t, want, got)
			}
		}
	}
}
