package solvers

// SGDW is gradient descent with decoupled weight decay (Loshchilov & Hutter 2019, https://arxiv.org/abs/1711.05101), in the
// form of TensorFlow Addons: the decay is not multiplied by the learning rate, and the momentum is that of Keras.
//
//	w ← (1 − λ)·w
//	v ← μ·v + α·g
//	step = v, or μ·v + α·g with Nesterov
//
// Slot momentum (v): zero at the start.
type SGDW struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.001
	Momentum     float64 `range:"[0,1]"`   // μ, default 0
	WeightDecay  float64 `range:"[0,1]"`   // λ, default 0
	Nesterov     bool    // look ahead, default false
}

// NewSGDW makes a solver of SGDW.
func NewSGDW(options ...func(*SGDW)) *Solver {
	return configured(&SGDW{LearningRate: 0.001}, options)
}

// Apply implements Rule.
func (r *SGDW) Apply(b *Builder, in []Step) ([]Step, error) {
	decayed, err := b.decay(in, true)
	if err != nil {
		return nil, err
	}
	lr, mu := b.Hyper("learning_rate"), b.Hyper("momentum")
	return b.Each(decayed, func(s Step) Expr {
		g, v := lr.Mul(s.Delta), b.Slot(s, "momentum")
		v1 := v.Set(v.Mul(mu).Add(g))
		return either(r.Nesterov, v1.Mul(mu).Add(g), v1)
	})
}
