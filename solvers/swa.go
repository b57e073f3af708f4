package solvers

// SWA trains with a rule and keeps the mean of the weights at regular intervals (stochastic weight averaging, Izmailov et al.
// 2018, https://arxiv.org/abs/1803.05407; TensorFlow Addons), for Solver.UseAverages and Solver.AssignAverages. Training does not
// depend on it.
//
//	average ← (average·n + x)/(n+1) after step AveragePeriod·i + StartAveraging + 1, for i = 0, 1, …
//
// x are the weights after the step of rule, n is the number of snapshots so far. In other steps the average is neither read nor
// written. The steps that count are those that the rule made. Before the first snapshot there is no average.
//
// Slot average: zero at the start; number seen: n.
func SWA(rule Rule, options ...func(*SWAOptions)) *Solver {
	return wrapped(newSWA(addressable(rule)), options, func(r *swa) *SWAOptions { return &r.SWAOptions })
}

// SWAOptions are those of SWA.
type SWAOptions struct {
	StartAveraging float64 `range:"[0,inf)"` // a whole number of steps before the first snapshot, default 0
	AveragePeriod  float64 `range:"[1,inf)"` // a whole number of steps from one snapshot to the next, default 10
}

// Validate implements Validator.
func (o *SWAOptions) Validate() error {
	if err := whole("start_averaging", o.StartAveraging); err != nil {
		return err
	}
	return whole("average_period", o.AveragePeriod)
}

type swa struct {
	SWAOptions
	Rule Rule
}

func newSWA(rule Rule) *swa { return &swa{SWAOptions{AveragePeriod: 10}, rule} }

// Rules implements Composite.
func (r *swa) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*swa) Transforms() {}

// Averages implements Averager.
func (*swa) Averages() {}

// Apply implements Rule.
func (r *swa) Apply(b *Builder, in []Step) ([]Step, error) {
	start, period := b.Hyper("start_averaging"), b.Hyper("average_period")
	return b.follow(r.Rule, in, func(t Expr, out []Step) ([]Step, error) {
		since := t.Sub(one).Sub(start)
		snapshot := since.GreaterEqual(zero).And(every(since, period))
		return out, b.under(snapshot, func() error {
			_, err := b.eachStep(out, func(s Step) Step {
				slot, seen := b.Slot(s, "average"), b.ScalarSlot(s, "seen")
				more := seen.Add(one)
				slot.Set(slot.Mul(seen.Expr).Add(s.Value.Sub(s.Delta)).Div(more))
				seen.Set(more)
				return s
			})
			return err
		})
	})
}
