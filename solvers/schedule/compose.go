package schedule

import (
	"fmt"
	"slices"
)

// Sequential is one schedule after another, each counting its runs from its own beginning.
//
//	value(s) = schedules[i](s − boundaries[i−1])        i = the number of boundaries up to s; boundaries[−1] = 0
//
// Boundaries increase and are 1 or more, and there is one more of the Schedules.
//
// It is optax.join_schedules and torch's SequentialLR (milestones); SGDR of optax is one of WarmupCosineDecay.
type Sequential struct {
	Schedules  []Schedule `schedule:"required" alias:"schedulers"`
	Boundaries []int      `schedule:"required" alias:"milestones"`
}

// NewSequential joins schedules. The lists are copied.
func NewSequential(schedules []Schedule, boundaries ...int) Sequential {
	return Sequential{slices.Clone(schedules), slices.Clone(boundaries)}
}

// Validate checks the fields, and the schedules.
func (q Sequential) Validate() error {
	return first(oneMore("schedules", q.Schedules, "boundaries", q.Boundaries), increasing("boundaries", q.Boundaries),
		must(len(q.Boundaries) == 0 || q.Boundaries[0] >= 1, "boundaries", q.Boundaries, "1 or more"), parts("schedules", q.Schedules))
}

// At is the value in the run of that step.
func (q Sequential) At(step Expr) Expr {
	last := len(q.Boundaries)
	at := func(i int) Expr {
		if i == 0 {
			return q.Schedules[0].At(step)
		}
		return q.Schedules[i].At(since(step, q.Boundaries[i-1]))
	}
	v := at(last)
	for i := last - 1; i >= 0; i-- {
		v = step.Less(number(float64(q.Boundaries[i]))).Select(at(i), v)
	}
	return v
}

// Warmup rises linearly to the first value of another schedule and then follows it.
//
//	value(s) = initial + (of(0) − initial)·s/warmup_steps        for s < warmup_steps
//	value(s) = of(s − warmup_steps)                              and afterwards
//
// Of, the schedule, and WarmupSteps, 1 or more, have no defaults; Initial is any finite number, default 0.
//
// Of a Constant it is optax.warmup_constant_schedule, of an ExponentialDecay optax.warmup_exponential_decay_schedule. A rise
// that multiplies a schedule that is running already is a Product with a Linear.
type Warmup struct {
	Of          Schedule `schedule:"required" alias:"schedule"`
	WarmupSteps int      `schedule:"required" alias:"warmup"`
	Initial     float64  `alias:"init_value"`
}

// NewWarmup makes a warm-up before a schedule.
func NewWarmup(of Schedule, warmupSteps int, options ...func(*Warmup)) Warmup {
	return configured(Warmup{Of: of, WarmupSteps: warmupSteps}, options)
}

// Validate checks the fields, and the schedule.
func (w Warmup) Validate() error {
	return first(atLeast1("warmup_steps", w.WarmupSteps), isFinite("initial", w.Initial), part("of", w.Of))
}

// At is the value in the run of that step.
func (w Warmup) At(step Expr) Expr {
	steps := number(float64(w.WarmupSteps))
	v := w.Of.At(since(step, w.WarmupSteps)) // of(0) during the warm-up
	left := one.Sub(step.Div(steps))
	return step.Less(steps).Select(number(w.Initial).Sub(v).Mul(left).Add(v), v)
}

// Product multiplies schedules.
//
//	value(s) = of[0](s) · of[1](s) · …
//
// There must be one or more. It is torch's ChainedScheduler, where one of the schedules has the base rate and the others are
// factors.
type Product struct {
	Of []Schedule `schedule:"required" alias:"schedules,schedulers"`
}

// NewProduct multiplies schedules. The list is copied.
func NewProduct(of ...Schedule) Product { return Product{slices.Clone(of)} }

// Validate checks the schedules.
func (p Product) Validate() error {
	return first(must(len(p.Of) > 0, "of", "empty", "one schedule or more"), parts("of", p.Of))
}

// At is the value in the run of that step.
func (p Product) At(step Expr) Expr {
	v := p.Of[0].At(step)
	for _, s := range p.Of[1:] {
		v = v.Mul(s.At(step))
	}
	return v
}

func parts(field string, list []Schedule) error {
	for i, s := range list {
		if err := part(fmt.Sprintf("%s[%d]", field, i), s); err != nil {
			return err
		}
	}
	return nil
}
