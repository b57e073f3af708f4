package solvers

// ScheduleFreeAdamW averages the iterates instead of lowering the rate (Defazio et al. 2024,
// https://arxiv.org/abs/2405.15682), in the form of Keras: the parameter holds the point y at which the gradient is taken.
//
//	η = α·min(t/WarmupSteps, 1)          v ← β₂·v + (1−β₂)·g²
//	x = (y − (1−β₁)·z)/β₁                z ← z − η·g/(√(v/(1−β₂ᵗ)) + ε)
//	x ← (1 − 1/t)·x + z/t                y ← (1−β₁)·z + β₁·x
//
// The weight decay acts on y before the step, y ← (1 − α·λ)·y.
//
// Slots z: the parameter at its first step, and v: zero at the start; number seen: 0, then 1.
type ScheduleFreeAdamW struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.0025
	Beta1        float64 `range:"(0,1]"`   // β₁, default 0.9
	Beta2        float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-8
	WarmupSteps  float64 `range:"[0,inf)"` // default 0
	WeightDecay  float64 `range:"[0,inf)"` // λ, default 0
}

// NewScheduleFreeAdamW makes a solver of ScheduleFreeAdamW.
func NewScheduleFreeAdamW(options ...func(*ScheduleFreeAdamW)) *Solver {
	return configured(&ScheduleFreeAdamW{LearningRate: 0.0025, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, options)
}

// Apply implements Rule.
func (r *ScheduleFreeAdamW) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps, warm := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon"), b.Hyper("warmup_steps")
	wd := b.Hyper("weight_decay")
	t := b.Count("step")
	eta := warm.Greater(zero).Select(lr.Mul(t.Div(warm).Min(one)), lr)
	c2, part := correction(b2, t), one.Div(t)
	return b.eachStep(in, func(s Step) Step {
		keep := one.Sub(lr.Mul(b.decayOf(s, wd)))
		y, slot, v := s.Value.Mul(keep), b.Slot(s, "z"), b.Slot(s, "v")
		z := b.first(s).Select(s.Value, slot.Expr)
		v1 := v.Set(average(v.Expr, s.Delta.Square(), b2))
		z1 := slot.Set(z.Sub(eta.Mul(s.Delta).Div(v1.Mul(one.Div(c2)).Sqrt().Add(eps))))
		x := y.Sub(z.Mul(one.Sub(b1))).Mul(one.Div(b1))
		x1 := x.Mul(one.Sub(part)).Add(z1.Mul(part))
		return replace(s, z1.Mul(one.Sub(b1)).Add(x1.Mul(b1)))
	})
}
