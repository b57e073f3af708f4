package solvers

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// toyFile is the model of toy as a problem, with every gradient several times in a row, and multiplied by a power of 2.
func toyFile(steps, times int, scale float64) *goldenFile {
	model, grads := toy(tensor.Float32) // float32 has all of its numbers, also times the scale
	f := &goldenFile{}
	for _, m := range model {
		f.Problem.Params = append(f.Problem.Params, struct {
			Name  string
			Shape []int
			Value []float64
		}{m.(*pair).name, m.Value().Shape(), floats(m.Value())})
	}
	for step := range steps {
		var gs [][]float64
		for _, g := range grads(step) {
			x := floats(g)
			for i := range x {
				x[i] *= scale
			}
			gs = append(gs, x)
		}
		for range times {
			f.Problem.Gradients = append(f.Problem.Gradients, gs)
		}
	}
	return f
}

// What must make no difference makes none, bit for bit, to any optimizer: accumulation of equal gradients, a scale of the loss that is a
// power of 2, slow weights that follow at once, an average that forgets at once, the order of the parameters. The registered names
// that are own run in every host, in turns of the dtypes, the presets by Step.
func TestWhatMakesNoDifference(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const steps = 4
	reversed := toyFile(steps, 1, 1)
	slices.Reverse(reversed.Problem.Params)
	for _, g := range reversed.Problem.Gradients {
		slices.Reverse(g)
	}
	same := func(r Rule) *Solver { return New(r) }
	once, scaled := toyFile(steps, 1, 1), toyFile(steps, 1, 1<<10)
	variants := []struct {
		name string
		f    *goldenFile
		wrap func(Rule) *Solver
	}{
		{"accumulated by twos", toyFile(steps, 2, 1), func(r Rule) *Solver { return WithBase(r, func(b *Base) { b.GradientAccumulationSteps = 2 }) }},
		{"static scale", scaled, func(r Rule) *Solver { return WithBase(r, func(b *Base) { b.LossScaleFactor = 1 << 10 }) }},
		{"dynamic scale", scaled, func(r Rule) *Solver { return dynamic(r, 1<<10, 2000) }},
		{"lookahead", once, func(r Rule) *Solver { return look(r, 2, 1) }},
		{"ema", once, func(r Rule) *Solver {
			return WithBase(r, func(b *Base) { b.UseEMA, b.EMAMomentum, b.EMAOverwriteFrequency = true, 0, 2 })
		}},
		{"reversed", reversed, same},
	}
	own := slices.Clone(ownNames())
	for i, name := range Optimizers() {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			for h, host := range allHosts {
				if (dt == tensor.Float32) != ((i+h)%2 == 0) || host != "step" && !slices.Contains(own, name) {
					continue
				}
				run := func(f *goldenFile, wrap func(Rule) *Solver) map[string][]float64 {
					out := map[string][]float64{}
					s := wrap(must(FromConfig(name, nil)))
					if host == "expanded" {
						Expanded()(s)
					}
					goldenHost(t, f, dt, s, host != "step", len(f.Problem.Gradients), func(_ int, params []G.Value) {
						for k, p := range f.Problem.Params {
							out[p.Name] = floats(params[k])
						}
					})
					return out
				}
				want := run(once, same)
				for _, v := range variants {
					got := run(v.f, v.wrap)
					for param, x := range want {
						require.Zero(t, differing(x, got[param]), "%s, %v, %s, %s: %s", name, dt, host, v.name, param)
					}
				}
			}
		}
	}
}

func ownNames() (names []string) {
	for _, p := range own {
		names = append(names, p.name)
	}
	return names
}

// Rectification with a threshold that is never reached is momentum with its bias corrected, and AdaBelief with an epsilon that hides
// everything else is that divided by a constant.
func TestLimitsOfAdaBelief(t *testing.T) {
	const lr, b1, b2, eps = .1, .9, .99, 1e6
	f := toyFile(12, 1, 1)
	for _, p := range f.Problem.Params { // so that small steps are not lost in the weights
		clear(p.Value)
	}
	corrected := func(s *Solver, factor float64) *Solver { // a momentum of α·(1−β₁), divided by 1−β₁ᵗ
		return Chain(s, RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
			c := correction(graphops.Const(b1), b.Count("step"))
			return b.Each(in, func(s Step) Expr { return s.Delta.Div(c).Mul(graphops.Const(factor)) })
		}))
	}
	momentum := func(factor float64) func() *Solver {
		return func() *Solver {
			return corrected(NewMomentum(func(m *Momentum) { m.LearningRate, m.Momentum = lr*(1-b1), b1 }), factor)
		}
	}
	belief := func(option func(*AdaBelief)) func() *Solver {
		return func() *Solver {
			return NewAdaBelief(func(a *AdaBelief) { a.LearningRate, a.Beta1, a.Beta2 = lr, b1, b2 }, option)
		}
	}
	for name, c := range map[string]struct{ got, want func() *Solver }{
		"adabelief": {belief(func(a *AdaBelief) { a.SMAThreshold = 1e4 }), momentum(1)},
		"radam": {func() *Solver {
			return NewRAdam(func(r *RAdam) { r.LearningRate, r.Beta1, r.Beta2, r.SMAThreshold = lr, b1, b2, 1e4 })
		}, momentum(1)},
		"epsilon": {belief(func(a *AdaBelief) { a.Rectify, a.Epsilon = false, eps }), momentum(1 / (math.Sqrt(eps/(1-b2)) + eps))},
	} {
		want := map[string][]float64{}
		everyHost(t, f, c.want, 12, func(what string, _ float64, _ *Solver, _ int, params []G.Value) { want[what] = floats(params...) })
		everyHost(t, f, c.got, 12, func(what string, _ float64, _ *Solver, _ int, params []G.Value) {
			tol, most := 1e-7, 0.
			if params[0].Dtype() == tensor.Float32 {
				tol = 4e-6
			}
			for _, x := range want[what] {
				most = max(most, math.Abs(x))
			}
			require.NotZero(t, most)
			require.InDeltaSlice(t, want[what], floats(params...), tol*most, "%s: %s", name, what)
		})
	}
}
