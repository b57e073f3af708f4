package graphops

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// Expand turns an expression into ordinary nodes, one for each primitive: they can be drawn, read and differentiated. It
// agrees bit for bit with the fused form. A scalar expression becomes a float64 scalar node, an elementwise one a node of
// its dtype and shape; an expression that is just a node stays that node, as far as its dtype allows. The expression must
// read at least one node, which says what graph it is on.
func Expand(e Expr) (*gorgonia.Node, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	ns := e.x.leaves(false)
	if len(ns) == 0 {
		return nil, errors.New("graphops: Expand: the expression reads no node, so it is on no graph")
	}
	for _, n := range ns {
		if n.Graph() != ns[0].Graph() {
			return nil, errors.Errorf("graphops: Expand: %s and %s are on different graphs", nodeName(ns[0]), nodeName(n))
		}
	}
	return newExpander(ns[0]).expand(e)
}

// expander makes nodes of expressions, each once.
type expander struct {
	on    *gorgonia.Node // some node of the graph
	memo  map[*expr]*gorgonia.Node
	after int64 // nodes of lesser ids run too early to be used again
}

func newExpander(on *gorgonia.Node) *expander {
	return &expander{on: on, memo: map[*expr]*gorgonia.Node{}}
}

func (x *expander) expand(e Expr) (*gorgonia.Node, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	return x.node(e.x)
}

func (x *expander) node(e *expr) (*gorgonia.Node, error) {
	if n, ok := x.memo[e]; ok {
		return n, nil
	}
	n, err := x.build(e)
	if err == nil {
		x.memo[e] = n
	}
	return n, err
}

func (x *expander) build(e *expr) (*gorgonia.Node, error) {
	switch {
	case e.op == kernel.Const:
		return constant(e.value, x.on)
	case e.take != takeNone:
		return nil, errors.New("graphops: expressions over rows cannot be expanded")
	case e.op == kernel.Leaf && e.scalar:
		return x.convert(e.node, tensor.Float64)
	case e.op == kernel.Leaf:
		return e.node, nil
	}
	dt := e.dt
	if e.scalar {
		dt = tensor.Float64
	}
	kids := make(gorgonia.Nodes, len(e.args))
	for i, a := range e.args {
		n, err := x.node(a)
		if err == nil && a.scalar && !e.scalar && e.op != kernel.TruncatedNormal {
			n, err = x.convert(n, dt)
		}
		if err != nil {
			return nil, err
		}
		kids[i] = n
	}
	return x.add(newPrimitive(e.op, dt, kids, e.dims, e.shape), kids)
}

// convert gives a scalar node another dtype.
func (x *expander) convert(n *gorgonia.Node, dt tensor.Dtype) (*gorgonia.Node, error) {
	if n.Dtype() == dt {
		return n, nil
	}
	kids := gorgonia.Nodes{n}
	return x.add(newPrimitive(kernel.Leaf, dt, kids, "", nil), kids)
}

// add adds a primitive, or finds the node that it already is.
func (x *expander) add(p *primitive, kids gorgonia.Nodes) (*gorgonia.Node, error) {
	n, err := apply(p, &p.op, true, kids...)
	if err == nil && n.ID() < x.after {
		n, err = apply(p, &p.op, false, kids...)
	}
	return n, err
}
