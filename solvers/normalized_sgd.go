package solvers

import "optimop/graphops"

// NormalizedSGD makes steps of length α whatever the size of the gradient (RETURNN).
//
//	step = α · g / √(max(Σg², 1e-12))
//
// The sum is over the elements of one parameter. It has no slots.
type NormalizedSGD struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.01
}

// NewNormalizedSGD makes a solver of NormalizedSGD.
func NewNormalizedSGD(options ...func(*NormalizedSGD)) *Solver {
	return configured(&NormalizedSGD{LearningRate: 0.01}, options)
}

// Apply implements Rule.
func (r *NormalizedSGD) Apply(b *Builder, in []Step) ([]Step, error) {
	lr := b.Hyper("learning_rate")
	return b.Each(in, func(s Step) Expr {
		return s.Delta.Mul(lr.Div(s.Delta.SumSquares().Max(graphops.Const(1e-12)).Sqrt()))
	})
}
