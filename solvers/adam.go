package solvers

// Adam is adaptive moment estimation (Kingma & Ba 2015, https://arxiv.org/abs/1412.6980), algorithm 1.
//
//	m ← β₁·m + (1−β₁)·g          v ← β₂·v + (1−β₂)·g²
//	step = α · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)
//
// t counts the steps done, from 1. The ε stands outside the root and after the correction of v, as in torch and optax; the
// form of TensorFlow and Keras, whose "epsilon hat" is added to the uncorrected root, differs by the size of ε.
//
// Slots m and v: zero at the start. If NaN turn up, a larger epsilon often helps: 1e-6, up to 0.1 or even 1.
type Adam struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.001
	Beta1        float64 `range:"[0,1)"`   // β₁, decay of the first moment, default 0.9
	Beta2        float64 `range:"[0,1)"`   // β₂, decay of the second moment, default 0.999
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-8
}

func adamDefaults() Adam { return Adam{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8} }

// NewAdam makes a solver of Adam.
func NewAdam(options ...func(*Adam)) *Solver {
	a := adamDefaults()
	return configured(&a, options)
}

// Apply implements Rule.
func (r *Adam) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	t := b.Count("step")
	c1, c2 := one.Sub(b1.Pow(t)), one.Sub(b2.Pow(t))
	return b.Each(in, func(s Step) Expr {
		g, m, v := s.Delta, b.Slot(s, "m"), b.Slot(s, "v")
		m1 := m.Set(m.Mul(b1).Add(g.Mul(one.Sub(b1))))
		v1 := v.Set(v.Mul(b2).Add(g.Square().Mul(one.Sub(b2))))
		return lr.Mul(m1.Div(c1)).Div(v1.Div(c2).Sqrt().Add(eps))
	})
}
