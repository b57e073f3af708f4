package solvers

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter 2019, https://arxiv.org/abs/1711.05101).
//
//	w ← (1 − α·λ)·w, then the step of Adam
//
// The decay is multiplied by the learning rate, as in torch, optax and Keras, and does not pass through the moments. Slots are
// those of Adam.
type AdamW struct {
	Adam
	WeightDecay float64 `range:"[0,inf)"` // λ, default 0.01
}

// NewAdamW makes a solver of AdamW.
func NewAdamW(options ...func(*AdamW)) *Solver {
	return configured(&AdamW{Adam: adamDefaults(), WeightDecay: 0.01}, options)
}

// Apply implements Rule.
func (r *AdamW) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, wd := b.Hyper("learning_rate"), b.Hyper("weight_decay")
	keep := one.Sub(lr.Mul(wd))
	decayed, err := b.EachValue(in, func(s Step) Expr { return s.Value.Mul(keep) })
	if err != nil {
		return nil, err
	}
	return r.Adam.Apply(b, decayed)
}
