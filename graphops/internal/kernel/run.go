package kernel

import (
	"fmt"
	"math"
)

// IntegerError says that a value does not fit the integer that it is stored in.
type IntegerError struct {
	Store int
	Value float64
}

func (e IntegerError) Error() string {
	return fmt.Sprintf("store %d: %v is not an integer", e.Store, e.Value)
}

// RefusedError says that the value of a check was not 0.
type RefusedError struct {
	Check int
	Value float64
}

func (e RefusedError) Error() string { return fmt.Sprintf("check %d: %v is not 0", e.Check, e.Value) }

// Run computes the value of every store from the arrays as they are, then writes all of them. in follows the leaf
// indices. span gives the memory of an array that in[leaf] is only a copy of; nil stands for the arrays' own. An error
// leaves everything unwritten.
func (p *Program) Run(in []Array, span func(leaf int) (lo, hi uintptr)) error {
	clear(p.known)
	p.ready = nil
	p.arrays = in
	if len(p.whole) > 0 {
		p.all = append(p.all[:0], in...)
		for _, w := range p.whole {
			w.done = false
			p.all = append(p.all, w.value)
		}
		p.arrays = p.all
	}
	defer p.release()
	for k, i := range p.checks {
		if v := p.scalar(i); v != 0 {
			clear(p.written)
			return RefusedError{k, v}
		}
	}
	for i, s := range p.stores {
		p.written[i] = s.Cond < 0 || p.scalar(s.Cond) != 0
	}
	for _, i := range p.scalars {
		s := p.stores[i]
		if !p.written[i] {
			continue
		}
		if v := p.scalar(s.Node); in[s.Leaf].Type == Int64 && (v != math.Trunc(v) || math.Abs(v) > 1<<53) {
			return IntegerError{i, v}
		}
	}
	for i := range p.work.parts {
		t := &p.work.parts[i]
		if t.lo == 0 && !(t.fixed && t.form == p.ready) && p.active(t.pass) {
			p.prepare(t.pass)
		}
	}
	if err := p.place(span); err != nil {
		return err
	}
	p.do(p.work)
	for _, s := range p.plan.waiting {
		dst := p.arrays[s.array]
		Copy(dst, s.staging(dst))
	}
	for _, i := range p.scalars {
		if p.written[i] {
			s := p.stores[i]
			p.arrays[s.Leaf].setScalar(p.value[s.Node])
		}
	}
	return nil
}

// release lets go of the caller's arrays.
func (p *Program) release() {
	clear(p.all)
	p.arrays = nil
}

// Written reports whether the last run wrote store i.
func (p *Program) Written(i int) bool { return p.written[i] }

// active reports whether the pass has work in this run. The stores of a pass have one condition.
func (p *Program) active(ps *pass) bool {
	return ps.store < 0 || p.written[ps.store]
}

// scalar evaluates node i once per run.
func (p *Program) scalar(i int) float64 {
	if p.known[i] {
		return p.value[i]
	}
	n := p.nodes[i]
	v := p.value[i : i+1]
	switch {
	case n.Op == Const:
		v[0] = math.Float64frombits(n.Bits)
	case n.Op == Leaf:
		v[0] = p.arrays[n.Leaf].Scalar()
	case p.batchOf[i] != nil:
		p.reduce(p.batchOf[i])
		return v[0]
	default:
		var a [3]float64
		for k := range n.Op.Arity() {
			a[k] = p.scalar(n.Args[k])
		}
		switch n.Op {
		case Sum, MaxAll, All: // of a scalar: itself
			v[0] = a[0]
		case SumSquares:
			v[0] = float64(a[0] * a[0])
		default:
			apply(n.Op, v, a[:1], a[1:2], a[2:])
		}
	}
	p.known[i] = true
	return v[0]
}

// reduce evaluates a batch of reductions.
func (p *Program) reduce(b *batch) {
	for _, ps := range b.passes {
		p.prepare(ps)
	}
	p.lay(b.work)
	p.do(b.work)
	for _, ps := range b.passes {
		for i := range ps.sums {
			r := &ps.sums[i]
			p.value[r.node], p.known[r.node] = total(p.nodes[r.node].Op, r.partial), true
		}
	}
}

// prepare evaluates what a pass reads besides bound arrays, and chooses its code.
func (p *Program) prepare(ps *pass) {
	if now := p.variant(ps); now != ps.now {
		ps.now, p.moved = now, true
	}
	if ps.now != nil {
		if ps.now.form == p.ready && len(ps.now.needs) == 0 {
			return
		}
		p.ready = ps.now.form
		for _, i := range ps.now.scalars {
			p.scalar(i)
		}
		for _, k := range ps.now.needs {
			p.evaluate(k)
		}
		return
	}
	for c := 0; c < len(ps.consts); c += 2 {
		p.scalar(ps.consts[c])
	}
	for _, k := range ps.needs {
		p.evaluate(k)
	}
}
