package rowmath

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both loops give the same bits, whatever the length, and refuse the same rows.
func TestDecayed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 40; n++ {
		make3 := func() (w, m, v []float32) {
			for range n {
				w, m, v = append(w, rng.Float32()-.5), append(m, rng.Float32()-.5), append(v, rng.Float32()+.01)
			}
			return w, m, v
		}
		w, m, v := make3()
		c := &Decay{.99, .1, .5, [6]float32{.01, -.002, .0003, .1, -.05, .006}, .01}
		a, b, d := append([]float32{}, w...), append([]float32{}, m...), append([]float32{}, v...)
		require.True(t, Decayed(w, m, v, c))
		decayed(a, b, d, c)
		require.Equal(t, [][]float32{a, b, d}, [][]float32{w, m, v})
		for i := range n {
			for _, bad := range []float32{.001, 0, -1, float32(nan())} {
				old := v[i]
				v[i] = bad
				c.Least = .002
				require.False(t, Decayed(w, m, v, c), "%d of %d: %v", i, n, bad)
				v[i] = old
			}
		}
		require.Equal(t, [][]float32{a, b, d}, [][]float32{w, m, v})
	}
	one := []float32{1}
	for _, short := range [][3][]float32{{one, nil, one}, {one, one, nil}, {nil, one, one}} {
		require.False(t, Decayed(short[0], short[1], short[2], &Decay{}))
	}
	require.Equal(t, []float32{1}, one)
}

func nan() float64 { var zero float64; return zero / zero }
