package schedule

// CosineDecayRestarts falls along half a wave of the cosine, again and again, over periods that may grow from a height that may
// shrink (Loshchilov and Hutter 2017, "SGDR", https://arxiv.org/abs/1608.03983).
//
//	value(s) = initial·((1 − alpha)·m_mulⁱ·(½ + ½·cos(π·u)) + alpha)
//
// Period i = 0, 1, … takes first_decay_steps·t_mulⁱ runs, and u, from 0 to 1, is the part of it that has gone by.
//
// Initial is any finite number, FirstDecaySteps finite and above 0; they have no defaults. TMul is finite and 1 or more, default
// 2; MMul is finite and not negative, default 1; Alpha, the lowest value as a fraction of the initial one, is finite, default 0.
//
// It is keras.optimizers.schedules.CosineDecayRestarts; torch's CosineAnnealingWarmRestarts (T_0, T_mult) is the same with alpha
// = eta_min/initial, and has T_mult 1 by default. Difference: Keras finds i by a logarithm, whose rounding can put the first run
// of a period at the end of the one before; here it does not.
type CosineDecayRestarts struct {
	Initial         float64 `schedule:"required" alias:"initial_learning_rate,base_lr"`
	FirstDecaySteps float64 `schedule:"required" alias:"t_0"`
	TMul            float64 `alias:"t_mult"` // default 2
	MMul            float64 // default 1
	Alpha           float64
}

// NewCosineDecayRestarts makes a cosine decay with restarts.
func NewCosineDecayRestarts(initial, firstDecaySteps float64, options ...func(*CosineDecayRestarts)) CosineDecayRestarts {
	return configured(CosineDecayRestarts{Initial: initial, FirstDecaySteps: firstDecaySteps, TMul: 2, MMul: 1}, options)
}

// Validate checks the fields.
func (d CosineDecayRestarts) Validate() error {
	return first(isFinite("initial", d.Initial), positive("first_decay_steps", d.FirstDecaySteps),
		must(d.TMul >= 1 && finite(d.TMul), "t_mul", d.TMul, "finite and 1 or more"),
		notNegative("m_mul", d.MMul), isFinite("alpha", d.Alpha))
}

// At is the value in the run of that step.
func (d CosineDecayRestarts) At(step Expr) Expr {
	steps, t := number(d.FirstDecaySteps), number(d.TMul)
	i := step.Div(steps).Floor()
	start := func(i Expr) Expr { return i.Mul(steps) }
	if d.TMul != 1 {
		more := number(d.TMul - 1)
		start = func(i Expr) Expr { return t.Pow(i).Sub(one).Div(more).Mul(steps) }
		i = one.Add(step.Div(steps).Mul(more)).Log().Div(t.Log()).Floor()
		edge := func(i Expr) Expr { return start(i).Mul(number(1 - 1e-12)) }   // a start that was rounded up is none too late
		i = i.Add(step.GreaterEqual(edge(i.Add(one)))).Sub(step.Less(edge(i))) // where the logarithm was rounded over an edge
	}
	u := step.Sub(start(i)).Max(number(0)).Div(steps.Mul(t.Pow(i)))
	c := number(d.MMul).Pow(i).Mul(half(u))
	return number(d.Initial).Mul(number(1 - d.Alpha).Mul(c).Add(number(d.Alpha)))
}

// CosineAnnealing goes down and up along the wave of the cosine for ever.
//
//	value(s) = end + (initial − end)·(½ + ½·cos(π·s/steps))
//
// Initial is any finite number, Steps, half a wave, 1 or more; they have no defaults. End is any finite number, default 0.
//
// It is torch.optim.lr_scheduler.CosineAnnealingLR (T_max, eta_min), whose values gather rounding errors from step to step.
// CosineDecay stays at its end.
type CosineAnnealing struct {
	Initial float64 `schedule:"required" alias:"base_lr"`
	Steps   int     `schedule:"required" alias:"t_max"`
	End     float64 `alias:"eta_min"`
}

// NewCosineAnnealing makes a cosine annealing.
func NewCosineAnnealing(initial float64, steps int, options ...func(*CosineAnnealing)) CosineAnnealing {
	return configured(CosineAnnealing{Initial: initial, Steps: steps}, options)
}

// Validate checks the fields.
func (a CosineAnnealing) Validate() error {
	return first(isFinite("initial", a.Initial), atLeast1("steps", a.Steps), isFinite("end", a.End))
}

// At is the value in the run of that step.
func (a CosineAnnealing) At(step Expr) Expr {
	u := step.Div(number(2 * float64(a.Steps)))
	u = u.Sub(u.Floor()).Mul(number(2)) // modulo 2, where the cosine is exact
	return number(a.Initial - a.End).Mul(half(u)).Add(number(a.End))
}
