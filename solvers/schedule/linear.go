package schedule

// Linear goes from one value to another in a straight line, and stays there.
//
//	value(s) = (initial − end)·(1 − p) + end        p = min(max(s − begin, 0), steps)/steps
//
// Initial and End are any finite numbers, Steps 1 or more; they have no defaults. Begin, 0 or more, default 0, is the run up to
// which the value stays the initial one.
//
// It is optax.linear_schedule, and torch.optim.lr_scheduler.LinearLR with Initial = base·start_factor and End = base·end_factor;
// torch allows factors up to 1 only.
type Linear struct {
	Initial float64 `schedule:"required" alias:"init_value"`
	End     float64 `schedule:"required" alias:"end_value"`
	Steps   int     `schedule:"required" alias:"transition_steps,total_iters"`
	Begin   int     `alias:"transition_begin"`
}

// NewLinear makes a linear schedule.
func NewLinear(initial, end float64, steps int, options ...func(*Linear)) Linear {
	return configured(Linear{Initial: initial, End: end, Steps: steps}, options)
}

// Validate checks the fields.
func (l Linear) Validate() error {
	return first(isFinite("initial", l.Initial), isFinite("end", l.End), atLeast1("steps", l.Steps), atLeast0("begin", l.Begin))
}

// At is the value in the run of that step.
func (l Linear) At(step Expr) Expr {
	steps := number(float64(l.Steps))
	p := since(step, l.Begin).Min(steps).Div(steps)
	return number(l.Initial - l.End).Mul(one.Sub(p)).Add(number(l.End))
}
