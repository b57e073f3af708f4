package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// source turns fuzzed bytes into choices; when they run out all choices are 0.
type source struct{ data []byte }

func (s *source) pick(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

func (s *source) of(nodes []int) int { return nodes[s.pick(len(nodes))] }

// seeded is a source of n random bytes.
func seeded(seed, n int) *source {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	data := make([]byte, n)
	for k := range data {
		data[k] = byte(rng.Uint32())
	}
	return &source{data}
}

// edges are rows and columns whose products lie around the lengths of strips, blocks and chunks.
var edges = [][2]int{{1, 1}, {0, 1}, {1, 3}, {7, 1}, {2, 4}, {3, 5}, {4, 4}, {1, 17}, {1, 31}, {4, 8}, {3, 11}, {7, 9}, {8, 8}, {5, 13}, {10, 10}, {1, 127},
	{8, 16}, {3, 43}, {15, 17}, {16, 16}, {1, 257}, {0, 0}, {20, 50}, {63, 65}, {64, 64}, {17, 241}, {1, 8191}, {1, 8193}, {7, 31 * 151}, {128, 256},
	{3, 10923}, {1, 65537}, {1, 100003}}

var specials = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-45, -1e-40, 3.4e38, -1e38, 5e-324, 1e308, .5, 2, 1e-8}

// smaller are the edges of less than n elements.
func smaller(n int) [][2]int {
	return slices.DeleteFunc(slices.Clone(edges), func(e [2]int) bool { return e[0]*e[1] >= n })
}

// family is the tensors of one dtype and size.
type family struct {
	typ            DType
	rows, cols     int
	leaves         []int // arrays
	tensors, conds []int // nodes: numbers and truth values
}

// node is an elementwise node of the family.
func (f *family) node() Node { return Node{Elem: true, Type: f.typ, Len: f.rows * f.cols} }

// place is where an array lies in the memory of a random program.
type place struct {
	at, n int
	typ   DType
}

func (p place) end() int { return p.at + p.n*int(p.typ.size()) }

// random is a random program with memory for its arrays, which may overlap.
type random struct {
	b              Builder
	stores         []Store
	families       []*family
	scalars, conds []int // scalar nodes: numbers and truth values
	places         []place
	size           int // of the memory
	memory         []byte
	slow           bool // there are functions for which the machine has no instruction
}

var (
	unaryOps  = []Op{Neg, Square, Sqrt, Abs, Sign, Floor, Square, Sqrt, Exp, Log, Tanh, Cos}
	binaryOps = []Op{Add, Sub, Mul, Div, Add, Sub, Mul, Add, Mul, Min, Max, Pow}
	compares  = []Op{Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual}
)

func (r *random) unary(s *source) Op {
	if r.slow {
		return unaryOps[s.pick(len(unaryOps))]
	}
	return unaryOps[s.pick(len(unaryOps)-4)]
}

func (r *random) binary(s *source) Op {
	if r.slow {
		return binaryOps[s.pick(len(binaryOps))]
	}
	return binaryOps[s.pick(len(binaryOps)-1)]
}

// newRandom makes a program of matrices of some of the sizes.
func newRandom(s *source, sizes [][2]int) *random {
	r := &random{slow: s.pick(5) == 4}
	overlap := s.pick(3) == 2
	for range 1 + s.pick(4)*s.pick(2) {
		f := r.family(DType(s.pick(2)), sizes[s.pick(len(sizes))])
		for range 1 + s.pick(6) {
			n, size, at := f.rows*f.cols, int(f.typ.size()), r.size
			if len(f.leaves) > 0 && overlap && s.pick(2) == 1 { // at another one, or some elements behind it
				at = r.places[s.of(f.leaves)].at + size*[]int{0, 0, 1, 5, 64, n / 2}[s.pick(6)]
			}
			r.leaf(f, at, s.pick(9)*size)
		}
	}
	r.numbers()
	for range s.pick(60) {
		r.grow(s, r.families[s.pick(len(r.families))])
	}
	for range 1 + s.pick(8) {
		r.store(s)
	}
	r.fill(s)
	return r
}

func (r *random) family(typ DType, size [2]int) *family {
	f := &family{typ: typ, rows: size[0], cols: size[1]}
	r.families = append(r.families, f)
	return f
}

// leaf adds an array to a family, and a gap behind it.
func (r *random) leaf(f *family, at, gap int) int {
	n := f.node()
	n.Leaf = r.place(place{at, n.Len, f.typ}, gap)
	f.leaves, f.tensors = append(f.leaves, n.Leaf), append(f.tensors, r.b.Add(n))
	return n.Leaf
}

// numbers adds scalars: arrays of every type, constants, and a condition.
func (r *random) numbers() {
	for _, t := range []DType{Float64, Float64, Float32, Int64} {
		r.scalars = append(r.scalars, r.b.Add(Node{Op: Leaf, Leaf: r.place(place{r.size, 1, t}, 0)}))
	}
	for _, c := range []float64{0, 1, -1, .1, 3} {
		r.scalars = append(r.scalars, r.b.Add(Node{Op: Const, Bits: math.Float64bits(c)}))
	}
	r.conds = append(r.conds, r.add(Node{}, Less, r.scalars[0], r.scalars[4]))
}

// place adds an array and a gap behind it.
func (r *random) place(p place, gap int) int {
	if size := int(p.typ.size()); p.at == r.size {
		p.at = (p.at + size - 1) &^ (size - 1)
	}
	r.places = append(r.places, p)
	r.size = max(r.size, p.end()+gap)
	return len(r.places) - 1
}

// store adds a store, mostly of a new value.
func (r *random) store(s *source) {
	st := Store{Cond: -1}
	if f := r.families[s.pick(len(r.families))]; s.pick(4) != 0 {
		st.Leaf, st.Node = s.of(f.leaves), f.tensors[len(f.tensors)-1-s.pick(min(len(f.tensors), 8))]
	} else if k := s.pick(4); k < 3 {
		st.Leaf, st.Node = len(r.places)-4+k, s.of(r.scalars)
	} else { // mostly a whole number
		x := Node{Op: []Op{Add, Floor}[s.pick(2)], Args: [3]int{s.of(r.scalars[3:]), r.scalars[5]}}
		st.Leaf, st.Node = len(r.places)-1, r.b.Add(x)
	}
	if s.pick(4) == 0 {
		st.Cond = s.of(r.conds)
	}
	for _, o := range r.stores {
		// Without a condition, stores that share memory are too often all that there is.
		if o.Leaf == st.Leaf || st.Cond < 0 && s.pick(8) != 7 && r.overlap(o.Leaf, st.Leaf) {
			return
		}
	}
	r.stores = append(r.stores, st)
}

// overlap reports whether two arrays share memory.
func (r *random) overlap(i, j int) bool {
	a, b := r.places[i], r.places[j]
	return a.n > 0 && b.n > 0 && a.at < b.end() && b.at < a.end()
}

// grow adds a node of what is there, mostly of what is new.
func (r *random) grow(s *source, f *family) {
	tensor := func() int {
		if s.pick(3) == 0 {
			return s.of(f.tensors)
		}
		return f.tensors[len(f.tensors)-1-s.pick(min(3, len(f.tensors)))]
	}
	any := func() int {
		if s.pick(3) == 0 {
			return s.of(r.scalars)
		}
		return tensor()
	}
	add := func(list *[]int, n Node, op Op, args ...int) { *list = append(*list, r.add(n, op, args...)) }
	switch s.pick(20) {
	case 0:
		add(&f.tensors, f.node(), r.unary(s), tensor())
	case 1:
		add(&f.conds, f.node(), IsFinite, tensor())
	case 2, 17:
		add(&f.conds, f.node(), compares[s.pick(len(compares))], tensor(), any())
	case 3, 18:
		if len(f.conds) > 0 {
			switch s.pick(7) {
			case 0:
				add(&f.conds, f.node(), Not, s.of(f.conds))
			case 1:
				add(&f.conds, f.node(), []Op{And, Or}[s.pick(2)], s.of(f.conds), s.of(f.conds))
			case 2:
				add(&r.conds, Node{}, All, s.of(f.conds))
			case 3:
				f.tensors = append(f.tensors, s.of(f.conds)) // a condition is a number too
			default:
				add(&f.conds, f.node(), []Op{And, Or}[s.pick(2)], s.of(f.conds), s.of(r.conds))
			}
		}
	case 4, 5:
		if len(f.conds) > 0 {
			add(&f.tensors, f.node(), Select, s.of(f.conds), any(), tensor())
		}
	case 6:
		add(&f.tensors, f.node(), Select, s.of(r.conds), tensor(), any())
	case 7:
		add(&r.scalars, Node{}, []Op{Sum, SumSquares, MaxAll}[s.pick(3)], tensor())
	case 8:
		add(&r.conds, Node{}, compares[s.pick(len(compares))], s.of(r.scalars), s.of(r.scalars))
	case 9:
		add(&r.scalars, Node{}, r.binary(s), s.of(r.scalars), s.of(r.scalars))
	case 10, 11, 12: // what there are fused instructions for
		f.tensors = append(f.tensors, r.fusible(s, f, tensor()))
	case 13: // more values than there are accumulators
		f.tensors = append(f.tensors, r.tree(s, f, 2+s.pick(4)))
	case 14:
		f.tensors = append(f.tensors, r.rearrange(s, f, tensor()))
	default:
		x, y := tensor(), any()
		if s.pick(2) == 0 {
			x, y = y, x
		}
		if r.b.nodes[x].Elem || r.b.nodes[y].Elem {
			add(&f.tensors, f.node(), r.binary(s), x, y)
		}
	}
}

func (r *random) add(n Node, op Op, args ...int) int {
	n.Op = op
	copy(n.Args[:], args)
	return r.b.Add(n)
}

// fusible adds what one instruction may compute.
func (r *random) fusible(s *source, f *family, x int) int {
	n := f.node()
	scale := func(x int) int { return r.add(n, Mul, x, s.of(r.scalars)) }
	any := s.of(f.tensors)
	switch s.pick(5) {
	case 0:
		return r.add(n, []Op{Add, Sub}[s.pick(2)], scale(x), []int{any, scale(any)}[s.pick(2)])
	case 1:
		return r.add(n, []Op{Add, Sub}[s.pick(2)], any, scale(x))
	case 2:
		return r.add(n, Add, scale(any), scale(r.add(n, Square, x)))
	case 3:
		return r.add(n, Add, r.add(n, Sqrt, x), s.of(r.scalars))
	}
	root := r.add(n, Sqrt, []int{x, scale(x)}[s.pick(2)])
	return r.add(n, Div, []int{any, scale(any)}[s.pick(2)], r.add(n, Add, root, s.of(r.scalars)))
}

// tree adds a tree of operations.
func (r *random) tree(s *source, f *family, depth int) int {
	n := f.node()
	if depth == 0 {
		return r.fusible(s, f, s.of(f.tensors))
	}
	x, y := r.tree(s, f, depth-1), s.of(r.scalars)
	switch s.pick(6) {
	case 0:
		return r.add(n, []Op{Abs, Sign, Floor, Neg}[s.pick(4)], x)
	case 1:
		x = r.add(n, append(compares, Min, Max, Div)[s.pick(9)], x, y)
	case 2:
		if len(f.conds) > 0 {
			return r.add(n, Select, s.of(f.conds), x, y)
		}
	}
	return r.add(n, []Op{Sub, Div, Mul, Max, Add}[s.pick(5)], x, r.tree(s, f, depth-1))
}

// rearrange adds an operation on a matrix, and whatever gives that the size of the family again.
func (r *random) rearrange(s *source, f *family, x int) int {
	n := func(op Op, rows, cols, a, b int, dims ...int) int {
		return r.b.Add(Node{Op: op, Elem: true, Type: f.typ, Len: rows * cols, Args: [3]int{a, b}, Dims: Dims(dims...)})
	}
	m, k := f.rows, f.cols
	switch s.pick(5) {
	case 0:
		return n(Transpose, k, m, x, 0, m, k)
	case 1:
		line := n(SumAlong, 1, k, x, 0, m, k, 1, k)
		if s.pick(2) == 0 {
			line = r.b.Add(Node{Op: Abs, Elem: true, Type: f.typ, Len: k, Args: [3]int{line}})
		}
		return n(BroadcastTo, m, k, line, 0, m, k, 1, k)
	case 2:
		if m*k*m < 1<<16 {
			x = n(MatMul, m, m, x, s.of(f.tensors), m, k, m)
			return n(BroadcastTo, m, k, n(SumAlong, m, 1, x, 0, m, m, m, 1), 0, m, k, m, 1)
		}
	case 3:
		noise := n(TruncatedNormal, m, k, s.of(r.scalars), s.of(r.scalars), s.pick(2))
		return r.b.Add(Node{Op: Add, Elem: true, Type: f.typ, Len: m * k, Args: [3]int{noise, x}})
	}
	return n(BroadcastTo, m, k, n(SumAlong, m, 1, x, 0, m, k, m, 1), 0, m, k, m, 1)
}

// fill gives the arrays small numbers, some numbers of any size, and special ones.
func (r *random) fill(s *source) {
	state := uint64(s.pick(256))*0x9e3779b97f4a7c15 + 1
	wild := s.pick(3)
	next := func() float64 {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		switch {
		case wild == 2 && state%5 == 0:
			return specials[state/8%uint64(len(specials))]
		case wild >= 1 && state%7 == 0:
			return math.Float64frombits(state)
		}
		return float64(int64(state>>11))/(1<<51) - 2
	}
	r.memory = aligned(r.size)
	for i := range r.memory {
		r.memory[i] = 0x5a
	}
	for _, a := range r.bind(r.memory) {
		for i := range a.Len {
			switch a.Type {
			case Float32:
				Elements[float32](a)[i] = float32(next())
			case Float64:
				Elements[float64](a)[i] = next()
			default:
				a.setScalar(float64(state % 100))
			}
		}
	}
}

// bind makes the arrays of a piece of memory.
func (r *random) bind(memory []byte) (in []Array) {
	for _, p := range r.places {
		b := memory[p.at:p.end()]
		switch p.typ {
		case Float32:
			in = append(in, Of(of[float32](b)))
		case Float64:
			in = append(in, Of(of[float64](b)))
		default:
			in = append(in, Of(of64(b)))
		}
	}
	return in
}

// String lists the program.
func (r *random) String() (s string) {
	for i, n := range r.b.nodes {
		s += fmt.Sprintf("\n%d: %v", i, n.Op)
		switch {
		case n.Op == Leaf:
			s += fmt.Sprintf(" %d, elementwise %v, %+v", n.Leaf, n.Elem, r.places[n.Leaf])
		case n.Op == Const:
			s += fmt.Sprint(" ", math.Float64frombits(n.Bits))
		default:
			s += fmt.Sprintf(" %v, elementwise %v, type %d, length %d, %s", n.Args[:n.Op.Arity()], n.Elem, n.Type, n.Len, n.Dims)
		}
	}
	return s + fmt.Sprintf("\n%+v", r.stores)
}
