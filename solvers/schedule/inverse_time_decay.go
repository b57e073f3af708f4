package schedule

// InverseTimeDecay falls with the inverse of the number of runs, smoothly or as a staircase.
//
//	value(s) = initial / (1 + decay_rate·p)        p = s/decay_steps, or ⌊s/decay_steps⌋ as a staircase
//
// Initial is any finite number, DecaySteps finite and above 0, DecayRate finite and not negative; they have no defaults.
// Staircase is false by default.
//
// It is keras.optimizers.schedules.InverseTimeDecay and tf.train.inverse_time_decay. Keras allows a negative decay rate too,
// whose value has a pole.
type InverseTimeDecay struct {
	Initial    float64 `schedule:"required" alias:"initial_learning_rate"`
	DecaySteps float64 `schedule:"required"`
	DecayRate  float64 `schedule:"required"`
	Staircase  bool
}

// NewInverseTimeDecay makes an inverse time decay.
func NewInverseTimeDecay(initial, decaySteps, decayRate float64, options ...func(*InverseTimeDecay)) InverseTimeDecay {
	return configured(InverseTimeDecay{Initial: initial, DecaySteps: decaySteps, DecayRate: decayRate}, options)
}

// Validate checks the fields.
func (d InverseTimeDecay) Validate() error {
	return first(isFinite("initial", d.Initial), positive("decay_steps", d.DecaySteps), notNegative("decay_rate", d.DecayRate))
}

// At is the value in the run of that step.
func (d InverseTimeDecay) At(step Expr) Expr {
	p := step.Div(number(d.DecaySteps))
	if d.Staircase {
		p = p.Floor()
	}
	return number(d.Initial).Div(one.Add(number(d.DecayRate).Mul(p)))
}
