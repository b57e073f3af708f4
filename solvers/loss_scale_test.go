package solvers

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

func dynamic(r Rule, initial float64, growth int, options ...func(*LossScale)) *Solver {
	first := func(l *LossScale) { l.InitialScale, l.DynamicGrowthSteps = initial, growth }
	return WithLossScale(r, append([]func(*LossScale){first}, options...)...)
}

// The numbers of Keras' tests and of runs of its LossScaleOptimizer: parameter, scale and counters after each run.
func TestLossScaleNumbers(t *testing.T) {
	infinite, nan := math.Inf(1), math.NaN()
	long := func(g float64, n int) (all []float64) {
		for range n {
			all = append(all, g)
		}
		return all
	}
	for name, c := range map[string]struct {
		f                       *goldenFile
		solver                  func() *Solver
		w, scale, count, update []float64 // update: the inner counter
	}{
		"steps, growth and backoff": {numbers(1, 8, 8, 8, infinite, 4, 8, nan, 4, 4, 4),
			func() *Solver { return dynamic(WithBase(sgd(1), func(b *Base) { b.UseEMA = true }), 8, 3) },
			[]float64{0, -1, -2, -2, -2.5, -3.5, -3.5, -4.5, -5.5, -6.5}, []float64{8, 8, 16, 8, 8, 8, 4, 4, 4, 8},
			[]float64{1, 2, 0, 0, 1, 2, 0, 1, 2, 0}, []float64{1, 2, 3, 3, 4, 5, 5, 6, 7, 8}},
		"backoff": {numbers(1, long(infinite, 4)...), func() *Solver { return dynamic(sgd(1), 400, 2000) }, long(1, 4), []float64{200, 100, 50, 25}, long(0, 4), nil},
		"down to": {numbers(1, long(infinite, 4)...), func() *Solver {
			return dynamic(sgd(1), 400, 2000, func(l *LossScale) { l.MinScale = 80 })
		}, long(1, 4), []float64{200, 100, 80, 80}, long(0, 4), nil},
		"growth": {numbers(1, long(0, 8)...), func() *Solver { return dynamic(sgd(1), 2, 2) },
			long(1, 8), []float64{2, 4, 4, 8, 8, 16, 16, 32}, nil, nil},
		"no growth to infinity": {numbers(1, 0, 0, 0, infinite), func() *Solver { return dynamic(sgd(1), .75*math.MaxFloat64, 1) },
			long(1, 4), append(long(.75*math.MaxFloat64, 3), .375*math.MaxFloat64), long(0, 4), nil},
		"never 0": {numbers(1, nan, nan, nan, 0), func() *Solver { return dynamic(sgd(1), 2*math.SmallestNonzeroFloat32, 10) }, // 0 in float32 would make 0/0 of the last gradient
			long(1, 4), long(math.SmallestNonzeroFloat32, 4), []float64{0, 0, 0, 1}, nil},
		"other powers": {numbers(1, 0, infinite), func() *Solver {
			return dynamic(sgd(1), 8, 1, func(l *LossScale) { l.GrowthFactor, l.BackoffFactor = 4, .25 })
		}, long(1, 2), []float64{32, 8}, nil, nil},
		"a step": {constant([]float64{1, 0, 3, 4}, []float64{32768, 65536, 7 * 32768, 2 * 32768}), func() *Solver {
			return WithLossScale(WithBase(sgd(.5), func(b *Base) { b.LossScaleFactor = 0 }))
		}, []float64{.5, -1, -.5, 3}, []float64{32768}, []float64{1}, nil},
		"a skipped run is in no mean": {numbers(0, 1, infinite, 3, 5, nan, 7), func() *Solver {
			return dynamic(WithBase(sgd(1), func(b *Base) { b.GradientAccumulationSteps = 2 }), 1, 2000, func(l *LossScale) { l.BackoffFactor = 1 })
		}, []float64{0, 0, -2, -2, -2, -8}, long(1, 6), nil, nil},
		"what is overwritten is not divided": {constant([]float64{1}, []float64{6}), func() *Solver {
			return dynamic(WithBase(sgd(1), func(b *Base) { b.OverwriteWithGradient = []string{"w0"} }), 8, 10)
		}, []float64{6}, []float64{8}, nil, nil},
	} {
		width := len(c.f.Problem.Params[0].Value)
		everyHost(t, c.f, c.solver, len(c.w)/width, func(what string, tol float64, s *Solver, step int, params []G.Value) {
			what = name + ": " + what
			require.InDeltaSlice(t, c.w[(step-1)*width:step*width], floats(params...), tol, what)
			require.Equal(t, c.scale[step-1], must(s.LossScale()), what)
			if c.count != nil {
				require.Equal(t, c.count[step-1], remembered(t, s, "lossscale/step_counter")[0], what)
			}
			if c.update != nil {
				require.Equal(t, c.update[step-1], remembered(t, s, "base/step")[0], what)
				require.Equal(t, float64(step)-c.update[step-1], remembered(t, s, "lossscale/skipped")[0], what)
			}
		})
	}
}

// The static scale of a Base within counts for nothing.
func TestLossScaleIgnoresTheOneWithin(t *testing.T) {
	l := dynamic(WithBase(sgd(.5), func(b *Base) { b.LossScaleFactor = 100 }), 4, 2000)
	require.Equal(t, 4., must(l.LossScale()))
	p := &pair{"w", G.NewF64(1), G.NewF64(4)}
	require.NoError(t, l.Step([]G.ValueGrad{p}))
	require.Equal(t, []float64{.5}, floats(p.value))
}

// A factor that is set to 0, or scheduled to be, is none, and then those within still count for nothing.
func TestLossScaleOfNone(t *testing.T) {
	within := func() Rule { return WithBase(sgd(.5), func(b *Base) { b.LossScaleFactor = 8 }) }
	set := WithBase(within(), func(b *Base) { b.LossScaleFactor = 4 })
	follow := WithBase(within())
	require.NoError(t, follow.Schedule("base/loss_scale_factor", schedule.NewPiecewiseConstantDecay([]float64{0}, []float64{4, 0})))
	for _, s := range []*Solver{set, follow} {
		w, loss := square(tensor.Float64)
		vm := must(graphops.NewMachine(must(s.Minimize(must(s.ScaleLoss(loss)), w))))
		require.Equal(t, 4., must(s.LossScale()))
		require.NoError(t, vm.RunAll())
		if s == set {
			require.NoError(t, s.Set("base/loss_scale_factor", 0))
		}
		require.Equal(t, 1., must(s.LossScale()))
		require.NoError(t, G.Let(w, 3.))
		vm.Reset()
		require.NoError(t, vm.RunAll())
		require.Equal(t, 0., floats(w.Value())[0])
	}
}

// square is the loss w² in a graph.
func square(dt tensor.Dtype) (w, loss *G.Node) {
	w = G.NewScalar(G.NewGraph(), dt, G.WithName("w"), G.WithValue(value(dt, nil, []float64{.5})))
	return w, G.Must(G.Square(w))
}

// With ScaleLoss training is what it is without, and the scale is that of the run.
func TestScaleLoss(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for name, solver := range map[string]func() *Solver{
			"static":  func() *Solver { return WithBase(sgd(.125), func(b *Base) { b.LossScaleFactor = 1024 }) },
			"dynamic": func() *Solver { return dynamic(sgd(.125), 1024, 2) },
			"none":    func() *Solver { return sgd(.125) },
			"scheduled": func() *Solver {
				s := WithBase(sgd(.125))
				require.NoError(t, s.Schedule("loss_scale_factor", schedule.NewPiecewiseConstantDecay([]float64{1}, []float64{4, 8})))
				return s
			},
		} {
			for _, host := range []string{"machine", "expanded", "step"} {
				what := fmt.Sprint(dt, " ", name, " ", host)
				s := solver()
				s.expanded = host == "expanded"
				w, loss := square(dt)
				scaled, err := s.ScaleLoss(loss)
				require.NoError(t, err, what)
				require.Equal(t, dt, scaled.Dtype())
				var vm G.VM
				if host == "step" {
					must(G.Grad(scaled, w))
					vm = G.NewTapeMachine(w.Graph(), G.BindDualValues(w))
				} else {
					vm = must(graphops.NewMachine(must(s.Minimize(scaled, w)), scaled, loss))
				}
				scale, want := must(s.LossScale()), .5
				for run := range 6 {
					require.NoError(t, vm.RunAll(), what)
					require.Equal(t, want*want*scale, floats(scaled.Value())[0], what)
					if host == "step" {
						require.NoError(t, s.Step([]G.ValueGrad{w}), what)
					}
					vm.Reset()
					want *= .75
					require.InDelta(t, want, floats(w.Value())[0], 1e-7, what)
					want = floats(w.Value())[0]
					scale = map[string]float64{"static": 1024, "dynamic": 1024 * math.Pow(2, float64((run+1)/2)), "none": 1, "scheduled": 8}[name]
					if name == "scheduled" && run == 0 {
						scale = 4
					}
					require.Equal(t, scale, must(s.LossScale()), what)
				}
				require.NoError(t, s.Reset())
			}
		}
	}
}

// An overflow in float32 is found, and the scale comes down until there is none.
func TestLossScaleFindsItsScale(t *testing.T) {
	s := dynamic(sgd(.125), math.Pow(2, 130), 2000)
	w, loss := square(tensor.Float32)
	vm := must(graphops.NewMachine(must(s.Minimize(must(s.ScaleLoss(loss)), w))))
	for range 8 {
		require.NoError(t, vm.RunAll())
		vm.Reset()
	}
	require.Equal(t, math.Pow(2, 127), must(s.LossScale()))
	require.Equal(t, 3., remembered(t, s, "lossscale/skipped")[0])
	require.InDelta(t, .5*math.Pow(.75, 5), floats(w.Value())[0], 1e-6)
	require.NoError(t, s.Reset())
	require.Equal(t, math.Pow(2, 130), must(s.LossScale()))
}

func TestScaleLossRefuses(t *testing.T) {
	s := dynamic(sgd(1), 8, 2)
	w, loss := square(tensor.Float64)
	_, err := s.ScaleLoss(nil)
	require.ErrorContains(t, err, "ScaleLoss: graphops: Of a nil node")
	v := G.NewVector(w.Graph(), tensor.Float64, G.WithShape(2), G.WithName("v"))
	_, err = s.ScaleLoss(v)
	require.ErrorContains(t, err, "the loss has shape (2), but must be a scalar")
	_, err = s.ScaleLoss(G.NewScalar(w.Graph(), tensor.Int, G.WithName("n")))
	require.ErrorContains(t, err, "not int")
	two := New(Chain(Restrict(dynamic(sgd(1), 8, 2), "w"), Restrict(dynamic(sgd(1), 8, 2), "v")))
	_, err = two.ScaleLoss(loss)
	require.ErrorContains(t, err, "lossscale and lossscale#2 both have a scale of the loss")
	_, err = two.LossScale()
	require.Error(t, err)
	_, err = WithLossScale(nil).ScaleLoss(loss)
	require.ErrorContains(t, err, "the rule is nil")
	require.NoError(t, s.Set("initial_scale", 16))
	require.Equal(t, 16., must(s.LossScale()))
	must(s.ScaleLoss(loss))
	require.ErrorContains(t, s.Set("initial_scale", 32), "built without lossscale/initial_scale")
}

// Rules that go by the gradients as the solver got them get them without the scale, too, in every host: training is what it is
// without one.
func TestRawNormsWithoutTheScale(t *testing.T) {
	g := [][][]float64{{{3, 0}, {4}}, {{.3, .4}, {0}}, {{-1, 1}, {7}}}
	times := func(scale float64) (all [][][]float64) {
		for _, step := range g {
			var s [][]float64
			for _, x := range step {
				y := slices.Clone(x)
				for i := range y {
					y[i] *= scale
				}
				s = append(s, y)
			}
			all = append(all, s)
		}
		return all
	}
	w := [][]float64{{1, 2}, {3}}
	clipped := func() *Solver { return Chain(NewClipByValue(2), clipGlobal(1, true), sgd(1)) }
	clippedPart := func() *Solver { return Chain(Restrict(zeroGlobal(5.5, true), "w0"), sgd(1)) }
	for name, inner := range map[string]func() *Solver{
		"clip": clipped, "restricted": clippedPart,
		"accumulated": func() *Solver { return AccumulateMean(2, clipped()) },
		"in a base":   func() *Solver { return WithBase(clipped(), func(b *Base) { b.WeightDecay, b.LossScaleFactor = .5, 0 }) },
		"in parts":    func() *Solver { return OptimizerMap(clipped(), Route{"w1", clippedPart()}) },
	} {
		want := hosts(t, gradients(w, g...), func(o ...Option) *Solver { return New(inner(), o...) }, len(g))
		require.Equal(t, want[0], want[1], name)
		for scaled, wrap := range map[string]func() *Solver{
			"dynamic": func() *Solver { return dynamic(inner(), 1<<10, 2000) },
			"static":  func() *Solver { return WithBase(inner(), func(b *Base) { b.LossScaleFactor = 1 << 10 }) },
			"scheduled": func() *Solver {
				s := WithBase(inner())
				require.NoError(t, s.Schedule(s.rules[0].name+"/loss_scale_factor", schedule.NewConstant(1<<10)))
				return s
			},
			"both": func() *Solver { // that within counts for nothing
				return dynamic(WithBase(inner(), func(b *Base) { b.LossScaleFactor = 3 }), 1<<10, 2000)
			},
			"twice": func() *Solver {
				return WithBase(WithBase(inner(), func(b *Base) { b.LossScaleFactor = 3 }), func(b *Base) { b.LossScaleFactor = 1 << 10 })
			},
		} {
			got := hosts(t, gradients(w, times(1<<10)...), func(o ...Option) *Solver {
				s := wrap()
				s.expanded = len(o) > 0
				return s
			}, len(g))
			require.Equal(t, want, got, "%s, %s", name, scaled)
		}
	}
	// What is overwritten has no gradient that could count.
	over := func() *Solver {
		return dynamic(WithBase(clipped(), func(b *Base) { b.OverwriteWithGradient = []string{"w1"} }), 4, 2000)
	}
	for _, got := range hosts(t, gradients(w, [][]float64{{12, 16}, {100}}), func(...Option) *Solver { return over() }, 1) {
		require.Equal(t, []float64{1 - 2./5, 2 - 2./5, 100}, got[0])
	}
}

// A scale of the loss without parameters takes no part, and no names from the rules after it.
func TestLossScaleWithoutParameters(t *testing.T) {
	count := RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
		b.Count("step")
		return in, nil
	})
	for _, nobody := range []Rule{dynamic(count, 2, 9), WithBase(count, func(b *Base) { b.LossScaleFactor = 2 })} {
		s := OptimizerMap(count, Route{"nobody", nobody})
		require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", G.NewF64(1), G.NewF64(1)}}))
		require.Equal(t, 1., remembered(t, s, "rulefunc#2/step")[0])
		require.Nil(t, s.Store().Lookup("rulefunc/step"))
	}
}
