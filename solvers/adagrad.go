package solvers

import "github.com/pkg/errors"

// Adagrad divides the gradient by the root of the sum of all squared gradients (Duchi et al. 2011,
// https://jmlr.org/papers/v12/duchi11a.html).
//
//	a ← a + g²
//	step = α/(1 + (t−1)·δ) · g/(√a + ε), or g/√(a + ε) with EpsilonInside
//
// torch and Blocks have ε outside, Keras, optax and Lasagne inside, TensorFlow 1 none; the decay δ of the rate is torch's.
//
// Slot accumulator (a): InitialAccumulatorValue at the start.
type Adagrad struct {
	LearningRate            float64 `range:"[0,inf)"` // α, default 0.01
	InitialAccumulatorValue float64 `range:"[0,inf)"` // a before the first step, default 0
	Epsilon                 float64 `range:"[0,inf)"` // ε, default 1e-10
	RateDecay               float64 `range:"[0,inf)"` // δ, default 0
	EpsilonInside           bool    // ε under the root, default false
}

// NewAdagrad makes a solver of Adagrad.
func NewAdagrad(options ...func(*Adagrad)) *Solver {
	return configured(&Adagrad{LearningRate: 0.01, Epsilon: 1e-10}, options)
}

// Validate implements Validator.
func (r *Adagrad) Validate() error {
	if r.InitialAccumulatorValue == 0 && r.Epsilon == 0 {
		return errors.New("initial_accumulator_value and epsilon are both 0: where the first gradient is 0, the step would be 0/0")
	}
	return nil
}

// Apply implements Rule.
func (r *Adagrad) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, eps := b.Hyper("learning_rate"), b.Hyper("epsilon")
	if b.Uses("rate_decay") {
		lr = lr.Div(one.Add(b.Count("step").Sub(one).Mul(b.Hyper("rate_decay"))))
	}
	return b.Each(in, func(s Step) Expr {
		g, a := s.Delta, b.Slot(s, "accumulator", Fill(r.InitialAccumulatorValue))
		a1 := a.Set(a.Add(g.Square()))
		return lr.Mul(g).Div(either(r.EpsilonInside, a1.Add(eps).Sqrt(), a1.Sqrt().Add(eps)))
	})
}
