package graphops

import (
	"unsafe"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// leaf is a node whose value a plan reads or writes, and what the value must be.
type leaf struct {
	node  *gorgonia.Node
	state *State // that the node shows, or nil
	dt    tensor.Dtype
	shape tensor.Shape
	float bool
	typ   kernel.DType  // of a float
	slot  *tensor.Dense // the state's value, once it is settled
	found kernel.Array  // its elements
	apart bool          // of a gradient of rows: nothing reads it as a whole tensor
}

func newLeaf(n *gorgonia.Node, st *State) leaf {
	dt := n.Dtype()
	return leaf{node: n, state: st, dt: dt, shape: n.Shape(), float: dt == tensor.Float32 || dt == tensor.Float64, typ: kernelType(dt)}
}

// settle finds the elements of a slot for all runs until its store makes another node. Their memory is the store's for good, so
// that each run only has to see that no value was let to the slot's one node. To look at all of thousands of tensors costs more
// than to bind the rest.
func (l *leaf) settle(of *Store) {
	l.slot, l.found = nil, kernel.Array{}
	if s := l.state; s != nil && s.store == of && s.kind == Slot && len(s.nodes) == 1 && l.direct(s.value, &l.found) {
		l.slot = s.value.(*tensor.Dense)
	}
}

// shows reports whether a given value, or if it is nil that of the node, is the settled slot.
func (l *leaf) shows(v gorgonia.Value) bool {
	if v == nil {
		v = l.node.Value()
	}
	d, ok := v.(*tensor.Dense)
	return ok && d == l.slot
}

// direct finds the elements of the usual value, quickly: a tensor with its elements row by row. It looks at all of it in each
// run, as any of it may have changed.
func (l *leaf) direct(v gorgonia.Value, a *kernel.Array) bool {
	d, ok := v.(*tensor.Dense)
	if !ok || d == nil || !l.float {
		return false
	}
	have, strides := d.Shape(), d.Strides()
	if len(have) != len(l.shape) || len(strides) != len(l.shape) || d.Dtype() != l.dt || !d.IsNativelyAccessible() || len(d.Mask()) > 0 {
		return false
	}
	n := 1
	for i := len(have) - 1; i >= 0; i-- {
		if have[i] != l.shape[i] || have[i] != 1 && strides[i] != n {
			return false
		}
		n *= have[i]
	}
	shift := 3
	if l.typ == kernel.Float32 {
		shift = 2
	}
	if n == 0 || n > len(d.Raw)>>shift {
		return false
	}
	*a = kernel.Array{Ptr: unsafe.Pointer(unsafe.SliceData(d.Raw)), Len: n, Type: l.typ}
	return true
}
