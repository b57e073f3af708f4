package solvers

import (
	"github.com/pkg/errors"

	"optimop/graphops"
)

// Accumulate adds the gradients of n runs and applies a rule once to their sum, so that small batches train like a large one
// (RETURNN's accum_grad_multiple_step, optax.MultiSteps).
//
//	sum ← g in the first run of a group of n, then sum + g
//	step = that of rule for sum, in the last run of a group: s mod n = n−1
//
// s is the global step, which counts every run from 0, so that groups begin at multiples of n. In the other runs neither the
// parameters nor anything of the rule is written or read: its counters count its own steps. A group that training enters in
// the middle, after Solver.Reset, has the sum of its remaining runs. A global norm of the raw gradients (GlobalNorm) is that of
// the last run of the group alone.
//
// Slot sum: zero at the start. Slot group: the number of the group that it is of, −1 at the start.
func Accumulate(n int, rule Rule) *Solver { return New(&accumulate{addressable(rule), n, false}) }

// AccumulateMean is Accumulate with sum/n in the place of the sum (Keras' gradient_accumulation_steps).
func AccumulateMean(n int, rule Rule) *Solver { return New(&accumulate{addressable(rule), n, true}) }

type accumulate struct {
	Rule Rule
	N    int
	Mean bool
}

// Validate implements Validator.
func (r *accumulate) Validate() error {
	if r.N < 1 {
		return errors.Errorf("n is %d; it must be 1 or more", r.N)
	}
	return nil
}

// Rules implements Composite.
func (r *accumulate) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*accumulate) Transforms() {}

// Apply implements Rule.
func (r *accumulate) Apply(b *Builder, in []Step) ([]Step, error) {
	n := graphops.Const(float64(r.N))
	s, last := b.GlobalStep(), b.Variable("group", Fill(-1))
	group := s.Div(n).Floor() // exact up to 2⁵³
	within := last.Set(group).Equal(last.Expr)
	sums, err := b.Each(in, func(s Step) Expr {
		sum := b.Slot(s, "sum")
		g := sum.Set(within.Select(sum.Add(s.Delta), s.Delta))
		if r.Mean {
			return g.Div(n)
		}
		return g
	})
	if err != nil {
		return nil, err
	}
	return b.When(s.Sub(group.Mul(n)).Equal(n.Sub(one)), func() ([]Step, error) { return b.Run(r.Rule, sums) })
}
