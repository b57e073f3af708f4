package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// primitives are what instructions on two values are called for.
var primitives = map[string]Op{"Neg": Neg, "Square": Square, "Sqrt": Sqrt, "Abs": Abs, "Sign": Sign, "Floor": Floor, "IsFinite": IsFinite, "Not": Not,
	"Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div, "Min": Min, "Max": Max, "Less": Less, "LessEqual": LessEqual, "Greater": Greater,
	"GreaterEqual": GreaterEqual, "Equal": Equal, "NotEqual": NotEqual, "And": And, "Or": Or}

func primitive[T float](op Op, args ...T) T {
	d, x := make([]T, 1), append(args, 0, 0)
	apply(op, d, x[:1], x[1:2], x[2:3])
	return d[0]
}

// computed is what an instruction leaves in accumulator a, by its documentation; x and y are of rows, s are scalars.
func computed[T float](op opcode, a, b, x, y T, s [3]T) T {
	name, scalar := strings.CutSuffix(strings.TrimSuffix(opcodeNames[op], "Store"), "Scalar")
	if scalar {
		if x, y = s[0], s[0]; name == "Else" || name == "Then" {
			panic("a row and a scalar: see the caller")
		}
	}
	sum := func(p, q T) T { return p + q }
	root := func(z T) T { return primitive(Sqrt, z) }
	if p, ok := primitives[name]; ok {
		return primitive(p, a, x)
	}
	if p, ok := strings.CutSuffix(name, "Acc"); ok {
		name, x = p, b
	}
	if p, ok := strings.CutPrefix(name, "Rev"); ok {
		return primitive(primitives[p], x, a)
	}
	if p, ok := strings.CutSuffix(name, "Rows"); ok {
		return primitive(primitives[p], x, y)
	}
	switch name {
	case "Add", "Sub", "Mul", "Div":
		return primitive(primitives[name], a, x)
	case "Move":
		return b
	case "Load":
		return x
	case "", "PutAside", "Fetch", "Sum", "SumSquares":
		return a
	case "Else":
		return primitive(Select, x, a, y)
	case "Then":
		return primitive(Select, x, y, a)
	case "ScaleRow":
		return x * s[0]
	case "Axpby":
		return sum(T(b*s[0]), T(x*s[1]))
	case "SquareAxpby":
		return sum(T(primitive(Square, b)*s[0]), T(x*s[1]))
	case "AddScaled":
		return sum(a, T(b*s[0]))
	case "AddScaledRow":
		return sum(a, T(x*s[0]))
	case "AddTo":
		return sum(x, T(a*s[0]))
	case "SubFrom":
		return primitive(Sub, x, T(a*s[0]))
	case "SubFromScaled":
		return primitive(Sub, T(x*s[0]), a)
	case "OverRoot":
		return a / sum(root(b), s[0])
	case "OverScaledRoot":
		return a / sum(root(T(b*s[1])), s[0])
	case "ScaledOverScaledRoot":
		return a * s[2] / sum(root(T(b*s[1])), s[0])
	case "SqrtAdd":
		return sum(root(a), s[0])
	case "ScaleSqrtAdd":
		return sum(root(T(a*s[0])), s[1])
	}
	panic(name)
}

// bench is a few strips of memory on which one instruction is tried.
type bench[T float] struct {
	m       *machine
	typ     DType
	n       int // elements
	in, out [][]T
	x, y    []T
	target  []T
	scalars [3]T
	lanes   [lanes]float64
}

func newBench[T float](m *machine, typ DType) *bench[T] {
	n := 3 * m.strip / int(typ.size())
	b := &bench[T]{m: m, typ: typ, n: n, x: make([]T, n), y: make([]T, n), target: make([]T, n)}
	for range m.accumulators {
		b.in, b.out = append(b.in, make([]T, n)), append(b.out, make([]T, n))
	}
	return b
}

func (b *bench[T]) fill(rng *rand.Rand, logical bool) {
	next := func() T {
		switch k := rng.IntN(8); {
		case logical:
			return T(k % 2)
		case k == 0:
			return T(specials[rng.IntN(len(specials))])
		case k == 1:
			return T(math.Float64frombits(rng.Uint64()))
		}
		return T(rng.NormFloat64())
	}
	for _, list := range append(slices.Clone(b.in), b.x, b.y, b.target, b.scalars[:]) {
		for i := range list {
			list[i] = next()
		}
	}
	for i := range b.lanes {
		b.lanes[i] = rng.NormFloat64()
	}
}

func rowOf[T any](x []T, mask uintptr) row {
	return row{uintptr(unsafe.Pointer(unsafe.SliceData(x))), mask}
}

// run loads all accumulators, executes one instruction, and stores them all, in every strip: the first by the mask, if there is one.
func (b *bench[T]) run(op opcode, i, j int, mask uint64) {
	const all = ^uintptr(0)
	var code []record
	do := func(op opcode, i, j int, rows ...row) {
		r := record{handler: b.m.handler(b.typ, op, i, j)}
		copy(r.rows[:], rows)
		for k, s := range b.scalars {
			if b.typ == Float32 {
				r.scalars[k] = uint64(math.Float32bits(float32(s)))
			} else {
				r.scalars[k] = math.Float64bits(float64(s))
			}
		}
		code = append(code, r)
	}
	for k := range b.in {
		do(opLoad, k, k, rowOf(b.in[k], all))
	}
	switch name := opcodeNames[op]; {
	case op == opSum || op == opSumSquares:
		do(op, i, j, rowOf(b.lanes[:], 0))
	case op == opStore || op == opPutAside:
		do(op, i, j, rowOf(b.target, all))
	case strings.HasSuffix(name, "Store"):
		do(op, i, j, rowOf(b.x, all), rowOf(b.target, all))
	default:
		do(op, i, j, rowOf(b.x, all), rowOf(b.y, all))
	}
	for k := range b.out {
		do(opPutAside, k, k, rowOf(b.out[k], all))
	}
	do(opEnd, 0, 0)
	from := uintptr(0)
	if mask != 0 {
		from = uintptr(b.m.strip)
	}
	b.m.run(&code[0], from, uintptr(3*b.m.strip), 0, mask)
}

func equal[T float](x, y T) bool {
	return x != x && y != y || math.Float64bits(float64(x)) == math.Float64bits(float64(y))
}

// check tries an instruction and looks at all that it may have changed.
func (b *bench[T]) check(t *testing.T, op opcode, i, j int, mask uint64) {
	target, sums := slices.Clone(b.target), b.lanes
	b.run(op, i, j, mask)
	what := emission(b.m, b.typ, op, i, j)
	size := int(b.typ.size())
	for e := range b.n {
		for k := range b.in {
			want := b.in[k][e]
			switch {
			case k != i:
			case op == opElseScalar:
				want = primitive(Select, b.x[e], b.in[i][e], b.scalars[0])
			case op == opThenScalar:
				want = primitive(Select, b.x[e], b.scalars[0], b.in[i][e])
			default:
				want = computed(op, b.in[i][e], b.in[j][e], b.x[e], b.y[e], b.scalars)
			}
			require.True(t, equal(want, b.out[k][e]), "%s: element %d of accumulator %d is %v, not %v", what, e, k, b.out[k][e], want)
		}
		if strings.HasSuffix(opcodeNames[op], "Store") || op == opPutAside {
			strip := b.m.strip / size
			bit := e % strip / (64 / size) * 16
			bit += e % strip % (64 / size)
			if mask == 0 || e >= strip || !b.m.masked || op == opPutAside || mask>>bit&1 == 1 {
				target[e] = b.out[i][e]
			}
		}
		require.True(t, equal(target[e], b.target[e]), "%s: element %d of the target is %v, not %v", what, e, b.target[e], target[e])
		if f := float64(b.in[i][e]); op == opSum {
			sums[e%lanes] += f
		} else if op == opSumSquares {
			sums[e%lanes] += float64(f * f)
		}
	}
	for l := range sums {
		require.True(t, equal(sums[l], b.lanes[l]), "%s: lane %d", what, l)
	}
}

// Every handler of every machine does what its instruction's documentation says, and nothing else.
func TestHandlers(t *testing.T) {
	for _, m := range machines() {
		testHandlers[float64](t, m, Float64)
		testHandlers[float32](t, m, Float32)
	}
}

func testHandlers[T float](t *testing.T, m *machine, typ DType) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := newBench[T](m, typ)
	for op := range opEnd {
		for i := range m.accumulators {
			for j := range m.accumulators {
				if opcodeForms[op] == 0 && i != j || opcodeForms[op] == 3 && i+j > 0 || m.handler(typ, op, i, j) == 0 {
					continue
				}
				b.fill(rng, strings.HasPrefix(opcodeNames[op], "And") || strings.HasPrefix(opcodeNames[op], "Or"))
				b.check(t, op, i, j, 0)
				b.check(t, op, i, j, rng.Uint64()|1)
			}
		}
	}
}

// A mask has bits for the last elements of a strip alone.
func TestLastMask(t *testing.T) {
	for _, size := range []int{4, 8} {
		for n := range 256/size + 1 {
			for e := range 256 / size {
				per := 64 / size
				require.Equal(t, e >= 256/size-n, last(n, size)>>(e/per*16+e%per)&1 == 1)
			}
		}
	}
}
