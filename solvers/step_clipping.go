package solvers

import "optimop/graphops"

// StepClipping scales all steps down together where their joint norm n is not below a threshold (Blocks).
//
//	step = g · c/n where n ≥ c, else g
//
// With Threshold 0 it does nothing. One NaN makes all steps NaN, one infinite element itself NaN and the finite ones 0
// (ClipByGlobalNorm makes all NaN): put RemoveNotFinite before it. It has no slots.
type StepClipping struct {
	Threshold float64 `range:"[0,inf)"` // c, default 0: none
}

// NewStepClipping makes a solver of StepClipping.
func NewStepClipping(threshold float64, options ...func(*StepClipping)) *Solver {
	return configured(&StepClipping{Threshold: threshold}, options)
}

// Transforms implements Transformation.
func (*StepClipping) Transforms() {}

// Apply implements Rule.
func (r *StepClipping) Apply(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("threshold") {
		return in, nil
	}
	c := limited(b.Hyper("threshold"))
	n := L2Norm(deltas(in)...)
	scale := n.Less(c).Select(one, c.Div(n))
	return b.Each(in, func(s Step) Expr { return s.Delta.Mul(scale) })
}

// deltas are the steps, for sums over all of them.
func deltas(in []Step) []Expr {
	out := make([]Expr, len(in))
	for i, s := range byName(in) {
		out[i] = s.Delta
	}
	return out
}

// L2Norm is the joint Euclidean norm of tensors, a scalar.
func L2Norm(xs ...Expr) Expr {
	sum := graphops.Const(0)
	for _, x := range xs {
		sum = sum.Add(x.SumSquares())
	}
	return sum.Sqrt()
}
