// Package kernel evaluates the expressions of one commit. A program holds every primitive once; scalars are float64 and
// evaluated once per run; full reductions are passes of their own; and all elementwise work of a parameter is one pass that
// reads and writes memory once. It knows nothing of graphs: leaves are arrays, bound anew at each run.
//
// A pass runs on the vector machine (see machine), or where there is none in plain Go, which is the reference. All give the
// same bits, with any number of workers.
package kernel

import "slices"

// Node is a primitive with its operands. Nodes are comparable, so that equal sub-expressions are one.
type Node struct {
	Op   Op
	Elem bool  // elementwise: Len elements of Type; otherwise one float64
	Type DType // of an elementwise node
	Len  int
	Size int    // not 0: the length is that of Resize for this number instead
	Args [3]int // indices of earlier nodes, Op.Arity() of them
	Leaf int    // of a Leaf: the index of its array
	Bits uint64 // of a Const: math.Float64bits of its value
	Dims string // of a rearranging operation: see Dims; of TruncatedNormal: the name of the stream
}

// Store writes the value of a node into an array.
type Store struct {
	Leaf int // the array written
	Node int
	Cond int // scalar node: the store happens where it is not zero; negative: always
}

// Builder collects nodes, each once.
type Builder struct {
	nodes  []Node
	index  map[Node]int
	checks []int
}

// Check makes every run evaluate scalar node i before it writes anything, and fail where the value is not 0. Of several
// checks the first in order that is not 0 counts.
func (b *Builder) Check(i int) { b.checks = append(b.checks, i) }

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
	checks  []int     // nodes
	scalars []int     // stores of scalar values
	value   []float64 // by node: of the scalars, in this run
	known   []bool    // by node: value is of this run
	written []bool    // by store: done in this run
	blas    BLAS

	passes  []*pass  // the elementwise stores
	work    *work    // of them
	batches []*batch // of reductions
	batchOf []*batch // by node

	leaves  int     // arrays that are bound
	arrays  []Array // those, and one for each of whole, in this run
	all     []Array
	whole   []*whole // values that must be there as a whole
	wholeOf map[int]int

	machine *machine // nil: plain Go
	forms   map[string]*form
	sizes   sizes
	ready   *form // whose scalars are known, in this run
	moved   bool  // a pass does not run the code of its last run
	elastic bool  // a pass has a length that changes
	self    worker
	plan    plan
}

// pass is a set of elementwise steps over arrays of one length and type.
type pass struct {
	// What every run looks at comes first, so that it is one line of the cache.
	store      int        // whose condition is that of all; negative: it has none
	conditions []int      // scalar nodes that choose between values
	now        *variant   // in this run; nil: plain Go
	variants   []*variant // one for each outcome that was met

	typ    DType
	n      int
	size   int // not 0: the number of the length for Resize
	stores []passStore
	sums   []result // a pass has stores or results
	random *normals // or it only fills an array

	// For plain Go: every primitive fills a strip of scratch memory.
	steps  []step
	consts []int // scalar nodes among the operands, each broadcast to a strip, and the strips
	needs  []int // whole values read
	leaves []int // bound arrays read
	memo   map[int]operand
}

type passStore struct {
	store  int // negative: a whole value
	node   int
	array  int // written
	reg    operand
	wait   bool     // this run must not write the target before all passes are done
	staged []uint64 // where the new value waits
}

// result is a reduction of a pass.
type result struct {
	node    int
	arg     int
	reg     operand
	partial []float64 // by chunk
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
	return b.program(stores, blas, fastest())
}

func (b *Builder) program(stores []Store, blas BLAS, m *machine) *Program {
	p := &Program{nodes: b.nodes, stores: stores, checks: b.checks, blas: blas, machine: m, wholeOf: map[int]int{}, forms: map[string]*form{}}
	for _, n := range p.nodes {
		if n.Op == Leaf {
			p.leaves = max(p.leaves, n.Leaf+1)
		}
	}
	targets := map[int]bool{}
	for _, s := range stores {
		p.leaves = max(p.leaves, s.Leaf+1)
		targets[s.Leaf] = true
	}
	p.value, p.known = make([]float64, len(p.nodes)), make([]bool, len(p.nodes))
	p.written = make([]bool, len(stores))
	p.batchReductions()
	var members []member
	for i, s := range stores {
		if n := p.nodes[s.Node]; n.Elem {
			members = append(members, member{class{s.Cond, n.Type, n.Len, n.Size}, i, s.Node, s.Leaf})
		} else {
			p.scalars = append(p.scalars, i)
		}
	}
	for _, group := range p.groups(members, func(leaf int) bool { return targets[leaf] }) {
		first := p.nodes[stores[group[0]].Node]
		ps := p.newPass(first)
		if stores[group[0]].Cond >= 0 {
			ps.store = group[0]
		}
		for _, s := range group {
			ps.stores = append(ps.stores, passStore{store: s, node: stores[s].Node, array: stores[s].Leaf})
		}
		p.finish(ps)
		p.passes = append(p.passes, ps)
	}
	p.work = newWork(p.passes)
	return p
}

// maxConditions is how many conditions tell variants of a pass apart: one for each bit.
const maxConditions = 64

// finish compiles a pass.
func (p *Program) finish(ps *pass) {
	ps.memo = map[int]operand{}
	for i := range ps.stores {
		s := &ps.stores[i]
		if s.reg = ps.use(p, s.node); s.reg.kind == array { // the array may be written before it is copied
			s.reg = ps.emit(step{op: Leaf, args: [3]operand{s.reg}})
		}
	}
	for i := range ps.sums {
		r := &ps.sums[i]
		r.reg = ps.use(p, r.arg)
		r.partial = make([]float64, (ps.n+chunk-1)/chunk)
	}
	p.sizes.accumulate = max(p.sizes.accumulate, len(ps.sums))
	if ps.typ == Float32 {
		p.sizes.f32 = max(p.sizes.f32, len(ps.steps)*strip)
	} else {
		p.sizes.f64 = max(p.sizes.f64, len(ps.steps)*strip)
	}
	ps.memo = nil
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
		if c := n.Args[0]; n.Op == Select && !p.nodes[c].Elem && len(ps.conditions) < maxConditions && !slices.Contains(ps.conditions, c) {
			ps.conditions = append(ps.conditions, c)
		}
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
