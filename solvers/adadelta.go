package solvers

// Adadelta needs no learning rate to set the size of a step: it takes it from the last steps (Zeiler 2012,
// https://arxiv.org/abs/1212.5701).
//
//	a ← ρ·a + (1−ρ)·g²
//	u = g · √(d + ε)/√(a + ε)      d ← ρ·d + (1−ρ)·u²      with the old d in u
//	step = α·u
//
// The paper has α = 1, as here; Keras' default of 0.001 is a trap that nearly stops it. With a tiny ε the first steps are tiny,
// of size √ε.
//
// Slots accum (a) and accum_update (d): zero at the start.
type Adadelta struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 1
	Rho          float64 `range:"[0,1]"`   // ρ, default 0.9
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-6
}

// NewAdadelta makes a solver of Adadelta.
func NewAdadelta(options ...func(*Adadelta)) *Solver {
	return configured(&Adadelta{LearningRate: 1, Rho: 0.9, Epsilon: 1e-6}, options)
}

// Apply implements Rule.
func (r *Adadelta) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, rho, eps := b.Hyper("learning_rate"), b.Hyper("rho"), b.Hyper("epsilon")
	return b.Each(in, func(s Step) Expr {
		g, a, d := s.Delta, b.Slot(s, "accum"), b.Slot(s, "accum_update")
		a1 := a.Set(average(a.Expr, g.Square(), rho))
		u := g.Mul(d.Add(eps).Sqrt()).Div(a1.Add(eps).Sqrt())
		d.Set(average(d.Expr, u.Square(), rho))
		return lr.Mul(u)
	})
}
