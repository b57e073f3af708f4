package schedule

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// The period of a step is that of a loop over the periods in exact fractions, also where their growth has no exact float64.
func TestRestartsAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		first int
		num   int64 // t_mul = num/den
		den   int64
	}{{10, 2, 1}, {1, 3, 1}, {7, 1, 1}, {10, 11, 10}, {1000, 11, 10}, {8, 3, 2}, {100, 6, 5}, {3, 7, 1}, {10, 101, 100}} {
		at, err := Compile(NewCosineDecayRestarts(1, float64(c.first), func(d *CosineDecayRestarts) {
			d.TMul, d.MMul = float64(c.num)/float64(c.den), .9
		}))
		require.NoError(t, err)
		start, length, i := new(big.Rat), big.NewRat(int64(c.first), 1), 0
		for step := range 3000 {
			s := big.NewRat(int64(step), 1)
			for end := new(big.Rat).Add(start, length); s.Cmp(end) >= 0; end = new(big.Rat).Add(start, length) {
				start, length, i = end, new(big.Rat).Mul(length, big.NewRat(c.num, c.den)), i+1
			}
			u, _ := new(big.Rat).Quo(s.Sub(s, start), length).Float64()
			require.InDelta(t, math.Pow(.9, float64(i))*(.5+.5*math.Cos(math.Pi*u)), at(step), 1e-9, "%v at %d", c, step)
		}
	}
}

func TestValuesByHand(t *testing.T) {
	for _, c := range []table{
		{"multi-step decay to 0", NewMultiStepDecay(1, []float64{2, 5}, func(d *MultiStepDecay) { d.Gamma = 0 }), map[int]float64{0: 1, 1: 1, 2: 0, 9: 0}},
		{"no milestones", NewMultiStepDecay(1, nil), map[int]float64{0: 1, 9: 1}},
		{"no boundaries", NewPiecewiseConstantDecay(nil, []float64{3}), map[int]float64{0: 3, 9: 3}},
		{"one value", NewPiecewiseInterpolate(nil, []float64{3}), map[int]float64{0: 3, 9: 3}},
		{"Keras' test", NewPiecewiseConstantDecay([]float64{100, 110, 120}, []float64{1, .1, .01, .001}),
			map[int]float64{-999: 1, 100: 1, 105: .1, 110: .1, 120: .01, 999: .001}},
		{"boundaries between the steps", NewPiecewiseConstantDecay([]float64{1.5, 2.7}, []float64{1, 2, 3}), map[int]float64{0: 1, 1: 1, 2: 2, 3: 3}},
		{"a peak at once", NewOneCycle(1, 5, func(o *OneCycle) { o.PctStart, o.Anneal = .2, "linear" }), map[int]float64{0: 1, 2: .5 + .5*4e-6, 4: 4e-6, 99: 4e-6}},
		{"one sequence", NewSequential([]Schedule{NewLinear(0, 1, 4)}), map[int]float64{0: 0, 2: .5, 8: 1}},
		{"one factor", NewProduct(NewConstant(3)), map[int]float64{0: 3}},
		{"warm-up of a warm-up", NewWarmup(NewWarmup(NewConstant(8), 2, func(w *Warmup) { w.Initial = 4 }), 4),
			map[int]float64{0: 0, 1: 1, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}},
		{"nested sequences", NewSequential([]Schedule{NewSequential([]Schedule{NewConstant(1), NewLinear(2, 4, 2)}, 2), NewLinear(0, 10, 10)}, 4),
			map[int]float64{0: 1, 1: 1, 2: 2, 3: 3, 4: 0, 9: 5, 14: 10, 99: 10}},
		{"down first", NewCyclic(1, 0, 2), map[int]float64{0: 1, 1: .5, 2: 0, 3: .5, 4: 1}},
		{"a bound above", NewExponentialDecay(1, 1, 2, func(d *ExponentialDecay) { d.End = 5 }), map[int]float64{0: 1, 1: 2, 2: 4, 3: 5, 90: 5}},
		{"late", NewCosineAnnealing(1, 3), map[int]float64{6 << 49: 1, 6<<49 + 3: 0}},
	} {
		for step, want := range c.want {
			require.InDelta(t, want, Value(c.s, step), 1e-12, "%s at %d", c.name, step)
		}
	}
}

func TestRefusals(t *testing.T) {
	nan, inf, c := math.NaN(), math.Inf(1), NewConstant(1)
	bad := NewConstant(nan)
	floats := func(v ...float64) []float64 { return v }
	for _, k := range []struct {
		s    Schedule
		want string
	}{
		{NewExponentialDecay(1, 3, .5, func(d *ExponentialDecay) { d.Begin = -1 }), `option "begin" is -1; it must be 0 or more`},
		{NewExponentialDecay(1, 3, .5, func(d *ExponentialDecay) { d.End = nan }), `option "end" is NaN`},
		{NewInverseTimeDecay(1, -3, .5), `inverse_time_decay: option "decay_steps" is -3`},
		{NewInverseTimeDecay(1, 3, -.5), `option "decay_rate" is -0.5`},
		{NewLinear(1, inf, 3), `option "end" is +Inf`},
		{NewLinear(1, 0, 0), `option "steps" is 0; it must be 1 or more`},
		{NewLinear(1, 0, 1, func(l *Linear) { l.Begin = -2 }), `option "begin" is -2`},
		{NewPolynomialDecay(1, 0), `option "decay_steps" is 0`},
		{NewPolynomialDecay(1, 1, func(d *PolynomialDecay) { d.Power = 0 }), `option "power" is 0`},
		{NewPolynomialDecay(1, 1, func(d *PolynomialDecay) { d.End = nan }), `option "end" is NaN`},
		{NewCosineDecay(1, 0), `option "decay_steps" is 0`},
		{NewCosineDecay(1, 1, func(d *CosineDecay) { d.Alpha = nan }), `option "alpha" is NaN`},
		{NewCosineDecay(1, 1, func(d *CosineDecay) { d.Exponent = -1 }), `option "exponent" is -1`},
		{NewCosineDecay(1, 1, func(d *CosineDecay) { d.WarmupSteps = 5 }), `option "warmup_steps" is 5; it must be 0 without warmup_target`},
		{NewCosineDecay(1, 1, func(d *CosineDecay) { d.WarmupTarget, d.WarmupSteps = 1, -5 }), `option "warmup_steps" is -5`},
		{NewWarmupCosineDecay(0, 1, 5, 5), `option "decay_steps" is 5; it must be above warmup_steps`},
		{NewWarmupCosineDecay(0, 1, 0, 5), `option "warmup_steps" is 0`},
		{NewCosineDecayRestarts(1, 0), `option "first_decay_steps" is 0`},
		{NewCosineDecayRestarts(1, 1, func(d *CosineDecayRestarts) { d.TMul = .9 }), `option "t_mul" is 0.9; it must be finite and 1 or more`},
		{NewCosineDecayRestarts(1, 1, func(d *CosineDecayRestarts) { d.TMul = nan }), `option "t_mul" is NaN`},
		{NewCosineDecayRestarts(1, 1, func(d *CosineDecayRestarts) { d.MMul = -1 }), `option "m_mul" is -1`},
		{NewCosineAnnealing(1, -1), `option "steps" is -1`},
		{NewPiecewiseConstantDecay(floats(1, 2), floats(1, 2)), `option "values" is a list of 2; it must be longer by 1 than boundaries, a list of 2`},
		{NewPiecewiseConstantDecay(floats(2, 2), floats(1, 2, 3)), `option "boundaries" is [2 2]; it must be a list of finite numbers that increase`},
		{NewPiecewiseConstantDecay(floats(1, nan), floats(1, 2, 3)), `option "boundaries" is [1 NaN]`},
		{NewPiecewiseConstantDecay(floats(inf), floats(1, 2)), `option "boundaries" is [+Inf]`},
		{NewPiecewiseConstantDecay(floats(1), floats(1, inf)), `option "values" is [1 +Inf]`},
		{NewPiecewiseConstantDecay(nil, nil), `option "values" is a list of 0`},
		{NewPiecewiseInterpolate(floats(0), floats(1, 2)), `option "boundaries" is [0]; it must be above 0`},
		{NewPiecewiseInterpolate(floats(3, 1), floats(1, 2, 3)), `that increase`},
		{NewPiecewiseInterpolate(floats(1), floats(1)), `option "values" is a list of 1`},
		{NewPiecewiseInterpolate(floats(1), floats(1, 2), func(d *PiecewiseInterpolate) { d.Interpolation = "cubic" }),
			`option "interpolation" is "cubic"; it must be one of ["linear" "cosine"]`},
		{NewStepDecay(1, 0), `option "step_size" is 0`},
		{NewStepDecay(1, 1, func(d *StepDecay) { d.Gamma = -1 }), `option "gamma" is -1`},
		{NewMultiStepDecay(1, floats(3, 3)), `option "milestones" is [3 3]`},
		{NewMultiStepDecay(1, nil, func(d *MultiStepDecay) { d.Gamma = inf }), `option "gamma" is +Inf`},
		{NewOneCycle(1, 1), `option "steps" is 1; it must be 2 or more`},
		{NewOneCycle(1, 9, func(o *OneCycle) { o.PctStart = 1.1 }), `option "pct_start" is 1.1; it must be from 0 to 1`},
		{NewOneCycle(1, 9, func(o *OneCycle) { o.PctStart, o.ThreePhase = .6, true }), `must be from 0 to 0.5 with three phases`},
		{NewOneCycle(1, 9, func(o *OneCycle) { o.PctFinal, o.ThreePhase, o.Form = .2, true, "optax" }), `option "pct_final" is 0.2`},
		{NewOneCycle(1, 9, func(o *OneCycle) { o.DivFactor = 0 }), `option "div_factor" is 0`},
		{NewOneCycle(1, 9, func(o *OneCycle) { o.FinalDivFactor = nan }), `option "final_div_factor" is NaN`},
		{NewOneCycle(1, 9, func(o *OneCycle) { o.Anneal = "" }), `option "anneal" is ""`},
		{NewOneCycle(1, 9, func(o *OneCycle) { o.Form = "keras" }), `option "form" is "keras"`},
		{NewCyclic(0, 1, 0), `option "step_size" is 0`},
		{NewCyclic(0, 1, 1, func(c *Cyclic) { c.StepSizeDown = -1 }), `option "step_size_down" is -1`},
		{NewCyclic(0, 1, 1, func(c *Cyclic) { c.Mode = "square" }), `option "mode" is "square"`},
		{NewCyclic(0, 1, 1, func(c *Cyclic) { c.ScaleMode = "epochs" }), `option "scale_mode" is "epochs"`},
		{NewCyclic(0, 1, 1, func(c *Cyclic) { c.Gamma = -1 }), `option "gamma" is -1`},
		{NewCyclic(0, 1, 1, func(c *Cyclic) { c.Scale = bad }), `option "scale.value" is NaN`},
		{NewSequential(nil), `option "schedules" is a list of 0`},
		{NewSequential([]Schedule{c}, 3), `longer by 1 than boundaries, a list of 1`},
		{NewSequential([]Schedule{c, c}, 0), `option "boundaries" is [0]; it must be 1 or more`},
		{NewSequential([]Schedule{c, c, c}, 4, 4), `option "boundaries" is [4 4]`},
		{NewSequential([]Schedule{c, nil}, 4), `option "schedules[1]" is missing`},
		{NewSequential([]Schedule{c, bad}, 4), `sequential: option "schedules[1].value" is NaN`},
		{NewWarmup(nil, 3), `option "of" is missing`},
		{NewWarmup(bad, 3), `warmup: option "of.value" is NaN`},
		{NewWarmup(c, 0), `option "warmup_steps" is 0`},
		{NewWarmup(c, 3, func(w *Warmup) { w.Initial = inf }), `option "initial" is +Inf`},
		{NewProduct(), `option "of" is empty; it must be one schedule or more`},
		{NewProduct(c, NewProduct(bad)), `product: option "of[1].of[0].value" is NaN`},
		{NewWarmup((*pointer)(nil), 3), "panicked"},
	} {
		require.ErrorContains(t, Check(k.s), k.want)
		require.True(t, math.IsNaN(Value(k.s, 0)), k.want)
	}
}

func TestConfigsOfKinds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"class": "cosine_decay", "initial": null, "decay_steps": 3}`, `option "initial" is null; it must be a number`},
		{`{"class": "piecewise_constant_decay", "boundaries": [1, "2"], "values": [1, 2, 3]}`, `option "boundaries[1]" is "2"; it must be a number`},
		{`{"class": "piecewise_constant_decay", "boundaries": [2, 1], "values": [1, 2, 3]}`, `that increase`},
		{`{"class": "piecewise_constant_decay", "boundaries": 1, "values": [1, 2]}`, `it must be a list, each of it a number`},
		{`{"class": "piecewise_constant_decay", "values": [1, 2]}`, `option "boundaries" is missing`},
		{`{"class": "sequential", "schedules": [{"class": "constant", "value": 1}, {"class": "liner"}], "boundaries": [3]}`,
			`option "schedules": option "[1]": schedule: no schedule is called "liner" (did you mean "linear"?)`},
		{`{"class": "sequential", "schedules": [{"class": "constant", "value": 1}], "boundaries": [1.5]}`, `option "boundaries[0]" is 1.5; it must be a whole number`},
		{`{"class": "warmup", "warmup_steps": 3}`, `option "of" is missing`},
		{`{"class": "warmup", "of": {"class": "linear", "initial": 1, "end": 0, "steps": -1}, "warmup_steps": 3}`, `option "of.steps" is -1`},
		{`{"class": "one_cycle", "max_lr": 1, "peak": 1, "total_steps": 9}`, `is given twice`},
		{`{"class": "one_cycle", "max_lr": 1, "total_steps": 9, "anneal_strategy": "sin"}`, `option "anneal" is "sin"`},
		{`{"class": "cyclic", "base_lr": 0, "max_lr": 1, "step_size_up": 3, "scale_fn": "x"}`, `option "scale_fn" is "x"; it must be a schedule`},
	} {
		_, err := Unmarshal([]byte(c.text))
		require.ErrorContains(t, err, c.want, c.text)
	}
	s, err := Unmarshal([]byte(`{"class": "cosine_decay", "initial": 1, "decay_steps": 3, "exponent": null, "warmup_target": null}`))
	require.NoError(t, err)
	require.Equal(t, NewCosineDecay(1, 3), s)
	list := []Schedule{NewConstant(1)}
	q, p := NewSequential(list), NewProduct(list...)
	list[0] = q // no schedule is a part of itself
	require.Equal(t, 1., Value(q, 0))
	require.Equal(t, 1., Value(p, 0))
}
