package solvers

// linearMisses are steps (w, v) ← (a·w + b·v, c·w + d·v): products of matrices.
type linearMisses struct {
	momentum bool
	since    []linearStep // by the number of steps made: the product of the others
}

type linearStep struct{ a, b, c, d float64 }

func (m *linearMisses) slots() []string {
	if m.momentum {
		return []string{"momentum"}
	}
	return nil
}

func (m *linearMisses) reset() { m.since = m.since[:0] }

func (m *linearMisses) step(told []float64) {
	s := linearStep{told[0], told[1], told[2], told[3]}
	m.since = append(m.since, linearStep{1, 0, 0, 1})
	for i := range m.since {
		p := &m.since[i]
		*p = linearStep{s.a*p.a + s.b*p.c, s.a*p.b + s.b*p.d, s.c*p.a + s.d*p.c, s.c*p.b + s.d*p.d}
	}
}

func (m *linearMisses) apply(n int, w []float64, slots [][]float64) {
	p := m.since[n]
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
