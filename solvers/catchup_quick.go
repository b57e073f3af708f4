package solvers

import "math"

// degree of the polynomials that are precise enough for float32.
const degree = 9

// monomials turn values at the nodes into the coefficients of a polynomial in u = 2y−1: that of Chebyshev's polynomials up to degree.
var monomials = func() (m [degree + 1][nodes]float64) {
	before, now := [degree + 1]float64{1}, [degree + 1]float64{0, 1} // the coefficients of T₀ and T₁
	for j := range degree + 1 {
		for q := range nodes {
			c := 2 * math.Cos(float64(j)*math.Pi*(float64(q)+.5)/nodes) / nodes
			if j == 0 {
				c /= 2
			}
			for k, t := range before {
				m[k][q] += t * c
			}
		}
		next := [degree + 1]float64{}
		for k := range degree {
			next[k+1] += 2 * now[k]
		}
		for k := range next {
			next[k] -= before[k]
		}
		before, now = now, next
	}
	return m
}()

// shorten fills in short, from the sums at the nodes.
func (r *beliefSum) shorten() {
	for f := range r.short {
		for k := range r.short[f] {
			sum := 0.
			for q, x := range r.at[f] {
				sum += monomials[k][q] * x
			}
			r.short[f][k] = sum
		}
	}
}

func (m *beliefMisses) quick(n int, w []float32, slots [][]float32) bool {
	const precise, little = 1e-8, 1e-10 // relative errors, and what is negligible of m
	if !m.since[n].exact {
		return false
	}
	if first := &m.since[n]; !first.settled {
		first.shorten()
		first.settled = n < m.live
	}
	r := m.missed(n)
	scale := 1.
	if c := n / chapter; c < len(m.later) {
		scale = m.later[c].d
	}
	var least float64 // of Q
	if a := r.at[0][0]; a != 0 {
		least = max(math.Cbrt(r.rest/(precise*a)), math.Pow(r.worst*1e7, 2))
	}
	ms, vs := slots[0][:len(w)], slots[1][:len(w)]
	for i, w32 := range w {
		x, v := float64(ms[i]), float64(vs[i])
		mm := r.kappa * x * x
		q := v + mm
		switch {
		case x == 0:
			w[i] = float32(r.d * float64(w32))
		case q < least:
			w[i] = float32(m.replay(n, float64(w32), x, v, little))
		default:
			root := 1 / math.Sqrt(q)
			inverse := root * root
			u := 2*mm*inverse - 1
			a, b, c := r.short[0][degree], r.short[1][degree], r.short[2][degree]
			for k := degree - 1; k >= 0; k-- {
				a, b, c = a*u+r.short[0][k], b*u+r.short[1][k], c*u+r.short[2][k]
			}
			w[i] = float32(r.d*float64(w32) - x*(r.p+scale*root*(a-inverse*(b/2-inverse*c*3/8))))
		}
		ms[i], vs[i] = float32(x*r.m), float32(r.v*v+r.c*x*x+r.e)
	}
	return true
}
