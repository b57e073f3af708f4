package solvers

import "math"

// beliefMisses are steps of AdaBelief, m ← β₁·m, v ← β₂·v + (1−β₂)·m² + e, w ← d·w − a·m/(g·√v + ε) − p·m. After j of them
// v is Vⱼ·v + Cⱼ·m² + Eⱼ, so that with Q = v + κ·m² and y = κ·m²/Q
//
//	w = D·w − m·P − m/√Q·Σⱼ aⱼ·Mⱼ/(gⱼ·√(Vⱼ·(1−y) + Cⱼ/κ·y + Eⱼ/Q) + ε/√Q)
//
// where D, P, M, V, C and E do not depend on the element. The sum is a smooth function of y, which is kept at Chebyshev's nodes,
// and a series in the small numbers Eⱼ/Q and ε/√Q. Where these are not small, the steps are made one by one.
type beliefMisses struct {
	steps []beliefStep
	since []beliefSum
	live  int
	later []momentsLater
	sum   beliefSum // scratch memory
	kappa float64
	exact bool // the nodes are close enough
	b1    float64
	b2    float64
}

type beliefStep struct{ d, a, g, eps, b1, b2, inner, p float64 }

const nodes = 20

// beliefSum is what the rows have missed that made a number of steps.
type beliefSum struct {
	d, m, v, c, e, p float64
	kappa            float64
	exact            bool
	worst            float64 // of ε/(g·√L)
	settled          bool    // short is of the whole sum
	short            [3][degree + 1]float64
	rest             float64 // the sum of the terms of third order in E
	at               [4][nodes]float64
}

// chebyshev are nodes in (0,1) and the weights of the barycentric formula.
var chebyshev = func() (c struct{ y, weight [nodes]float64 }) {
	for k := range nodes {
		angle := math.Pi * (float64(k) + .5) / nodes
		c.y[k], c.weight[k] = (1+math.Cos(angle))/2, math.Sin(angle)
		if k%2 == 1 {
			c.weight[k] = -c.weight[k]
		}
	}
	return c
}()

func (m *beliefMisses) slots() []string { return []string{"m", "s"} }

func (m *beliefMisses) reset() {
	m.steps, m.since, m.live, m.later = m.steps[:0], m.since[:0], 0, m.later[:0]
}

func (m *beliefMisses) step(told []float64) (full bool) {
	s := beliefStep{told[0], told[1], told[2], told[3], told[4], told[5], told[6], told[7]}
	if s.b1 != m.b1 || s.b2 != m.b2 {
		m.b1, m.b2 = s.b1, s.b2
		m.scale()
	}
	m.steps = append(m.steps, s)
	m.since = append(m.since, beliefSum{d: 1, m: 1, v: 1, kappa: m.kappa, exact: m.exact})
	for c := range m.later {
		l := &m.later[c]
		*l = momentsLater{l.d * s.d, l.m * s.b1, l.v * s.b2, l.e*s.b2 + s.inner}
	}
	for i := len(m.later) * chapter; i < len(m.since); i++ {
		r := &m.since[i]
		r.d, r.m, r.v = r.d*s.d, r.m*s.b1, r.v*s.b2
		r.c, r.e = r.c*s.b2+(1-s.b2)*r.m*r.m, r.e*s.b2+s.inner
		r.p = r.p*s.d + s.p*r.m
		if s.d != 1 {
			for k := range r.at {
				for q := range r.at[k] {
					r.at[k][q] *= s.d
				}
			}
		}
		switch {
		case i < m.live:
		case r.m < negligible:
			m.live = i + 1
		case s.a != 0 && r.exact:
			r.add(s)
		}
	}
	if m.live >= (len(m.later)+1)*chapter {
		m.later = append(m.later, momentsLater{1, 1, 1, 0})
	}
	return len(m.since) == 64*chapter || len(m.since)-m.live > 16*chapter
}

// missed lets a sum make the steps after its chapter was closed.
func (m *beliefMisses) missed(n int) *beliefSum {
	r := &m.since[n]
	if c := n / chapter; c < len(m.later) {
		l := m.later[c]
		m.sum = *r
		r = &m.sum
		r.d, r.m, r.v, r.c, r.e, r.p = r.d*l.d, r.m*l.m, r.v*l.v, r.c*l.v, r.e*l.v+l.e, r.p*l.d
		if l.d != 1 {
			for k := range r.at {
				for q := range r.at[k] {
					r.at[k][q] *= l.d
				}
			}
		}
	}
	return r
}

// add adds a step at all nodes.
func (r *beliefSum) add(s beliefStep) {
	c := r.c / r.kappa
	a := s.a * r.m / s.g
	for q, y := range chebyshev.y {
		h := 1 / math.Sqrt(r.v*(1-y)+c*y)
		l, x := r.e*h*h, a*h
		r.at[0][q] += x
		r.at[1][q] += x * l
		r.at[2][q] += x * l * l
		r.at[3][q] += x * h * (s.eps / s.g)
	}
	h := 1 / math.Sqrt(min(r.v, c))
	r.worst = max(r.worst, s.eps/s.g*h)
	r.rest += a * h * math.Pow(r.e*h*h, 3)
}

// scale chooses κ, and looks whether the nodes are close enough for the functions 1/√(V·(1−y) + C/κ·y).
func (m *beliefMisses) scale() {
	x, v, c, least, most := 1., 1., 0., math.Inf(1), 0.
	for x > negligible && v > 0 {
		x, v = x*m.b1, v*m.b2
		c = c*m.b2 + (1-m.b2)*x*x
		least, most = min(least, c/v), max(most, c/v)
	}
	m.kappa = math.Sqrt(most) * math.Sqrt(least)
	m.exact = m.kappa > 0 && m.kappa < math.Inf(1)
	for _, ratio := range []float64{most / m.kappa, least / m.kappa} {
		var f [nodes]float64
		of := func(y float64) float64 { return 1 / math.Sqrt(1-y+ratio*y) }
		for q, y := range chebyshev.y {
			f[q] = of(y)
		}
		for y := 0.; y <= 1; y += 1. / 64 {
			weights, sum := barycentric(y)
			got := 0.
			for q := range f {
				got += weights[q] * f[q]
			}
			if !(math.Abs(got/sum-of(y)) < 1e-13*of(y)) {
				m.exact = false
			}
		}
	}
}

// barycentric are the weights of the nodes for a y, and their sum.
func barycentric(y float64) (w [nodes]float64, sum float64) {
	for q, at := range chebyshev.y {
		if y == at {
			w = [nodes]float64{}
			w[q] = 1
			return w, 1
		}
		w[q] = chebyshev.weight[q] / (y - at)
		sum += w[q]
	}
	return w, sum
}

func (m *beliefMisses) apply(n int, w []float64, slots [][]float64) {
	r := m.missed(n)
	ms, vs := slots[0], slots[1]
	for i, v := range vs {
		x := ms[i]
		if x == 0 {
			w[i] *= r.d
		} else if sum, ok := r.sum(x, v); ok {
			w[i] = r.d*w[i] - x*sum
		} else {
			w[i] = m.replay(n, w[i], x, v, negligible)
		}
		ms[i], vs[i] = x*r.m, r.v*v+r.c*x*x+r.e
	}
}

// sum is what m is multiplied by; ok is false where the series is not good enough.
func (r *beliefSum) sum(x, v float64) (s float64, ok bool) {
	mm := r.kappa * x * x
	q := v + mm
	root := math.Sqrt(q)
	if !r.exact || !(r.worst < 1e-7*root) || !(r.rest < 1e-13*q*q*q*r.at[0][0]) {
		return r.p, r.exact && r.at[0][0] == 0
	}
	weights, total := barycentric(mm / q)
	var at [4]float64
	for k := range weights {
		for j := range at {
			at[j] += weights[k] * r.at[j][k]
		}
	}
	return r.p + (at[0]-at[1]/(2*q)+at[2]*3/(8*q*q)-at[3]/root)/(root*total), true
}

// replay makes the steps of one element, but no more than where so little is left of m.
func (m *beliefMisses) replay(n int, w, x, v, little float64) float64 {
	least := math.Abs(x) * little
	for _, s := range m.steps[n:] {
		x *= s.b1
		v = v*s.b2 + (1-s.b2)*x*x + s.inner
		if w *= s.d; math.Abs(x) >= least {
			w -= x * (s.a/(s.g*math.Sqrt(v)+s.eps) + s.p)
		}
	}
	return w
}
