package solvers

// L1Ball projects a parameter onto the ball of the sum of magnitudes, which makes many elements zero (Duchi et al. 2008,
// https://doi.org/10.1145/1390156.1390191; optax.projections.projection_l1_ball).
//
//	w ← sign(w)·max(|w| − τ, 0) where Σ|w| > r, with the τ for which Σ|w| becomes r
//
// All elements count. τ is found without sorting, see Simplex. NaN makes all elements NaN. It has no slots.
type L1Ball struct {
	Radius float64 `range:"(0,inf)"` // r, default 1
	Constrained
}

// NewL1Ball makes a solver of L1Ball, to be chained.
func NewL1Ball(radius float64, options ...func(*L1Ball)) *Solver {
	return configured(&L1Ball{Radius: radius}, options)
}

// Apply implements Rule.
func (r *L1Ball) Apply(b *Builder, in []Step) ([]Step, error) {
	radius := b.Hyper("radius")
	return r.values(b, in, func(w Expr) Expr {
		size := w.Abs()
		return size.Sum().LessEqual(radius).Select(w, w.Sign().Mul(ontoSimplex(size, radius)))
	})
}
