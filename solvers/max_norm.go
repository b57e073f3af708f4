package solvers

// MaxNorm bounds the norm of parts of a parameter (Keras' MaxNorm; Srivastava et al. 2014,
// https://jmlr.org/papers/v15/srivastava14a.html).
//
//	n = √(Σ w² over Axes)          w ← w · min(n, c)/(ε + n)
//
// Axes are those that make up one part, as the inputs of a unit, the first axis of the matrix of a dense layer; a scalar is one part. ε also shrinks what is
// within the bound, by ε/(n+ε). It has no slots.
type MaxNorm struct {
	MaxValue float64 `range:"[0,inf)"` // c
	Epsilon  float64 `range:"[0,inf)"` // ε, default 1e-7
	Axes     []int   // negative ones count from the end; default 0; nil: all
	Constrained
}

// NewMaxNorm makes a solver of MaxNorm, to be chained.
func NewMaxNorm(maxValue float64, options ...func(*MaxNorm)) *Solver {
	return configured(&MaxNorm{MaxValue: maxValue, Epsilon: 1e-7, Axes: []int{0}}, options)
}

// Apply implements Rule.
func (r *MaxNorm) Apply(b *Builder, in []Step) ([]Step, error) {
	c := b.Hyper("max_value")
	return r.values(b, in, func(w Expr) Expr {
		return rescale(w, b.Hyper("epsilon"), partAxes(w, r.Axes), func(n Expr) Expr { return n.Min(c) })
	})
}
