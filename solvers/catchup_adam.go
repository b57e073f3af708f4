package solvers

import (
	"math"

	"optimop/internal/rowmath"
)

// adamMisses are steps m ← β₁·m, v ← β₂·v, w ← d·w − a·m/(g·√v + ε). After k of them
//
//	w = D·w − m·Σⱼ dⱼ₊₁·…·dₖ·aⱼ·Mⱼ/(gⱼ·√Vⱼ·√v + ε)
//
// where Mⱼ and Vⱼ are the products of the first j of β₁ and β₂. With z = 1/√v the sum is a series in ε·z whose coefficients do
// not depend on the element. They are added up step by step, for each number of steps that a row may have made, until Mⱼ is
// negligible. Where ε·z is not small, the steps are made one by one.
type adamMisses struct {
	steps []adamStep
	since []adamSum
	live  int // the first whose sum still grows
	later []momentsLater
	decay rowmath.Decay // scratch memory
}

// momentsLater are the products of d, β₁ and β₂ after a chapter was closed, which it is once the sums in it grow no more; e is for
// AdaBelief.
type momentsLater struct{ d, m, v, e float64 }

type adamStep struct{ d, a, g, eps, b1, b2 float64 }

const (
	adamTerms  = 9
	adamBound  = 1. / 64 // of ε·z/(g·√V); to the power of adamTerms it is 2⁻⁵⁴
	quickBound = 1. / 24 // the same with six terms, for float32
	negligible = 1e-20   // what is left of m
)

type adamSum struct {
	d, m, v float64
	worst   float64 // of ε/(g·√V)
	terms   [adamTerms]float64
}

func (m *adamMisses) slots() []string { return []string{"m", "v"} }

func (m *adamMisses) reset() {
	m.steps, m.since, m.live, m.later = m.steps[:0], m.since[:0], 0, m.later[:0]
}

func (m *adamMisses) step(told []float64) (full bool) {
	s := adamStep{told[0], told[1], told[2], told[3], told[4], told[5]}
	m.steps = append(m.steps, s)
	m.since = append(m.since, adamSum{d: 1, m: 1, v: 1})
	for c := range m.later {
		l := &m.later[c]
		*l = momentsLater{l.d * s.d, l.m * s.b1, l.v * s.b2, 0}
	}
	for i := len(m.later) * chapter; i < len(m.since); i++ {
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
	if m.live >= (len(m.later)+1)*chapter {
		m.later = append(m.later, momentsLater{1, 1, 1, 0})
	}
	return len(m.since) == 256*chapter || len(m.since)-m.live > 16*chapter
}

// missed is the sum for a row that has made n steps.
func (m *adamMisses) missed(n int) adamSum {
	r := m.since[n]
	if c := n / chapter; c < len(m.later) {
		l := &m.later[c]
		r.d, r.m, r.v = r.d*l.d, r.m*l.m, r.v*l.v
		if l.d != 1 {
			for k := range r.terms {
				r.terms[k] *= l.d
			}
		}
	}
	return r
}

func (m *adamMisses) apply(n int, w []float64, slots [][]float64) {
	r := m.missed(n)
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

func (m *adamMisses) quick(n int, w []float32, slots [][]float32) bool {
	r := &m.since[n]
	l := momentsLater{1, 1, 1, 0}
	if c := n / chapter; c < len(m.later) {
		l = m.later[c]
	}
	m.decay.W, m.decay.M, m.decay.V = float32(r.d*l.d), float32(r.m*l.m), float32(r.v*l.v)
	m.decay.Least = float32(r.worst * r.worst / (quickBound * quickBound))
	for k := range m.decay.Terms {
		m.decay.Terms[k] = float32(r.terms[k] * l.d)
	}
	return rowmath.Decayed(w, slots[0], slots[1], &m.decay) || m.still(w, slots[0], slots[1])
}

// still is quick for a row that does not move, as it never had a gradient.
func (m *adamMisses) still(w, ms, vs []float32) bool {
	for _, x := range ms {
		if x != 0 {
			return false
		}
	}
	vs = vs[:len(w)]
	for i := range w {
		w[i] *= m.decay.W
		vs[i] *= m.decay.V
	}
	return true
}
