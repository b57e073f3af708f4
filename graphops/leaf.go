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
	typ   kernel.DType // of a float
}

func newLeaf(n *gorgonia.Node, st *State) leaf {
	dt := n.Dtype()
	return leaf{n, st, dt, n.Shape(), dt == tensor.Float32 || dt == tensor.Float64, kernelType(dt)}
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
