package solvers

import "math"

// adamMisses are steps m ← β₁·m, v ← β₂·v, w ← d·w − a·m/(g·√v + ε). After k of them
//
//	w = D·w − m·Σⱼ dⱼ₊₁·…·dₖ·aⱼ·Mⱼ/(gⱼ·√Vⱼ·√v + ε)
//
// where Mⱼ and Vⱼ are the products of the first j of β₁ and β₂. With z = 1/√v the sum is a series in ε·z whose coefficients do not
// depend on the element. They are added up step by step, for each number of steps that a row may have made, until Mⱼ is
// negligible. Where ε·z is not small, the steps are made one by one.
type adamMisses struct {
	steps []adamStep
	since []adamSum
	live  int // the first whose sum still grows
}

type adamStep struct{ d, a, g, eps, b1, b2 float64 }

const (
	adamTerms  = 9
	adamBound  = 1. / 64 // of ε·z/(g·√V); to the power of adamTerms it is 2⁻⁵⁴
	negligible = 1e-20   // what is left of m
)

type adamSum struct {
	d, m, v float64
	worst   float64 // of ε/(g·√V)
	terms   [adamTerms]float64
}

func (m *adamMisses) slots() []string { return []string{"m", "v"} }

func (m *adamMisses) reset() { m.steps, m.since, m.live = m.steps[:0], m.since[:0], 0 }

func (m *adamMisses) step(told []float64) {
	s := adamStep{told[0], told[1], told[2], told[3], told[4], told[5]}
	m.steps = append(m.steps, s)
	m.since = append(m.since, adamSum{d: 1, m: 1, v: 1})
	for i := range m.since {
		r := &m.since[i]
		r.d, r.m, r.v = r.d*s.d, r.m*s.b1, r.v*s.b2
		if s.d != 1 {
			for k := range r.terms {
				r.terms[k] *= s.d
			}
		}
		if i < m.live {
			continue
		}
		if r.m < negligible {
			m.live = i + 1
			continue
		}
		g := s.g * math.Sqrt(r.v)
		x, q := s.a*r.m/g, s.eps/g
		r.worst = max(r.worst, q)
		for k := range r.terms {
			r.terms[k] += x
			x *= -q
		}
	}
}

func (m *adamMisses) apply(n int, w []float64, slots [][]float64) {
	r := &m.since[n]
	ms, vs := slots[0], slots[1]
	most := adamBound / r.worst // +Inf without ε
	for i, v := range vs {
		x := ms[i]
		if x != 0 {
			if z := 1 / math.Sqrt(v); z < most {
				sum := r.terms[adamTerms-1]
				for k := adamTerms - 2; k >= 0; k-- {
					sum = sum*z + r.terms[k]
				}
				w[i] = r.d*w[i] - x*z*sum
			} else {
				w[i] = m.replay(n, w[i], x, v)
			}
		} else {
			w[i] *= r.d
		}
		ms[i], vs[i] = x*r.m, v*r.v
	}
}

// replay makes the steps of one element.
func (m *adamMisses) replay(n int, w, x, v float64) float64 {
	least := math.Abs(x) * negligible
	for _, s := range m.steps[n:] {
		x *= s.b1
		v *= s.b2
		if w *= s.d; math.Abs(x) >= least {
			w -= s.a * x / (s.g*math.Sqrt(v) + s.eps)
		}
	}
	return w
}
