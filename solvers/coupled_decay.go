package solvers

// CoupledDecay adds the gradient of an L2 penalty, so that the weight decay passes through whatever rule follows: the
// weight_decay of torch's optimizers but AdamW.
//
//	step = g + λ·w
//
// It has no slots.
type CoupledDecay struct {
	WeightDecay float64 `range:"[0,inf)"` // λ, default 0
}

// NewCoupledDecay makes a solver of CoupledDecay, to be chained.
func NewCoupledDecay(weightDecay float64, options ...func(*CoupledDecay)) *Solver {
	return configured(&CoupledDecay{WeightDecay: weightDecay}, options)
}

// Transforms implements Transformation.
func (*CoupledDecay) Transforms() {}

// Apply implements Rule.
func (r *CoupledDecay) Apply(b *Builder, in []Step) ([]Step, error) {
	wd := b.Hyper("weight_decay")
	return b.Each(in, func(s Step) Expr { return s.Delta.Add(s.Value.Mul(b.decayOf(s, wd))) })
}
