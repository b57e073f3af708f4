package solvers

import "optimop/graphops"

// ClipByAverageNorm scales the step of a parameter down where its norm, divided by the number of its elements, exceeds a bound
// (RETURNN's gradient_clip_avg_norm, tf.compat.v1.clip_by_average_norm).
//
//	a = ‖g‖/n for n elements          step = g · c·min(1/a, 1/c)
//
// That is not the root of the mean square, ‖g‖/√n. A step of zeros stays. What is not finite does what it does in ClipByNorm. A
// bound below zero is an error. It has no slots.
type ClipByAverageNorm struct {
	MaxNorm float64 `range:"[0,inf)"` // c; 0: none
}

// NewClipByAverageNorm makes a solver of ClipByAverageNorm, to be chained.
func NewClipByAverageNorm(maxNorm float64, options ...func(*ClipByAverageNorm)) *Solver {
	return configured(&ClipByAverageNorm{MaxNorm: maxNorm}, options)
}

// Transforms implements Transformation.
func (*ClipByAverageNorm) Transforms() {}

// Apply implements Rule.
func (r *ClipByAverageNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("max_norm") {
		return in, nil
	}
	c := b.Hyper("max_norm")
	return b.Each(in, func(s Step) Expr {
		n := graphops.Const(float64(s.Param.Node.Shape().TotalSize()))
		return s.Delta.Mul(shrink(s.Delta.Norm().Div(n), c))
	})
}
