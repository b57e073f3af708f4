package solvers

// ClipByGlobalNorm scales all steps down together where their joint Euclidean norm exceeds a bound (Pascanu et al. 2013,
// https://proceedings.mlr.press/v28/pascanu13.html).
//
//	n = √(Σ over all parameters and elements of g²)
//	step = g · c/n where n > c, else g
//
// The norm is taken in float64. A norm that is NaN or infinite makes every step NaN, as in TensorFlow, so that it is seen. It
// has no slots. Put it before the optimizer: Chain(NewClipByGlobalNorm(1), NewAdam()).
type ClipByGlobalNorm struct {
	MaxNorm float64 `range:"(0,inf)"` // c
}

// NewClipByGlobalNorm makes a solver of ClipByGlobalNorm, to be chained.
func NewClipByGlobalNorm(maxNorm float64, options ...func(*ClipByGlobalNorm)) *Solver {
	return configured(&ClipByGlobalNorm{MaxNorm: maxNorm}, options)
}

// Transforms implements Transformation.
func (*ClipByGlobalNorm) Transforms() {}

// Apply implements Rule.
func (r *ClipByGlobalNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	limit := b.Hyper("max_norm")
	norm := L2Norm(deltas(in)...)
	scale := norm.LessEqual(limit).Select(one, limit.Div(norm)).Add(norm.Sub(norm)) // norm−norm is 0, or NaN
	return b.Each(in, func(s Step) Expr { return s.Delta.Mul(scale) })
}
