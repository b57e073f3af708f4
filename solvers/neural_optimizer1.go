package solvers

// NeuralOptimizer1 is the first rule that was found by neural optimizer search, in RETURNN's form (Bello et al. 2017,
// https://arxiv.org/abs/1709.07417): it makes smaller steps where the gradient disagrees with its average.
//
//	m ← β₁·m + (1−β₁)·g
//	step = α·g where sign(g) = sign(m), else α·c·g
//
// Slot m: zero at the start.
type NeuralOptimizer1 struct {
	LearningRate   float64 `range:"[0,inf)"` // α, default 0.01
	Beta1          float64 `range:"[0,1)"`   // β₁, default 0.9
	DecreaseFactor float64 `range:"[0,inf)"` // c, default 0.1
}

// NewNeuralOptimizer1 makes a solver of NeuralOptimizer1.
func NewNeuralOptimizer1(options ...func(*NeuralOptimizer1)) *Solver {
	return configured(&NeuralOptimizer1{LearningRate: 0.01, Beta1: 0.9, DecreaseFactor: 0.1}, options)
}

// Apply implements Rule.
func (r *NeuralOptimizer1) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, c := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("decrease_factor")
	return b.Each(in, func(s Step) Expr {
		g, m := s.Delta, b.Slot(s, "m")
		m1 := m.Set(average(m.Expr, summed(g), b1))
		agree := g.Sign().Equal(alike(m1, g).Sign())
		return lr.Mul(g).Mul(agree.Select(one, c))
	})
}
