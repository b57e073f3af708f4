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

// memoryOf finds the elements of a value. It accepts every scalar of Gorgonia's that can be a parameter or a counter, and
// dense tensors in main memory, whatever their layout.
func memoryOf(v gorgonia.Value) (memory, error) {
	switch x := v.(type) {
	case nil:
		return memory{}, errors.New("no value is bound")
	case *gorgonia.F64:
		if x != nil {
			return memory{Array: kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Float64}}, nil
		}
	case *gorgonia.F32:
		if x != nil {
			return memory{Array: kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Float32}}, nil
		}
	case *gorgonia.I64:
		if x != nil {
			return memory{Array: kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Int64}}, nil
		}
	case *gorgonia.I:
		if x != nil && strconv.IntSize == 64 {
			return memory{Array: kernel.Array{Ptr: unsafe.Pointer(x), Len: 1, Type: kernel.Int64}}, nil
		}
	case *tensor.Dense:
		if x != nil {
			return denseMemory(x)
		}
	}
	return memory{}, errors.Errorf("a %T cannot be used: it must be a float32, float64 or int64 scalar or dense tensor", v)
}

func denseMemory(d *tensor.Dense) (memory, error) {
	m := memory{shape: d.Shape()}
	n := m.shape.TotalSize()
	switch {
	case !d.IsNativelyAccessible():
		return m, errors.New("the tensor is not in main memory")
	case n > 0 && d.IsMasked():
		return m, errors.New("a masked tensor cannot be used")
	case n == 0:
		if d.Dtype() == tensor.Float32 {
			m.Type = kernel.Float32
		}
		return m, nil
	}
	switch d.Dtype() {
	case tensor.Float64:
		m.Array = kernel.Of(d.Float64s())
	case tensor.Float32:
		m.Array = kernel.Of(d.Float32s())
	case tensor.Int64:
		m.Array = kernel.Of(d.Int64s())
	default:
		return m, errors.Errorf("dtype %v cannot be used: it must be float32, float64 or int64", d.Dtype())
	}
	strides := d.Strides()
	if len(strides) < len(m.shape) {
		return m, errors.Errorf("shape %v with strides %v cannot be read", m.shape, strides)
	}
	next, last := 1, 0
	for i := len(m.shape) - 1; i >= 0; i-- {
		if m.shape[i] != 1 && strides[i] != next {
			m.strides = strides
		}
		next *= m.shape[i]
		last += (m.shape[i] - 1) * strides[i]
	}
	if last >= m.Len {
		return m, errors.Errorf("shape %v with strides %v does not fit its %d elements", m.shape, strides, m.Len)
	}
	if m.strides == nil {
		m.Len = n
	}
	return m, nil
}

// transfer copies the elements of a strided view, in the order of its indices, to flat or, if out, back from it.
func transfer[T float32 | float64 | int64](m memory, flat []T, out bool) {
	all := unsafe.Slice((*T)(m.Ptr), m.Len)
	index := make([]int, len(m.shape))
	at := 0
	for i := range flat {
		if out {
			all[at] = flat[i]
		} else {
			flat[i] = all[at]
		}
		for k := len(index) - 1; k >= 0; k-- {
			index[k]++
			at += m.strides[k]
			if index[k] < m.shape[k] {
				break
			}
			at -= index[k] * m.strides[k]
			index[k] = 0
		}
	}
}

// binding ties a leaf to the memory of its value in one run.
type binding struct {
	memory
	f32 []float32 // the elements of a strided view in reading order
	f64 []float64
	i64 []int64
}

// bind checks that a value has a dtype and a shape, and gives its elements in reading order: in place, or for a view that
// has to be read through strides, in a copy.
func (b *binding) bind(v gorgonia.Value, dt tensor.Dtype, shape tensor.Shape) (kernel.Array, error) {
	m, err := memoryOf(v)
	switch {
	case err != nil:
		return kernel.Array{}, err
	case v.Dtype() != dt:
		return kernel.Array{}, errors.Errorf("its value is %v, not %v", v.Dtype(), dt)
	case !m.shape.Eq(shape):
		return kernel.Array{}, errors.Errorf("its value has shape %v, not %v", m.shape, shape)
	}
	b.memory = m
	if m.strides == nil {
		return m.Array, nil
	}
	n := m.shape.TotalSize()
	switch m.Type {
	case kernel.Float32:
		b.f32 = resize(b.f32, n)
		transfer(m, b.f32, false)
		return kernel.Of(b.f32), nil
	case kernel.Int64:
		b.i64 = resize(b.i64, n)
		transfer(m, b.i64, false)
		return kernel.Of(b.i64), nil
	}
	b.f64 = resize(b.f64, n)
	transfer(m, b.f64, false)
	return kernel.Of(b.f64), nil
}

// flush writes a strided view's copy back.
func (b *binding) flush() {
	switch {
	case b.strides == nil:
	case b.Type == kernel.Float32:
		transfer(b.memory, b.f32, true)
	case b.Type == kernel.Int64:
		transfer(b.memory, b.i64, true)
	default:
		transfer(b.memory, b.f64, true)
	}
}

// copyValue copies the elements of src to dst, which has the same dtype and shape.
func copyValue(dst, src gorgonia.Value) error {
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

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
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

func hasNoName(n *gorgonia.Node) bool { return n.Graph() != nil && n.Graph().ByName("").Contains(n) }

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

// Zero sets values to zero, in place, except those that share memory with one of the values in keep. An error leaves all as
// they were.
func Zero(values, keep []gorgonia.Value) error {
	type span struct{ lo, hi uintptr }
	var kept []span
	for _, v := range keep {
		m, err := memoryOf(v)
		if err != nil {
			return errors.Wrap(err, "graphops: Zero")
		}
		lo, hi := m.Bytes()
		kept = append(kept, span{lo, hi})
	}
	slices.SortFunc(kept, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	for i := 1; i < len(kept); i++ { // so that the ends rise too
		kept[i].hi = max(kept[i].hi, kept[i-1].hi)
	}
	var clear []memory
	for _, v := range values {
		m, err := memoryOf(v)
		if err != nil {
			return errors.Wrap(err, "graphops: Zero")
		}
		lo, hi := m.Bytes()
		i, _ := slices.BinarySearchFunc(kept, hi, func(s span, hi uintptr) int { return cmp.Compare(s.lo, hi) })
		if i == 0 || kept[i-1].hi <= lo {
			clear = append(clear, m)
		}
	}
	for _, m := range clear {
		m.zero()
	}
	return nil
}

// zero sets the elements to zero, and nothing between them.
func (m memory) zero() {
	if m.strides == nil {
		kernel.Zero(m.Array)
		return
	}
	n := m.shape.TotalSize()
	switch m.Type {
	case kernel.Float32:
		transfer(m, make([]float32, n), true)
	case kernel.Int64:
		transfer(m, make([]int64, n), true)
	default:
		transfer(m, make([]float64, n), true)
	}
}
