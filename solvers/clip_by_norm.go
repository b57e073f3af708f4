package solvers

// ClipByNorm scales the step of a parameter down where its own Euclidean norm exceeds a bound (RETURNN's gradient_clip_norm,
// tf.clip_by_norm, Keras' clipnorm).
//
//	step = g · c/max(‖g‖, c)
//
// A step of zeros stays. The norm is taken in float64. If it is NaN the whole step becomes NaN; one infinite element becomes
// NaN and the finite ones of its parameter 0, as in TensorFlow. A bound below zero is an error. It has no slots.
type ClipByNorm struct {
	MaxNorm float64 `range:"[0,inf)"` // c; 0: none
}

// NewClipByNorm makes a solver of ClipByNorm, to be chained.
func NewClipByNorm(maxNorm float64, options ...func(*ClipByNorm)) *Solver {
	return configured(&ClipByNorm{MaxNorm: maxNorm}, options)
}

// Transforms implements Transformation.
func (*ClipByNorm) Transforms() {}

// Apply implements Rule.
func (r *ClipByNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("max_norm") {
		return in, nil
	}
	c := b.Hyper("max_norm")
	return b.Each(in, func(s Step) Expr { return s.Delta.Mul(shrink(s.Delta.Norm(), c)) })
}
