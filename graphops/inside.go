package graphops

import (
	"reflect"
	"unsafe"

	"gonum.org/v1/gonum/graph"
	"gorgonia.org/gorgonia"
)

// The maps by which Gorgonia's graphs find their nodes. Without them, which is when Gorgonia changes, all works as well, but
// building a graph takes time with the square of its size: its methods look at every node.
var (
	byHash  = inside[map[uint32]*gorgonia.Node]("byHash")
	evac    = inside[map[uint32]gorgonia.Nodes]("evac") // those whose hash several have
	byID    = inside[map[int64]int]("byID")             // where in AllNodes; an id is entered at its first use
	counter = inside[uint]("counter")                   // the next id
)

// inside finds a private field of graphs. What it returns is nil where there is no such field.
func inside[T any](name string) func(*gorgonia.ExprGraph) *T {
	f, ok := reflect.TypeFor[gorgonia.ExprGraph]().FieldByName(name)
	if !ok || f.Type != reflect.TypeFor[T]() {
		return func(*gorgonia.ExprGraph) *T { return nil }
	}
	return func(g *gorgonia.ExprGraph) *T { return (*T)(unsafe.Add(unsafe.Pointer(g), f.Offset)) }
}

// taken finds a node of the graph by hash.
func taken(g *gorgonia.ExprGraph, hash uint32) *gorgonia.Node {
	one, several := byHash(g), evac(g)
	if one == nil || several == nil {
		for _, n := range g.AllNodes() {
			if n.Hashcode() == hash {
				return n
			}
		}
		return nil
	}
	if n := (*one)[hash]; n != nil {
		return n
	}
	for _, n := range (*several)[hash] {
		return n
	}
	return nil
}

// soon tells a graph where its next nodes will be, up to n of them, as it would otherwise search for each when it gets its
// edges. done takes back what turned out wrong.
func soon(g *gorgonia.ExprGraph, n int) (done func()) {
	ids, next := byID(g), counter(g)
	if ids == nil || next == nil {
		return func() {}
	}
	first, at := int64(*next), len(g.AllNodes())
	for i := range n {
		(*ids)[first+int64(i)] = at + i
	}
	return func() {
		all := g.AllNodes()
		for i := range n {
			if id := first + int64(i); at+i >= len(all) || all[at+i].ID() != id {
				delete(*ids, id)
			}
		}
	}
}

// settle corrects what a graph remembers of where its nodes are, if that is wrong for n: it is for those made before a node
// was removed, as Gorgonia does where it replaces log(1−x) by another operation.
func settle(n *gorgonia.Node) {
	g := n.Graph()
	if ids := byID(g); ids != nil && g.Node(n.ID()) != graph.Node(n) {
		for i, o := range g.AllNodes() {
			(*ids)[o.ID()] = i
		}
	}
}
