package graphops

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// Touched are the rows of a tensor that a gradient touches: what expressions over rows are made with. Such an expression has the
// shape of the whole tensor and two forms, which do not mix with each other, nor with whole tensors:
//
//   - values, as the gradient has them: a row that it names twice is there twice (Values, At);
//   - rows, each once, in the order in which the gradient names them first (Merge, Rows).
//
// Reductions are over the elements that are there. An Update whose new value has the form of rows writes these rows of its target
// and leaves the others alone: neither reads nor writes them. Expressions over rows cannot be expanded.
type Touched struct {
	grad     *gorgonia.Node
	whole    *expr // the gradient as a tensor
	picked   map[picking]Expr
	deferred gorgonia.Nodes // the target that has misses, and slots
	missed   Deferred
	told     []Expr
}

// rowForm is the form of an elementwise expression.
type rowForm uint8

const (
	wholeForm rowForm = iota
	valuesForm
	rowsForm
)

func (f rowForm) String() string {
	return [...]string{"a whole tensor", "values of rows", "rows"}[f]
}

// takeKind says how a leaf that is no node's is made.
type takeKind uint8

const (
	takeNone    takeKind = iota
	takeValues           // the gradient's values
	takeRows             // rows, or values, of a whole tensor
	takeMerged           // sums of values
	takeWhole            // zeros, to which values or rows are added
	takeOverlay          // a tensor in which rows are replaced
	takeMask             // 1 in the rows that are touched, else 0
)

type picking struct {
	of   any // a node or an expression
	form rowForm
}

// Touch makes expressions over the rows of a gradient: a node of KeepRows, or an input whose value in each run is a *Rows.
func Touch(grad *gorgonia.Node) (*Touched, error) {
	e := Of(grad)
	if err := e.Err(); err != nil {
		return nil, err
	}
	if grad.IsScalar() {
		return nil, errors.Errorf("graphops: %s is a scalar, which has no rows", nodeName(grad))
	}
	return &Touched{grad: grad, whole: e.x, picked: map[picking]Expr{}}, nil
}

// Values are the gradient's values.
func (t *Touched) Values() Expr { return t.take(takeValues, valuesForm) }

// Merge adds up the values of each row.
func (t *Touched) Merge(values Expr) Expr { return t.take(takeMerged, rowsForm, values) }

// Rows are the touched rows of a whole tensor.
func (t *Touched) Rows(whole Expr) Expr { return t.pick(whole, rowsForm) }

// At are the rows of a whole tensor in the form of values.
func (t *Touched) At(whole Expr) Expr { return t.pick(whole, valuesForm) }

// Whole is the whole tensor that has values or rows added to zeros.
func (t *Touched) Whole(e Expr) Expr { return t.take(takeWhole, wholeForm, e) }

// Overlay is the value of a node with the touched rows replaced.
func (t *Touched) Overlay(n *gorgonia.Node, rows Expr) Expr {
	return t.take(takeOverlay, wholeForm, rows, Of(n))
}

// Mask is the condition, over the whole tensor, that a row is touched.
func (t *Touched) Mask() Expr { return t.take(takeMask, wholeForm).NotEqual(Const(0)) }

// pick makes one expression for the rows of each tensor.
func (t *Touched) pick(whole Expr, form rowForm) Expr {
	if err := whole.Err(); err != nil {
		return broken(err)
	}
	key := picking{whole.x, form}
	if whole.x.node != nil {
		key.of = whole.x.node
	}
	if _, ok := t.picked[key]; !ok {
		t.picked[key] = t.take(takeRows, form, whole)
	}
	return t.picked[key]
}

// take makes an expression of a gradient's rows and of operands, the first of which must have one of the given forms.
func (t *Touched) take(kind takeKind, form rowForm, operands ...Expr) Expr {
	e := &expr{op: kernel.Leaf, take: kind, rows: t, form: form, dt: t.whole.dt, shape: t.whole.shape, args: []*expr{t.whole}}
	for i, o := range operands {
		if err := o.Err(); err != nil {
			return broken(err)
		}
		x := o.x
		fits := x.form == wholeForm
		switch {
		case kind == takeMerged:
			fits = x.form == valuesForm && x.touched() == t
		case kind == takeWhole, kind == takeOverlay && i == 0:
			fits = x.touched() == t
		}
		if x.scalar || !fits || x.dt != e.dt || !x.shape.Eq(e.shape) {
			return broken(errors.Errorf("graphops: %v, %v of shape %v, cannot be used for the rows of %s, %v of shape %v",
				x.form, x.dt, x.shape, nodeName(t.grad), e.dt, e.shape))
		}
		e.args = append(e.args, x)
	}
	return Expr{e}
}

// touched is what an expression over rows was made with; nil of any other.
func (e *expr) touched() *Touched {
	if e.form == wholeForm {
		return nil
	}
	return e.rows
}

// Touched is what an expression over rows was made with, or nil; merged says that it has the form of rows.
func (e Expr) Touched() (t *Touched, merged bool) {
	if e.x == nil {
		return nil, false
	}
	return e.x.touched(), e.x.form == rowsForm
}

// Deferred does what rows miss in runs that do not touch them, when their turn comes.
type Deferred interface {
	// Begin comes with the value of the target at the beginning of a run. An error fails the run.
	Begin(target gorgonia.Value) error
	// Rows comes before the run computes anything, with copies of some of the rows, each named once, of the target and of the slots, in the
	// order of Defer. What it writes there the run goes on with. It is called until all rows of the run had their turn.
	Rows(rows []int, copies []RowValues)
	// After comes after a run has written the rows. told are the values of the scalars of Defer in it.
	After(rows []int, told []float64)
}

// RowValues are rows one after the other, as one of the two.
type RowValues struct {
	F32 []float32
	F64 []float64
}

// Defer lets d know of every run of an update of target that has the form of rows, with the values of scalars.
func (t *Touched) Defer(target *gorgonia.Node, slots gorgonia.Nodes, d Deferred, scalars ...Expr) {
	t.deferred, t.missed, t.told = append(gorgonia.Nodes{target}, slots...), d, scalars
}

func (t *Touched) isDeferred(target *gorgonia.Node) bool {
	return len(t.deferred) > 0 && t.deferred[0] == target
}

// Gradient is the node that Touch was given.
func (t *Touched) Gradient() *gorgonia.Node { return t.grad }

// rowWidth is the number of elements of a row of a tensor.
func rowWidth(shape tensor.Shape) int { return tensor.Shape(shape[1:]).TotalSize() }
