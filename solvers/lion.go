package solvers

// Lion steps by the sign of an average, evolved by program search (Chen et al. 2023, https://arxiv.org/abs/2302.06675).
//
//	w ← (1 − α·λ)·w
//	step = α · sign(β₁·m + (1−β₁)·g)          m ← β₂·m + (1−β₂)·g
//
// Its learning rate is usually 3 to 10 times smaller than Adam's, and its weight decay as much larger.
//
// Slot m: zero at the start.
type Lion struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.001
	Beta1        float64 `range:"(0,1]"`   // β₁, default 0.9
	Beta2        float64 `range:"[0,1]"`   // β₂, default 0.99
	WeightDecay  float64 `range:"[0,inf)"` // λ, default 0
}

// NewLion makes a solver of Lion.
func NewLion(options ...func(*Lion)) *Solver {
	return configured(&Lion{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.99}, options)
}

// Apply implements Rule.
func (r *Lion) Apply(b *Builder, in []Step) ([]Step, error) {
	decayed, err := b.decay(in, false)
	if err != nil {
		return nil, err
	}
	lr, b1, b2 := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2")
	return b.Each(decayed, func(s Step) Expr {
		m := b.Slot(s, "m")
		m.Set(average(m.Expr, s.Delta, b2))
		return lr.Mul(average(m.Expr, s.Delta, b1).Sign())
	})
}
