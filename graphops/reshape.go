package graphops

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// reshaped is a copy of its operand in another shape. Gorgonia's own operation shares the memory of its operand, so that what
// overwrites the one changes the other.
type reshaped struct {
	op
	dt tensor.Dtype

	mu sync.Mutex // machines share the operation
	in binding
}

// reshape gives a node another shape, if it has not got it. A scalar stays of the kind of value that scalars are.
func reshape(n *gorgonia.Node, to tensor.Shape) (*gorgonia.Node, error) {
	switch {
	case n.Shape().TotalSize() != to.TotalSize():
		return nil, errors.Errorf("graphops: shape %v cannot become %v", n.Shape(), to)
	case slices.Equal(n.Shape(), to):
		return n, nil
	}
	o := &reshaped{op: newOp(fmt.Sprintf("to shape %v", to), gorgonia.Nodes{n}, typeOf(n.Dtype(), to), to.Clone()), dt: n.Dtype()}
	return apply(o, &o.op, true, n)
}

func (o *reshaped) Do(in ...gorgonia.Value) (out gorgonia.Value, err error) {
	defer o.rescue(&err, in)
	o.mu.Lock()
	defer o.mu.Unlock()
	a, err := o.in.bind(in[0], o.dt, in[0].Shape())
	switch {
	case err != nil:
		return nil, o.wrong(err, 0)
	case a.Len != o.dims.TotalSize():
		return nil, errors.Errorf("graphops: %s: its value has shape %v", o.name, in[0].Shape())
	}
	out = o.newValue(o.dt)
	m, err := memoryOf(out)
	if err == nil {
		kernel.Copy(m.Array, a)
	}
	return out, err
}

func (o *reshaped) DiffWRT(int) []bool { return []bool{true} }

// SymDiff gives the gradient the shape of the operand.
func (o *reshaped) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	d, err := reshape(grad, in[0].Shape())
	return gorgonia.Nodes{d}, err
}
