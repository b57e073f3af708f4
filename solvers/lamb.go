package solvers

// LAMB is Adam with a trust ratio for each parameter, for large batches (You et al. 2020, https://arxiv.org/abs/1904.00962).
//
//	u = m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + λ·w          (m and v of Adam)
//	step = α · ‖w‖/‖u‖ · u, with 1 for the ratio where a norm is zero
//
// Slots m and v: zero at the start.
type LAMB struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.001
	Beta1        float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2        float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-6
	WeightDecay  float64 `range:"[0,inf)"` // λ, default 0
	Decoupled    bool    // w ← (1−α·λ)·w first, and no λ·w in u, as in Keras; default false
}

// NewLAMB makes a solver of LAMB.
func NewLAMB(options ...func(*LAMB)) *Solver {
	return configured(&LAMB{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-6}, options)
}

// Apply implements Rule.
func (r *LAMB) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps, wd := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon"), b.Hyper("weight_decay")
	t := b.Count("step")
	c1, c2 := correction(b1, t), correction(b2, t)
	return b.eachStep(in, func(s Step) Step {
		m, v := b.Slot(s, "m"), b.Slot(s, "v")
		m1 := m.Set(average(m.Expr, s.Delta, b1))
		v1 := v.Set(average(v.Expr, s.Delta.Square(), b2))
		u := adaptive(m1, v1, c1, c2, eps, false)
		wd := b.decayOf(s, wd)
		if r.Decoupled {
			s.Value = s.Value.Mul(one.Sub(lr.Mul(wd)))
		} else {
			u = u.Add(s.Value.Mul(wd))
		}
		s.Delta = u.Mul(lr.Mul(trustRatio(s.Value, u)))
		return s
	})
}
