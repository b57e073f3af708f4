package solvers

// L2Ball projects a parameter onto the ball of a Euclidean norm (optax.projections.projection_l2_ball).
//
//	w ← w · r/‖w‖ where ‖w‖ > r
//
// The norm is that of all elements; MaxNorm bounds those of parts. It has no slots.
type L2Ball struct {
	Radius float64 `range:"(0,inf)"` // r, default 1
	Constrained
}

// NewL2Ball makes a solver of L2Ball, to be chained.
func NewL2Ball(radius float64, options ...func(*L2Ball)) *Solver {
	return configured(&L2Ball{Radius: radius}, options)
}

// Apply implements Rule.
func (r *L2Ball) Apply(b *Builder, in []Step) ([]Step, error) {
	radius := b.Hyper("radius")
	return r.values(b, in, func(w Expr) Expr { return w.Mul(shrink(w.Norm(), radius)) })
}
