//go:build cbench

package cloop

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

// The loops are an honest yardstick only while they are vectorised.
func TestVectorised(t *testing.T) { both(t, func(t *testing.T) { require.NoError(t, Check()) }) }

// both tests the loops for this processor, and those for AVX2 where it has that.
func both(t *testing.T, test func(t *testing.T)) {
	t.Run("native", test)
	if cpu.X86.HasAVX2 {
		AVX2 = true
		defer func() { AVX2 = false }()
		t.Run("avx2", test)
	}
}

// The numbers are those of the formula, at a length that leaves a remainder for the scalar end of the loop.
func TestLoops(t *testing.T) { both(t, testLoops) }

func testLoops(t *testing.T) {
	const n = 37
	var w, m, v, g [n]float64
	var w32, m32, v32, g32 [n]float32
	for i := range n {
		w[i], m[i], v[i], g[i] = float64(i), float64(i)-9, float64(i)/8, 3-float64(i)/16
		w32[i], m32[i], v32[i], g32[i] = float32(w[i]), float32(m[i]), float32(v[i]), float32(g[i])
	}
	k := [7]float64{0.9, 0.1, 0.99, 0.01, 2, 1e-8, 0.25}
	var k32 [7]float32
	for i := range k {
		k32[i] = float32(k[i])
	}
	want := w
	for i := range n {
		mi, vi := m[i]*0.9+g[i]*0.1, v[i]*0.99+g[i]*g[i]*0.01
		want[i] -= 0.25 * mi / (math.Sqrt(vi*2) + 1e-8)
	}
	Adam64(w[:], m[:], v[:], g[:], &k)
	Adam32(w32[:], m32[:], v32[:], g32[:], &k32)
	for i := range n {
		require.InDelta(t, want[i], w[i], 1e-12)
		require.InDelta(t, want[i], w32[i], 1e-4)
	}
	x, y := []float32{1, 2, 3}, []float32{4, 5, 6}
	Momentum32(x, y, []float32{1, 1, 1}, &[2]float32{0.5, 2})
	require.Equal(t, []float32{3, 3.5, 4}, y)
	require.Equal(t, []float32{-5, -5, -5}, x)
	require.Panics(t, func() { Momentum32(x, y, []float32{1}, &[2]float32{}) })
}
