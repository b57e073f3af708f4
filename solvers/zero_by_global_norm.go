package solvers

// ZeroByGlobalNorm makes all steps zero where the joint Euclidean norm n is NaN, infinite or above a bound (RETURNN's
// grad_norm_to_clip_to_zero).
//
//	step = g where n ≤ c, else 0
//
// The norm is taken in float64; GlobalNorm says of what. A bound of +Inf lets only pass what is finite. The optimizer after it
// gets a gradient of zeros, so that its averages decay and momentum still moves the parameters. A bound below zero, which would
// make every step zero, is an error, and so are names that no parameter has. It has no slots.
type ZeroByGlobalNorm struct {
	MaxNorm float64 `range:"[0,inf]"` // c; 0: none
	GlobalNorm
}

// NewZeroByGlobalNorm makes a solver of ZeroByGlobalNorm, to be chained.
func NewZeroByGlobalNorm(maxNorm float64, options ...func(*ZeroByGlobalNorm)) *Solver {
	return configured(&ZeroByGlobalNorm{MaxNorm: maxNorm}, options)
}

// Transforms implements Transformation.
func (*ZeroByGlobalNorm) Transforms() {}

// Apply implements Rule.
func (r *ZeroByGlobalNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("max_norm") {
		return in, nil
	}
	n, err := r.norm(b, in)
	if err != nil {
		return nil, err
	}
	c := b.Hyper("max_norm")
	keep := c.Equal(zero).Or(n.IsFinite().And(n.LessEqual(c)))
	return b.Each(in, func(s Step) Expr { return keep.Select(s.Delta, zero) })
}
