package graphops

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// The operations of this file mix elements, so their operands are computed as a whole first. Matrix products go through the
// BLAS that Gorgonia uses (gorgonia.Use).

// MatMul is the matrix product of e, (m, k), with o, (k, n).
func (e Expr) MatMul(o Expr) Expr {
	r := rearranging(kernel.MatMul, e, o)
	if r.err != nil {
		return Expr{r}
	}
	a, b := e.x.shape, o.x.shape
	if len(a) != 2 || len(b) != 2 || a[1] != b[0] || e.x.dt != o.x.dt {
		return broken(errors.Errorf("graphops: MatMul of %v %v and %v %v", e.x.dt, a, o.x.dt, b))
	}
	r.shape, r.dims = tensor.Shape{a[0], b[1]}, kernel.Dims(a[0], a[1], b[1])
	return Expr{r}
}

// Transpose is the transposed matrix.
func (e Expr) Transpose() Expr {
	return e.matrix(kernel.Transpose, func(r, c int) tensor.Shape { return tensor.Shape{c, r} })
}

// SingularPair is u·vᵀ for the left and right singular vectors of the largest singular value of a matrix: the matrix of
// nuclear norm 1 that is most like it. It is zero for a zero matrix, and NaN if the sum of the elements' magnitudes is not
// finite. It has no derivative.
func (e Expr) SingularPair() Expr {
	return e.matrix(kernel.SingularPair, func(r, c int) tensor.Shape { return tensor.Shape{r, c} })
}

func (e Expr) matrix(op kernel.Op, shape func(r, c int) tensor.Shape) Expr {
	r := rearranging(op, e)
	if r.err != nil {
		return Expr{r}
	}
	s := e.x.shape
	if len(s) != 2 {
		return broken(errors.Errorf("graphops: %v needs a matrix, not shape %v", op, s))
	}
	r.shape, r.dims = shape(s[0], s[1]), kernel.Dims(s...)
	return Expr{r}
}

// SumAlong sums over the given axes, which keep length 1; negative ones count from the end. It adds in float64.
func (e Expr) SumAlong(axes ...int) Expr {
	if err := e.Err(); err != nil {
		return broken(err)
	}
	to := e.x.shape.Clone()
	for _, a := range axes {
		i := a
		if i < 0 {
			i += len(to)
		}
		if e.x.scalar || i < 0 || i >= len(to) {
			return broken(errors.Errorf("graphops: there is no axis %d in shape %v", a, e.x.shape))
		}
		to[i] = 1
	}
	return e.sumTo(to)
}

// MeanAlong is the mean over the given axes, which keep length 1.
func (e Expr) MeanAlong(axes ...int) Expr {
	s := e.SumAlong(axes...)
	if s.Err() != nil {
		return s
	}
	return s.Div(Const(float64(e.x.shape.TotalSize()) / float64(s.x.shape.TotalSize())))
}

func (e Expr) sumTo(to tensor.Shape) Expr {
	if slices.Equal(e.x.shape, to) {
		return e
	}
	r := rearranging(kernel.SumAlong, e)
	r.shape, r.dims = to, kernel.Dims(slices.Concat(e.x.shape, to)...)
	return Expr{r}
}

// BroadcastTo repeats axes of length 1 to make a shape of the same rank.
func (e Expr) BroadcastTo(shape tensor.Shape) Expr {
	r := rearranging(kernel.BroadcastTo, e)
	if r.err != nil {
		return Expr{r}
	}
	from := e.x.shape
	for i, n := range shape {
		if len(from) != len(shape) || from[i] != n && from[i] != 1 {
			return broken(errors.Errorf("graphops: shape %v cannot be broadcast to %v", from, shape))
		}
	}
	if slices.Equal(from, shape) {
		return e
	}
	r.shape, r.dims = shape.Clone(), kernel.Dims(slices.Concat(shape, from)...)
	return Expr{r}
}

// Shape is the shape of an elementwise expression; () of a scalar one.
func (e Expr) Shape() tensor.Shape {
	if e.x == nil || e.x.scalar {
		return tensor.ScalarShape()
	}
	return e.x.shape.Clone()
}

// rearranging begins an operation on elementwise operands.
func rearranging(op kernel.Op, operands ...Expr) *expr {
	r := &expr{op: op}
	for _, o := range operands {
		if r.err = o.Err(); r.err == nil && o.x.scalar {
			r.err = errors.Errorf("graphops: %v of a scalar", op)
		}
		if r.err == nil && o.x.form != wholeForm {
			r.err = errors.Errorf("graphops: %v needs a whole tensor, not some rows of one", op)
		}
		if r.err != nil {
			return r
		}
		r.args, r.dt = append(r.args, o.x), o.x.dt
	}
	return r
}
