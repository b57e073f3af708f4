package schedule

// StepDecay is multiplied by a factor every StepSize runs.
//
//	value(s) = initial · gamma^⌊s/step_size⌋
//
// Initial is any finite number, StepSize 1 or more; they have no defaults. Gamma is finite and not negative, default 0.1.
//
// It is torch.optim.lr_scheduler.StepLR; ExponentialDecay as a staircase takes fractions of runs too.
type StepDecay struct {
	Initial  float64 `schedule:"required" alias:"base_lr"`
	StepSize int     `schedule:"required"`
	Gamma    float64 // default 0.1
}

// NewStepDecay makes a decay in steps of one length.
func NewStepDecay(initial float64, stepSize int, options ...func(*StepDecay)) StepDecay {
	return configured(StepDecay{Initial: initial, StepSize: stepSize, Gamma: .1}, options)
}

// Validate checks the fields.
func (d StepDecay) Validate() error {
	return first(isFinite("initial", d.Initial), atLeast1("step_size", d.StepSize), notNegative("gamma", d.Gamma))
}

// At is the value in the run of that step.
func (d StepDecay) At(step Expr) Expr {
	return number(d.Initial).Mul(number(d.Gamma).Pow(step.Div(number(float64(d.StepSize))).Floor()))
}

// MultiStepDecay is multiplied by a factor at each milestone.
//
//	value(s) = initial · gammaⁿ        n = the number of milestones up to s
//
// Initial is any finite number, Milestones are finite and increase; they have no defaults. Gamma is finite and not negative,
// default 0.1.
//
// It is torch.optim.lr_scheduler.MultiStepLR, where a milestone may also come several times. For other factors at each milestone
// see PiecewiseConstantDecay.
type MultiStepDecay struct {
	Initial    float64   `schedule:"required" alias:"base_lr"`
	Milestones []float64 `schedule:"required" alias:"boundaries"`
	Gamma      float64   // default 0.1
}

// NewMultiStepDecay makes a decay at milestones.
func NewMultiStepDecay(initial float64, milestones []float64, options ...func(*MultiStepDecay)) MultiStepDecay {
	return configured(MultiStepDecay{Initial: initial, Milestones: milestones, Gamma: .1}, options)
}

// Validate checks the fields.
func (d MultiStepDecay) Validate() error {
	return first(isFinite("initial", d.Initial), increasing("milestones", d.Milestones), notNegative("gamma", d.Gamma))
}

// At is the value in the run of that step.
func (d MultiStepDecay) At(step Expr) Expr {
	n := number(0)
	for _, m := range d.Milestones {
		n = n.Add(step.GreaterEqual(number(m)))
	}
	return number(d.Initial).Mul(number(d.Gamma).Pow(n))
}
