package solvers

// MinMaxNorm moves the norm of parts of a parameter towards a range (Keras' MinMaxNorm).
//
//	n = √(Σ w² over Axes)          w ← w · (r·min(max(n, a), c) + (1−r)·n)/(ε + n)
//
// With the rate r = 1 the norm is in the range after each step, with a smaller one it comes nearer. Axes are those that make up
// one part, as the inputs of a unit, the first axis of the matrix of a dense layer; a scalar is one part. Zeros stay zeros. It has no slots.
type MinMaxNorm struct {
	MinValue float64 `range:"[0,inf)"` // a
	MaxValue float64 `range:"[0,inf)"` // c, at least a
	Rate     float64 `range:"[0,1]"`   // r, default 1
	Epsilon  float64 `range:"[0,inf)"` // ε, default 1e-7
	Axes     []int   // negative ones count from the end; default 0; nil: all
	Constrained
}

// NewMinMaxNorm makes a solver of MinMaxNorm, to be chained.
func NewMinMaxNorm(minValue, maxValue float64, options ...func(*MinMaxNorm)) *Solver {
	return configured(&MinMaxNorm{MinValue: minValue, MaxValue: maxValue, Rate: 1, Epsilon: 1e-7, Axes: []int{0}}, options)
}

// Validate implements Validator.
func (r *MinMaxNorm) Validate() error {
	if err := ordered(r.MinValue, r.MaxValue); err != nil {
		return err
	}
	return r.Constrained.Validate()
}

// Apply implements Rule.
func (r *MinMaxNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	low, high, rate := b.Hyper("min_value"), b.Hyper("max_value"), b.Hyper("rate")
	return r.values(b, in, func(w Expr) Expr {
		return rescale(w, b.Hyper("epsilon"), partAxes(w, r.Axes), func(n Expr) Expr {
			return n.Max(low).Min(high).Mul(rate).Add(n.Mul(one.Sub(rate)))
		})
	})
}
