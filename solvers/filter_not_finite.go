package solvers

import (
	"math"

	"optimop/graphops"
)

// FilterNotFinite replaces the elements of the steps that are not finite, each for itself (RETURNN's gradient_nan_inf_filter).
//
//	step = g where g is finite; NaN and +∞ become 0, −∞ becomes −0
//
// Put it before the optimizer, so that nothing of them gets into its slots; RemoveNotFinite replaces whole steps, at the end. It
// has no options and no slots.
type FilterNotFinite struct{}

// NewFilterNotFinite makes a solver of FilterNotFinite, to be chained.
func NewFilterNotFinite() *Solver { return New(&FilterNotFinite{}) }

// Transforms implements Transformation.
func (*FilterNotFinite) Transforms() {}

// Apply implements Rule.
func (r *FilterNotFinite) Apply(b *Builder, in []Step) ([]Step, error) {
	minusInf, minusZero := graphops.Const(-inf), graphops.Const(math.Copysign(0, -1))
	return b.Each(in, func(s Step) Expr {
		return s.Delta.IsFinite().Select(s.Delta, s.Delta.Equal(minusInf).Select(minusZero, zero))
	})
}
