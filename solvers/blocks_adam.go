package solvers

// BlocksAdam is Adam in the form of Blocks, in which β₁ decays with the steps, as in the first versions of the paper.
//
//	b = β₁·λᵗ⁻¹
//	m ← b·m + (1−b)·g          v ← β₂·v + (1−β₂)·g²
//	step = α · √(1−β₂ᵗ)/(1−bᵗ) · m/(√v + ε)
//
// With OldBetas the betas are the weights of the new value, one minus the usual ones: β₁ = 0.1 and β₂ = 0.001 there mean 0.9 and
// 0.999 here. That is the convention of Blocks before 2017; it also decays 1−β₁ (b = 1 − (1−β₁)·λᵗ⁻¹ is the weight of g) and
// corrects the bias with the undecayed β₁, a known flaw.
//
// Slots mean (m) and variance (v): zero at the start.
type BlocksAdam struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.002
	Beta1        float64 `range:"(0,1)"`   // β₁, default 0.9
	Beta2        float64 `range:"(0,1)"`   // β₂, default 0.999
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-8
	DecayFactor  float64 `range:"[0,1]"`   // λ, default 1
	OldBetas     bool    // the betas are one minus the usual ones, default false
}

// NewBlocksAdam makes a solver of BlocksAdam with the usual meaning of the betas.
func NewBlocksAdam(options ...func(*BlocksAdam)) *Solver {
	return configured(&BlocksAdam{LearningRate: 0.002, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, DecayFactor: 1}, options)
}

// NewBlocksAdamOldBetas makes a solver of BlocksAdam with OldBetas: betas of 0.1 and 0.001 and a decay factor of 1−1e-8.
func NewBlocksAdamOldBetas(options ...func(*BlocksAdam)) *Solver {
	return configured(&BlocksAdam{LearningRate: 0.002, Beta1: 0.1, Beta2: 0.001, Epsilon: 1e-8, DecayFactor: 1 - 1e-8, OldBetas: true}, options)
}

// Apply implements Rule.
func (r *BlocksAdam) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	t := b.Count("step")
	decay := b.Hyper("decay_factor").Pow(t.Sub(one))
	keep := b1.Mul(decay)
	c1 := correction(keep, t)
	if r.OldBetas {
		b1, b2 = one.Sub(b1), one.Sub(b2)
		keep, c1 = b1.Mul(decay), correction(b1, t)
	}
	c2 := correction(b2, t)
	return b.Each(in, func(s Step) Expr {
		m, v := b.Slot(s, "mean"), b.Slot(s, "variance")
		m1 := m.Set(average(m.Expr, s.Delta, keep))
		v1 := v.Set(average(v.Expr, s.Delta.Square(), b2))
		return lr.Mul(adaptive(m1, v1, c1, c2, eps, true))
	})
}
