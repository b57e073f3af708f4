package solvers

import "optimop/graphops"

// Yogi changes the second moment additively, so that it grows slowly (Zaheer et al. 2018,
// https://papers.nips.cc/paper/8186-adaptive-methods-for-nonconvex-optimization).
//
//	m ← β₁·m + (1−β₁)·g          v ← v + (1−β₂)·σ(g² − v)·g²
//	η = α·√(1−β₂ᵗ)/(1−β₁ᵗ)/(√v + ε)
//	p = w − η·m          w ← sign(p)·max(|p| − η·l₁, 0) / (1 + η·l₂)
//
// σ is the sign, or tanh(10·x) with Activation "tanh". This is the form of TensorFlow Addons; optax corrects the moments before
// ε (EpsilonHat false), and begins m at 1e-6 (InitialMomentum).
//
// Slots m: InitialMomentum, and v: InitialAccumulatorValue at the start.
type Yogi struct {
	LearningRate            float64 `range:"[0,inf)"` // α, default 0.01
	Beta1                   float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2                   float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon                 float64 `range:"[0,inf)"` // ε, default 1e-3
	L1                      float64 `range:"[0,inf)"` // l₁, default 0
	L2                      float64 `range:"[0,inf)"` // l₂, default 0
	InitialAccumulatorValue float64 `range:"[0,inf)"` // default 1e-6
	InitialMomentum         float64 // default 0
	Activation              string  // σ: "sign" or "tanh", default "sign"
	EpsilonHat              bool    // default true
}

// NewYogi makes a solver of Yogi.
func NewYogi(options ...func(*Yogi)) *Solver {
	return configured(&Yogi{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-3, InitialAccumulatorValue: 1e-6, Activation: "sign", EpsilonHat: true}, options)
}

// Validate implements Validator.
func (r *Yogi) Validate() error { return choice("activation", r.Activation, "sign", "tanh") }

// Apply implements Rule.
func (r *Yogi) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps, penalty := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon"), b.Uses("l1") || b.Uses("l2")
	t := b.Count("step")
	c1, c2 := correction(b1, t), correction(b2, t)
	return b.eachStep(in, func(s Step) Step {
		g2, m, v := s.Delta.Square(), b.Slot(s, "m", Fill(r.InitialMomentum)), b.Slot(s, "v", Fill(r.InitialAccumulatorValue))
		grow := g2.Sub(v.Expr).Sign()
		if r.Activation == "tanh" {
			grow = g2.Sub(v.Expr).Mul(graphops.Const(10)).Tanh()
		}
		m1 := m.Set(average(m.Expr, s.Delta, b1))
		v1 := v.Set(v.Add(grow.Mul(g2).Mul(one.Sub(b2))))
		s.Delta = lr.Mul(adaptive(m1, v1, c1, c2, eps, r.EpsilonHat))
		if !penalty {
			return s
		}
		eta := lr.Mul(c2.Sqrt()).Div(c1).Div(v1.Sqrt().Add(eps))
		return replace(s, proximal(s.Value.Sub(s.Delta), eta.Mul(b.Hyper("l1")), eta.Mul(b.Hyper("l2"))))
	})
}
