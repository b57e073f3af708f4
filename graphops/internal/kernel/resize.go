package kernel

import "slices"

// newPass makes a pass over arrays like that of a node. One whose length changes is empty until Resize.
func (p *Program) newPass(n Node) *pass {
	ps := &pass{store: -1, typ: n.Type, n: n.Len, size: n.Size}
	if n.Size != 0 {
		ps.n, p.elastic = 0, true
	}
	return ps
}

// Arrays is how many arrays a run binds.
func (p *Program) Arrays() int { return p.leaves }

// Resize gives the nodes of size i the length lengths[i] from the next run on. It allocates only where a length grows.
func (p *Program) Resize(lengths []int) {
	if !p.elastic {
		return
	}
	if stretch(p.passes, lengths) {
		p.work.cut(p.passes)
		p.moved = true
	}
	for _, b := range p.batches {
		if stretch(b.passes, lengths) {
			b.work.cut(b.passes)
		}
	}
}

// stretch reports whether a pass has another length now.
func stretch(passes []*pass, lengths []int) (changed bool) {
	for _, ps := range passes {
		if ps.size == 0 || ps.n == lengths[ps.size] {
			continue
		}
		ps.n, changed = lengths[ps.size], true
		chunks := (ps.n + chunk - 1) / chunk
		for i := range ps.sums {
			r := &ps.sums[i]
			r.partial = slices.Grow(r.partial[:0], chunks)[:chunks]
		}
	}
	return changed
}
