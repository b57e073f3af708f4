package graphops

import (
	"math"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// Expr is a symbolic value: immutable, cheap to copy, shared freely. An expression is one of two classes.
//
//   - Scalar: one float64, evaluated once per step whatever the dtype of the parameters (ScalarOf, Const, reductions).
//   - Elementwise: a tensor in the dtype and shape of its leaves (Of). Operands must agree in both; nothing is broadcast but
//     scalars, which are rounded to the dtype where they meet a tensor.
//
// Every elementwise primitive rounds once to the dtype, in the order written, and is never fused with the next. Division,
// NaN and infinities follow IEEE 754; Min, Max and MaxAll are NaN if an operand is. The comparisons and IsFinite give
// conditions, which are what Select, And, Or, Not and All take; used as a number a condition is 0 or 1.
//
// A mistake (shapes that differ, a nil node) does not panic: the expression carries the error, every expression made of it
// does too, and Commit, Compile and Expand return it. The zero Expr is such a mistake.
type Expr struct{ x *expr }

type expr struct {
	op     kernel.Op
	args   []*expr
	node   *gorgonia.Node // of a leaf
	value  float64        // of a constant
	scalar bool
	dt     tensor.Dtype
	shape  tensor.Shape
	dims   string   // of a rearranging operation, for the kernel; the stream of random numbers
	rows   *Touched // of a leaf that is made of rows, and of every expression over rows
	form   rowForm
	take   takeKind // of a leaf that is made of rows; args are what of
	err    error
}

func broken(err error) Expr { return Expr{&expr{err: err}} }

// Err is the mistake made in building the expression, or nil.
func (e Expr) Err() error {
	if e.x == nil {
		return errors.New("graphops: the zero Expr has no value: begin with Of, ScalarOf or Const")
	}
	return e.x.err
}

// IsScalar reports whether the expression is of the scalar class.
func (e Expr) IsScalar() bool { return e.x != nil && e.x.scalar }

// Of is the value of a float32 or float64 node, elementwise: also where the node is a scalar, whose shape is ().
func Of(n *gorgonia.Node) Expr {
	if n == nil {
		return broken(errors.New("graphops: Of a nil node"))
	}
	dt, err := dtypeOf(n)
	if err != nil {
		return broken(err)
	}
	if dt != tensor.Float32 && dt != tensor.Float64 {
		return broken(errors.Errorf("graphops: Of(%s): elementwise values are float32 or float64, not %v", nodeName(n), dt))
	}
	if !n.IsScalar() && len(n.Shape()) == 0 {
		return broken(errors.Errorf("graphops: Of(%s): the node has no shape", nodeName(n)))
	}
	return Expr{&expr{op: kernel.Leaf, node: n, dt: dt, shape: n.Shape()}}
}

// ScalarOf is the value of a scalar node of any float or integer dtype, as a float64. (An int64 is exact up to 2⁵³.)
func ScalarOf(n *gorgonia.Node) Expr {
	if n == nil {
		return broken(errors.New("graphops: ScalarOf a nil node"))
	}
	dt, err := dtypeOf(n)
	if err != nil {
		return broken(err)
	}
	if !n.IsScalar() {
		return broken(errors.Errorf("graphops: ScalarOf(%s): shape %v is not a scalar", nodeName(n), n.Shape()))
	}
	switch dt {
	case tensor.Float64, tensor.Float32, tensor.Int64, tensor.Int:
	default:
		return broken(errors.Errorf("graphops: ScalarOf(%s): cannot read dtype %v", nodeName(n), dt))
	}
	return Expr{&expr{op: kernel.Leaf, node: n, dt: dt, scalar: true}}
}

// Const is a scalar constant.
func Const(v float64) Expr { return Expr{&expr{op: kernel.Const, value: v, scalar: true}} }

// combine applies an elementwise primitive.
func combine(op kernel.Op, operands ...Expr) Expr {
	r := &expr{op: op, scalar: true}
	for _, o := range operands {
		if err := o.Err(); err != nil {
			return broken(err)
		}
		x := o.x
		r.args = append(r.args, x)
		if x.scalar {
			continue
		}
		switch {
		case r.scalar:
			r.scalar, r.dt, r.shape, r.rows, r.form = false, x.dt, x.shape, x.touched(), x.form
		case x.dt != r.dt:
			return broken(errors.Errorf("graphops: %v of %v and %v: dtypes differ", op, r.dt, x.dt))
		case x.touched() != r.touched() || x.form != r.form:
			return broken(errors.Errorf("graphops: %v of %v and %v: they do not mix (see graphops.Touched)", op, r.form, x.form))
		case !x.shape.Eq(r.shape):
			return broken(errors.Errorf("graphops: %v of shapes %v and %v: only scalars are broadcast", op, r.shape, x.shape))
		}
	}
	return Expr{r}
}

// logical applies a primitive whose first n operands are conditions.
func logical(op kernel.Op, n int, operands ...Expr) Expr {
	for _, o := range operands[:n] {
		if o.Err() == nil && !o.x.op.IsCondition() {
			return broken(errors.Errorf("graphops: %v needs a condition, such as a comparison, not %v", op, o.x.op))
		}
	}
	if op.Reduces() {
		return operands[0].reduction(op)
	}
	return combine(op, operands...)
}

func (e Expr) reduction(op kernel.Op) Expr {
	if err := e.Err(); err != nil {
		return broken(err)
	}
	return Expr{&expr{op: op, args: []*expr{e.x}, scalar: true}}
}

// Add is e + o.
func (e Expr) Add(o Expr) Expr { return combine(kernel.Add, e, o) }

// Sub is e − o.
func (e Expr) Sub(o Expr) Expr { return combine(kernel.Sub, e, o) }

// Mul is e · o, elementwise.
func (e Expr) Mul(o Expr) Expr { return combine(kernel.Mul, e, o) }

// Div is e / o by IEEE 754: x/0 is ±Inf and 0/0 is NaN.
func (e Expr) Div(o Expr) Expr { return combine(kernel.Div, e, o) }

// Min is the smaller of e and o.
func (e Expr) Min(o Expr) Expr { return combine(kernel.Min, e, o) }

// Max is the larger of e and o.
func (e Expr) Max(o Expr) Expr { return combine(kernel.Max, e, o) }

// Pow is e to the power o, as math.Pow.
func (e Expr) Pow(o Expr) Expr { return combine(kernel.Pow, e, o) }

// Neg is −e.
func (e Expr) Neg() Expr { return combine(kernel.Neg, e) }

// Square is e².
func (e Expr) Square() Expr { return combine(kernel.Square, e) }

// Sqrt is the square root, NaN below zero.
func (e Expr) Sqrt() Expr { return combine(kernel.Sqrt, e) }

// Abs is |e|.
func (e Expr) Abs() Expr { return combine(kernel.Abs, e) }

// Sign is −1, 0 or 1.
func (e Expr) Sign() Expr { return combine(kernel.Sign, e) }

// Exp is the exponential.
func (e Expr) Exp() Expr { return combine(kernel.Exp, e) }

// Log is the natural logarithm.
func (e Expr) Log() Expr { return combine(kernel.Log, e) }

// Tanh is the hyperbolic tangent.
func (e Expr) Tanh() Expr { return combine(kernel.Tanh, e) }

// Cos is the cosine.
func (e Expr) Cos() Expr { return combine(kernel.Cos, e) }

// Floor is the largest integer not above e.
func (e Expr) Floor() Expr { return combine(kernel.Floor, e) }

// Less is the condition e < o.
func (e Expr) Less(o Expr) Expr { return combine(kernel.Less, e, o) }

// LessEqual is the condition e ≤ o.
func (e Expr) LessEqual(o Expr) Expr { return combine(kernel.LessEqual, e, o) }

// Greater is the condition e > o.
func (e Expr) Greater(o Expr) Expr { return combine(kernel.Greater, e, o) }

// GreaterEqual is the condition e ≥ o.
func (e Expr) GreaterEqual(o Expr) Expr { return combine(kernel.GreaterEqual, e, o) }

// Equal is the condition e = o.
func (e Expr) Equal(o Expr) Expr { return combine(kernel.Equal, e, o) }

// NotEqual is the condition e ≠ o.
func (e Expr) NotEqual(o Expr) Expr { return combine(kernel.NotEqual, e, o) }

// IsFinite is the condition that e is neither NaN nor infinite.
func (e Expr) IsFinite() Expr { return combine(kernel.IsFinite, e) }

// And is the condition that both conditions hold.
func (e Expr) And(o Expr) Expr { return logical(kernel.And, 2, e, o) }

// Or is the condition that one of the conditions holds.
func (e Expr) Or(o Expr) Expr { return logical(kernel.Or, 2, e, o) }

// Not is the condition that the condition e does not hold.
func (e Expr) Not() Expr { return logical(kernel.Not, 1, e) }

// Select is a where the condition e holds and b elsewhere. It is a choice, not a product with a mask: the value that is not
// chosen may be NaN or infinite.
func (e Expr) Select(a, b Expr) Expr { return logical(kernel.Select, 1, e, a, b) }

// Sum is the sum of all elements, a scalar. It adds in float64, in an order that depends on the number of elements alone.
func (e Expr) Sum() Expr { return e.reduction(kernel.Sum) }

// SumSquares is the sum of the squares of all elements, a scalar. It squares and adds in float64.
func (e Expr) SumSquares() Expr { return e.reduction(kernel.SumSquares) }

// Norm is the Euclidean norm over all elements, a scalar: √SumSquares.
func (e Expr) Norm() Expr { return e.SumSquares().Sqrt() }

// Mean is the mean of all elements, a scalar; NaN of an empty tensor.
func (e Expr) Mean() Expr {
	n := 1
	if e.Err() == nil && !e.x.scalar {
		n = e.x.shape.TotalSize()
	}
	return e.Sum().Div(Const(float64(n)))
}

// MaxAll is the largest element, a scalar; −Inf of an empty tensor.
func (e Expr) MaxAll() Expr { return e.reduction(kernel.MaxAll) }

// All is the scalar condition that the condition e holds for every element.
func (e Expr) All() Expr { return logical(kernel.All, 1, e) }

// leaves are the nodes that e reads, each once, in the order of their first use. With elementwise set, those that it reads
// only by way of scalars (hyperparameters, norms over all parameters) are left out.
func (e *expr) leaves(elementwise bool) (ns gorgonia.Nodes) {
	seen := map[*expr]bool{}
	have := map[*gorgonia.Node]bool{}
	var walk func(e *expr)
	walk = func(e *expr) {
		if seen[e] || elementwise && e.scalar {
			return
		}
		seen[e] = true
		if e.node != nil && !have[e.node] {
			have[e.node] = true
			ns = append(ns, e.node)
		}
		for _, a := range e.args {
			walk(a)
		}
	}
	walk(e)
	return ns
}

// lower adds e to a kernel program.
func (e *expr) lower(b *kernel.Builder, memo map[*expr]int, l *lowering) int {
	if i, ok := memo[e]; ok {
		return i
	}
	n := kernel.Node{Op: e.op, Elem: !e.scalar, Dims: e.dims}
	switch {
	case e.op == kernel.Const:
		n.Bits = math.Float64bits(e.value)
	case e.op == kernel.Leaf:
		n.Leaf = l.leaf(e)
	}
	if n.Elem {
		n.Len, n.Size = e.shape.TotalSize(), l.size(e)
		if e.dt == tensor.Float32 {
			n.Type = kernel.Float32
		}
	}
	if e.take == takeNone {
		for i, a := range e.args {
			n.Args[i] = a.lower(b, memo, l)
		}
	}
	i := b.Add(n)
	memo[e] = i
	return i
}
