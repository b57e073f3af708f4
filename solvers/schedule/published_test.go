package schedule

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The scenarios of the tests of Keras and TensorFlow Addons. Their values at every step stand in testdata/golden/schedules.
func TestPublished(t *testing.T) {
	root := func(p *PolynomialDecay) { p.Power = .5 }
	end := func(v float64) func(*PolynomialDecay) { return func(p *PolynomialDecay) { p.End = v } }
	cycle := func(p *PolynomialDecay) { p.Cycle = true }
	alpha := func(d *CosineDecay) { d.Alpha = .1 }
	wave := func(alpha, of float64) float64 { return (1-alpha)*.5*(1+math.Cos(math.Pi*of)) + alpha }
	warmup := func(steps float64) func(*CosineDecay) {
		return func(d *CosineDecay) { d.WarmupTarget, d.WarmupSteps = 10, steps }
	}
	formula := func(steps []int, f func(s float64) float64) map[int]float64 {
		out := map[int]float64{}
		for _, s := range steps {
			out[s] = f(float64(s))
		}
		return out
	}
	ten, quarters := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, []int{0, 250, 500, 750, 1000, 1250}
	restarts := func(t, m, alpha float64) CosineDecayRestarts {
		return NewCosineDecayRestarts(1, 1000, func(d *CosineDecayRestarts) { d.TMul, d.MMul, d.Alpha = t, m, alpha })
	}
	for _, c := range []table{
		{"exponential", NewExponentialDecay(.05, 10, .96), map[int]float64{5: .05 * math.Sqrt(.96)}},
		{"staircase", NewExponentialDecay(.1, 3, .96, stairs), map[int]float64{1: .1, 2: .1, 100: .1 * math.Pow(.96, 33)}},
		{"piecewise", NewPiecewiseConstantDecay([]float64{1, 2, 3}, []float64{.4, .5, .6, .7}), map[int]float64{0: .4, 1: .4, 2: .5, 3: .6, 4: .7}},
		{"polynomial to 0", NewPolynomialDecay(.05, 10, end(0)), map[int]float64{5: .025}},
		{"polynomial", NewPolynomialDecay(.05, 10, end(.001)), map[int]float64{5: .0255, 10: .001, 15: .001}},
		{"polynomial, cycle", NewPolynomialDecay(.05, 10, end(.001), cycle), map[int]float64{0: .05, 15: .049*.25 + .001}},
		{"root to 0", NewPolynomialDecay(.05, 10, end(0), root), map[int]float64{5: .05 * math.Sqrt(.5)}},
		{"root", NewPolynomialDecay(.05, 10, end(.001), root), map[int]float64{5: .049*math.Sqrt(.5) + .001}},
		{"root, cycle", NewPolynomialDecay(.05, 10, end(.001), root, cycle), map[int]float64{0: .05, 15: .049*math.Sqrt(.25) + .001}},
		{"inverse time", NewInverseTimeDecay(.1, 10, .96), formula(ten, func(s float64) float64 { return .1 / (1 + .096*s) })},
		{"inverse time, staircase", NewInverseTimeDecay(.1, 10, .96, func(d *InverseTimeDecay) { d.Staircase = true }),
			formula(ten, func(s float64) float64 { return .1 / (1 + .96*math.Floor(s/10)) })},
		{"cosine", NewCosineDecay(1, 1000), formula(quarters, func(s float64) float64 { return wave(0, min(s, 1000)/1000) })},
		{"cosine, alpha", NewCosineDecay(1, 1000, alpha), formula(quarters, func(s float64) float64 { return wave(.1, min(s, 1000)/1000) })},
		{"cosine, warm-up", NewCosineDecay(0, 10, warmup(1500)), formula(quarters, func(s float64) float64 { return 10 * s / 1500 })},
		{"cosine after warm-up", NewCosineDecay(0, 1000, warmup(2000)), formula([]int{2000, 2250, 2500, 2750, 3000, 3250}, func(s float64) float64 {
			return 10 * wave(0, min(s-2000, 1000)/1000)
		})},
		{"cosine from its target", NewCosineDecay(.1, 10, func(d *CosineDecay) { d.WarmupTarget = .2 }), map[int]float64{0: .2}},
		{"restarts", restarts(2, 1, 0), map[int]float64{0: 1, 250: wave(0, .25), 500: .5, 750: wave(0, .75), 1000: 1, 1250: wave(0, .125)}},
		{"restarts, alpha", restarts(2, 1, .1), map[int]float64{0: 1, 250: wave(.1, .25), 500: .55, 1000: 1, 1250: wave(.1, .125)}},
		{"restarts, m", restarts(2, .9, 0), map[int]float64{0: 1, 500: .5, 1000: .9, 1250: .9 * wave(0, .125)}},
		{"restarts, t", restarts(1, 1, 0), map[int]float64{0: 1, 500: .5, 1000: 1, 1250: wave(0, .25)}},
		{"triangular", NewCyclic(.1, 1, 40), map[int]float64{0: .1, 10: .325, 20: .55, 40: 1, 60: .55, 80: .1, 120: 1}},
		{"triangular2", NewCyclic(.1, 1, 30, func(c *Cyclic) { c.Mode = "triangular2" }),
			map[int]float64{30: 1, 60: .1, 75: .325, 90: .55, 105: .325, 120: .1, 150: .325}},
	} {
		for step, want := range c.want {
			require.InDelta(t, want, Value(c.s, step), 1e-12*max(1, want), "%s at %d", c.name, step)
		}
	}
	grown := NewCyclic(.1, 1, 2000, func(c *Cyclic) { c.Mode, c.Gamma = "exp_range", .996 })
	for step, want := range map[int]float64{0: .1, 1: .1004482, 100: .130140216, 1000: .108176189, 2000: .100297111, 4000: .1} {
		require.InDelta(t, want, Value(grown, step), 6e-10, "exponential at %d", step)
	}
	long := NewCosineDecayRestarts(.1, 10)
	for step, want := range map[int]float64{29: .000615582970243, 30: .1, 31: .0998458666867, 69: .000154133313344, 70: .1, 71: .099961451812} {
		require.InDelta(t, want, Value(long, step), 1e-13, "restarts at %d", step)
	}
}
