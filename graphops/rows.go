package graphops

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// Rows is a tensor that is zero but for some of its rows, the slices along the first axis: the gradient of a lookup in a table
// (TensorFlow's IndexedSlices). It is a gorgonia.Value of the dtype and shape of the whole tensor. What cannot take rows gets the
// tensor itself: see Dense.
//
// The fields may be changed between uses; they are checked at each.
type Rows struct {
	Indices []int         // which row each of Values belongs to; those of a row that is named twice add up
	Values  *tensor.Dense // of shape (len(Indices), …), with the elements row by row; nil where there are none
	dt      tensor.Dtype
	shape   tensor.Shape
}

// NewRows makes a gradient for a float32 or float64 tensor of a shape. No indices at all are legal: a gradient of zero.
func NewRows(dt tensor.Dtype, shape tensor.Shape, indices []int, values *tensor.Dense) (*Rows, error) {
	r := &Rows{Indices: indices, Values: values, dt: dt, shape: shape.Clone()}
	switch {
	case dt != tensor.Float32 && dt != tensor.Float64:
		return nil, errors.Errorf("graphops: rows must be float32 or float64, not %v", dt)
	case len(shape) == 0 || shape.TotalSize() == 0:
		return nil, errors.Errorf("graphops: a tensor of shape %v has no rows", shape)
	}
	if _, err := r.array(); err != nil {
		return nil, errors.Wrap(err, "graphops")
	}
	return r, r.inRange()
}

// array finds the values.
func (r *Rows) array() (kernel.Array, error) {
	none := kernel.Array{Type: kernelType(r.dt)}
	if r.Values == nil || r.Values.Shape().TotalSize() == 0 || len(r.Indices) == 0 {
		if n := len(r.Indices); n > 0 || r.Values != nil && r.Values.Shape().TotalSize() > 0 {
			return none, errors.Errorf("there are %d indices and no values, or values and no indices", n)
		}
		return none, nil
	}
	m, err := memoryOf(r.Values)
	if err != nil {
		return none, errors.Wrap(err, "the values of rows")
	}
	switch have := m.shape; {
	case r.Values.Dtype() != r.dt:
		return none, errors.Errorf("the values of rows are %v, not %v", r.Values.Dtype(), r.dt)
	case len(have) == 0 || have[0] != len(r.Indices) || !slices.Equal(have[1:], r.shape[1:]):
		return none, errors.Errorf("the values of rows have shape %v; for %d rows of shape %v it must be (%d, …)",
			have, len(r.Indices), r.shape[1:], len(r.Indices))
	case m.strides != nil:
		return none, errors.New("the values of rows are a view that does not have them one after the other")
	}
	return m.Array, nil
}

// inRange refuses an index that is no row's.
func (r *Rows) inRange() error { return inRange(r.Indices, r.shape[0]) }

func inRange(indices []int, rows int) error {
	for k, i := range indices {
		if i < 0 || i >= rows {
			return errors.Errorf("graphops: index %d, element %d of the indices, is out of range: there are %d rows", i, k, rows)
		}
	}
	return nil
}

// Dense is the whole tensor: zeros, to which the rows are added in their order.
func (r *Rows) Dense() (*tensor.Dense, error) {
	d := tensor.New(tensor.Of(r.dt), tensor.WithShape(r.shape...))
	m, err := memoryOf(d)
	if err == nil {
		err = r.addTo(m.Array)
	}
	return d, err
}

// addTo adds the rows to a whole tensor.
func (r *Rows) addTo(whole kernel.Array) error {
	values, err := r.array()
	if err == nil {
		err = r.inRange()
	}
	if err != nil {
		return err
	}
	width := r.width()
	if values.Type == kernel.Float32 {
		addRows(kernel.Elements[float32](whole), kernel.Elements[float32](values), r.Indices, width)
	} else {
		addRows(kernel.Elements[float64](whole), kernel.Elements[float64](values), r.Indices, width)
	}
	return nil
}

// addRows adds row k of values to row at[k] of sum.
func addRows[T float32 | float64](sum, values []T, at []int, width int) {
	for k, i := range at {
		to, from := sum[i*width:][:width], values[k*width:][:width]
		for j, x := range from {
			to[j] += x
		}
	}
}

// part is n elements of an array, from element lo on.
func part(a kernel.Array, lo, n int) kernel.Array {
	if a.Type == kernel.Float32 {
		return kernel.Of(kernel.Elements[float32](a)[lo:][:n])
	}
	return kernel.Of(kernel.Elements[float64](a)[lo:][:n])
}

// width is the number of elements of a row.
func (r *Rows) width() int { return tensor.Shape(r.shape[1:]).TotalSize() }

// Zero sets the values to zero. The indices stay.
func (r *Rows) Zero() error {
	a, err := r.array()
	if err == nil {
		kernel.Zero(a)
	}
	return err
}

// Shape is that of the whole tensor.
func (r *Rows) Shape() tensor.Shape { return r.shape }

// Dtype is that of the values.
func (r *Rows) Dtype() tensor.Dtype { return r.dt }

// Size is the number of elements of the whole tensor.
func (r *Rows) Size() int { return r.shape.TotalSize() }

// Data are the elements of Values.
func (r *Rows) Data() any {
	if r.Values == nil {
		return nil
	}
	return r.Values.Data()
}

// Uintptr is where the values lie.
func (r *Rows) Uintptr() uintptr {
	a, _ := r.array()
	return uintptr(a.Ptr)
}

// MemSize is how many bytes the values take.
func (r *Rows) MemSize() uintptr {
	a, _ := r.array()
	lo, hi := a.Bytes()
	return hi - lo
}

// Format prints the rows.
func (r *Rows) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "rows %v of shape %v: %v", r.Indices, r.shape, r.Values)
}

// indicesOf reads the indices of rows: an integer scalar or tensor. Those that are no []int are copied to scratch.
func indicesOf(v gorgonia.Value, scratch []int) ([]int, error) {
	switch x := v.Data().(type) {
	case []int:
		if d, ok := v.(*tensor.Dense); ok && d.DataOrder().IsRowMajor() && !d.RequiresIterator() {
			return x, nil
		}
		return nil, errors.New("graphops: the indices are a view that does not have them one after the other")
	case int:
		return append(scratch[:0], x), nil
	case []int64:
		scratch = scratch[:0]
		for _, i := range x {
			scratch = append(scratch, int(i))
		}
		return scratch, nil
	case []int32:
		scratch = scratch[:0]
		for _, i := range x {
			scratch = append(scratch, int(i))
		}
		return scratch, nil
	}
	return nil, errors.Errorf("graphops: the indices are %v; they must be integers", v.Dtype())
}

// newArray makes memory for n elements.
func newArray(typ kernel.DType, n int) kernel.Array {
	return kernel.Array{Ptr: unsafe.Pointer(unsafe.SliceData(make([]uint64, n))), Len: n, Type: typ}
}

var _ gorgonia.Value = (*Rows)(nil)
