package solvers

// SGD is stochastic gradient descent (Robbins & Monro 1951, https://doi.org/10.1214/aoms/1177729586).
//
//	step = α · g
//
// It has no slots.
type SGD struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.01
}

// NewSGD makes a solver of SGD.
func NewSGD(options ...func(*SGD)) *Solver { return configured(&SGD{LearningRate: 0.01}, options) }

// Apply implements Rule.
func (r *SGD) Apply(b *Builder, in []Step) ([]Step, error) {
	lr := b.Hyper("learning_rate")
	return b.Each(in, func(s Step) Expr { return lr.Mul(s.Delta) })
}
