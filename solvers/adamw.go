package solvers

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter 2019, https://arxiv.org/abs/1711.05101).
//
//	w ← (1 − α·λ)·w, then the step of Adam
//
// The decay is multiplied by the learning rate, as in torch, optax and Keras, but with RateIndependent, as in TensorFlow
// Addons, it is w ← (1 − λ)·w. It does not pass through the moments. Slots are those of Adam.
type AdamW struct {
	Adam
	WeightDecay     float64 `range:"[0,inf)"` // λ, default 0.01
	RateIndependent bool    // do not multiply the decay by α, default false
}

// NewAdamW makes a solver of AdamW.
func NewAdamW(options ...func(*AdamW)) *Solver {
	return configured(&AdamW{Adam: adamDefaults(), WeightDecay: 0.01}, options)
}

// Apply implements Rule.
func (r *AdamW) Apply(b *Builder, in []Step) ([]Step, error) {
	decayed, err := b.decay(in, r.RateIndependent)
	if err != nil {
		return nil, err
	}
	return r.Adam.Apply(b, decayed)
}

// decay shrinks the values by weight_decay, times learning_rate or not.
func (b *Builder) decay(in []Step, rateIndependent bool) ([]Step, error) {
	wd := b.Hyper("weight_decay")
	if !rateIndependent {
		wd = b.Hyper("learning_rate").Mul(wd)
	}
	return b.EachValue(in, func(s Step) Expr { return s.Value.Mul(one.Sub(b.decayOf(s, wd))) })
}
