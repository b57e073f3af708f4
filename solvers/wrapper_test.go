package solvers

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// constant is a problem of vectors w0, w1, … with a gradient each, the same in every step.
func constant(wg ...[]float64) *goldenFile {
	f := &goldenFile{}
	f.Problem.Repeat, f.Problem.Gradients = 1, [][][]float64{nil}
	for i := 0; i < len(wg); i += 2 {
		f.Problem.Params = append(f.Problem.Params, struct {
			Name  string
			Shape []int
			Value []float64
		}{fmt.Sprint("w", i/2), []int{len(wg[i])}, wg[i]})
		f.Problem.Gradients[0] = append(f.Problem.Gradients[0], wg[i+1])
	}
	return f
}

// pulled is constant for a single number that begins as w and has gradient 1.
func pulled(w float64) *goldenFile { return constant([]float64{w}, []float64{1}) }

// averagesOf are those that the outermost wrapper keeps of w0, w1, …
func averagesOf(t *testing.T, s *Solver, params int) (out []float64) {
	t.Helper()
	for i := range params {
		v, err := s.averageOf(fmt.Sprint("w", i))
		require.NoError(t, err)
		out = append(out, floats(v)...)
	}
	return out
}

// everyHost runs a problem in float64 and float32 and all hosts. A rule that is shared goes on, so solver makes one anew.
func everyHost(t *testing.T, f *goldenFile, solver func() *Solver, steps int,
	check func(what string, tol float64, s *Solver, step int, params []G.Value)) {
	t.Helper()
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		for _, host := range []string{"step", "fused", "expanded"} {
			s, tol := solver(), 1e-9
			if host == "expanded" {
				Expanded()(s)
			}
			if dt == tensor.Float32 {
				tol = 3e-6
			}
			goldenHost(t, f, dt, s, host != "step", steps, func(step int, params []G.Value) {
				check(fmt.Sprintf("%v, %s, step %d", dt, host, step+1), tol, s, step+1, params)
			})
		}
	}
}

func sgd(lr float64) *Solver { return NewSGD(func(s *SGD) { s.LearningRate = lr }) }

// kerasAdam is Adam in the form of TensorFlow and Keras.
func kerasAdam(lr float64) Rule { a := adamLike(lr, 1e-7); a.EpsilonHat = true; return &a }

func look(r Rule, k, alpha float64) *Solver {
	return Lookahead(r, func(o *LookaheadOptions) { o.SyncPeriod, o.SlowStepSize = k, alpha })
}

func ema1(r Rule, momentum, frequency float64) *Solver {
	return EMA(r, func(o *EMAOptions) { o.EMAMomentum, o.EMAOverwriteFrequency = momentum, frequency })
}

func moving(r Rule, options ...func(*MovingAverageOptions)) *Solver {
	return MovingAverage(r, append([]func(*MovingAverageOptions){func(o *MovingAverageOptions) { o.AverageDecay = .5 }}, options...)...)
}

func swa1(r Rule, start, period float64) *Solver {
	return SWA(r, func(o *SWAOptions) { o.StartAveraging, o.AveragePeriod = start, period })
}

// each is a list of values of one number, by step.
func each(xs ...float64) map[int][]float64 {
	m := map[int][]float64{}
	for i, x := range xs {
		m[i+1] = []float64{x}
	}
	return m
}

// The published and computed tables of the Keras specification: weights and averages after some of the steps.
func TestWrapperNumbers(t *testing.T) {
	two := func(g float64) *goldenFile {
		return constant([]float64{1, 2}, []float64{g, g}, []float64{3, 4}, []float64{g / 10, g / 10})
	}
	first := func() *goldenFile { return constant([]float64{1, 2}, []float64{.1, .2}) }
	dense := constant([]float64{1, 2}, []float64{.1, .2}, []float64{3, 4}, []float64{.03, .04})
	sparse := constant([]float64{1, 2}, []float64{.1, 0}, []float64{3, 4}, []float64{0, .04})
	radam := func() *Solver {
		return look(NewRAdam(func(r *RAdam) { r.Beta1, r.Epsilon = .95, 1e-7 }), 6, .45)
	}
	square := func() *goldenFile { return constant([]float64{3, 4, 5, 6}, []float64{1, 1, 1, 1}) }
	for name, c := range map[string]struct {
		f        *goldenFile
		solver   func() *Solver
		w, avg   map[int][]float64
		absolute float64
	}{
		"lookahead adam k5 .3": {f: first(), solver: func() *Solver { return look(kerasAdam(1e-3), 5, .3) }, w: map[int][]float64{
			1: {.999000031622, 1.99900001581}, 2: {.998000053988, 1.99800002699}, 4: {.996000088077, 1.99600004404},
			5: {.99850003067, 1.99850001534}, 6: {.997500043596, 1.9975000218}, 10: {.997000047674, 1.99700002384}}},
		"lookahead adam k5 .7": {f: first(), solver: func() *Solver { return look(kerasAdam(1e-3), 5, .7) }, w: map[int][]float64{
			1: {.999000031622, 1.99900001581}, 4: {.996000088077, 1.99600004404}, 5: {.996500071563, 1.99650003578},
			10: {.993000111239, 1.99300005562}}},
		"lookahead adam k2 .5": {f: first(), solver: func() *Solver { return look(kerasAdam(1e-3), 2, .5) }, w: map[int][]float64{
			1: {.999000031622, 1.99900001581}, 2: {.999000026994, 1.9990000135}, 4: {.998000044038, 1.99800002202},
			6: {.997000057579, 1.99700002879}, 10: {.995000079456, 1.99500003973}}},
		"lookahead sgd": {f: pulled(1), solver: func() *Solver { return look(sgd(.1), 3, .5) },
			w: each(.9, .8, .85, .75, .65, .7, .6, .5, .55)},
		"lookahead radam dense": {f: dense, solver: radam, absolute: 2e-6,
			w: map[int][]float64{100: {.993126, 1.992901, 2.993283, 3.993261}}},
		"lookahead radam sparse": {f: sparse, solver: radam, absolute: 2e-6,
			w: map[int][]float64{150: {.988156, 2, 3, 3.988291}}},
		"moving average": {f: two(.1), solver: func() *Solver { return moving(sgd(2)) },
			w: map[int][]float64{2: {.6, 1.6, 2.96, 3.96}}, avg: map[int][]float64{2: {.75, 1.75, 2.975, 3.975}}},
		"moving average from 1": {f: constant([]float64{1, 2}, []float64{.1, .1}), solver: func() *Solver {
			return moving(sgd(1), func(o *MovingAverageOptions) { o.StartStep = 1 })
		}, avg: map[int][]float64{1: {.9, 1.9}, 2: {.85, 1.85}}},
		"moving average dynamic": {f: constant([]float64{1, 2}, []float64{.1, .1}), solver: func() *Solver {
			return moving(sgd(2), func(o *MovingAverageOptions) { o.DynamicDecay = true })
		}, avg: map[int][]float64{1: {.82, 1.82}, 2: {.64, 1.64}, 3: {.46, 1.46}}},
		"moving average after 6 updates": {f: pulled(1), solver: func() *Solver { // 7/16
			return moving(sgd(1), func(o *MovingAverageOptions) { o.NumUpdates = 6 })
		}, avg: each(.4375, -.371093750)},
		"swa of all": {f: constant([]float64{1}, []float64{.1}, []float64{2}, []float64{.1}),
			solver: func() *Solver { return swa1(sgd(1), 0, 1) },
			w:      map[int][]float64{3: {.7, 1.7}}, avg: map[int][]float64{3: {.8, 1.8}}},
		"swa": {f: pulled(1), solver: func() *Solver { return swa1(sgd(.1), 2, 3) }, w: each(.9, .8, .7, .6, .5, .4, .3, .2, .1, 0),
			avg: map[int][]float64{1: nil, 2: nil, 3: {.7}, 4: {.7}, 5: {.7}, 6: {.55}, 7: {.55}, 8: {.55}, 9: {.4}, 10: {.4}}},
		"ema": {f: square(), solver: func() *Solver { return ema1(sgd(1), .9, 3) },
			w:   map[int][]float64{1: {2, 3, 4, 5}, 2: {1, 2, 3, 4}, 3: {1.71, 2.71, 3.71, 4.71}},
			avg: map[int][]float64{1: {2, 3, 4, 5}, 2: {1.9, 2.9, 3.9, 4.9}, 3: {1.71, 2.71, 3.71, 4.71}}},
		"ema overwrites always": {f: pulled(10), solver: func() *Solver { return ema1(sgd(1), .9, 1) }, w: each(9, 8.9, 8.8, 8.7)},
		"ema of the last":       {f: pulled(10), solver: func() *Solver { return ema1(sgd(1), 0, 0) }, w: each(9, 8, 7), avg: each(9, 8, 7)},
		"ema of the first":      {f: pulled(10), solver: func() *Solver { return ema1(sgd(1), 1, 0) }, w: each(9, 8, 7), avg: each(9, 9, 9)},
		"ema of ten": {f: pulled(10), solver: func() *Solver { return ema1(sgd(.01), .99, 0) },
			w: map[int][]float64{10: {9.9}}, avg: map[int][]float64{10: {9.985617924991}}},
		// Only applying runs count.
		"ema of accumulated": {f: pulled(10), solver: func() *Solver { return ema1(AccumulateMean(2, sgd(1)), .9, 0) },
			w: each(10, 9, 9, 8, 8, 7, 7, 6), avg: map[int][]float64{1: nil, 2: {9}, 3: {9}, 4: {8.9}, 6: {8.71}, 7: {8.71}, 8: {8.439}}},
		"ema of accumulated, overwritten": {f: pulled(10), solver: func() *Solver { return ema1(AccumulateMean(2, sgd(1)), .9, 2) },
			w: each(10, 9, 9, 8.9, 8.9, 7.9, 7.9, 8.61), avg: map[int][]float64{2: {9}, 4: {8.9}, 6: {8.8}, 8: {8.61}}},
	} {
		t.Run(name, func(t *testing.T) {
			last := slices.Max(slices.AppendSeq(slices.Collect(maps.Keys(c.w)), maps.Keys(c.avg)))
			everyHost(t, c.f, c.solver, last, func(what string, tol float64, s *Solver, step int, params []G.Value) {
				tol = max(tol, c.absolute)
				if want, ok := c.w[step]; ok {
					require.InDeltaSlice(t, want, floats(params...), tol*10, what)
				}
				if want, ok := c.avg[step]; ok {
					require.InDeltaSlice(t, nonNil(want), nonNil(averagesOf(t, s, len(params))), tol*10, what)
				}
			})
		})
	}
}

func nonNil(x []float64) []float64 { return append([]float64{}, x...) }

// After exactly k steps, the weights are α of the way.
func TestLookaheadInterpolates(t *testing.T) {
	f := constant([]float64{1, 2}, []float64{.1, .2}, []float64{3, 4}, []float64{.03, 0})
	x0 := []float64{1, 2, 3, 4}
	for _, k := range []int{5, 10, 100} {
		for _, alpha := range []float64{0, .3, .7, 1} {
			inner := map[string][]float64{}
			everyHost(t, f, func() *Solver { return New(kerasAdam(.01)) }, k, func(what string, _ float64, _ *Solver, _ int, params []G.Value) {
				inner[what] = floats(params...)
			})
			everyHost(t, f, func() *Solver { return look(kerasAdam(.01), float64(k), alpha) }, k,
				func(what string, tol float64, s *Solver, step int, params []G.Value) {
					got, x := floats(params...), inner[what]
					if step < k || alpha == 1 {
						require.Zero(t, differing(x, got), what)
						return
					}
					for i := range x {
						require.InDelta(t, x0[i]+alpha*(x[i]-x0[i]), got[i], tol, what)
					}
					if alpha == 0 {
						require.Equal(t, x0, got, what)
					}
				})
		}
	}
}

// With these options wrappers change nothing, bit for bit: neither the weights nor, for the averages, what they are of.
func TestWrappersThatDoNothing(t *testing.T) {
	var f goldenFile
	for _, g := range readGolden(t) {
		if g.Source != "" && len(g.Problem.Gradients) == 25 && len(g.Problem.Params) == 6 {
			f = g
		}
	}
	for name, wrap := range map[string]func(Rule) *Solver{
		"lookahead":  func(r Rule) *Solver { return look(r, 3, 1) },
		"ema":        func(r Rule) *Solver { return ema1(r, 0, 4) },
		"average":    func(r Rule) *Solver { return MovingAverage(r, func(o *MovingAverageOptions) { o.AverageDecay = 0 }) },
		"swa":        func(r Rule) *Solver { return SWA(r) },
		"map":        func(r Rule) *Solver { return OptimizerMap(r) },
		"multi":      func(r Rule) *Solver { return MultiOptimizer(Part{r, []string{"s", "v", "a", "b", "c", "d"}}) },
		"accumulate": func(r Rule) *Solver { return Accumulate(1, r) },
	} {
		want := map[string][]float64{}
		everyHost(t, &f, func() *Solver { return NewAdam() }, 25, func(what string, _ float64, _ *Solver, _ int, params []G.Value) {
			want[what] = floats(params...)
		})
		everyHost(t, &f, func() *Solver { return wrap(NewAdam()) }, 25, func(what string, _ float64, s *Solver, _ int, params []G.Value) {
			require.Zero(t, differing(want[what], floats(params...)), "%s: %s", name, what)
			if name == "ema" || name == "average" {
				for i, p := range f.Problem.Params {
					require.Zero(t, differing(floats(params[i]), floats(must(s.averageOf(p.Name)))), "%s: %s", name, what)
				}
			}
		})
	}
}

// Rules of one kind within one another each have their own state, and it does not matter whether runs are accumulated within or
// outside.
func TestNestedWrappers(t *testing.T) {
	f := constant([]float64{1, 2}, []float64{.3, -.2}, []float64{3, 4}, []float64{.05, .1})
	for name, wrap := range map[string]func(Rule) *Solver{
		"lookahead":   func(r Rule) *Solver { return look(r, 2, .5) },
		"twice":       func(r Rule) *Solver { return look(look(r, 2, .5), 3, .25) },
		"ema":         func(r Rule) *Solver { return ema1(r, .9, 3) },
		"ema of swa":  func(r Rule) *Solver { return ema1(swa1(r, 1, 2), .5, 2) },
		"all of them": func(r Rule) *Solver { return moving(ema1(look(swa1(r, 0, 2), 2, .3), .9, 4)) },
	} {
		states := func(s *Solver) (out map[string][]float64) {
			out = map[string][]float64{}
			for _, st := range s.Store().States() {
				if st.Name() != "global_step" && !slices.Contains([]string{"sum", "group"}, path.Base(st.Name())) {
					out[st.Name()] = floats(must(st.Value()))
				}
			}
			return out
		}
		type record struct {
			params []float64
			states map[string][]float64
		}
		want := map[string]record{}
		everyHost(t, f, func() *Solver { return wrap(NewAdam()) }, 12, func(what string, _ float64, s *Solver, _ int, params []G.Value) {
			want[what] = record{floats(params...), states(s)}
		})
		for _, outside := range []bool{true, false} {
			everyHost(t, f, func() *Solver {
				if outside {
					return AccumulateMean(2, wrap(NewAdam()))
				}
				return wrap(AccumulateMean(2, NewAdam()))
			}, 24, func(what string, _ float64, s *Solver, step int, params []G.Value) {
				if what = what[:strings.LastIndexByte(what, ' ')+1] + fmt.Sprint(step/2); step > 1 {
					require.Equal(t, want[what], record{floats(params...), states(s)}, "%s, %v: %s of %d", name, outside, what, step)
				}
			})
		}
	}
}

// Wrappers of parts that act in different runs remember of each part what happens to it.
func TestWrapperOfUnequalParts(t *testing.T) {
	f := constant([]float64{10}, []float64{1}, []float64{20}, []float64{1})
	s := func() *Solver {
		return ema1(OptimizerMap(sgd(1), Route{"w0", AccumulateMean(3, sgd(1))}), .5, 0)
	}
	w0, a0 := []float64{10, 10, 9, 9, 9, 8}, []float64{nan, nan, 9, 9, 9, 8.5}
	a1 := []float64{19, 18.5, 17.75, 16.875, 15.9375, 14.96875}
	everyHost(t, f, s, 6, func(what string, _ float64, s *Solver, step int, params []G.Value) {
		require.Equal(t, []float64{w0[step-1], 20 - float64(step)}, floats(params...), what)
		require.Equal(t, a1[step-1], floats(must(s.averageOf("w1")))[0], what)
		if !math.IsNaN(a0[step-1]) {
			require.Equal(t, a0[step-1], floats(must(s.averageOf("w0")))[0], what)
		} else {
			require.Nil(t, must(s.averageOf("w0")), what)
		}
		require.Equal(t, float64(step), must(graphops.ScalarValue(must(s.Store().Lookup("ema/step").Value()))))
	})
}

// A parameter that joins later begins its slow weights and its averages with its own first step.
func TestWrappersOfLateParameters(t *testing.T) {
	s := look(moving(ema1(sgd(1), .5, 0)), 2, .5)
	early, late := vec("w0", []float64{10}, nil), vec("w1", []float64{20}, nil)
	grads := func(ps ...*pair) (model []G.ValueGrad) {
		for _, p := range ps {
			p.grad = tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{1}))
			model = append(model, p)
		}
		return model
	}
	for range 3 {
		require.NoError(t, s.Step(grads(early)))
	}
	require.NoError(t, s.Step(grads(early, late)))
	require.Equal(t, []float64{19.5}, floats(late.value)) // half the way from 20 to 19
	require.Equal(t, []float64{19.5}, floats(must(s.averageOf("w1"))))
	require.Equal(t, []float64{19}, floats(must(s.Store().Lookup("w1/ema/average").Value())))
}

// A solver with the state of another goes on as that does.
func TestWrappersResume(t *testing.T) {
	f := constant([]float64{1, 2}, []float64{.3, -.2}, []float64{3, 4}, []float64{.05, .1})
	fresh := func() *Solver { return moving(ema1(look(swa1(NewRanger(), 1, 2), 3, .3), .9, 4)) }
	var want, then []float64
	goldenHost(t, f, tensor.Float32, fresh(), true, 16, func(_ int, params []G.Value) { want = floats(params...) })
	a, b := fresh(), fresh()
	goldenHost(t, f, tensor.Float32, a, true, 9, func(_ int, params []G.Value) { then = floats(params...) })
	goldenHost(t, f, tensor.Float32, b, false, 1, func(int, []G.Value) {})
	for _, st := range a.Store().States() {
		require.NoError(t, graphops.Copy(must(b.Store().Lookup(st.Name()).Value()), must(st.Value())), st.Name())
	}
	f.Problem.Params[0].Value, f.Problem.Params[1].Value = then[:2], then[2:]
	goldenHost(t, f, tensor.Float32, b, false, 7, func(_ int, params []G.Value) { then = floats(params...) })
	require.Equal(t, want, then)
	require.NoError(t, b.Reset())
	require.Nil(t, must(b.averageOf("w0")))
}
