package solvers

// Adam is adaptive moment estimation (Kingma & Ba 2015, https://arxiv.org/abs/1412.6980), algorithm 1.
//
//	m ← β₁·m + (1−β₁)·g          v ← β₂·v + (1−β₂)·g²
//	step = α · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)
//
// t counts the steps done, from 1. By default ε stands outside the root and after the correction of v, as in torch and
// optax. With EpsilonHat it is added to the uncorrected root, as in TensorFlow and Keras:
//
//	step = α · √(1−β₂ᵗ)/(1−β₁ᵗ) · m/(√v + ε)
//
// With AMSGrad (Reddi et al. 2018, https://arxiv.org/abs/1904.09237) v is replaced by its maximum over all steps, taken
// before the correction as in torch and Keras, or after it with MaxCorrected, as in optax.
//
// Slots m, v and, with AMSGrad, vhat: zero at the start. If NaN turn up, a larger epsilon often helps: 1e-6, up to 0.1 or
// even 1; so may a much smaller learning rate, and one of 0 shows whether the update is at fault at all. For GANs beta1 = 0.5
// is usual.
type Adam struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.001
	Beta1        float64 `range:"[0,1)"`   // β₁, decay of the first moment, default 0.9
	Beta2        float64 `range:"[0,1)"`   // β₂, decay of the second moment, default 0.999
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-8
	EpsilonHat   bool    // ε meets the uncorrected root, default false
	AMSGrad      bool    // use the maximum of the second moments, default false
	MaxCorrected bool    // with AMSGrad: of the corrected ones, default false
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
	c1, c2 := correction(b1, t), correction(b2, t)
	return b.Each(in, func(s Step) Expr {
		m, v := b.Slot(s, "m"), b.Slot(s, "v")
		m1 := m.Set(average(m.Expr, s.Delta, b1))
		v1 := v.Set(average(v.Expr, s.Delta.Square(), b2))
		if !r.AMSGrad {
			return lr.Mul(adaptive(m1, v1, c1, c2, eps, r.EpsilonHat))
		}
		h := b.Slot(s, "vhat")
		if r.MaxCorrected {
			return lr.Mul(adaptive(m1, h.Set(h.Max(v1.Mul(one.Div(c2)))), c1, one, eps, false))
		}
		return lr.Mul(adaptive(m1, h.Set(h.Max(v1)), c1, c2, eps, r.EpsilonHat))
	})
}
