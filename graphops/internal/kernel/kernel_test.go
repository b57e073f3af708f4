package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// vector adds a float64 leaf of n elements.
func vector(b *Builder, leaf, n int) int {
	return b.Add(Node{Op: Leaf, Elem: true, Len: n, Leaf: leaf})
}

func TestNodesAreShared(t *testing.T) {
	var b Builder
	x := vector(&b, 0, 3)
	one := b.Add(Node{Op: Const, Bits: math.Float64bits(1)})
	sum := b.Add(Node{Op: Add, Elem: true, Len: 3, Args: [3]int{x, one}})
	require.Equal(t, sum, b.Add(Node{Op: Add, Elem: true, Len: 3, Args: [3]int{vector(&b, 0, 3), one}}))
	require.NotEqual(t, sum, b.Add(Node{Op: Add, Elem: true, Len: 3, Args: [3]int{one, x}}))
	require.Len(t, b.nodes, 4)
}

// Stores that share work, or of which one reads what another writes, become one pass; strangers do not.
func TestPasses(t *testing.T) {
	var b Builder
	w, m, g, x, y := vector(&b, 0, 9), vector(&b, 1, 9), vector(&b, 2, 9), vector(&b, 3, 9), vector(&b, 4, 9)
	m1 := b.Add(Node{Op: Add, Elem: true, Len: 9, Args: [3]int{m, g}})
	w1 := b.Add(Node{Op: Sub, Elem: true, Len: 9, Args: [3]int{w, m}})
	x1 := b.Add(Node{Op: Sub, Elem: true, Len: 9, Args: [3]int{x, y}})
	p := b.Program([]Store{{0, w1, -1}, {3, x1, -1}, {1, m1, -1}}, nil)
	require.Len(t, p.passes, 2)
	require.Equal(t, []int{0, 2}, []int{p.passes[0].stores[0].store, p.passes[0].stores[1].store})
	in := []Array{Of(make([]float64, 9)), Of(ones(9)), Of(ones(9)), Of(ones(9)), Of(ones(9))}
	require.NoError(t, p.Run(in, nil))
	require.Equal(t, []float64{-1, 2, 1, 0, 1}, []float64{in[0].Scalar(), in[1].Scalar(), in[2].Scalar(), in[3].Scalar(), in[4].Scalar()})
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// Only what has to wait is staged: a swap is one pass over registers, and overlapping memory waits.
func TestStaging(t *testing.T) {
	var b Builder
	x, y := vector(&b, 0, 600), vector(&b, 1, 600)
	p := b.Program([]Store{{0, y, -1}, {1, x, -1}}, nil)
	back := make([]float64, 1300)
	for i := range back {
		back[i] = float64(i)
	}
	swap := slices.Clone(back)
	require.NoError(t, p.Run([]Array{Of(swap[:600]), Of(swap[700:])}, nil))
	require.Equal(t, slices.Concat(back[700:], back[600:700], back[:600]), swap)
	require.False(t, p.passes[0].stores[0].wait)

	require.Equal(t, ConflictError{0, 1}, p.Run([]Array{Of(swap[:600]), Of(swap[599:1199])}, nil))

	var c Builder
	shift := c.Program([]Store{{0, vector(&c, 1, 600), -1}}, nil)
	for _, lo := range []int{0, 1, 255, 256, 257} {
		for _, down := range []bool{true, false} {
			s := slices.Clone(back)
			from, to := lo, 0
			if !down {
				from, to = 0, lo
			}
			require.NoError(t, shift.Run([]Array{Of(s[to : to+600]), Of(s[from : from+600])}, nil))
			require.Equal(t, back[from:from+600], s[to:to+600])
		}
	}
}

// The sum does not depend on anything but the elements and their number, and long sums stay accurate.
func TestSumOrder(t *testing.T) {
	n := 1 << 20
	x := slices.Repeat([]float64{.1}, n)
	var b Builder
	out := b.Add(Node{Op: Sum, Args: [3]int{vector(&b, 0, n)}})
	p := b.Program([]Store{{1, out, -1}}, nil)
	got := make([]float64, 1)
	require.NoError(t, p.Run([]Array{Of(x), Of(got)}, nil))
	require.InEpsilon(t, .1*float64(n), got[0], 1e-14)
}

func TestIntegers(t *testing.T) {
	var b Builder
	n := b.Add(Node{Op: Leaf, Leaf: 0})
	half := b.Add(Node{Op: Const, Bits: math.Float64bits(.5)})
	p := b.Program([]Store{{0, b.Add(Node{Op: Mul, Args: [3]int{n, half}}), -1}}, nil)
	x := []int64{6}
	require.NoError(t, p.Run([]Array{Of(x)}, nil))
	require.Equal(t, IntegerError{0, 1.5}, p.Run([]Array{Of(x)}, nil))
	require.Equal(t, []int64{3}, x)
	require.EqualError(t, IntegerError{0, 1.5}, "store 0: 1.5 is not an integer")
	require.EqualError(t, ConflictError{0, 1}, "stores 0 and 1 share memory")
}

// The first check that is not 0 counts, NaN too, and then nothing is written.
func TestChecks(t *testing.T) {
	var b Builder
	x := vector(&b, 0, 1000)
	sum := b.Add(Node{Op: Sum, Args: [3]int{x}})
	b.Check(sum)
	b.Check(b.Add(Node{Op: Leaf, Leaf: 1}))
	p := b.Program([]Store{{0, b.Add(Node{Op: Add, Elem: true, Len: 1000, Args: [3]int{x, x}}), -1}, {2, sum, -1}}, nil)
	data, code, out := make([]float64, 1000), []float64{0}, []float64{7}
	in := []Array{Of(data), Of(code), Of(out)}
	for _, c := range []struct {
		first, code float64
		want        error
	}{{0, 0, nil}, {3, 2, RefusedError{0, 3}}, {0, 2, RefusedError{1, 2}}, {0, 0, nil}} {
		data[999], code[0], out[0] = c.first, c.code, 7
		require.Equal(t, c.want, p.Run(in, nil))
		require.Equal(t, c.first, data[999])
		require.Equal(t, c.want != nil, out[0] == 7)
		require.Equal(t, c.want == nil, p.Written(0))
	}
	data[5] = math.NaN()
	var e RefusedError
	require.ErrorAs(t, p.Run(in, nil), &e)
	require.True(t, math.IsNaN(e.Value))
	require.EqualError(t, RefusedError{1, 2}, "check 1: 2 is not 0")
}

// A program in the steady state allocates nothing.
func TestRunAllocatesNothing(t *testing.T) {
	var b Builder
	x := vector(&b, 0, 1000)
	norm := b.Add(Node{Op: SumSquares, Args: [3]int{x}})
	p := b.Program([]Store{{0, b.Add(Node{Op: Div, Elem: true, Len: 1000, Args: [3]int{x, norm}}), norm}, {1, norm, -1}}, nil)
	in := []Array{Of(ones(1000)), Of(make([]float64, 1))}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if err := p.Run(in, nil); err != nil {
			panic(err)
		}
	}))
}
