package graphops

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// memory is where the elements of a Gorgonia value lie.
type memory struct {
	kernel.Array              // the elements, or all that the view spans
	shape        tensor.Shape // of the value
	strides      []int        // of a view whose elements do not follow each other row by row; else nil
}

// find finds the elements of a value. It accepts every scalar of Gorgonia's that can be a parameter or a counter, and
// dense tensors in main memory, whatever their layout. It fills m in place, since a step does this for thousands of values.
func (m *memory) find(v gorgonia.Value) error {
	*m = memory{}
	switch x := v.(type) {
	case nil:
		return errors.New("no value is bound")
	case *tensor.Dense:
		if x != nil {
			return m.findDense(x)
		}
	case *gorgonia.F64:
		m.Array = kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Float64}
	case *gorgonia.F32:
		m.Array = kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Float32}
	case *gorgonia.I64:
		m.Array = kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Int64}
	case *gorgonia.I:
		if strconv.IntSize == 64 {
			m.Array = kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Int64}
		}
	}
	if m.Ptr == nil {
		*m = memory{}
		return errors.Errorf("a %T cannot be used: it must be a float32, float64 or int64 scalar or dense tensor", v)
	}
	return nil
}

func (m *memory) findDense(d *tensor.Dense) error {
	m.shape = d.Shape()
	size := 8
	if d.Dtype() == tensor.Float32 {
		m.Type, size = kernel.Float32, 4
	}
	all, n, strides := len(d.Raw)/size, m.shape.TotalSize(), d.Strides()
	switch {
	case !d.IsNativelyAccessible():
		return errors.New("the tensor is not in main memory")
	case n == 0:
		return nil
	case len(d.Mask()) > 0 && d.IsMasked():
		return errors.New("a masked tensor cannot be used")
	case m.Type == kernel.Float32, d.Dtype() == tensor.Float64:
	case d.Dtype() == tensor.Int64:
		m.Type = kernel.Int64
	default:
		return errors.Errorf("dtype %v cannot be used: it must be float32, float64 or int64", d.Dtype())
	}
	if len(strides) < len(m.shape) {
		return errors.Errorf("shape %v with strides %v cannot be read", m.shape, strides)
	}
	m.Ptr, m.Len = unsafe.Pointer(unsafe.SliceData(d.Raw)), n
	next, last := 1, 0
	for i := len(m.shape) - 1; i >= 0; i-- {
		if m.shape[i] != 1 && strides[i] != next {
			m.strides, m.Len = strides, all
		}
		next *= m.shape[i]
		last += (m.shape[i] - 1) * strides[i]
	}
	if last >= all {
		return errors.Errorf("shape %v with strides %v does not fit its %d elements", m.shape, strides, all)
	}
	return nil
}

// memoryOf is find for a value that is looked at once.
func memoryOf(v gorgonia.Value) (m memory, err error) {
	err = m.find(v)
	return m, err
}

// transfer copies the elements of a strided view, in the order of its indices, to flat or, if out, back from it.
func (m *memory) transfer(flat kernel.Array, out bool) {
	if m.Type == kernel.Float32 {
		transfer(m.shape, m.strides, unsafe.Slice((*float32)(m.Ptr), m.Len), unsafe.Slice((*float32)(flat.Ptr), flat.Len), out)
	} else { // integers are moved as bits
		transfer(m.shape, m.strides, unsafe.Slice((*uint64)(m.Ptr), m.Len), unsafe.Slice((*uint64)(flat.Ptr), flat.Len), out)
	}
}

// transfer handles one axis, and calls itself for the next. It returns the rest of flat; out of an empty flat come zeros.
func transfer[T float32 | uint64](shape tensor.Shape, strides []int, all, flat []T, out bool) []T {
	for i := range shape[0] {
		switch at := all[i*strides[0]:]; {
		case len(shape) > 1:
			flat = transfer(shape[1:], strides[1:], at, flat, out)
		case len(flat) == 0:
			at[0] = 0
		case out:
			at[0], flat = flat[0], flat[1:]
		default:
			flat[0], flat = at[0], flat[1:]
		}
	}
	return flat
}

// binding ties a leaf to the memory of its value in one run.
type binding struct {
	memory
	copied kernel.Array // the elements of a strided view in reading order; it stays for the next run
}

// bind checks that a value has a dtype and a shape, and gives its elements in reading order: in place, or for a view that
// has to be read through strides, in a copy.
func (b *binding) bind(v gorgonia.Value, dt tensor.Dtype, shape tensor.Shape) (kernel.Array, error) {
	m := &b.memory
	if r, ok := v.(*Rows); ok {
		return b.bindRows(r, dt, shape)
	}
	switch err := m.find(v); {
	case err != nil:
		return kernel.Array{}, err
	case v.Dtype() != dt:
		return kernel.Array{}, errors.Errorf("its value is %v, not %v", v.Dtype(), dt)
	case !m.shape.Eq(shape):
		return kernel.Array{}, errors.Errorf("its value has shape %v, not %v", m.shape, shape)
	}
	if m.strides == nil {
		return m.Array, nil
	}
	if n := m.shape.TotalSize(); b.copied.Len != n || b.copied.Type != m.Type {
		b.copied = kernel.Array{Ptr: unsafe.Pointer(unsafe.SliceData(make([]uint64, n))), Len: n, Type: m.Type}
	}
	m.transfer(b.copied, false)
	return b.copied, nil
}

// flush writes a strided view's copy back.
func (b *binding) flush() {
	if b.strides != nil {
		b.transfer(b.copied, true)
	}
}

// Copy copies the elements of src to dst, which has the same dtype and shape.
func Copy(dst, src gorgonia.Value) error {
	var d, s binding
	to, err := d.bind(dst, src.Dtype(), src.Shape())
	if err != nil {
		return err
	}
	from, err := s.bind(src, src.Dtype(), src.Shape())
	if err != nil {
		return err
	}
	kernel.Copy(to, from)
	d.flush()
	return nil
}

// dtypeOf is n.Dtype without its panic for nodes that have no type, such as Read statements.
func dtypeOf(n *gorgonia.Node) (tensor.Dtype, error) {
	if n.Type() == nil {
		return tensor.Dtype{}, errors.Errorf("graphops: %s is a statement, it has no value", nodeName(n))
	}
	return n.Dtype(), nil
}

// nodeName names a node for people; Gorgonia's Name prints the operation of a nameless input, which has none.
func nodeName(n *gorgonia.Node) string {
	switch {
	case n == nil:
		return "nil"
	case n.Op() == nil && hasNoName(n):
		return fmt.Sprintf("a nameless node of shape %v", n.Shape())
	}
	if _, ok := n.Op().(*commitOp); ok { // its name would list all its operands
		return n.Op().String()
	}
	return strconv.Quote(n.Name())
}

// hasNoName reports whether an input is nameless. Its name is then what Gorgonia prints of it, which costs no search.
func hasNoName(n *gorgonia.Node) bool {
	return n.Name() == fmt.Sprintf("%s()", gorgonia.Op(nil)) && n.Graph() != nil && n.Graph().ByName("").Contains(n)
}

// ScalarValue reads a scalar, or a tensor of one element.
func ScalarValue(v gorgonia.Value) (float64, error) {
	m, err := memoryOf(v)
	switch {
	case err != nil:
		return 0, errors.Wrap(err, "graphops")
	case m.shape.TotalSize() != 1:
		return 0, errors.Errorf("graphops: a value of shape %v is no scalar", m.shape)
	}
	return m.Scalar(), nil
}

// Zeroer sets values to zero. It owns scratch memory, so that it allocates nothing when it is used again: use it from one
// goroutine at a time.
type Zeroer struct {
	keep  []span
	clear []memory
	at    []int // by value: where among the spans it was found last time
}

type span struct {
	lo, hi uintptr
	index  int
	reach  uintptr // the end of this one and all before it
}

// After runs something and, if it succeeds, sets values to zero, in place, except those that share memory with one of the values
// in keep. What is wrong with a value shows before: then nothing is run.
func (z *Zeroer) After(run func() error, values, keep []gorgonia.Value) error {
	if len(z.keep) != len(keep) {
		z.keep = make([]span, len(keep))
		for i := range z.keep {
			z.keep[i].index = i
		}
	}
	var m memory
	for i := range z.keep { // in the order of last time, which is mostly that of this time
		k := &z.keep[i]
		if err := m.find(keep[k.index]); err != nil {
			return errors.Wrap(err, "graphops: a value to be set to zero")
		}
		k.lo, k.hi = m.Bytes()
	}
	slices.SortFunc(z.keep, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	var reach uintptr
	for i := range z.keep {
		reach = max(reach, z.keep[i].hi)
		z.keep[i].reach = reach
	}
	if len(z.at) != len(values) {
		z.at = make([]int, len(values))
	}
	defer func() { // whatever happens, hold no one's memory
		clear(z.clear)
		z.clear = z.clear[:0]
	}()
	for i, v := range values {
		if err := m.find(v); err != nil {
			return errors.Wrap(err, "graphops: a value to be set to zero")
		}
		if lo, hi := m.Bytes(); !z.kept(lo, hi, &z.at[i]) {
			z.clear = append(z.clear, m)
		}
	}
	if err := run(); err != nil {
		return err
	}
	for i := range z.clear {
		z.clear[i].zero()
	}
	return nil
}

// kept reports whether memory overlaps with what is kept. at is where to look first.
func (z *Zeroer) kept(lo, hi uintptr, at *int) bool {
	i, n := *at, len(z.keep) // the first i begin before hi
	if i > n || i > 0 && z.keep[i-1].lo >= hi || i < n && z.keep[i].lo < hi {
		i, _ = slices.BinarySearchFunc(z.keep, hi, func(s span, hi uintptr) int { return cmp.Compare(s.lo, hi) })
		*at = i
	}
	return i > 0 && z.keep[i-1].reach > lo
}

// zero sets the elements to zero, and nothing between them.
func (m *memory) zero() {
	if m.strides == nil {
		kernel.Zero(m.Array)
	} else {
		m.transfer(kernel.Array{}, true)
	}
}
