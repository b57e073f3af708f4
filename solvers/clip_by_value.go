package solvers

// ClipByValue keeps every element of the steps within bounds (RETURNN's gradient_clip, Keras' clipvalue, optax.clip,
// torch.nn.utils.clip_grad_value_).
//
//	step = max(min(g, c), −c)
//
// So an infinite element becomes ±c; NaN stays NaN. A bound below zero is an error. It has no slots.
type ClipByValue struct {
	MaxValue float64 `range:"[0,inf)"` // c; 0: none
}

// NewClipByValue makes a solver of ClipByValue, to be chained.
func NewClipByValue(maxValue float64, options ...func(*ClipByValue)) *Solver {
	return configured(&ClipByValue{MaxValue: maxValue}, options)
}

// Transforms implements Transformation.
func (*ClipByValue) Transforms() {}

// Apply implements Rule.
func (r *ClipByValue) Apply(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("max_value") {
		return in, nil
	}
	c := limited(b.Hyper("max_value"))
	return b.Each(in, func(s Step) Expr { return s.Delta.Min(c).Max(c.Neg()) })
}
