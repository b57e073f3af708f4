package schedule

// CosineDecay falls along half a wave of the cosine, after a linear rise if there is a warm-up (Loshchilov and Hutter 2017,
// "SGDR", https://arxiv.org/abs/1608.03983).
//
//	value(s) = initial·c(s/decay_steps)                                        without warm-up
//	value(s) = initial + (warmup_target − initial)·s/warmup_steps              with one, for s < warmup_steps
//	value(s) = warmup_target·c((s − warmup_steps)/decay_steps)                 and afterwards
//	c(u) = (1 − alpha)·(½ + ½·cos(π·min(u, 1)))^exponent + alpha
//
// Initial is any finite number, DecaySteps finite and above 0; they have no defaults. Alpha, the last value as a fraction of the
// highest, is finite, default 0. Exponent is finite and above 0, default 1. WarmupTarget is any finite number; 0, the default, is
// no warm-up. WarmupSteps is finite and not negative, default 0, and needs a target.
//
// It is keras.optimizers.schedules.CosineDecay and, with Exponent, optax.cosine_decay_schedule. As in Keras the decay takes
// DecaySteps runs after the warm-up; WarmupCosineDecay counts them as optax does. Keras ignores WarmupSteps without a target.
type CosineDecay struct {
	Initial      float64 `schedule:"required" alias:"initial_learning_rate,init_value"`
	DecaySteps   float64 `schedule:"required"`
	Alpha        float64
	Exponent     float64 // default 1
	WarmupTarget float64
	WarmupSteps  float64
}

// NewCosineDecay makes a cosine decay.
func NewCosineDecay(initial, decaySteps float64, options ...func(*CosineDecay)) CosineDecay {
	return configured(CosineDecay{Initial: initial, DecaySteps: decaySteps, Exponent: 1}, options)
}

// Validate checks the fields.
func (d CosineDecay) Validate() error {
	return first(isFinite("initial", d.Initial), positive("decay_steps", d.DecaySteps), isFinite("alpha", d.Alpha),
		positive("exponent", d.Exponent), isFinite("warmup_target", d.WarmupTarget), notNegative("warmup_steps", d.WarmupSteps),
		must(d.WarmupSteps == 0 || d.WarmupTarget != 0, "warmup_steps", d.WarmupSteps, "0 without warmup_target"))
}

// At is the value in the run of that step.
func (d CosineDecay) At(step Expr) Expr {
	steps := number(d.DecaySteps)
	if d.WarmupTarget == 0 {
		return number(d.Initial).Mul(d.fall(step.Min(steps).Div(steps)))
	}
	n, warmup, target := step.Sub(number(d.WarmupSteps)), number(d.WarmupSteps), number(d.WarmupTarget)
	rise := number(d.Initial).Add(number(d.WarmupTarget - d.Initial).Mul(step.Div(warmup)))
	return step.Less(warmup).Select(rise, target.Mul(d.fall(n.Min(steps).Div(steps))))
}

// fall is c of the documentation.
func (d CosineDecay) fall(u Expr) Expr {
	c := half(u)
	if d.Exponent != 1 {
		c = c.Pow(number(d.Exponent))
	}
	return number(1 - d.Alpha).Mul(c).Add(number(d.Alpha))
}

// WarmupCosineDecay rises linearly to a peak and falls along half a wave of the cosine.
//
//	value(s) = initial + (peak − initial)·s/warmup_steps                                    for s < warmup_steps
//	value(s) = end + (peak − end)·(½ + ½·cos(π·min(u, 1)))^exponent                         and afterwards
//	u = (s − warmup_steps)/(decay_steps − warmup_steps)
//
// Initial, Peak and End are any finite numbers, WarmupSteps 1 or more, DecaySteps, which counts all runs with the warm-up, more
// than WarmupSteps; only End, 0, and Exponent (finite, above 0), 1, have defaults.
//
// It is optax.warmup_cosine_decay_schedule; several in a Sequential are its sgdr_schedule. Differences: optax allows 0 runs of
// warm-up, and there the value of a peak of 0 is 0 whatever the end is.
type WarmupCosineDecay struct {
	Initial     float64 `schedule:"required" alias:"init_value"`
	Peak        float64 `schedule:"required" alias:"peak_value"`
	WarmupSteps int     `schedule:"required"`
	DecaySteps  int     `schedule:"required"`
	End         float64 `alias:"end_value"`
	Exponent    float64 // default 1
}

// NewWarmupCosineDecay makes a cosine decay with warm-up.
func NewWarmupCosineDecay(
	initial, peak float64, warmupSteps, decaySteps int, options ...func(*WarmupCosineDecay),
) WarmupCosineDecay {
	d := WarmupCosineDecay{Initial: initial, Peak: peak, WarmupSteps: warmupSteps, DecaySteps: decaySteps, Exponent: 1}
	return configured(d, options)
}

// Validate checks the fields.
func (d WarmupCosineDecay) Validate() error {
	return first(isFinite("initial", d.Initial), isFinite("peak", d.Peak), atLeast1("warmup_steps", d.WarmupSteps),
		must(d.DecaySteps > d.WarmupSteps, "decay_steps", d.DecaySteps, "above warmup_steps, which it counts too"),
		isFinite("end", d.End), positive("exponent", d.Exponent))
}

// At is the value in the run of that step.
func (d WarmupCosineDecay) At(step Expr) Expr {
	warmup, peak, steps := number(float64(d.WarmupSteps)), number(d.Peak), number(float64(d.DecaySteps-d.WarmupSteps))
	rise := number(d.Initial - d.Peak).Mul(one.Sub(step.Div(warmup))).Add(peak)
	c := half(step.Sub(warmup).Min(steps).Div(steps)).Pow(number(d.Exponent))
	return step.Less(warmup).Select(rise, peak.Sub(number(d.End)).Mul(c).Add(number(d.End)))
}
