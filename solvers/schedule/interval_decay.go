package schedule

// IntervalDecay falls by a factor in every run and starts anew after an interval.
//
//	value(s) = initial · decay^(s mod interval)
//
// s counts runs from 0, so that the first run of every interval has the initial value, and an interval of 1 changes nothing.
//
// Initial is any finite number, Interval 1 or more, Decay finite and not negative; there are no defaults. A decay of 0 leaves
// the first run of every interval and makes the value 0 (0⁰ = 1) in the others; one above 1 grows.
//
// It is the dynamic_learning_rate = {"interval": …, "decay": …} of RETURNN's TensorFlow updater
// (https://github.com/rwth-i6/returnn), whose learning rate is Initial here. Differences: RETURNN computes the power in
// float32, this is float64; it cuts an interval of 2.7 to 2 and divides by an interval of 0, both are refused here.
type IntervalDecay struct {
	Initial  float64 `schedule:"required" alias:"initial_learning_rate"`
	Interval int     `schedule:"required"`
	Decay    float64 `schedule:"required"`
}

// NewIntervalDecay makes an interval decay.
func NewIntervalDecay(initial float64, interval int, decay float64) IntervalDecay {
	return IntervalDecay{initial, interval, decay}
}

// Validate checks the fields.
func (d IntervalDecay) Validate() error {
	return first(isFinite("initial", d.Initial), atLeast1("interval", d.Interval), notNegative("decay", d.Decay))
}

// At is the value in the run of that step.
func (d IntervalDecay) At(step Expr) Expr {
	interval := number(float64(d.Interval))
	since := step.Sub(step.Div(interval).Floor().Mul(interval)) // step mod interval, exact up to 2⁵³
	return number(d.Initial).Mul(number(d.Decay).Pow(since))
}
