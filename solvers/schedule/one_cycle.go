package schedule

import "math"

// OneCycle rises to a peak and falls far below its start, in two phases or three (Smith and Topin 2018, "Super-Convergence",
// https://arxiv.org/abs/1708.07120).
//
//	start = peak/div_factor        final = start/final_div_factor
//	two phases:    start → peak until run a, peak → final until run c
//	three phases:  start → peak until run a, peak → start until run b, start → final until run c
//	form "torch":  a = pct_start·steps − 1,  b = 2·pct_start·steps − 2,  c = steps − 1
//	form "optax":  a = ⌊pct_start·steps⌋,    b = ⌊pct_final·steps⌋,      c = steps
//
// The ways between are those of PiecewiseInterpolate, by Anneal "cosine" (default; torch's "cos" is understood) or "linear". The
// value stays at its last.
//
// Peak is any finite number, Steps 2 or more; they have no defaults. PctStart is in [0, 1] (torch with three phases: up to ½),
// default 0.3. DivFactor and FinalDivFactor are finite and above 0, default 25 and 10000. ThreePhase is false by default.
// PctFinal is for the three phases of optax alone, from PctStart to 1, default 0.85. Form is "torch" by default.
//
// It is torch.optim.lr_scheduler.OneCycleLR, of which it has the learning rate; for the momentum, which goes the other way, give
// another one to that hyperparameter. With Form "optax" it is optax.cosine_onecycle_schedule and, with Anneal "linear" and
// ThreePhase, optax.linear_onecycle_schedule. Difference: torch fails after the last step, and where a is 0.
type OneCycle struct {
	Peak           float64 `schedule:"required" alias:"max_lr,peak_value"`
	Steps          int     `schedule:"required" alias:"total_steps,transition_steps"`
	PctStart       float64 // default 0.3
	DivFactor      float64 // default 25
	FinalDivFactor float64 // default 10000
	Anneal         string  `alias:"anneal_strategy"` // default "cosine"
	ThreePhase     bool
	PctFinal       float64 // default 0.85
	Form           string  // default "torch"
}

// NewOneCycle makes a one-cycle schedule.
func NewOneCycle(peak float64, steps int, options ...func(*OneCycle)) OneCycle {
	return configured(OneCycle{Peak: peak, Steps: steps, PctStart: .3, DivFactor: 25, FinalDivFactor: 1e4, Anneal: "cosine",
		PctFinal: .85, Form: "torch"}, options)
}

// Validate checks the fields.
func (o OneCycle) Validate() error {
	final := o.ThreePhase && o.Form == "optax"
	most, want := 1.0, "from 0 to 1"
	if o.ThreePhase && o.Form == "torch" {
		most, want = .5, "from 0 to 0.5 with three phases"
	}
	return first(isFinite("peak", o.Peak), must(o.Steps >= 2, "steps", o.Steps, "2 or more"),
		must(o.PctStart >= 0 && o.PctStart <= most, "pct_start", o.PctStart, want),
		positive("div_factor", o.DivFactor), positive("final_div_factor", o.FinalDivFactor),
		choice("anneal", o.Anneal, "cosine", "cos", "linear"), choice("form", o.Form, "torch", "optax"), isFinite("pct_final", o.PctFinal),
		must(!final || o.PctFinal >= o.PctStart && o.PctFinal <= 1, "pct_final", o.PctFinal, "from pct_start to 1"))
}

// At is the value in the run of that step.
func (o OneCycle) At(step Expr) Expr {
	steps, start := float64(o.Steps), o.Peak/o.DivFactor
	a, b, c := float64(o.PctStart*steps)-1, float64(2*o.PctStart*steps)-2, steps-1
	if o.Form == "optax" {
		a, b, c = math.Floor(o.PctStart*steps), math.Floor(o.PctFinal*steps), steps
	}
	ends, values := []float64{a, c}, []float64{start, o.Peak, start / o.FinalDivFactor}
	if o.ThreePhase {
		ends, values = []float64{a, b, c}, []float64{start, o.Peak, start, start / o.FinalDivFactor}
	}
	return interpolate(step, ends, values, o.Anneal != "linear")
}
