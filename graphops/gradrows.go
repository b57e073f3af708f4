package graphops

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// looksUp reports whether a node is a lookup of rows, whose gradient is those rows.
func looksUp(n *gorgonia.Node) bool {
	if _, ok := n.Op().(*gatherOp); ok {
		return true
	}
	if opType(n.Op()) != "byIndicesOp" || field(n, "axis").Int() != 0 {
		return false
	}
	dt := n.Dtype() // of an operand of rank 1 and more, or Gorgonia has no shape for the result
	return dt == tensor.Float32 || dt == tensor.Float64
}

// gradient is what was collected for a node, or nil; the rows of lookups come last. They stay rows, if there is nothing else and
// keep says so.
func (w *walk) gradient(n *gorgonia.Node, keep bool) (*gorgonia.Node, error) {
	terms := w.rows[n]
	if terms == nil {
		return w.terms[n], nil
	}
	if keep && w.terms[n] == nil {
		return rowsNode(n, terms)
	}
	delete(w.rows, n)
	d, err := scatter(n, terms)
	if old := w.terms[n]; err == nil && old != nil {
		d, err = w.x.expand(Of(old).Add(Of(d)))
	}
	w.terms[n] = d
	return d, errors.Wrapf(err, "graphops: summing the gradients of %s", nodeName(w.original(n)))
}

// TryRows reports which of the gradients of Gradients would be rows with KeepRows. It leaves the graph alone.
func TryRows(cost *gorgonia.Node, wrt gorgonia.Nodes, opts ...GradOpt) ([]bool, error) {
	c := newGradConfig(append(opts[:len(opts):len(opts)], KeepRows()))
	grads, err := c.try(cost, wrt)
	if err != nil {
		return nil, err
	}
	rows := make([]bool, len(grads))
	for i, n := range grads {
		rows[i] = IsRows(n)
	}
	return rows, nil
}

// IsRows reports whether a node is a gradient of rows, as KeepRows gives it.
func IsRows(n *gorgonia.Node) bool {
	if n == nil {
		return false
	}
	_, ok := n.Op().(*rowsOp)
	return ok
}

// RowsNode is the gradient of rows that an expression is, or nil of any other expression.
func RowsNode(e Expr) *gorgonia.Node {
	if e.x == nil || !IsRows(e.x.node) {
		return nil
	}
	return e.x.node
}
