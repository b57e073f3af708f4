package kernel

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
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

// edges are lengths around those of strips, blocks and chunks.
var edges = []int{0, 1, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1000, 4095, 4096, 4097, 8191, 8193,
	32767, 32768, 32769, 65537, 100003}

var specials = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-45, -1e-40, 3.4e38, -1e38, 5e-324, 1e308, .5, 2, 1e-8}

// random is a random program with arrays for it.
type random struct {
	b      Builder
	typ    DType
	stores []Store
	arrays []Array
	memory []byte // of the arrays, with gaps
	end    int    // of the tensors in it

	tensors, conds          []int // nodes: numbers and truth values, elementwise
	scalars, scalarConds    []int
	n, tensorLeaves, leaves int
}

var (
	unaryOps  = []Op{Neg, Square, Sqrt, Abs, Sign, Floor, Square, Sqrt, Exp, Log, Tanh}
	binaryOps = []Op{Add, Sub, Mul, Div, Add, Sub, Mul, Add, Mul, Min, Max, Pow}
	compares  = []Op{Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual}
)

func newRandom(s *source) *random {
	r := &random{typ: DType(s.pick(2)), n: edges[s.pick(len(edges))], tensorLeaves: 1 + s.pick(6)}
	size := int(r.typ.size())
	r.memory = aligned(r.tensorLeaves*(r.n+9)*size + 64*8)
	at := 0
	for i := range r.tensorLeaves {
		r.arrays = append(r.arrays, view(r.memory[at:], r.n, r.typ))
		r.tensors = append(r.tensors, r.b.Add(Node{Op: Leaf, Elem: true, Type: r.typ, Len: r.n, Leaf: i}))
		at += (r.n + s.pick(9)) * size
	}
	r.end, at = at, (at+7)&^7
	for i := range 3 {
		r.arrays = append(r.arrays, view(r.memory[at+8*i:], 1, Float64))
		r.scalars = append(r.scalars, r.b.Add(Node{Op: Leaf, Leaf: r.tensorLeaves + i}))
	}
	r.leaves = len(r.arrays)
	for _, c := range []float64{0, 1, -1, .1, 3} {
		r.scalars = append(r.scalars, r.b.Add(Node{Op: Const, Bits: math.Float64bits(c)}))
	}
	for range s.pick(40) {
		r.grow(s)
	}
	used := map[int]bool{}
	for range 1 + s.pick(5) {
		st := Store{Cond: -1}
		if s.pick(4) == 0 {
			st.Leaf, st.Node = r.tensorLeaves+s.pick(3), s.of(r.scalars)
		} else {
			st.Leaf, st.Node = s.pick(r.tensorLeaves), r.tensors[len(r.tensors)-1-s.pick(min(len(r.tensors), 8))]
		}
		if len(r.scalarConds) > 0 && s.pick(4) == 0 {
			st.Cond = s.of(r.scalarConds)
		}
		if !used[st.Leaf] {
			used[st.Leaf] = true
			r.stores = append(r.stores, st)
		}
	}
	r.fill(s)
	return r
}

func view(b []byte, n int, t DType) Array {
	if t == Float32 {
		return Of(of[float32](b)[:n])
	}
	return Of(of[float64](b)[:n])
}

func (s *source) of(nodes []int) int { return nodes[s.pick(len(nodes))] }

// grow adds a node of what is there, mostly of what is new.
func (r *random) grow(s *source) {
	tensor := func() int {
		if s.pick(3) == 0 {
			return s.of(r.tensors)
		}
		return r.tensors[len(r.tensors)-1-s.pick(min(3, len(r.tensors)))]
	}
	any := func() int {
		if s.pick(3) == 0 {
			return s.of(r.scalars)
		}
		return tensor()
	}
	elem := Node{Elem: true, Type: r.typ, Len: r.n}
	add := func(list *[]int, n Node, op Op, args ...int) {
		n.Op = op
		copy(n.Args[:], args)
		*list = append(*list, r.b.Add(n))
	}
	switch s.pick(12) {
	case 0:
		add(&r.tensors, elem, unaryOps[s.pick(len(unaryOps))], tensor())
	case 1:
		add(&r.conds, elem, IsFinite, tensor())
	case 2:
		add(&r.conds, elem, compares[s.pick(len(compares))], tensor(), any())
	case 3:
		if len(r.conds) > 0 {
			switch s.pick(4) {
			case 0:
				add(&r.conds, elem, Not, s.of(r.conds))
			case 1:
				add(&r.conds, elem, []Op{And, Or}[s.pick(2)], s.of(r.conds), s.of(r.conds))
			case 2:
				add(&r.scalarConds, Node{}, All, s.of(r.conds))
			case 3:
				r.tensors = append(r.tensors, s.of(r.conds)) // a condition is a number too
			}
		}
	case 4:
		if len(r.conds) > 0 {
			add(&r.tensors, elem, Select, s.of(r.conds), any(), tensor())
		}
	case 5:
		if len(r.scalarConds) > 0 {
			add(&r.tensors, elem, Select, s.of(r.scalarConds), tensor(), any())
		}
	case 6:
		add(&r.scalars, Node{}, []Op{Sum, SumSquares, MaxAll}[s.pick(3)], tensor())
	case 7:
		add(&r.scalarConds, Node{}, compares[s.pick(len(compares))], s.of(r.scalars), s.of(r.scalars))
	case 8:
		add(&r.scalars, Node{}, binaryOps[s.pick(len(binaryOps))], s.of(r.scalars), s.of(r.scalars))
	case 9: // what the fused instructions are made of
		scale := func(x int) int {
			return r.b.Add(Node{Op: Mul, Elem: true, Type: r.typ, Len: r.n, Args: [3]int{x, s.of(r.scalars)}})
		}
		add(&r.tensors, elem, []Op{Add, Sub}[s.pick(2)], scale(tensor()), []int{tensor(), scale(tensor())}[s.pick(2)])
	case 10:
		root := r.b.Add(Node{Op: Sqrt, Elem: true, Type: r.typ, Len: r.n, Args: [3]int{tensor()}})
		add(&r.tensors, elem, Add, root, s.of(r.scalars))
		if s.pick(2) == 0 {
			add(&r.tensors, elem, Div, tensor(), r.tensors[len(r.tensors)-1])
		}
	default:
		x, y := tensor(), any()
		if s.pick(2) == 0 {
			x, y = y, x
		}
		if r.b.nodes[x].Elem || r.b.nodes[y].Elem {
			add(&r.tensors, elem, binaryOps[s.pick(len(binaryOps)-s.pick(2))], x, y)
		}
	}
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
	for _, a := range r.arrays {
		for i := range a.Len {
			if a.Type == Float32 {
				Elements[float32](a)[i] = float32(next())
			} else {
				Elements[float64](a)[i] = next()
			}
		}
	}
}

// run runs the program twice on a machine, and gives what is in memory then.
func (r *random) run(t *testing.T, m *machine) []byte {
	before := slices.Clone(r.memory)
	p := (&Builder{nodes: r.b.nodes}).program(r.stores, nil, m)
	for range 2 {
		require.NoError(t, p.Run(r.arrays, nil))
	}
	after := slices.Clone(r.memory)
	copy(r.memory, before)
	return after
}

// sameNumbers compares memory bit for bit; any NaN equals any other.
func sameNumbers(a, b []byte, t DType) error {
	if t == Float32 {
		return same(of[float32](a), of[float32](b))
	}
	return same(of[float64](a), of[float64](b))
}

func same[T float](x, y []T) error {
	for i := range x {
		a, b := float64(x[i]), float64(y[i])
		if math.Float64bits(a) != math.Float64bits(b) && (a == a || b == b) {
			return fmt.Errorf("element %d is %v, not %v", i, b, a)
		}
	}
	return nil
}

// FuzzProgram compares every machine, with one worker and with two, with the plain Go loops.
func FuzzProgram(f *testing.F) {
	f.Add([]byte{0, 10, 4, 1, 2, 3, 20, 9, 1, 2, 3, 10, 1, 2, 9, 4, 5})
	for i := range 64 {
		seed := make([]byte, 120)
		x := uint32(i + 1)
		for k := range seed {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			seed[k] = byte(x >> 8)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRandom(&source{data})
		want := r.run(t, nil)
		for _, m := range machines() {
			for _, procs := range []int{1, 2} {
				old := runtime.GOMAXPROCS(procs)
				got := r.run(t, m)
				runtime.GOMAXPROCS(old)
				require.NoError(t, sameNumbers(want[:r.end], got[:r.end], r.typ), "%s, %d workers: %s", m.name, procs, r)
				for i := r.tensorLeaves; i < r.leaves; i++ {
					at := int(uintptr(r.arrays[i].Ptr) - address(r.memory))
					require.NoError(t, sameNumbers(want[at:at+8], got[at:at+8], Float64), "%s, %d workers, scalar %d: %s", m.name, procs, i, r)
				}
			}
		}
	})
}

// String lists the program.
func (r *random) String() string {
	s := fmt.Sprintf("\n%v elements of type %v\n", r.n, r.typ)
	for i, n := range r.b.nodes {
		s += fmt.Sprintf("%d: %v elem=%v args=%v leaf=%d const=%v\n", i, n.Op, n.Elem, n.Args[:n.Op.Arity()], n.Leaf, math.Float64frombits(n.Bits))
	}
	return s + fmt.Sprintf("%+v", r.stores)
}
