package solvers

// BasicMomentum adds momentum to steps, whatever rule made them (Blocks; apply_momentum and apply_nesterov_momentum of Lasagne).
//
//	v ← μ·v + s
//	step = v, or s + μ·v with Nesterov
//
// After Scale it is Momentum with RateInside. Slot velocity (v): zero at the start.
type BasicMomentum struct {
	Momentum float64 `range:"[0,1]"` // μ, default 0
	Nesterov bool    // look ahead, default false
}

// NewBasicMomentum makes a solver of BasicMomentum.
func NewBasicMomentum(options ...func(*BasicMomentum)) *Solver {
	return configured(&BasicMomentum{}, options)
}

// Apply implements Rule.
func (r *BasicMomentum) Apply(b *Builder, in []Step) ([]Step, error) {
	mu := b.Hyper("momentum")
	return b.Each(in, func(s Step) Expr {
		v := b.Slot(s, "velocity")
		v1 := v.Set(v.Mul(mu).Add(s.Delta))
		return either(r.Nesterov, s.Delta.Add(v1.Mul(mu)), v1)
	})
}
