package schedule

// PolynomialDecay goes from one value to another as a power of the runs that are left, and stays there or, as a cycle, starts
// anew from a value between, over a longer period each time.
//
//	value(s) = (initial − end)·(1 − p)^power + end        p = min(n, decay_steps)/decay_steps;  n = max(s − begin, 0)
//	                                                      p = n/(decay_steps·max(1, ⌈n/decay_steps⌉)) with cycle
//
// Initial is any finite number, DecaySteps finite and above 0; they have no defaults. End is any finite number, default 0.0001;
// Power is finite and above 0, default 1; Cycle is false by default. Begin, 0 or more, default 0, is the run up to which the
// value stays the initial one.
//
// It is keras.optimizers.schedules.PolynomialDecay and tf.train.polynomial_decay, whose default of End it has. It is also
// optax.polynomial_schedule and, with End 0, torch's PolynomialLR. Difference: those allow a power of 0 or less.
type PolynomialDecay struct {
	Initial    float64 `schedule:"required" alias:"initial_learning_rate,init_value,base_lr"`
	DecaySteps float64 `schedule:"required" alias:"transition_steps,total_iters"`
	End        float64 `alias:"end_learning_rate,end_value"` // default 0.0001
	Power      float64 // default 1
	Cycle      bool
	Begin      int `alias:"transition_begin"`
}

// NewPolynomialDecay makes a polynomial decay.
func NewPolynomialDecay(initial, decaySteps float64, options ...func(*PolynomialDecay)) PolynomialDecay {
	return configured(PolynomialDecay{Initial: initial, DecaySteps: decaySteps, End: 1e-4, Power: 1}, options)
}

// Validate checks the fields.
func (d PolynomialDecay) Validate() error {
	return first(isFinite("initial", d.Initial), positive("decay_steps", d.DecaySteps), isFinite("end", d.End),
		positive("power", d.Power), atLeast0("begin", d.Begin))
}

// At is the value in the run of that step.
func (d PolynomialDecay) At(step Expr) Expr {
	n, steps := since(step, d.Begin), number(d.DecaySteps)
	if d.Cycle {
		ceil := n.Div(steps).Neg().Floor().Neg()
		steps = steps.Mul(ceil.Max(one))
	}
	left := one.Sub(n.Min(steps).Div(steps))
	return number(d.Initial - d.End).Mul(left.Pow(number(d.Power))).Add(number(d.End))
}
