package solvers

// RAdam is rectified Adam: it uses the second moment only once that is known well enough (Liu et al. 2020,
// https://arxiv.org/abs/1908.03265). m and v are those of Adam; ρₜ is the length of the moving average that v is worth,
// r the factor that makes up for its variance.
//
//	ρ∞ = 2/(1−β₂) − 1            ρₜ = ρ∞ − 2t·β₂ᵗ/(1−β₂ᵗ)
//	r = √((ρₜ−4)(ρₜ−2)ρ∞ / ((ρ∞−4)(ρ∞−2)ρₜ))
//	u = r · m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε)  where ρₜ ≥ SMAThreshold, else m/(1−β₁ᵗ)
//	step = α·(u + λ·w), or with Coupled α·u after g ← g + λ·w
//
// With EpsilonHat ε meets the uncorrected root, as in torch. The built-in warm-up of TensorFlow Addons (TotalSteps > 0)
// raises α linearly from 0 during the first WarmupProportion of the steps and lowers it to MinLearningRate at the last. The
// first, unrectified steps are momentum steps of the whole learning rate: keep a warm-up that was tuned.
//
// Slots m, v and, with AMSGrad, vhat: zero at the start.
type RAdam struct {
	LearningRate     float64 `range:"[0,inf)"` // α, default 0.001
	Beta1            float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2            float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon          float64 `range:"[0,inf)"` // ε, default 1e-8
	WeightDecay      float64 `range:"[0,inf)"` // λ, default 0
	SMAThreshold     float64 `range:"[4,inf)"` // ρₜ from which v is used, default 5
	TotalSteps       float64 `range:"[0,inf)"` // length of the run for the warm-up, default 0: none
	WarmupProportion float64 `range:"[0,1]"`   // default 0.1
	MinLearningRate  float64 `range:"[0,inf)"` // default 0
	AMSGrad          bool    // use the maximum of the second moments, default false
	EpsilonHat       bool    // default false
	Coupled          bool    // the weight decay is part of the gradient, default false
}

// NewRAdam makes a solver of RAdam.
func NewRAdam(options ...func(*RAdam)) *Solver {
	return configured(&RAdam{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, SMAThreshold: 5, WarmupProportion: 0.1}, options)
}

// Apply implements Rule.
func (r *RAdam) Apply(b *Builder, in []Step) ([]Step, error) {
	b1, b2, eps, wd := b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon"), b.Hyper("weight_decay")
	t := b.Count("step")
	lr := warmUp(b.Hyper("learning_rate"), t, b.Hyper("total_steps"), b.Hyper("warmup_proportion"), b.Hyper("min_learning_rate"), false)
	c1, c2 := correction(b1, t), correction(b2, t)
	length, factor := rectification(b2, t)
	rectified := length.GreaterEqual(b.Hyper("sma_threshold"))
	return b.Each(in, func(s Step) Expr {
		g, decay, m, v := s.Delta, s.Value.Mul(b.decayOf(s, wd)), b.Slot(s, "m"), b.Slot(s, "v")
		if r.Coupled {
			g, decay = g.Add(decay), zero
		}
		m1 := m.Set(average(m.Expr, g, b1))
		v1 := v.Set(average(v.Expr, g.Square(), b2))
		if r.AMSGrad {
			h := b.Slot(s, "vhat")
			v1 = h.Set(h.Max(v1))
		}
		u := rectified.Select(factor.Mul(adaptive(m1, v1, c1, c2, eps, r.EpsilonHat)), m1.Mul(one.Div(c1)))
		return lr.Mul(u.Add(decay))
	})
}
