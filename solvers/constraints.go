package solvers

import (
	"github.com/pkg/errors"

	"optimop/graphops"
)

// NormConstraint bounds the norm of parts of a tensor, as Lasagne does (see TotalNormConstraint for several together).
//
//	n = √(Σ x² over axes)          x · min(n, max)/(ε + n)
//
// Axes nil means the first axis of a matrix and all but the first of a tensor of rank 3 to 5; of other ranks axes must be
// given. ε = 1e-7 is Lasagne's; it also shrinks what is within the bound, by ε/(n+ε).
func NormConstraint(x Expr, maxNorm, epsilon float64, axes ...int) (Expr, error) {
	if err := x.Err(); err != nil {
		return Expr{}, err
	}
	shape := x.Shape()
	if axes == nil {
		switch rank := len(shape); rank {
		case 2:
			axes = []int{0}
		case 3, 4, 5:
			for a := 1; a < rank; a++ {
				axes = append(axes, a)
			}
		default:
			return Expr{}, errors.Errorf("solvers: NormConstraint: unsupported tensor dimensionality %d: give the axes", rank)
		}
	}
	n := x.Square().SumAlong(axes...).Sqrt()
	factor := n.Min(graphops.Const(maxNorm)).Div(n.Add(graphops.Const(epsilon))).BroadcastTo(shape)
	out := x.Mul(factor)
	return out, out.Err()
}

// TotalNormConstraint bounds the joint norm n of several tensors, as Lasagne does, and returns n too.
//
//	x · min(n, max)/(ε + n)
func TotalNormConstraint(xs []Expr, maxNorm, epsilon float64) (scaled []Expr, norm Expr) {
	norm = L2Norm(xs...)
	factor := norm.Min(graphops.Const(maxNorm)).Div(norm.Add(graphops.Const(epsilon)))
	for _, x := range xs {
		scaled = append(scaled, x.Mul(factor))
	}
	return scaled, norm
}
