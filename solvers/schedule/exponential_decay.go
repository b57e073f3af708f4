package schedule

// ExponentialDecay is multiplied by the decay rate every DecaySteps runs, smoothly or, as a staircase, at once.
//
//	value(s) = initial · decay_rate^p        p = s/decay_steps, or ⌊s/decay_steps⌋ as a staircase
//
// s counts runs from 0. Initial is any finite number, DecaySteps finite and above 0 (it may be a fraction, such as two and a
// half epochs of runs), DecayRate finite and not negative; they have no defaults. Staircase is false by default. A decay rate of
// 0 makes all but p = 0 zero; one above 1 grows.
//
// It is keras.optimizers.schedules.ExponentialDecay (https://keras.io/api/optimizers/learning_rate_schedules) and
// tf.train.exponential_decay, whose names for the options are understood in configs. Keras computes in the dtype of the initial
// value, mostly float32; this is float64.
type ExponentialDecay struct {
	Initial    float64 `schedule:"required" alias:"initial_learning_rate"`
	DecaySteps float64 `schedule:"required"`
	DecayRate  float64 `schedule:"required"`
	Staircase  bool
}

// NewExponentialDecay makes an exponential decay.
func NewExponentialDecay(initial, decaySteps, decayRate float64, options ...func(*ExponentialDecay)) ExponentialDecay {
	return configured(ExponentialDecay{Initial: initial, DecaySteps: decaySteps, DecayRate: decayRate}, options)
}

// Validate checks the fields.
func (d ExponentialDecay) Validate() error {
	return first(isFinite("initial", d.Initial), positive("decay_steps", d.DecaySteps), notNegative("decay_rate", d.DecayRate))
}

// At is the value in the run of that step.
func (d ExponentialDecay) At(step Expr) Expr {
	p := step.Div(number(d.DecaySteps))
	if d.Staircase {
		p = p.Floor()
	}
	return number(d.Initial).Mul(number(d.DecayRate).Pow(p))
}
