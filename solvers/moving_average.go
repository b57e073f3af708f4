package solvers

import (
	"github.com/pkg/errors"

	"optimop/graphops"
)

// MovingAverage trains with a rule and keeps an exponential average of the weights, in the form of TensorFlow Addons (see EMA
// for Keras'), for Solver.UseAverages and Solver.AssignAverages. Training does not depend on it.
//
//	average ← d·average + (1−d)·x after each step, where x are the weights after the step of rule
//	d = AverageDecay, but 0 in the first StartStep steps
//	with DynamicDecay: d = min(AverageDecay, (1+n)/(10+n)) for the n-th step since StartStep, from 0
//
// NumUpdates ≥ 0 bounds AverageDecay by (1+NumUpdates)/(10+NumUpdates) for good. The steps that count are those that the rule
// made.
//
// Slot average: the parameter before its own first step; number seen: 0, then 1.
func MovingAverage(rule Rule, options ...func(*MovingAverageOptions)) *Solver {
	return wrapped(newMovingAverage(addressable(rule)), options,
		func(r *movingAverage) *MovingAverageOptions { return &r.MovingAverageOptions })
}

// MovingAverageOptions are those of MovingAverage.
type MovingAverageOptions struct {
	AverageDecay float64 `range:"[0,1]"`    // default 0.99
	NumUpdates   float64 `range:"[-1,inf)"` // a whole number, default -1: none
	StartStep    float64 `range:"[0,inf)"`  // a whole number, default 0
	DynamicDecay bool    // default false
}

// Validate implements Validator.
func (o *MovingAverageOptions) Validate() error {
	if o.NumUpdates < 0 && o.NumUpdates != -1 {
		return errors.Errorf("num_updates is %v; it must be -1 or at least 0", o.NumUpdates)
	}
	if err := whole("num_updates", o.NumUpdates); err != nil {
		return err
	}
	return whole("start_step", o.StartStep)
}

type movingAverage struct {
	MovingAverageOptions
	Rule Rule
}

func newMovingAverage(rule Rule) *movingAverage {
	return &movingAverage{MovingAverageOptions{AverageDecay: 0.99, NumUpdates: -1}, rule}
}

// Rules implements Composite.
func (r *movingAverage) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*movingAverage) Transforms() {}

// Averages implements Averager.
func (*movingAverage) Averages() {}

// Apply implements Rule.
func (r *movingAverage) Apply(b *Builder, in []Step) ([]Step, error) {
	decay, updates, start := b.Hyper("average_decay"), b.Hyper("num_updates"), b.Hyper("start_step")
	decay = updates.GreaterEqual(zero).Select(decay.Min(early(updates)), decay)
	return b.follow(r.Rule, in, func(t Expr, out []Step) ([]Step, error) {
		n := t.Sub(one).Sub(start)
		d := decay
		if r.DynamicDecay {
			d = d.Min(early(n))
		}
		d = n.Less(zero).Select(zero, d)
		return b.eachStep(out, func(s Step) Step {
			slot := b.Slot(s, "average")
			old := b.first(s).Select(graphops.Of(s.Param.Node), slot.Expr)
			slot.Set(average(old, s.Value.Sub(s.Delta), d))
			return s
		})
	})
}

// early is a decay that lets an average of n updates forget its beginning.
func early(n Expr) Expr { return one.Add(n).Div(graphops.Const(10).Add(n)) }
