package solvers

// UnitNorm gives parts of a parameter the norm 1 (Keras' UnitNorm).
//
//	n = √(Σ w² over Axes)          w ← w/(n + ε)
//
// Axes are those that make up one part, as the inputs of a unit, the first axis of the matrix of a dense layer; a scalar is one part. Zeros stay zeros. It has no
// slots.
type UnitNorm struct {
	Epsilon float64 `range:"[0,inf)"` // ε, default 1e-7
	Axes    []int   // negative ones count from the end; default 0; nil: all
	Constrained
}

// NewUnitNorm makes a solver of UnitNorm, to be chained.
func NewUnitNorm(options ...func(*UnitNorm)) *Solver {
	return configured(&UnitNorm{Epsilon: 1e-7, Axes: []int{0}}, options)
}

// Apply implements Rule.
func (r *UnitNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	eps := b.Hyper("epsilon")
	return r.values(b, in, func(w Expr) Expr { return w.Div(normAlong(w, partAxes(w, r.Axes)).Add(eps)) })
}
