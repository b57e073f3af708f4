package solvers

// Adamax is Adam with the maximum norm for its second moment (Kingma & Ba 2015, https://arxiv.org/abs/1412.6980, section 7.1).
//
//	m ← β₁·m + (1−β₁)·g          u ← max(β₂·u, |g|)
//	step = α/(1−β₁ᵗ) · m/(u + ε)
//
// This is the form of Keras and Lasagne. With EpsilonInsideMax it is torch's: u ← max(β₂·u, |g| + ε), step = α/(1−β₁ᵗ)·m/u.
//
// Slots m and u: zero at the start.
type Adamax struct {
	LearningRate     float64 `range:"[0,inf)"` // α, default 0.002
	Beta1            float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2            float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon          float64 `range:"[0,inf)"` // ε, default 1e-8
	EpsilonInsideMax bool    // ε is part of u, default false
}

// NewAdamax makes a solver of Adamax.
func NewAdamax(options ...func(*Adamax)) *Solver {
	return configured(&Adamax{LearningRate: 0.002, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, options)
}

// Apply implements Rule.
func (r *Adamax) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	scale := lr.Div(correction(b1, b.Count("step")))
	return b.Each(in, func(s Step) Expr {
		g, m, u := s.Delta, b.Slot(s, "m"), b.Slot(s, "u")
		m1 := scale.Mul(m.Set(average(m.Expr, g, b1)))
		if r.EpsilonInsideMax {
			return m1.Div(u.Set(u.Mul(b2).Max(g.Abs().Add(eps))))
		}
		return m1.Div(u.Set(u.Mul(b2).Max(g.Abs())).Add(eps))
	})
}
