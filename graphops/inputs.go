package graphops

import "gorgonia.org/gorgonia"

// Inputs are the inputs of the graph that nodes depend on (batches, parameters, states), each once, in the order of their
// making. Constants are none.
func Inputs(roots ...*gorgonia.Node) (ns gorgonia.Nodes) {
	for _, n := range ancestors(roots) {
		if n.IsVar() {
			ns = append(ns, n)
		}
	}
	return ns
}

// Leaves are the nodes that the expression reads, each once, in the order of their first use.
func (e Expr) Leaves() gorgonia.Nodes {
	if e.Err() != nil {
		return nil
	}
	return e.x.leaves(false)
}
