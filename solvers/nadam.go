package solvers

import "optimop/graphops"

// Nadam is Adam with Nesterov momentum (Dozat 2016, https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ). Libraries have
// three forms of it; m and v are those of Adam in all.
//
// Form "scheduled" (torch, Keras; ψ = 0.004 in torch and Keras 2, 1 in Keras 3), with μₜ = β₁·(1 − ½·0.96^(t·ψ)) and
// Π = μ₁·…·μₜ:
//
//	step = α · (μₜ₊₁·m/(1−Π·μₜ₊₁) + (1−μₜ)·g/(1−Π)) / (√(v/(1−β₂ᵗ)) + ε)
//
// Form "tensorflow" (the kernel behind RETURNN's Nadam; the formula printed in its documentation is Adam's):
//
//	step = α·√(1−β₂ᵗ)/(1−β₁ᵗ) · (β₁·m + (1−β₁)·g)/(√v + ε)
//
// Form "simple" (optax):
//
//	step = α · (β₁·m/(1−β₁ᵗ⁺¹) + (1−β₁)·g/(1−β₁ᵗ)) / (√(v/(1−β₂ᵗ)) + ε)
//
// Slots m and v, and for "scheduled" the number mu_product (Π, 1 at the start).
type Nadam struct {
	LearningRate  float64 `range:"[0,inf)"` // α, default 0.002
	Beta1         float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2         float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon       float64 `range:"[0,inf)"` // ε, default 1e-8
	MomentumDecay float64 `range:"[0,inf)"` // ψ, default 0.004
	Form          string  // default "scheduled"
}

// NewNadam makes a solver of Nadam.
func NewNadam(options ...func(*Nadam)) *Solver {
	return configured(&Nadam{LearningRate: 0.002, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, MomentumDecay: 0.004, Form: "scheduled"}, options)
}

// Validate implements Validator.
func (r *Nadam) Validate() error { return choice("form", r.Form, "scheduled", "tensorflow", "simple") }

// Apply implements Rule.
func (r *Nadam) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	t := b.Count("step")
	c1, c2 := correction(b1, t), correction(b2, t)
	ofM, ofG := b1.Div(correction(b1, t.Add(one))), one.Sub(b1).Div(c1) // "simple"
	switch r.Form {
	case "tensorflow":
		ofM, ofG = b1, one.Sub(b1)
	case "scheduled":
		psi := b.Hyper("momentum_decay")
		mu := func(t Expr) Expr {
			return b1.Mul(one.Sub(graphops.Const(0.5).Mul(graphops.Const(0.96).Pow(t.Mul(psi)))))
		}
		now, next := mu(t), mu(t.Add(one))
		p := b.Variable("mu_product", Fill(1))
		product := p.Set(p.Mul(now))
		ofM, ofG = next.Div(one.Sub(product.Mul(next))), one.Sub(now).Div(one.Sub(product))
	}
	return b.Each(in, func(s Step) Expr {
		g, m, v := s.Delta, b.Slot(s, "m"), b.Slot(s, "v")
		m1 := m.Set(average(m.Expr, g, b1))
		v1 := v.Set(average(v.Expr, g.Square(), b2))
		look := m1.Mul(ofM).Add(g.Mul(ofG))
		if r.Form == "tensorflow" {
			return lr.Mul(adaptive(look, v1, c1, c2, eps, true))
		}
		return lr.Mul(adaptive(look, v1, one, c2, eps, false))
	})
}
