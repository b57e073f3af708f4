package solvers

import "github.com/pkg/errors"

// BaseCustomOptimizer is a base for optimizers of your own that treat each parameter alone: embed it for the learning rate,
// and call Each from your Apply. See the example of the package.
type BaseCustomOptimizer struct {
	LearningRate float64 `range:"[0,inf)"` // no default: set it where you make your optimizer
}

// Each makes the delta of every step with the learning rate.
func (*BaseCustomOptimizer) Each(b *Builder, in []Step, delta func(s Step, learningRate Expr) Expr) ([]Step, error) {
	lr := b.Hyper("learning_rate")
	return b.Each(in, func(s Step) Expr { return delta(s, lr) })
}

// Apply implements Rule, for a type that has no Apply of its own: it is an error that says so.
func (*BaseCustomOptimizer) Apply(*Builder, []Step) ([]Step, error) {
	return nil, errors.New("a type that embeds BaseCustomOptimizer needs an Apply method of its own")
}
