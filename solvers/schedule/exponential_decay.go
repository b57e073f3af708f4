package schedule

// ExponentialDecay is multiplied by the decay rate every DecaySteps runs, smoothly or, as a staircase, at once.
//
//	value(s) = initial · decay_rate^p        p = n/decay_steps, or ⌊n/decay_steps⌋ as a staircase; n = max(s − begin, 0)
//
// s counts runs from 0. Initial is any finite number, DecaySteps finite and above 0 (it may be a fraction, such as two and a
// half epochs of runs), DecayRate finite and not negative; they have no defaults. Staircase is false by default. A decay rate of
// 0 makes all but p = 0 zero; one above 1 grows. Begin, 0 or more, default 0, is the run up to which the value stays the initial
// one. End, any finite number, bounds the value: from below where the decay rate is below 1, else from above; 0, the default, is
// no bound.
//
// It is keras.optimizers.schedules.ExponentialDecay (https://keras.io/api/optimizers/learning_rate_schedules),
// tf.train.exponential_decay, optax.exponential_decay (https://optax.readthedocs.io/en/latest/api/optimizer_schedules.html) and,
// with DecaySteps 1, torch's ExponentialLR; their names for the options are understood in configs. Keras computes in the dtype
// of the initial value, mostly float32; this is float64. optax takes a decay rate of 0 for "constant".
type ExponentialDecay struct {
	Initial    float64 `schedule:"required" alias:"initial_learning_rate,init_value,base_lr"`
	DecaySteps float64 `schedule:"required" alias:"transition_steps"`
	DecayRate  float64 `schedule:"required" alias:"gamma"`
	Staircase  bool
	Begin      int     `alias:"transition_begin"`
	End        float64 `alias:"end_value"`
}

// NewExponentialDecay makes an exponential decay.
func NewExponentialDecay(initial, decaySteps, decayRate float64, options ...func(*ExponentialDecay)) ExponentialDecay {
	return configured(ExponentialDecay{Initial: initial, DecaySteps: decaySteps, DecayRate: decayRate}, options)
}

// Validate checks the fields.
func (d ExponentialDecay) Validate() error {
	return first(isFinite("initial", d.Initial), positive("decay_steps", d.DecaySteps), notNegative("decay_rate", d.DecayRate),
		atLeast0("begin", d.Begin), isFinite("end", d.End))
}

// At is the value in the run of that step.
func (d ExponentialDecay) At(step Expr) Expr {
	p := since(step, d.Begin).Div(number(d.DecaySteps))
	if d.Staircase {
		p = p.Floor()
	}
	v := number(d.Initial).Mul(number(d.DecayRate).Pow(p))
	switch {
	case d.End == 0:
		return v
	case d.DecayRate < 1:
		return v.Max(number(d.End))
	}
	return v.Min(number(d.End))
}
