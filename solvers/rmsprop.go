package solvers

// RMSprop divides the gradient by the root of a moving average of its square (Hinton 2012,
// https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf).
//
//	v ← ρ·v + (1−ρ)·g²          a ← ρ·a + (1−ρ)·g with Centered
//	d = √(v − a²) + ε, or √(v − a² + ε) with EpsilonInside
//	M ← μ·M + α·g/d             step = M
//	M ← μ·M + g/d               step = α·M with RateOutside
//
// Libraries differ under this name: torch has ε outside, 1e-8, and the rate outside; Keras ε inside, 1e-7; TensorFlow 1 ε
// inside and v starting at 1 (InitialValue). With MaxScaling s > 0 it is that of Blocks: d = max(√v, 1/s), without ε.
//
// Slots rms (v), momentum (M, if μ > 0) and mg (a, if centered).
type RMSprop struct {
	LearningRate  float64 `range:"[0,inf)"` // α, default 0.001
	Rho           float64 `range:"[0,1]"`   // ρ, default 0.9
	Momentum      float64 `range:"[0,1]"`   // μ, default 0
	Epsilon       float64 `range:"[0,inf)"` // ε, default 1e-8
	InitialValue  float64 `range:"[0,inf)"` // v before the first step, default 0
	MaxScaling    float64 `range:"[0,inf)"` // s, default 0: use ε
	Centered      bool    // divide by the standard deviation, default false
	EpsilonInside bool    // ε under the root, default false
	RateOutside   bool    // the momentum is not in units of the parameter, default false
}

// NewRMSprop makes a solver of RMSprop.
func NewRMSprop(options ...func(*RMSprop)) *Solver {
	return configured(&RMSprop{LearningRate: 0.001, Rho: 0.9, Epsilon: 1e-8}, options)
}

// NewBasicRMSprop makes a solver of RMSprop as Blocks has it: rate 1, rho 0.9 and the divisor not below 1e-5. In a chain it
// goes first, before Scale and momentum, since what comes before it only scales what it normalises.
func NewBasicRMSprop(options ...func(*RMSprop)) *Solver {
	return configured(&RMSprop{LearningRate: 1, Rho: 0.9, MaxScaling: 1e5}, options)
}

// Apply implements Rule.
func (r *RMSprop) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, rho := b.Hyper("learning_rate"), b.Hyper("rho")
	heavy, bounded := b.Uses("momentum"), b.Uses("max_scaling")
	divisor := func(v Expr) Expr {
		eps := b.Hyper("epsilon")
		d := either(r.EpsilonInside, v.Add(eps).Sqrt(), v.Sqrt().Add(eps))
		if bounded {
			most := b.Hyper("max_scaling")
			d = most.Greater(zero).Select(v.Sqrt().Max(one.Div(most)), d)
		}
		return d
	}
	return b.Each(in, func(s Step) Expr {
		g, v := s.Delta, b.Slot(s, "rms", Fill(r.InitialValue))
		v1 := v.Set(average(v.Expr, g.Square(), rho))
		if r.Centered {
			a := b.Slot(s, "mg")
			v1 = v1.Sub(a.Set(average(a.Expr, g, rho)).Square()).Max(zero) // rounding can make it negative
		}
		d := divisor(v1)
		if !heavy {
			return lr.Mul(g).Div(d)
		}
		m, mu := b.Slot(s, "momentum"), b.Hyper("momentum")
		if r.RateOutside {
			return lr.Mul(m.Set(m.Mul(mu).Add(g.Div(d))))
		}
		return m.Set(m.Mul(mu).Add(lr.Mul(g).Div(d)))
	})
}
