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
	out := rescale(x, graphops.Const(epsilon), axes, func(n Expr) Expr { return n.Min(graphops.Const(maxNorm)) })
	return out, out.Err()
}

// rescale gives parts of a tensor another norm: x·want(n)/(ε + n) for their norm n.
func rescale(x, epsilon Expr, axes []int, want func(n Expr) Expr) Expr {
	n := normAlong(x, axes)
	return x.Mul(want(n).Div(n.Add(epsilon)))
}

// normAlong is the norm over axes, in the form of x, or without axes that over all elements.
func normAlong(x Expr, axes []int) Expr {
	if len(axes) == 0 {
		return x.Norm()
	}
	return x.Square().SumAlong(axes...).Sqrt().BroadcastTo(x.Shape())
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
