package kernel

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forMachines runs a test on every machine of this processor.
func forMachines(t *testing.T, test func(t *testing.T, m *machine)) {
	for _, m := range machines() {
		t.Run(m.name, func(t *testing.T) { test(t, m) })
	}
}

// long is too many elements for code that fetches the next arrays.
const long = small/4 + 1

// tensors builds expressions over float32 arrays of n elements.
type tensors struct {
	Builder
	n int
}

func (b *tensors) leaf(i int) int {
	return b.Add(Node{Op: Leaf, Elem: true, Type: Float32, Len: b.n, Leaf: i})
}

func (b *tensors) op(op Op, args ...int) int {
	n := Node{Op: op, Elem: true, Type: Float32, Len: b.n}
	copy(n.Args[:], args)
	return b.Add(n)
}

func (b *tensors) scalar(v float64) int { return b.Add(Node{Op: Const, Bits: math.Float64bits(v)}) }

func (b *tensors) number(leaf int) int { return b.Add(Node{Op: Leaf, Leaf: leaf}) }

// listing is the code that the only pass of a program ran last.
func listing(p *Program) string {
	var names []string
	for _, in := range p.passes[0].now.code {
		names = append(names, opcodeNames[in.op])
	}
	return strings.Join(names, " ")
}

func floats(n, k int) []Array {
	var in []Array
	for i := range k {
		x := make([]float32, n)
		for j := range x {
			x[j] = float32(j%7+i) / 4
		}
		in = append(in, Of(x))
	}
	return in
}

// Adam is six instructions for each strip, of which two store what they compute, and the step stores the parameter.
func TestFusion(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		b := &tensors{n: long}
		scale := func(x int, s float64) int { return b.op(Mul, x, b.scalar(s)) }
		w, mo, v, g := b.leaf(0), b.leaf(1), b.leaf(2), b.leaf(3)
		m1 := b.op(Add, scale(mo, .9), scale(g, .1))
		v1 := b.op(Add, scale(v, .99), scale(b.op(Square, g), .01))
		u := b.op(Div, scale(m1, 1.5), b.op(Add, b.op(Sqrt, scale(v1, 1.2)), b.scalar(1e-8)))
		w1 := b.op(Sub, w, b.op(Mul, b.scalar(.001), u))
		p := b.program([]Store{{1, m1, -1}, {2, v1, -1}, {0, w1, -1}}, nil, m)
		require.NoError(t, p.Run(floats(long, 4), nil))
		require.Equal(t, "Load AxpbyStore SquareAxpbyStore ScaledOverScaledRoot SubFromStore End", listing(p))
	})
}

// A scalar condition chooses code: what is not chosen is not computed. Both outcomes are kept.
func TestScalarConditionChoosesCode(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		b := &tensors{n: long}
		x, flag := b.leaf(0), b.number(1)
		root := b.op(Sqrt, x)
		p := b.program([]Store{{0, b.op(Select, flag, root, b.op(Add, x, x)), -1}}, nil, m)
		in := append(floats(long, 1), Of([]float64{1}))
		run := func(flag float64) string {
			Elements[float64](in[1])[0] = flag
			require.NoError(t, p.Run(in, nil))
			return listing(p)
		}
		require.Equal(t, "Load Sqrt Store End", run(1))
		require.Equal(t, "Load AddStore End", run(0))
		require.Equal(t, "Load Sqrt Store End", run(math.NaN()))
		require.Len(t, p.passes[0].variants, 2)
		require.Zero(t, testing.AllocsPerRun(10, func() { mustRun(p, in) }))
	})
}

func mustRun(p *Program, in []Array) {
	if err := p.Run(in, nil); err != nil {
		panic(err)
	}
}

// What the machine has no instruction for runs in plain Go, and only where it is chosen.
func TestPlainGoWhereNeeded(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		b := &tensors{n: long}
		x, flag := b.leaf(0), b.number(1)
		p := b.program([]Store{{0, b.op(Select, flag, b.op(Exp, x), b.op(Square, x)), -1}}, nil, m)
		in := append(floats(long, 1), Of([]float64{0}))
		mustRun(p, in)
		require.NotNil(t, p.passes[0].now)
		Elements[float64](in[1])[0] = 1
		before := Elements[float32](in[0])[3]
		mustRun(p, in)
		require.Nil(t, p.passes[0].now)
		require.Equal(t, float32(math.Exp(float64(before))), Elements[float32](in[0])[3])
	})
}

// More values than accumulators are alive at once: some are put aside and come back.
func TestPutAside(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		const k = 12
		b := &tensors{n: 130}
		var roots []int
		for i := range k {
			roots = append(roots, b.op(Sqrt, b.leaf(i)))
		}
		sum, product := roots[0], roots[0]
		for _, r := range roots[1:] {
			sum = b.op(Add, sum, r)
		}
		for i := range roots {
			product = b.op(Mul, product, roots[k-1-i])
		}
		stores := []Store{{0, sum, -1}, {1, product, -1}}
		in, want := floats(130, k), floats(130, k)
		mustRun(b.program(stores, nil, nil), want)
		p := b.program(stores, nil, m)
		mustRun(p, in)
		require.Contains(t, listing(p), "PutAside")
		require.Equal(t, Elements[float32](want[0]), Elements[float32](in[0]))
		require.Equal(t, Elements[float32](want[1]), Elements[float32](in[1]))
	})
}

// The code of short arrays brings those of the next pass into the cache, whatever that is: the same code, other code, nothing.
func TestFetch(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		const k = 9
		var b Builder
		var stores []Store
		for i := range k {
			n := &tensors{Builder: b, n: 100 - i%2}
			op := Add
			if i == 4 {
				op = Sqrt
			}
			stores = append(stores, Store{i, n.op(op, n.leaf(i), n.leaf(k+i)), -1})
			b = n.Builder
		}
		arrays := func() []Array {
			var in []Array
			for i := range 2 * k {
				in = append(in, floats(100-i%k%2, 1)...)
			}
			return in
		}
		in, want := arrays(), arrays()
		mustRun(b.program(stores, nil, nil), want)
		p := b.program(stores, nil, m)
		mustRun(p, in)
		require.Contains(t, listing(p), "Fetch")
		for i := range in {
			require.Equal(t, Elements[float32](want[i]), Elements[float32](in[i]))
		}
	})
}

// The tables of the assembly have as many handlers as the list of opcodes says.
func TestTables(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		for _, table := range m.tables {
			require.Len(t, table, m.first[opEnd]+1)
		}
	})
}

func TestMaskOfLastElements(t *testing.T) {
	for _, c := range []struct {
		n, size int
		mask    uint64
	}{
		{1, 4, 0x8000_0000_0000_0000},
		{16, 4, 0xffff_0000_0000_0000},
		{17, 4, 0xffff_8000_0000_0000},
		{63, 4, 0xffff_ffff_ffff_fffe},
		{1, 8, 0x0080_0000_0000_0000},
		{8, 8, 0x00ff_0000_0000_0000},
		{31, 8, 0x00ff_00ff_00ff_00fe},
	} {
		require.Equal(t, c.mask, last(c.n, c.size), "%d elements of %d bytes", c.n, c.size)
	}
}

// The environment variable picks a machine, and plain Go where there is no such machine.
func TestDetect(t *testing.T) {
	t.Setenv("OPTIMOP_KERNEL", "")
	if ms := machines(); len(ms) > 0 {
		require.Equal(t, ms[0].name, detect().name)
		t.Setenv("OPTIMOP_KERNEL", ms[len(ms)-1].name)
		require.Equal(t, ms[len(ms)-1].name, detect().name)
	}
	for _, other := range []string{"go", "AVX-9"} { // the second with a warning
		t.Setenv("OPTIMOP_KERNEL", other)
		require.Nil(t, detect())
	}
}

// An expression that is so deep that compiling it would need too much stack runs in plain Go.
func TestTooDeep(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		b := &tensors{n: 3}
		x := b.leaf(0)
		for range maxSteps {
			x = b.op(Neg, x)
		}
		p := b.program([]Store{{0, x, -1}}, nil, m)
		in := floats(3, 1)
		mustRun(p, in)
		require.NotNil(t, p.passes[0].now)
		p = b.program([]Store{{0, b.op(Neg, x), -1}}, nil, m)
		mustRun(p, in)
		require.Nil(t, p.passes[0].now)
		require.Equal(t, []float32{0, -.25, -.5}, Elements[float32](in[0]))
	})
}

// Passes of one form that read whole values: each run computes them anew, for each pass.
func TestLikePassesWithWholeValues(t *testing.T) {
	forMachines(t, func(t *testing.T, m *machine) {
		const side = 8
		b := &tensors{n: side * side}
		var stores []Store
		for k := range 3 {
			x := b.leaf(k)
			turned := b.Add(Node{Op: Transpose, Elem: true, Type: Float32, Len: b.n, Args: [3]int{x}, Dims: Dims(side, side)})
			stores = append(stores, Store{k, b.op(Add, x, turned), -1})
		}
		p, plain := b.program(stores, nil, m), b.program(stores, nil, nil)
		in, want := floats(b.n, 3), floats(b.n, 3)
		for range 3 {
			mustRun(p, in)
			mustRun(plain, want)
			for k := range in {
				require.Equal(t, want[k].bytes(), in[k].bytes())
			}
		}
	})
}
