package solvers

// ClipByGlobalNorm scales all steps down together where their joint Euclidean norm exceeds a bound (Pascanu et al. 2013,
// https://proceedings.mlr.press/v28/pascanu13.html; tf.clip_by_global_norm, Keras' global_clipnorm).
//
//	n = √(Σ over all parameters and elements of g²)
//	step = g · c/n where n > c, else g
//
// The norm is taken in float64; GlobalNorm says of what. One that is NaN or infinite makes every step NaN, as in TensorFlow, so
// that it is seen; with FilterNotFinite after it, it makes a step of zeros. A bound below zero is an error, and so are names that
// no parameter has. It has no slots. Put it before the optimizer: Chain(NewClipByGlobalNorm(1), NewAdam()).
//
// RETURNN's gradient_clip_global_norm is this with Raw.
type ClipByGlobalNorm struct {
	MaxNorm float64 `range:"[0,inf)"` // c; 0: none
	GlobalNorm
}

// NewClipByGlobalNorm makes a solver of ClipByGlobalNorm, to be chained.
func NewClipByGlobalNorm(maxNorm float64, options ...func(*ClipByGlobalNorm)) *Solver {
	return configured(&ClipByGlobalNorm{MaxNorm: maxNorm}, options)
}

// Transforms implements Transformation.
func (*ClipByGlobalNorm) Transforms() {}

// Apply implements Rule.
func (r *ClipByGlobalNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("max_norm") {
		return in, nil
	}
	n, err := r.norm(b, in)
	if err != nil {
		return nil, err
	}
	scale := shrink(n.Add(n.Sub(n)), b.Hyper("max_norm")) // n−n is 0, or NaN
	return b.Each(in, func(s Step) Expr { return s.Delta.Mul(scale) })
}
