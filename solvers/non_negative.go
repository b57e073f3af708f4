package solvers

// NonNegative makes negative elements zero (Keras' NonNeg, optax.projections.projection_non_negative).
//
//	w ← max(w, 0)
//
// NaN stays NaN. It has no slots.
type NonNegative struct {
	Constrained
}

// NewNonNegative makes a solver of NonNegative, to be chained.
func NewNonNegative(options ...func(*NonNegative)) *Solver {
	return configured(&NonNegative{}, options)
}

// Apply implements Rule.
func (r *NonNegative) Apply(b *Builder, in []Step) ([]Step, error) {
	return r.values(b, in, func(w Expr) Expr { return w.Max(zero) })
}
