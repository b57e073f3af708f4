package solvers

// chapter is how many steps are added to together: see linearMisses.
const chapter = 1024

// linearMisses are steps (w, v) ← (a·w + b·v, c·w + d·v): products of matrices. They are added step by step to what is known for each
// number of steps that a row may have made; but for those of a chapter that is closed, only once for all.
type linearMisses struct {
	momentum bool
	since    []linearStep // by the number of steps made: the product of the others, until the chapter was closed
	later    []linearStep // by chapter that is closed: the product of the steps after that
}

type linearStep struct{ a, b, c, d float64 }

func (m *linearMisses) slots() []string {
	if m.momentum {
		return []string{"momentum"}
	}
	return nil
}

func (m *linearMisses) reset() { m.since, m.later = m.since[:0], m.later[:0] }

func (s linearStep) after(p linearStep) linearStep {
	return linearStep{s.a*p.a + s.b*p.c, s.a*p.b + s.b*p.d, s.c*p.a + s.d*p.c, s.c*p.b + s.d*p.d}
}

func (m *linearMisses) step(told []float64) (full bool) {
	s := linearStep{told[0], told[1], told[2], told[3]}
	m.since = append(m.since, linearStep{1, 0, 0, 1})
	for i := len(m.later) * chapter; i < len(m.since); i++ {
		m.since[i] = s.after(m.since[i])
	}
	for c := range m.later {
		m.later[c] = s.after(m.later[c])
	}
	if len(m.since) == (len(m.later)+1)*chapter {
		m.later = append(m.later, linearStep{1, 0, 0, 1})
	}
	return len(m.since) == 256*chapter
}

// missed is the product of the steps that a row has missed that has made n of them.
func (m *linearMisses) missed(n int) linearStep {
	if c := n / chapter; c < len(m.later) {
		return m.later[c].after(m.since[n])
	}
	return m.since[n]
}

func (m *linearMisses) apply(n int, w []float64, slots [][]float64) {
	p := m.missed(n)
	if !m.momentum {
		for i := range w {
			w[i] *= p.a
		}
		return
	}
	for i, v := range slots[0] {
		w[i], slots[0][i] = p.a*w[i]+p.b*v, p.c*w[i]+p.d*v
	}
}

func (m *linearMisses) quick(n int, w []float32, slots [][]float32) bool {
	p := m.missed(n)
	a, b, c, d := float32(p.a), float32(p.b), float32(p.c), float32(p.d)
	if !m.momentum {
		for i := range w {
			w[i] *= a
		}
		return true
	}
	s := slots[0][:len(w)]
	for i, x := range w {
		v := s[i]
		w[i], s[i] = a*x+b*v, c*x+d*v
	}
	return true
}
