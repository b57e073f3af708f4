package solvers

// Momentum is gradient descent with momentum (Polyak 1964, https://doi.org/10.1016/0041-5553(64)90137-5), and with Nesterov
// its form that looks ahead (Nesterov 1983; as in Sutskever et al. 2013, https://proceedings.mlr.press/v28/sutskever13.html).
//
//	v ← μ·v + g
//	step = α · v               classical
//	step = α · (g + μ·v)       Nesterov
//
// This is the form of TensorFlow 1, torch and optax. That of Keras and Gorgonia, v ← μ·v − α·g, gives the same path as long
// as α is constant; after a change of α, there the old velocity keeps its old scale.
//
// Slot momentum (v): zero at the start.
type Momentum struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.01
	Momentum     float64 `range:"[0,1]"`   // μ, default 0.9
	Nesterov     bool    // look ahead, default false
}

// NewMomentum makes a solver of classical Momentum.
func NewMomentum(options ...func(*Momentum)) *Solver {
	return configured(&Momentum{LearningRate: 0.01, Momentum: 0.9}, options)
}

// NewNesterov makes a solver of Momentum with Nesterov set.
func NewNesterov(options ...func(*Momentum)) *Solver {
	return configured(&Momentum{LearningRate: 0.01, Momentum: 0.9, Nesterov: true}, options)
}

// Apply implements Rule.
func (r *Momentum) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, mu := b.Hyper("learning_rate"), b.Hyper("momentum")
	return b.Each(in, func(s Step) Expr {
		g, v := s.Delta, b.Slot(s, "momentum")
		v1 := v.Set(v.Mul(mu).Add(g))
		if r.Nesterov {
			return lr.Mul(g.Add(v1.Mul(mu)))
		}
		return lr.Mul(v1)
	})
}
