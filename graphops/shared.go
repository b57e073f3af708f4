package graphops

import (
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Gorgonia's Reshape shares memory with its operand, and so does Dropout in evaluation. A tape machine does not know: it lets
// an elementwise operation write over what nobody reads any more, even where somebody still reads the other. So it may come
// out wrong what is computed from a Reshape of tanh, sigmoid or exp, whose derivatives read and overwrite their results.

// aliasesOf finds, for each node, the others whose values may lie in the memory of its value.
func aliasesOf(all gorgonia.Nodes) map[*gorgonia.Node]gorgonia.Nodes {
	aliases, origin := map[*gorgonia.Node]gorgonia.Nodes{}, map[*gorgonia.Node]*gorgonia.Node{}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	for _, n := range all {
		kids := children(n)
		if len(kids) != 1 || !slices.Contains([]string{"reshapeOp", "dropoutOp", "concatOp"}, opType(n.Op())) {
			continue // a concatenation of one tensor is that tensor
		}
		for k := kids[0]; k != nil; k = origin[k] {
			aliases[k] = append(aliases[k], n)
		}
		origin[n] = kids[0]
	}
	return aliases
}

// isView reports whether an operation may return memory of its operand.
func isView(o gorgonia.Op) bool {
	return slices.Contains([]string{"reshapeOp", "sliceOp", "transposeOp"}, opType(o))
}

// keepOp reads nodes that share memory, so that to the end of a run no operation is given their memory to write to. Its
// value means nothing.
type keepOp struct{ op }

func (o *keepOp) Do(...gorgonia.Value) (gorgonia.Value, error) { return gorgonia.NewF64(0), nil }

// keepShared makes a keepOp for the nodes of a program that share memory; nil if none do.
func keepShared(sub *gorgonia.ExprGraph) (*gorgonia.Node, error) {
	ns := sub.AllNodes()
	aliases, named := aliasesOf(ns), map[*gorgonia.Node]bool{}
	var kids gorgonia.Nodes
	add := func(n *gorgonia.Node) {
		if n.Op() != nil && !named[n] { // inputs are never written over
			named[n] = true
			kids = append(kids, n)
		}
	}
	for _, n := range ns {
		if len(aliases[n]) > 0 {
			add(n)
		}
		for _, a := range aliases[n] {
			add(a)
		}
	}
	if len(kids) == 0 {
		return nil, nil
	}
	slices.SortFunc(kids, func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	o := &keepOp{newOp("keep", kids, tensor.Float64, tensor.ScalarShape())}
	return apply(o, &o.op, true, kids...)
}
