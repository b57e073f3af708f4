package graphops

import (
	"slices"

	"gorgonia.org/gorgonia"
)

// sketch is a copy of the part of a graph that some nodes depend on, without values. Work that may fail half-way is tried on
// a sketch first, since nodes cannot be taken back out of a graph cleanly.
type sketch struct {
	to   map[*gorgonia.Node]*gorgonia.Node
	from map[*gorgonia.Node]*gorgonia.Node
}

func newSketch(g *gorgonia.ExprGraph, roots gorgonia.Nodes) (s *sketch, err error) {
	defer rescue(&err, "copying the graph")
	need := map[*gorgonia.Node]bool{}
	var mark func(n *gorgonia.Node)
	mark = func(n *gorgonia.Node) {
		if !need[n] {
			need[n] = true
			for _, k := range children(n) {
				mark(k)
			}
		}
	}
	for _, r := range roots {
		mark(r)
	}
	all := slices.Clone(g.AllNodes())
	slices.SortFunc(all, func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	s = &sketch{map[*gorgonia.Node]*gorgonia.Node{}, map[*gorgonia.Node]*gorgonia.Node{}}
	twin := gorgonia.NewGraph()
	nameless := map[*gorgonia.Node]bool{}
	for _, n := range g.ByName("") {
		nameless[n] = true
	}
	for _, n := range all {
		kids := children(n)
		isConstant := n.Op() != nil && len(kids) == 0 // every constant matters: new ones of equal text merge with it
		if n.Type() == nil || !need[n] && !isConstant {
			continue
		}
		opts := []gorgonia.NodeConsOpt{gorgonia.WithType(n.Type())}
		if n.Op() != nil {
			opts = append(opts, gorgonia.WithOp(n.Op()))
		}
		if len(kids) > 0 {
			opts = append(opts, gorgonia.WithChildren(s.all(kids)))
		}
		opts = append(opts, gorgonia.In(twin))
		if !nameless[n] {
			opts = append(opts, gorgonia.WithName(n.Name()))
		}
		done := soon(twin, 1)
		t := gorgonia.NewUniqueNode(append(opts, gorgonia.WithShape(n.Shape()...))...)
		done()
		s.to[n], s.from[t] = t, n
	}
	return s, nil
}

func (s *sketch) all(ns gorgonia.Nodes) gorgonia.Nodes {
	out := make(gorgonia.Nodes, len(ns))
	for i, n := range ns {
		out[i] = s.to[n]
	}
	return out
}

// original is the node that a node of the sketch stands for, or the node itself.
func (s *sketch) original(n *gorgonia.Node) *gorgonia.Node {
	if o := s.from[n]; o != nil {
		return o
	}
	return n
}
