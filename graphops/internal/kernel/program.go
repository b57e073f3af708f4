// Package kernel evaluates the expressions of one commit. A program holds every primitive once; scalars are float64 and
// evaluated once per run; full reductions are passes of their own; and all elementwise work of a parameter is one pass over
// strips that stay in the cache. It knows nothing of graphs: leaves are arrays, bound anew at each run.
package kernel

import "slices"

// Node is a primitive with its operands. Nodes are comparable, so that equal sub-expressions are one.
type Node struct {
	Op   Op
	Elem bool  // elementwise: Len elements of Type; otherwise one float64
	Type DType // of an elementwise node
	Len  int
	Args [3]int // indices of earlier nodes, Op.Arity() of them
	Leaf int    // of a Leaf: the index of its array
	Bits uint64 // of a Const: math.Float64bits of its value
	Dims string // of a rearranging operation: see Dims
}

// Store writes the value of a node into an array.
type Store struct {
	Leaf int // the array written
	Node int
	Cond int // scalar node: the store happens where it is not zero; negative: always
}

// Builder collects nodes, each once.
type Builder struct {
	nodes []Node
	index map[Node]int
}

// Add returns the index of n.
func (b *Builder) Add(n Node) int {
	if i, ok := b.index[n]; ok {
		return i
	}
	if b.index == nil {
		b.index = map[Node]int{}
	}
	b.index[n] = len(b.nodes)
	b.nodes = append(b.nodes, n)
	return len(b.nodes) - 1
}

// Program is a compiled list of stores. It owns scratch memory, so one goroutine may run it at a time.
type Program struct {
	nodes   []Node
	stores  []Store
	scalars []int     // stores of scalar values
	passes  []*pass   // the elementwise stores
	reduce  []*pass   // by node: how a reduction visits its operand
	value   []float64 // by node: of the scalars, in this run
	known   []bool    // by node: value is of this run
	written []bool    // by store: done in this run
	targets []target
	leaves  int      // arrays that are bound
	arrays  []Array  // those, and one for each of whole
	whole   []*whole // values that must be there as a whole
	wholeOf map[int]int
	blas    BLAS
	acc     accumulator
	f32     []float32
	f64     []float64
}

// pass is a set of elementwise steps over arrays of one length and type.
type pass struct {
	typ    DType
	n      int
	cond   int
	steps  []step
	consts []int // scalar nodes among the operands, each broadcast to a strip
	leaves []int // bound arrays read
	needs  []int // whole values read
	stores []passStore
	result operand // of a reduction: what is reduced
	memo   map[int]operand
}

type passStore struct {
	store  int
	reg    operand
	wait   bool     // this run must not write the target before all passes are done
	staged []uint64 // where the new value waits
}

type step struct {
	op   Op // Leaf copies its operand
	dst  operand
	args [3]operand
}

// operand is where a strip of values lies.
type operand struct {
	kind  operandKind
	index int
}

type operandKind uint8

const (
	register operandKind = iota // strip index of the scratch memory
	array                       // a bound array
)

// Program compiles stores.
func (b *Builder) Program(stores []Store, blas BLAS) *Program {
	p := &Program{nodes: b.nodes, stores: stores, blas: blas, wholeOf: map[int]int{}}
	for _, n := range p.nodes {
		if n.Op == Leaf {
			p.leaves = max(p.leaves, n.Leaf+1)
		}
	}
	for _, s := range stores {
		p.leaves = max(p.leaves, s.Leaf+1)
	}
	p.reduce = make([]*pass, len(p.nodes))
	p.value, p.known = make([]float64, len(p.nodes)), make([]bool, len(p.nodes))
	p.written = make([]bool, len(stores))
	for i, n := range p.nodes {
		if arg := n.Args[0]; n.Op.Reduces() && p.nodes[arg].Elem {
			ps := p.newPass(arg, -1)
			ps.result = ps.use(p, arg)
			p.reduce[i] = ps
		}
	}
	for _, group := range p.components() {
		first := stores[group[0]]
		ps := p.newPass(first.Node, first.Cond)
		for _, s := range group {
			o := ps.use(p, stores[s].Node)
			if o.kind == array { // the array may be written before it is copied
				o = ps.emit(step{op: Leaf, args: [3]operand{o}})
			}
			ps.stores = append(ps.stores, passStore{store: s, reg: o})
		}
		p.passes = append(p.passes, ps)
	}
	for i, s := range stores {
		if !p.nodes[s.Node].Elem {
			p.scalars = append(p.scalars, i)
		}
	}
	all := append(slices.Clone(p.passes), p.reduce...)
	for _, w := range p.whole {
		all = append(all, w.pass)
	}
	for _, ps := range all {
		if ps != nil {
			ps.memo = nil
			p.reserve(ps)
		}
	}
	return p
}

func (p *Program) newPass(node, cond int) *pass {
	n := p.nodes[node]
	return &pass{typ: n.Type, n: n.Len, cond: cond, memo: map[int]operand{}}
}

// use makes the value of node i available to the pass and says where.
func (ps *pass) use(p *Program, i int) (o operand) {
	if o, ok := ps.memo[i]; ok {
		return o
	}
	n := p.nodes[i]
	switch {
	case !n.Elem:
		o = ps.emit(step{op: Const})
		ps.consts = append(ps.consts, i, o.index)
	case n.Op == Leaf:
		o = operand{array, n.Leaf}
		ps.leaves = append(ps.leaves, n.Leaf)
	case n.Op.Rearranges():
		k := p.needWhole(i)
		o = operand{array, p.leaves + k}
		ps.needs = append(ps.needs, k)
	default:
		s := step{op: n.Op}
		for k := range n.Op.Arity() {
			s.args[k] = ps.use(p, n.Args[k])
		}
		o = ps.emit(s)
	}
	ps.memo[i] = o
	return o
}

func (ps *pass) emit(s step) operand {
	s.dst = operand{register, len(ps.steps)}
	ps.steps = append(ps.steps, s)
	return s.dst
}

func (p *Program) reserve(ps *pass) {
	if n := len(ps.steps) * strip; ps.typ == Float32 {
		p.f32 = append(p.f32, make([]float32, max(0, n-len(p.f32)))...)
	} else {
		p.f64 = append(p.f64, make([]float64, max(0, n-len(p.f64)))...)
	}
}

// components groups the elementwise stores that share work, or of which one reads what another writes: such a group is one
// pass and can mostly write in place. Groups and their members keep the order of the stores.
func (p *Program) components() [][]int {
	type class struct {
		cond, n int
		typ     DType
	}
	type owned struct {
		class class
		node  int
	}
	parent := make([]int, len(p.stores))
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	targets := map[int]bool{}
	for _, s := range p.stores {
		targets[s.Leaf] = true
	}
	owner := map[owned]int{}
	var visit func(c class, s, node int)
	claim := func(c class, s, node int) bool {
		o, ok := owner[owned{c, node}]
		if !ok {
			owner[owned{c, node}] = s
			return true
		}
		a, b := find(s), find(o)
		parent[max(a, b)] = min(a, b)
		return false
	}
	visit = func(c class, s, i int) {
		n := p.nodes[i]
		switch {
		case !n.Elem, n.Op.Rearranges():
		case n.Op == Leaf:
			if targets[n.Leaf] {
				claim(c, s, -1-n.Leaf)
			}
		case claim(c, s, i):
			for k := range n.Op.Arity() {
				visit(c, s, n.Args[k])
			}
		}
	}
	for s, st := range p.stores {
		parent[s] = s
		if n := p.nodes[st.Node]; n.Elem {
			c := class{st.Cond, n.Len, n.Type}
			claim(c, s, -1-st.Leaf)
			visit(c, s, st.Node)
		}
	}
	at := map[int]int{}
	var groups [][]int
	for s, st := range p.stores {
		if !p.nodes[st.Node].Elem {
			continue
		}
		root := find(s)
		g, ok := at[root]
		if !ok {
			g = len(groups)
			at[root] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], s)
	}
	return groups
}
