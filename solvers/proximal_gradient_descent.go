package solvers

// ProximalGradientDescent is gradient descent followed by the proximal step of an L1 and an L2 penalty (Duchi & Singer 2009,
// https://jmlr.org/papers/v10/duchi09a.html).
//
//	p = w − α·g          w ← sign(p)·max(|p| − α·l₁, 0) / (1 + α·l₂)
//
// It has no slots.
type ProximalGradientDescent struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.01
	L1           float64 `range:"[0,inf)"` // l₁, default 0
	L2           float64 `range:"[0,inf)"` // l₂, default 0
}

// NewProximalGradientDescent makes a solver of ProximalGradientDescent.
func NewProximalGradientDescent(options ...func(*ProximalGradientDescent)) *Solver {
	return configured(&ProximalGradientDescent{LearningRate: 0.01}, options)
}

// Apply implements Rule.
func (r *ProximalGradientDescent) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, l1, l2 := b.Hyper("learning_rate"), b.Hyper("l1"), b.Hyper("l2")
	return b.eachStep(in, func(s Step) Step {
		return replace(s, proximal(s.Value.Sub(lr.Mul(s.Delta)), lr.Mul(l1), lr.Mul(l2)))
	})
}

// proximal is the proximal step of penalties of strength l1 and l2 from p.
func proximal(p, l1, l2 Expr) Expr { return soft(p, l1).Mul(one.Div(one.Add(l2))) }
