// Package rowmath has loops that rows of tables need and that plain Go is too slow for.
package rowmath

import "math"

// Decay are the coefficients of Decayed.
type Decay struct {
	W, M, V float32
	Terms   [6]float32
	Least   float32 // the smallest v
}

// Decayed sets, for each element, with z = 1/√v,
//
//	w ← W·w − m·z·(Terms₀ + z·(Terms₁ + z·(Terms₂ + …)))        m ← M·m        v ← V·v
//
// If a v is less than Least, or zero, or the lengths differ, it does nothing and reports false.
func Decayed(w, m, v []float32, c *Decay) bool {
	if len(m) != len(w) || len(v) != len(w) { // the assembly trusts them
		return false
	}
	n := 0
	if fast {
		n = len(w) &^ 7
	}
	for _, x := range v[n:] {
		if !(x >= c.Least && x > 0) {
			return false
		}
	}
	if n > 0 && !decayed8(&w[0], &m[0], &v[0], n, c) {
		return false
	}
	decayed(w[n:], m[n:], v[n:], c)
	return true
}

// decayed is Decayed without the check. Nothing is fused.
func decayed(w, m, v []float32, c *Decay) {
	for i, x := range v {
		z := 1 / float32(math.Sqrt(float64(x)))
		s := c.Terms[len(c.Terms)-1]
		for k := len(c.Terms) - 2; k >= 0; k-- {
			s = float32(s*z) + c.Terms[k]
		}
		s = float32(s*z) * m[i]
		w[i] = float32(c.W*w[i]) - s
		m[i] *= c.M
		v[i] *= c.V
	}
}
