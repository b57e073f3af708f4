package solvers

// RemoveNotFinite replaces the step of a parameter that holds NaN or an infinity (Blocks).
//
//	w ← c·w if an element of the step is not finite, else w − g
//
// With Scaler 1 the parameter stays, with 0.1 it shrinks to a tenth, with 0 it becomes zero. Put it last, and also first
// if the rules between have slots, since it cannot take NaN out of these. It has no slots.
type RemoveNotFinite struct {
	Scaler float64 // c, default 1
}

// NewRemoveNotFinite makes a solver of RemoveNotFinite.
func NewRemoveNotFinite(options ...func(*RemoveNotFinite)) *Solver {
	return configured(&RemoveNotFinite{Scaler: 1}, options)
}

// Apply implements Rule.
func (r *RemoveNotFinite) Apply(b *Builder, in []Step) ([]Step, error) {
	c := b.Hyper("scaler")
	return b.Each(in, func(s Step) Expr {
		return s.Delta.IsFinite().All().Select(s.Delta, s.Value.Mul(one.Sub(c)))
	})
}
