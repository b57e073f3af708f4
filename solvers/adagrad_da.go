package solvers

// AdagradDA is Adagrad in the form of dual averaging, which sets small weights to exactly zero (Duchi et al. 2011,
// https://jmlr.org/papers/v12/duchi11a.html).
//
//	G ← G + g          Q ← Q + g²
//	w ← −α·sign(G)·max(|G| − l₁·t, 0) / (l₂·t·α + √Q)
//
// The initial weights are forgotten at the first step.
//
// Slots gradient_accumulator (G): zero, and gradient_squared_accumulator (Q): InitialAccumulatorValue at the start.
type AdagradDA struct {
	LearningRate            float64 `range:"[0,inf)"` // α, default 0.001
	InitialAccumulatorValue float64 `range:"(0,inf)"` // default 0.1
	L1                      float64 `range:"[0,inf)"` // l₁, default 0
	L2                      float64 `range:"[0,inf)"` // l₂, default 0
}

// NewAdagradDA makes a solver of AdagradDA.
func NewAdagradDA(options ...func(*AdagradDA)) *Solver {
	return configured(&AdagradDA{LearningRate: 0.001, InitialAccumulatorValue: 0.1}, options)
}

// Apply implements Rule.
func (r *AdagradDA) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, l1, l2, t := b.Hyper("learning_rate"), b.Hyper("l1"), b.Hyper("l2"), b.Count("step")
	return b.eachStep(in, func(s Step) Step {
		sum := b.Slot(s, "gradient_accumulator")
		squares := b.Slot(s, "gradient_squared_accumulator", Fill(r.InitialAccumulatorValue))
		sum1, squares1 := sum.Set(sum.Add(s.Delta)), squares.Set(squares.Add(s.Delta.Square()))
		return replace(s, lr.Neg().Mul(soft(sum1, l1.Mul(t))).Div(squares1.Sqrt().Add(l2.Mul(t).Mul(lr))))
	})
}
