package solvers

// ProximalAdagrad is Adagrad followed by the proximal step of an L1 and an L2 penalty, with Adagrad's rate of each element
// (Duchi et al. 2011, https://jmlr.org/papers/v12/duchi11a.html).
//
//	a ← a + g²          η = α/√a          p = w − η·g
//	w ← sign(p)·max(|p| − η·l₁, 0) / (1 + η·l₂)
//
// Slot accumulator (a): InitialAccumulatorValue at the start.
type ProximalAdagrad struct {
	LearningRate            float64 `range:"[0,inf)"` // α, default 0.001
	InitialAccumulatorValue float64 `range:"[0,inf)"` // default 0.1
	L1                      float64 `range:"[0,inf)"` // l₁, default 0
	L2                      float64 `range:"[0,inf)"` // l₂, default 0
}

// NewProximalAdagrad makes a solver of ProximalAdagrad.
func NewProximalAdagrad(options ...func(*ProximalAdagrad)) *Solver {
	return configured(&ProximalAdagrad{LearningRate: 0.001, InitialAccumulatorValue: 0.1}, options)
}

// Apply implements Rule.
func (r *ProximalAdagrad) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, l1, l2 := b.Hyper("learning_rate"), b.Hyper("l1"), b.Hyper("l2")
	return b.eachStep(in, func(s Step) Step {
		a := b.Slot(s, "accumulator", Fill(r.InitialAccumulatorValue))
		eta := lr.Div(a.Set(a.Add(s.Delta.Square())).Sqrt())
		return replace(s, proximal(s.Value.Sub(eta.Mul(s.Delta)), eta.Mul(l1), eta.Mul(l2)))
	})
}
