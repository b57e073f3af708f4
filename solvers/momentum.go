package solvers

import "github.com/pkg/errors"

// Momentum is gradient descent with momentum (Polyak 1964, https://doi.org/10.1016/0041-5553(64)90137-5), and with Nesterov
// its form that looks ahead (Nesterov 1983; as in Sutskever et al. 2013, https://proceedings.mlr.press/v28/sutskever13.html).
//
//	v ← μ·v + (1−d)·g          (v ← g at the first step of the parameter)
//	step = α · v               classical
//	step = α · (g + μ·v)       Nesterov
//
// This is the form of TensorFlow 1, torch and optax; the dampening d is torch's. With RateInside it is that of Keras,
// Gorgonia, Lasagne and Blocks, v ← μ·v + α·g, which gives the same path as long as α is constant; after a change of α, the
// old velocity keeps its old scale.
//
// Slot momentum (v): zero at the start; with dampening also the number seen: 0, then 1.
type Momentum struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.01
	Momentum     float64 `range:"[0,1]"`   // μ, default 0.9
	Dampening    float64 `range:"[0,1]"`   // d, default 0
	Nesterov     bool    // look ahead, default false
	RateInside   bool    // the velocity is in units of the parameter, default false
}

// NewMomentum makes a solver of classical Momentum.
func NewMomentum(options ...func(*Momentum)) *Solver {
	return configured(&Momentum{LearningRate: 0.01, Momentum: 0.9}, options)
}

// NewNesterov makes a solver of Momentum with Nesterov set.
func NewNesterov(options ...func(*Momentum)) *Solver {
	return configured(&Momentum{LearningRate: 0.01, Momentum: 0.9, Nesterov: true}, options)
}

var errNesterovDampening = errors.New("Nesterov momentum has no dampening: set dampening to 0")

// Validate implements Validator.
func (r *Momentum) Validate() error {
	if r.Nesterov && r.Dampening != 0 {
		return errNesterovDampening
	}
	return nil
}

// Apply implements Rule.
func (r *Momentum) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, mu := b.Hyper("learning_rate"), b.Hyper("momentum")
	damped := b.Uses("dampening")
	if damped && r.Nesterov {
		return nil, errNesterovDampening
	}
	return b.Each(in, func(s Step) Expr {
		g, v := s.Delta, b.Slot(s, "momentum")
		scale := lr
		if r.RateInside {
			g, scale = lr.Mul(g), one
		}
		fresh := g
		if damped {
			fresh = g.Mul(b.first(s).Select(one, one.Sub(b.Hyper("dampening"))))
		}
		v1 := v.Set(v.Mul(mu).Add(fresh))
		if r.Nesterov {
			v1 = g.Add(v1.Mul(mu))
		}
		if r.RateInside {
			return v1
		}
		return scale.Mul(v1)
	})
}
