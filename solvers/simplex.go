package solvers

import "math/bits"

// Simplex projects a parameter onto the simplex: what is not negative and sums to r, as probabilities do (Duchi et al. 2008,
// https://doi.org/10.1145/1390156.1390191; optax.projections.projection_simplex).
//
//	w ← max(w − τ, 0), with the τ for which Σw becomes r
//
// All elements count. τ is not found by sorting, but by Newton's method on the sum as a function of τ, whose slope is the number
// of positive elements: each iteration reads the parameter once. As many are made as surely bring the sum to r up to rounding,
// 27 + log₂ of the number of elements. NaN makes all elements NaN. It has no slots.
type Simplex struct {
	Radius float64 `range:"(0,inf)"` // r, default 1
	Constrained
}

// NewSimplex makes a solver of Simplex, to be chained.
func NewSimplex(radius float64, options ...func(*Simplex)) *Solver {
	return configured(&Simplex{Radius: radius}, options)
}

// Apply implements Rule.
func (r *Simplex) Apply(b *Builder, in []Step) ([]Step, error) {
	radius := b.Hyper("radius")
	return r.values(b, in, func(w Expr) Expr { return ontoSimplex(w, radius) })
}

// ontoSimplex is the projection of x, all of whose elements count. The sum is convex in τ, so from below Newton's iterates rise to
// τ. With s for the number of positive elements and f for how far the sum is above r, f'/f + s'/s ≤ 1 from one to the next, so that
// f·s shrinks to a quarter at least; it begins at n²·r at most, and s is never below 1. All is relative to the largest element,
// where τ is between −r and 0, so that nothing cancels.
func ontoSimplex(x, r Expr) Expr {
	y := x.Sub(x.MaxAll())
	tau := r.Neg()
	for range 27 + bits.Len(uint(x.Shape().TotalSize())) {
		above := y.Sub(tau).Max(zero)
		count := y.Greater(tau).Sum()
		tau = tau.Add(above.Sum().Sub(r).Div(count.Max(one)))
	}
	p := y.Sub(tau).Max(zero)
	return p.Mul(r.Div(p.Sum())) // τ rounded to the dtype is off by the same for all
}
