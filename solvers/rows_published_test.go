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

// The values of a table after a whole gradient and two rows of it, simulated for RETURNN's and TensorFlow 1's optimizers.
func TestRowsOfReturnn(t *testing.T) {
	initial := []float64{1, 2, 3, 4, 5, 6}
	first := rowsStep{Dense: [][]float64{{.1, .2}, {.3, .4}, {.5, .6}}}
	twice := rowsStep{Indices: []int{1, 1}, Values: [][]float64{{.1, -.1}, {.2, .3}}}
	once := rowsStep{Indices: []int{1}, Values: [][]float64{{.3, .2}}}
	lr, eps := map[string]any{"learning_rate": .1}, map[string]any{"learning_rate": .1, "epsilon": 1e-16}
	for _, c := range []struct {
		name    string
		options map[string]any
		second  rowsStep
		want    []float64
		slots   map[string][]float64
	}{
		{"tf1/gradientdescent", lr, twice, []float64{.99, 1.98, 2.94, 3.94, 4.95, 5.94}, nil},
		{"returnn/customgradientdescent", lr, twice, []float64{.99, 1.98, 2.94, 3.94, 4.95, 5.94}, nil},
		{"returnn/normalizedsgd", lr, twice, []float64{0.989517152, 1.979034303, 2.891091788, 3.906428829, 4.947585758, 5.93710291}, nil},
		{"returnn/momentum", lr, twice, []float64{.99, 1.98, 2.913, 3.904, 4.95, 5.94}, map[string][]float64{"momentum": {.1, .2, .57, .56, .5, .6}}},
		{"returnn/adagrad", lr, twice, []float64{0.969848866, 1.946547752, 2.874480609, 3.885038709, 4.915484575, 5.911534826},
			map[string][]float64{"accumulator": {.11, .14, .28, .3, .35, .46}}},
		{"returnn/rmsprop", eps, twice, []float64{0.989464926, 1.978964842, 2.935547205, 3.93623212, 4.948012476, 5.937982633},
			map[string][]float64{"rms": {.901, .904, .8271, .8284, .925, .936}}},
		{"returnn/adam", lr, twice, []float64{0.832994703, 1.832994439, 2.80000018, 3.806782181, 4.83299428, 5.832994263},
			map[string][]float64{"m": {.009, .018, .057, .056, .045, .054}, "v": {9.99e-06, 3.996e-05, 1.7991e-04, 1.9984e-04, 2.4975e-04, 3.5964e-04}}},
		{"returnn/nadam", lr, twice, []float64{0.810000601, 1.8100003, 2.667368728, 3.692811936, 4.81000012, 5.8100001},
			map[string][]float64{"m": {.009, .018, .057, .056, .045, .054}, "v": {9.99e-06, 3.996e-05, 1.7991e-04, 1.9984e-04, 2.4975e-04, 3.5964e-04}}},
		{"returnn/neuraloptimizer1", lr, twice, []float64{.99, 1.98, 2.94, 3.931, 4.95, 5.94}, map[string][]float64{"m": {.009, .018, .057, .056, .045, .054}}},
		{"returnn/gradvariancescaled", lr, twice, []float64{0.99999, 1.99998, 2.999362499, 3.999940163, 4.99995, 5.99994},
			map[string][]float64{"m": {.009, .018, .057, .056, .045, .054}, "v": {8.0919e-06, 3.23676e-05, 9.51251e-05, 2.133424e-04, 2.022975e-04, 2.913084e-04}}},
		{"returnn/customadam", lr, once, []float64{0.900000316, 1.900000158, 2.80000018, 3.806782181, 4.900000063, 5.900000053},
			map[string][]float64{"m": {.01, .02, .057, .056, .05, .06}, "v": {1e-5, 4e-5, 1.7991e-04, 1.9984e-04, 2.5e-4, 3.6e-4}}},
	} {
		for host, train := range rowsHosts {
			for dt, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-9, tensor.Float32: 2e-6} {
				t.Run(fmt.Sprintf("%s/%s/%v", c.name, host, dt), func(t *testing.T) {
					s := must(FromConfig(c.name, c.options))
					train(t, s, dt, []int{3, 2}, initial, []rowsStep{first, c.second}, func(i int, w []float64) {
						if i == 1 {
							require.InDeltaSlice(t, c.want, w, tol)
						}
					})
					for name, want := range c.slots {
						require.InDeltaSlice(t, want, floats(slotOf(t, s, "w", name)), max(tol, 1e-9), name)
					}
				})
			}
		}
	}
}

// slotOf is the value of a parameter's slot.
func slotOf(t *testing.T, s *Solver, param, name string) G.Value {
	for _, st := range s.store.States() {
		if st.Param() == param && st.Name()[len(st.Name())-len(name)-1:] == "/"+name {
			return must(st.Value())
		}
	}
	t.Fatalf("%s has no slot %s", param, name)
	return nil
}

// pairOfRows are two vectors, of each of which one element has a gradient, in every step the same.
func pairOfRows(dt tensor.Dtype, a, b []float64, ga, gb float64) []*pair {
	return []*pair{
		{"var0", value(dt, []int{2}, a), must(graphops.NewRows(dt, tensor.Shape{2}, []int{0}, value(dt, []int{1}, []float64{ga}).(*tensor.Dense)))},
		{"var1", value(dt, []int{2}, b), must(graphops.NewRows(dt, tensor.Shape{2}, []int{1}, value(dt, []int{1}, []float64{gb}).(*tensor.Dense)))},
	}
}

// The tables of the tests of TensorFlow Addons and of adabelief-tf: constant gradients of one row, .1 in row 0 of [1 2] and .04 in
// row 1 of [3 4]. Those of adabelief-tf are the values that float64 gives.
func TestRowsOfAddons(t *testing.T) {
	belief := func(f func(*AdaBelief)) func() *Solver {
		return func() *Solver {
			return WithRows(NewAdaBelief(func(a *AdaBelief) { a.Decay = "direction"; f(a) }), RowsSlots)
		}
	}
	rectified := func(f func(*RAdam)) func() *Solver {
		return func() *Solver {
			return WithRows(NewRAdam(func(a *RAdam) { a.Epsilon = 1e-7; f(a) }), RowsSlots)
		}
	}
	lookahead := func(s func() *Solver) func() *Solver {
		return func() *Solver {
			return Lookahead(s(), func(l *LookaheadOptions) { l.SyncPeriod, l.SlowStepSize = 6, .45 })
		}
	}
	nova := func(f func(*NovoGrad)) func() *Solver {
		return func() *Solver {
			return WithRows(NewNovoGrad(func(n *NovoGrad) { n.LearningRate, n.Epsilon = .1, 1e-8; f(n) }), RowsLazy)
		}
	}
	warm := func(a *AdaBelief) {
		a.Rectify, a.TotalSteps, a.WarmupProportion, a.MinLearningRate = false, 100, .1, 1e-5
	}
	for name, c := range map[string]struct {
		make   func() *Solver
		steps  int
		v0, v1 float64 // of the rows that have gradients
		tol    float64
	}{
		"AdaBelief":                        {belief(func(a *AdaBelief) { a.Rectify = false }), 200, .0538936, 3.0538926, 3e-6},
		"AdaBelief amsgrad":                {belief(func(a *AdaBelief) { a.Rectify, a.AMSGrad = false, true }), 200, .09575394, 3.0957537, 3e-6},
		"AdaBelief decay":                  {belief(func(a *AdaBelief) { a.Rectify, a.WeightDecay = false, .01 }), 200, .05264655, 3.0466535, 3e-6},
		"AdaBelief warm-up":                {belief(warm), 200, .8502214, 3.85022, 3e-6},
		"AdaBelief rectify":                {belief(func(*AdaBelief) {}), 200, .7836679, 3.7839665, 2e-4},
		"AdaBelief Lookahead":              {lookahead(belief(func(a *AdaBelief) { a.Rectify, a.Beta1 = false, .95 })), 150, .8114481, 3.8114486, 3e-6},
		"adabelief-tf":                     {belief(func(*AdaBelief) {}), 200, .78366609, 3.78396611, 2e-6},
		"adabelief-tf amsgrad":             {belief(func(a *AdaBelief) { a.AMSGrad = true }), 200, .79464819, 3.7949482, 2e-6},
		"adabelief-tf decay":               {belief(func(a *AdaBelief) { a.WeightDecay = .01 }), 200, .78180922, 3.77611462, 2e-6},
		"adabelief-tf warm-up":             {belief(func(a *AdaBelief) { a.TotalSteps, a.WarmupProportion, a.MinLearningRate = 200, .1, 1e-5 }), 200, .92112422, 3.92116922, 2e-6},
		"RectifiedAdam":                    {rectified(func(*RAdam) {}), 200, .959333, 3.959632, 2e-4},
		"RectifiedAdam decay":              {rectified(func(a *RAdam) { a.WeightDecay = .01 }), 200, .957368, 3.951673, 2e-4},
		"RectifiedAdam warm-up":            {rectified(func(a *RAdam) { a.TotalSteps, a.WarmupProportion, a.MinLearningRate = 200, .1, 1e-5 }), 200, .982629, 3.982674, 2e-4},
		"RectifiedAdam Lookahead":          {lookahead(rectified(func(a *RAdam) { a.Beta1 = .95 })), 150, .988156, 3.988291, 2e-4},
		"RectifiedAdam amsgrad as without": {rectified(func(a *RAdam) { a.AMSGrad = true }), 200, .959333, 3.959632, 2e-4},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			t.Run(fmt.Sprintf("%s/%v", name, dt), func(t *testing.T) {
				s, vars := c.make(), pairOfRows(dt, []float64{1, 2}, []float64{3, 4}, .1, .04)
				trainPairs(t, s, vars, c.steps)
				tol := c.tol
				if dt == tensor.Float32 {
					tol = 2e-4
				}
				require.InDeltaSlice(t, []float64{c.v0, 2, 3, c.v1}, floats(vars[0].value, vars[1].value), tol)
			})
		}
	}
	for name, c := range map[string]struct {
		make   func() *Solver
		v0, v1 []float64
	}{
		"NovoGrad":           {nova(func(*NovoGrad) {}), []float64{.71, 2}, []float64{3, 3.71}},
		"NovoGrad decay":     {nova(func(n *NovoGrad) { n.WeightDecay = .1 }), []float64{.6821, 2}, []float64{3, 3.5954}},
		"NovoGrad averaging": {nova(func(n *NovoGrad) { n.GradAveraging = true }), []float64{.8, 2}, []float64{3, 3.8}},
	} {
		for dt, tol := range map[tensor.Dtype]float64{tensor.Float64: 2e-7, tensor.Float32: 2e-6} {
			vars := pairOfRows(dt, []float64{1, 2}, []float64{3, 4}, .1, .4)
			trainPairs(t, c.make(), vars, 2)
			require.InDeltaSlice(t, append(c.v0, c.v1...), floats(vars[0].value, vars[1].value), tol, name)
		}
	}
}

// trainPairs makes steps with the gradients of the beginning, which Step sets to zero.
func trainPairs(t *testing.T, s *Solver, vars []*pair, steps int) {
	for range steps {
		var pairs []Pair
		for _, v := range vars {
			pairs = append(pairs, Pair{v, v.grad})
		}
		require.NoError(t, s.ApplyGradients(pairs))
	}
}

// Three steps of LazyAdam and of Adam on single rows.
func TestLazyAdam(t *testing.T) {
	for dt, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-9, tensor.Float32: 3e-7} {
		steps := []rowsStep{{Indices: []int{0}, Values: [][]float64{{.1}}}, {Indices: []int{1}, Values: [][]float64{{.2}}}, {Indices: []int{0}, Values: [][]float64{{-.3}}}}
		for name, want := range map[string][]float64{
			"addons/lazyadam": {.9994242708, 1.999255875, 3},
			"keras/adam":      {.9987724376, 1.998680664, 3},
		} {
			for host, train := range rowsHosts {
				train(t, must(FromConfig(name, nil)), dt, []int{3, 1}, []float64{1, 2, 3}, steps, func(i int, w []float64) {
					if i == 2 {
						require.InDeltaSlice(t, want, w, tol, "%s %s", name, host)
					}
				})
			}
		}
	}
	require.Equal(t, 1e-7, must(NewLazyAdam().Get("epsilon")))
	require.Equal(t, .5, must(NewLazyAdam(func(a *Adam) { a.Beta1 = .5 }).Get("beta1")))
}

// Keras' rule: for every optimizer of Keras, and with its base arguments, rows have the effect of the whole gradient.
func TestRowsEqualDenseInKeras(t *testing.T) {
	x := make([]float64, 30)
	ones := make([]float64, 30)
	sparse := rowsStep{Indices: []int{0, 2, 4}}
	for i := range ones {
		ones[i] = 1
	}
	for k, row := range sparse.Indices {
		var v []float64
		for j := range 6 {
			x[6*row+j] = float64(10 - k)
			v = append(v, float64(10-k))
		}
		sparse.Values = append(sparse.Values, v)
	}
	for _, p := range families["keras"] {
		for _, options := range []map[string]any{nil, {"clipnorm": 1.}, {"use_ema": true}, {"weight_decay": .1}, {"gradient_accumulation_steps": 2}} {
			for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
				a, b := must(FromConfig("keras/"+p.name, options)), must(FromConfig("keras/"+p.name, options))
				wa, wb := &pair{"w", value(dt, []int{5, 3, 2}, ones), nil}, &pair{"w", value(dt, []int{5, 3, 2}, ones), nil}
				for range 3 {
					r := must(graphops.NewRows(dt, tensor.Shape{5, 3, 2}, sparse.Indices, value(dt, []int{3, 3, 2}, sparse.flat()).(*tensor.Dense)))
					require.NoError(t, a.ApplyGradients([]Pair{{wa, r}}), p.name)
					require.NoError(t, b.ApplyGradients([]Pair{{wb, value(dt, []int{5, 3, 2}, x)}}), p.name)
				}
				require.Equal(t, floats(wb.value), floats(wa.value), "%s %v", p.name, options)
				for _, v := range floats(wa.value) {
					require.False(t, math.IsNaN(v))
				}
			}
		}
	}
}
