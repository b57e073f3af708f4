package bench

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// Averaged is a rule as users write it, and as no library has it: the second moment of AdaBelief, its maximum as in AMSGrad,
// decoupled weight decay, and a moving average of the weights for evaluation. It is for measuring what a rule costs for which
// nobody prepared anything.
type Averaged struct {
	LearningRate float64 `range:"[0,inf)"`
	Beta1        float64 `range:"[0,1)"`
	Beta2        float64 `range:"[0,1)"`
	Epsilon      float64 `range:"[0,inf)"`
	WeightDecay  float64 `range:"[0,inf)"`
	Keep         float64 `range:"[0,1)"`
}

// Apply implements solvers.Rule.
func (r *Averaged) Apply(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	decay, keep := b.Hyper("weight_decay"), b.Hyper("keep")
	one, t := graphops.Const(1), b.Count("step")
	c1, c2 := one.Sub(b1.Pow(t)), one.Sub(b2.Pow(t))
	average := func(s solvers.Slot, x, keep solvers.Expr) solvers.Expr {
		return s.Set(s.Mul(keep).Add(x.Mul(one.Sub(keep))))
	}
	in, err := b.EachValue(in, func(s solvers.Step) solvers.Expr { return s.Value.Mul(one.Sub(lr.Mul(decay))) })
	if err != nil {
		return nil, err
	}
	return b.Each(in, func(s solvers.Step) solvers.Expr {
		g := s.Delta
		m := average(b.Slot(s, "m"), g, b1)
		v := b.Slot(s, "s")
		v1 := v.Set(v.Mul(b2).Add(g.Sub(m).Square().Mul(one.Sub(b2))).Add(eps.Square()))
		top := b.Slot(s, "max")
		u := m.Mul(lr.Div(c1)).Div(top.Set(top.Max(v1)).Mul(one.Div(c2)).Sqrt().Add(eps))
		average(b.Slot(s, "average"), s.Value.Sub(u), keep)
		return u
	})
}

func newChain() *solvers.Solver {
	return solvers.Chain(solvers.NewClipByGlobalNorm(1),
		&Averaged{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.01, Keep: 0.999})
}

// chainBytes is what the chain must move for each float32 parameter: the norm reads the gradient; then it is read again, and
// the parameter and four slots are read and written.
const chainBytes = 4 + 4 + 5*8

// BenchmarkChain is a chain of rules over one tensor. Compare its GB/s with those of BenchmarkAdam/f32/…/impl=c.
func BenchmarkChain(b *testing.B) {
	for _, n := range []int{million, 10 * million, 50 * million} {
		if n > *largest {
			continue
		}
		b.Run("f32/"+count(n), func(b *testing.B) {
			u := newSubject(b, newChain(), tensor.Float32, tensor.Shape{n})
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprint("workers=", workers, "/impl=optimop"), func(b *testing.B) {
					withWorkers(workers, func(*pool) { measure(b, n, chainBytes*float64(n), u.step) })
				})
			}
		})
	}
}

// The chain has the slots that its bound counts.
func TestChain(t *testing.T) {
	const n = 1000
	u := newSubject(t, newChain(), tensor.Float32, tensor.Shape{n})
	require.EqualValues(t, chainBytes*n, bound(t, u, 4))
	require.NotZero(t, slot[float32](t, u.solver, "w0/averaged/average")[0])
}
