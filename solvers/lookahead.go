package solvers

import "optimop/graphops"

// Lookahead pulls the weights of a rule back, every k steps, towards slow weights that follow them (Zhang et al. 2019,
// https://arxiv.org/abs/1907.08610).
//
//	x = the weights after the step of rule
//	in every k-th step: slow ← slow + α·(x − slow), and x ← slow
//
// The state of the rule within goes on at a pull. With α = 1 the weights are those of the rule alone, bit for bit; with α = 0
// they go back to where they began. The steps that count are those that the rule made, in all of them together: under Accumulate
// one for each group.
//
// Slot slow: the parameter before its own first step; number seen: 0, then 1.
//
//	solvers.Lookahead(solvers.NewAdam(), func(l *solvers.LookaheadOptions) { l.SyncPeriod = 5 })
func Lookahead(rule Rule, options ...func(*LookaheadOptions)) *Solver {
	return wrapped(newLookahead(addressable(rule)), options,
		func(r *lookahead) *LookaheadOptions { return &r.LookaheadOptions })
}

// LookaheadOptions are those of Lookahead.
type LookaheadOptions struct {
	SyncPeriod   float64 `range:"[1,inf)"` // k, a whole number, default 6
	SlowStepSize float64 `range:"[0,1]"`   // α, default 0.5
}

// Validate implements Validator.
func (o *LookaheadOptions) Validate() error { return whole("sync_period", o.SyncPeriod) }

type lookahead struct {
	LookaheadOptions
	Rule Rule
}

func newLookahead(rule Rule) *lookahead {
	return &lookahead{LookaheadOptions{SyncPeriod: 6, SlowStepSize: 0.5}, rule}
}

// Rules implements Composite.
func (r *lookahead) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*lookahead) Transforms() {}

// Apply implements Rule.
func (r *lookahead) Apply(b *Builder, in []Step) ([]Step, error) {
	k, alpha := b.Hyper("sync_period"), b.Hyper("slow_step_size")
	return b.follow(r.Rule, in, func(t Expr, out []Step) ([]Step, error) {
		pull := every(t, k)
		return b.eachStep(out, func(s Step) Step { return b.lookAhead(s, pull, alpha) })
	})
}

// lookAhead makes the new value of a parameter that of the slow weights in steps where the condition holds.
func (b *Builder) lookAhead(s Step, pull, alpha Expr) Step {
	slot, x := b.Slot(s, "slow"), s.Value.Sub(s.Delta)
	slow := b.first(s).Select(graphops.Of(s.Param.Node), slot.Expr)
	nearer := alpha.Equal(one).Select(x, slow.Add(x.Sub(slow).Mul(alpha))) // the difference is rounded
	slow = slot.Set(pull.Select(nearer, slow))
	return replace(s, pull.Select(slow, x))
}
