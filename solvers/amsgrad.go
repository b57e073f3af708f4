package solvers

// AMSGrad is Adam with the maximum of the second moments and without bias corrections, in RETURNN's form (Reddi et al. 2018,
// https://arxiv.org/abs/1904.09237).
//
//	m ← β₁·m + (1−β₁)·g          v ← β₂·v + (1−β₂)·g²          h ← max(h, v)
//	step = α · m/(√h + ε), with α/√t for α if Decay
//
// For the form of torch, Keras and optax, set AMSGrad of Adam. RETURNN's ε is 0 (returnn/amsgrad), with which an element whose
// gradient has always been zero becomes NaN.
//
// Slots m, v and vhat (h): zero at the start.
type AMSGrad struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.001
	Beta1        float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2        float64 `range:"[0,1)"`   // β₂, default 0.99
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-8
	Decay        bool    // divide the rate by √t, default false
}

// NewAMSGrad makes a solver of AMSGrad.
func NewAMSGrad(options ...func(*AMSGrad)) *Solver {
	return configured(&AMSGrad{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8}, options)
}

// Apply implements Rule.
func (r *AMSGrad) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	if r.Decay {
		lr = lr.Div(b.Count("step").Sqrt())
	}
	return b.Each(in, func(s Step) Expr {
		m, v, h := b.Slot(s, "m"), b.Slot(s, "v"), b.Slot(s, "vhat")
		m1 := m.Set(average(m.Expr, s.Delta, b1))
		v1 := v.Set(average(v.Expr, s.Delta.Square(), b2))
		return lr.Mul(m1).Div(h.Set(h.Max(v1)).Sqrt().Add(eps))
	})
}
