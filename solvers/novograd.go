package solvers

// NovoGrad normalises the gradient of each parameter by a moving average of its norm (Ginsburg et al. 2019,
// https://arxiv.org/abs/1905.11286).
//
//	v ← ‖g‖² at the first step of the parameter, then β₂·v + (1−β₂)·‖g‖²          (a number for each parameter; its maximum with AMSGrad)
//	q = g/(√v + ε) + λ·w          times (1−β₁) with GradAveraging, but at the first step
//	m ← β₁·m + α·q                step = m
//
// Slot m: zero at the start; numbers v, seen (0, then 1) and, with AMSGrad, vhat.
type NovoGrad struct {
	LearningRate  float64 `range:"[0,inf)"` // α, default 0.001
	Beta1         float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2         float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon       float64 `range:"[0,inf)"` // ε, default 1e-7
	WeightDecay   float64 `range:"[0,inf)"` // λ, default 0
	GradAveraging bool    // default false
	AMSGrad       bool    // default false
}

// NewNovoGrad makes a solver of NovoGrad.
func NewNovoGrad(options ...func(*NovoGrad)) *Solver {
	return configured(&NovoGrad{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7}, options)
}

// Apply implements Rule.
func (r *NovoGrad) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps, wd := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon"), b.Hyper("weight_decay")
	return b.Each(in, func(s Step) Expr {
		g, m, v, first := s.Delta, b.Slot(s, "m"), b.ScalarSlot(s, "v"), b.first(s)
		norm := g.SumSquares()
		v1 := v.Set(first.Select(norm, average(v.Expr, norm, b2)))
		if r.AMSGrad {
			h := b.ScalarSlot(s, "vhat")
			v1 = h.Set(h.Max(v1))
		}
		q := g.Div(v1.Sqrt().Add(eps)).Add(s.Value.Mul(b.decayOf(s, wd)))
		if r.GradAveraging {
			q = q.Mul(first.Select(one, one.Sub(b1)))
		}
		return m.Set(m.Mul(b1).Add(lr.Mul(q)))
	})
}
