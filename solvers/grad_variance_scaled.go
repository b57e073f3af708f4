package solvers

// GradVarianceScaled scales the gradient by how much it varied on average relative to how much it varies now (RETURNN).
//
//	m ← β₁·m + (1−β₁)·g          d = (g − m)²          v ← β₂·v + (1−β₂)·d
//	step = α · g · min(v/(d + ε), 1)
//
// There is no root and no bias correction: the first steps are about 1−β₂ times those of SGD.
//
// Slots m and v: zero at the start.
type GradVarianceScaled struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.01
	Beta1        float64 `range:"[0,1)"`   // β₁, default 0.9
	Beta2        float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-8
}

// NewGradVarianceScaled makes a solver of GradVarianceScaled.
func NewGradVarianceScaled(options ...func(*GradVarianceScaled)) *Solver {
	return configured(&GradVarianceScaled{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, options)
}

// Apply implements Rule.
func (r *GradVarianceScaled) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	return b.Each(in, func(s Step) Expr {
		g, m, v := s.Delta, b.Slot(s, "m"), b.Slot(s, "v")
		m1 := m.Set(average(m.Expr, summed(g), b1))
		d := g.Sub(alike(m1, g)).Square()
		v1 := v.Set(average(v.Expr, summed(d), b2))
		return lr.Mul(g).Mul(alike(v1, g).Div(d.Add(eps)).Min(one))
	})
}
