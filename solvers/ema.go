package solvers

// EMA trains with a rule and keeps an exponential average of the weights, as the option use_ema of Keras' optimizers does
// (Polyak averaging), for Solver.UseAverages and Solver.AssignAverages.
//
//	average ← x after the first step of the parameter, then m·average + (1−m)·x
//	in every F-th step: x ← average
//
// x are the weights after the step of rule. With F = 0 training does not depend on the average. The steps that count are those that
// the rule made: of accumulated runs one for each group. A parameter without a gradient has no part in a step, neither has its average.
//
// Slot average: zero before the first step; number seen: 0, then 1.
func EMA(rule Rule, options ...func(*EMAOptions)) *Solver {
	return wrapped(newEMA(addressable(rule)), options, func(r *ema) *EMAOptions { return &r.EMAOptions })
}

// EMAOptions are those of EMA, by their names in Keras.
type EMAOptions struct {
	EMAMomentum           float64 `range:"[0,1]"`   // m, default 0.99
	EMAOverwriteFrequency float64 `range:"[0,inf)"` // F, a whole number, default 0: the weights are not overwritten
}

// Validate implements Validator.
func (o *EMAOptions) Validate() error {
	return whole("ema_overwrite_frequency", o.EMAOverwriteFrequency)
}

type ema struct {
	EMAOptions
	Rule Rule
}

func newEMA(rule Rule) *ema { return &ema{EMAOptions{EMAMomentum: 0.99}, rule} }

// Rules implements Composite.
func (r *ema) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*ema) Transforms() {}

// Averages implements Averager.
func (*ema) Averages() {}

// Apply implements Rule.
func (r *ema) Apply(b *Builder, in []Step) ([]Step, error) {
	return b.follow(r.Rule, in, func(t Expr, out []Step) ([]Step, error) { return r.track(b, t, b.first, out) })
}

// track averages what parameters become. t counts the steps, and first says whether one is the first of its parameter.
func (o *EMAOptions) track(b *Builder, t Expr, first func(Step) Expr, out []Step) ([]Step, error) {
	m := b.Hyper("ema_momentum")
	overwrites := b.Uses("ema_overwrite_frequency")
	var f Expr
	if overwrites {
		f = b.Hyper("ema_overwrite_frequency")
	}
	return b.eachStep(out, func(s Step) Step {
		slot, x := b.Slot(s, "average"), s.Value.Sub(s.Delta)
		mean := slot.Set(first(s).Select(x, average(slot.Expr, x, m)))
		if overwrites {
			return replace(s, every(t, f).Select(mean, x))
		}
		return s
	})
}
