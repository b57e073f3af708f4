package solvers

import "optimop/graphops"

// StepClipping scales all steps down together where their joint norm n is not below a threshold (Blocks).
//
//	step = g · c/n where n ≥ c, else g
//
// With Threshold 0 it does nothing. A step that is not finite makes all steps NaN: put RemoveNotFinite before it. It differs
// from ClipByGlobalNorm in that one infinite element makes the finite ones 0. It has no slots.
type StepClipping struct {
	Threshold float64 `range:"[0,inf)"` // c, default 0: none
}

// NewStepClipping makes a solver of StepClipping.
func NewStepClipping(threshold float64, options ...func(*StepClipping)) *Solver {
	return configured(&StepClipping{Threshold: threshold}, options)
}

// Apply implements Rule.
func (r *StepClipping) Apply(b *Builder, in []Step) ([]Step, error) {
	if r.Threshold == 0 {
		return in, nil
	}
	c := b.Hyper("threshold")
	n := L2Norm(deltas(in)...)
	scale := n.Less(c).Select(one, c.Div(n))
	return b.Each(in, func(s Step) Expr { return s.Delta.Mul(scale) })
}

func deltas(in []Step) []Expr {
	out := make([]Expr, len(in))
	for i, s := range in {
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
