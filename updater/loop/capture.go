package loop

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"

	"github.com/chewxy/hm"
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// capture is an operation whose operands are the values that are wanted of a run. As it comes last, no other operation may
// write over them, as a tape machine lets them do with what nobody reads any more.
type capture struct {
	in     []hm.Type
	id     string
	values []gorgonia.Value // of the last run, up to the next
}

// newCapture adds the operation for nodes of one graph. Inputs need none, as nothing is written over them; nil if all are inputs.
func newCapture(nodes gorgonia.Nodes) (n *gorgonia.Node, captured gorgonia.Nodes, err error) {
	for _, n := range nodes {
		if n.Type() == nil || n.Graph() == nil || n.Graph() != nodes[0].Graph() {
			return nil, nil, errors.Errorf("loop: %v cannot be read: it has no value, or is on another graph", n)
		}
		if n.Op() != nil && !captured.Contains(n) {
			captured = append(captured, n)
		}
	}
	if len(captured) == 0 {
		return nil, nil, nil
	}
	o := &capture{}
	for _, n := range captured {
		o.in = append(o.in, n.Type())
		o.id += fmt.Sprintf(" %d", n.ID())
	}
	n, err = gorgonia.ApplyOp(o, captured...)
	return n, captured, errors.Wrap(err, "loop: reading nodes")
}

func (o *capture) Do(values ...gorgonia.Value) (gorgonia.Value, error) {
	o.values = append(o.values[:0], values...)
	return gorgonia.NewF64(0), nil
}

func (o *capture) Arity() int { return len(o.in) }

// Type is made anew at each call, as Gorgonia's type inference hands it back to a pool.
func (o *capture) Type() hm.Type { return hm.NewFnType(append(slices.Clone(o.in), tensor.Float64)...) }

func (o *capture) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return tensor.ScalarShape(), nil
}
func (o *capture) ReturnsPtr() bool      { return false }
func (o *capture) CallsExtern() bool     { return false }
func (o *capture) OverwritesInput() int  { return -1 }
func (o *capture) String() string        { return "capture" }
func (o *capture) WriteHash(h hash.Hash) { fmt.Fprintf(h, "optimop/loop/capture%s", o.id) }
func (o *capture) DiffWRT(n int) []bool  { return make([]bool, n) }

func (o *capture) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// SymDiff is never asked for; with it, Gorgonia can differentiate other parts of the graph.
func (o *capture) SymDiff(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) (gorgonia.Nodes, error) {
	return nil, errors.New("loop: there is nothing to differentiate in reading nodes")
}

// reader reads the values of nodes after a run.
type reader struct {
	op    *capture // nil if all nodes are inputs
	nodes gorgonia.Nodes
}

// newReader makes a reader, and the node that the machine has to run for it, if it needs one.
func newReader(nodes gorgonia.Nodes) (*reader, *gorgonia.Node, error) {
	n, captured, err := newCapture(nodes)
	if err != nil || n == nil {
		return &reader{}, nil, err
	}
	return &reader{op: n.Op().(*capture), nodes: captured}, n, nil // of a node that was there before, the operation is that one's
}

func (r *reader) value(n *gorgonia.Node) gorgonia.Value {
	if i := slices.Index(r.nodes, n); i >= 0 {
		return r.op.values[i]
	}
	return n.Value()
}
