package kernel

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The known answers of Random123's file kat_vectors: counter, key and result.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, k := range [][10]uint32{
		{0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
		{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
	} {
		a, b, c, d := philox(k[0], k[1], k[2], k[3], k[4], k[5])
		require.Equal(t, k[6:], []uint32{a, b, c, d})
	}
}

// Seed, stream, draw and place each make other bits; 0 and -0 are one seed.
func TestRandomDependsOnAll(t *testing.T) {
	seen := map[[4]uint32]bool{}
	for _, seed := range []float64{0, 1, -1, 2, 1 << 53, .5, math.NaN(), math.Inf(1)} {
		for _, stream := range []string{"", "w", "w0", "w1", "0w"} {
			for _, draw := range []float64{0, 1, 2, 1 << 40} {
				r := NewRandom(seed, Stream(stream), draw)
				for _, place := range []int{0, 1, 1 << 33} {
					a, b, c, d := r.Words(place)
					require.False(t, seen[[4]uint32{a, b, c, d}])
					seen[[4]uint32{a, b, c, d}] = true
				}
			}
		}
	}
	require.Equal(t, NewRandom(0, 1, 0), NewRandom(math.Copysign(0, -1), 1, math.Copysign(0, -1)))
	require.Equal(t, NewRandom(math.NaN(), 1, 0), NewRandom(math.Float64frombits(0xfff8000000000000), 1, 0))
	require.Equal(t, uint64(0xaf63dc4c8601ec8c), Stream("a")) // of the hash's reference tables
}

// Uniform numbers are within 0 and 1, and the normal distribution of a quantile is what it is the quantile of.
func TestQuantile(t *testing.T) {
	require.Equal(t, 0x1p-53, Uniform(0, 0))
	require.Equal(t, 1-0x1p-53, Uniform(math.MaxUint32, math.MaxUint32))
	require.Equal(t, .5+0x1p-53, Uniform(1<<31, 0))
	require.InDelta(t, 2, TruncatedNormalOf(Uniform(math.MaxUint32, math.MaxUint32)), 1e-14)
	require.InDelta(t, -2, TruncatedNormalOf(Uniform(0, 0)), 1e-14)
	require.InDelta(t, 0, TruncatedNormalOf(.5+0x1p-53), 1e-15)
	for p, want := range map[float64]float64{.975: 1.9599639845400542355, .95: 1.6448536269514727148, .9: 1.2815515655446004,
		.75: .67448975019608174320, .6: .25334710313579978} { // of tables
		require.InEpsilon(t, want, quantile(p-.5), 1e-15)
		require.InEpsilon(t, -want, quantile(.5-p), 1e-15)
	}
	for u := 1. / 4096; u < 1; u += 1. / 4096 {
		x := TruncatedNormalOf(u)
		require.InDelta(t, .5+(u-.5)*within2, math.Erfc(-x/math.Sqrt2)/2, 3e-16)
		require.InDelta(t, -x, TruncatedNormalOf(1-u), 0)
	}
}

// The numbers of a program: their moments, the same with any number of workers, none where they are not needed.
func TestTruncatedNormalProgram(t *testing.T) {
	const n = 5*chunk + 7
	run := func(workers int, typ DType, seed, draw, when float64) (out []float64) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		var b Builder
		leaf := func(i int) int { return b.Add(Node{Op: Leaf, Leaf: i}) }
		x := b.Add(Node{Op: TruncatedNormal, Elem: true, Type: typ, Len: n, Args: [3]int{leaf(1), leaf(2)}, Dims: "w"})
		p := b.Program([]Store{{Leaf: 0, Node: x, Cond: leaf(3)}}, nil)
		f32, f64 := make([]float32, n), make([]float64, n)
		target := Of(f64)
		if typ == Float32 {
			target = Of(f32)
		}
		in := []Array{target, Of([]float64{seed}), Of([]float64{draw}), Of([]float64{when})}
		require.NoError(t, p.Run(in, nil))
		require.Equal(t, when != 0, p.whole[0].done, "computed only where it is needed")
		require.Zero(t, testing.AllocsPerRun(3, func() { _ = p.Run(in, nil) }))
		for _, v := range f32 {
			f64 = append(f64, float64(v))
		}
		if typ == Float32 {
			return f64[n:]
		}
		return f64[:n]
	}
	full := run(1, Float64, 1, 1, 1)
	require.Equal(t, full, run(3, Float64, 1, 1, 1))
	for i, x := range run(3, Float32, 1, 1, 1) {
		require.Equal(t, float64(float32(full[i])), x)
	}
	require.Equal(t, make([]float64, n), run(2, Float64, 1, 1, 0))
	var mean, square, fourth, next, other float64
	second := run(2, Float64, 1, 2, 1)
	for i, x := range full {
		require.LessOrEqual(t, math.Abs(x), 2.0)
		mean += x / n
		square += x * x / n
		fourth += x * x * x * x / n
		next += x * full[(i+1)%n] / n
		other += x * second[i] / n
	}
	// Of the normal distribution cut at ±2, with c = 2φ(2)/(Φ(2)-Φ(-2)): variance 1 - 2c, fourth moment 3 - 14c.
	c := 2 * math.Exp(-2) / math.Sqrt(2*math.Pi) / within2
	sigma := 1 / math.Sqrt(n)
	require.InDelta(t, .8796, math.Sqrt(1-2*c), 5e-5)
	require.InDelta(t, 0, mean, 4*sigma)
	require.InDelta(t, 1-2*c, square, 4*sigma)
	require.InDelta(t, 3-14*c, fourth, 10*sigma)
	require.InDelta(t, 0, next, 4*sigma)
	require.InDelta(t, 0, other, 4*sigma)
}

func BenchmarkTruncatedNormal(b *testing.B) {
	r := NewRandom(1, 1, 1)
	x := make([]float32, chunk)
	for b.Loop() {
		fill(&r, x, 0, chunk)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunk, "ns/element")
}
