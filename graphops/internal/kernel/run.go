package kernel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// strip is the number of elements that a pass handles at a time.
const strip = 256

// target is a piece of memory that the run will write.
type target struct {
	lo, hi uintptr
	store  int
	pass   *pass // nil: a scalar
	slot   int   // index into pass.stores
}

// ConflictError says that two stores write the same memory.
type ConflictError struct{ A, B int }

func (e ConflictError) Error() string { return fmt.Sprintf("stores %d and %d share memory", e.A, e.B) }

// IntegerError says that a value does not fit the integer that it is stored in.
type IntegerError struct {
	Store int
	Value float64
}

func (e IntegerError) Error() string {
	return fmt.Sprintf("store %d: %v is not an integer", e.Store, e.Value)
}

// Run computes the value of every store from the arrays as they are, then writes all of them. in follows the leaf
// indices. span gives the memory of an array that in[leaf] is only a copy of; nil stands for the arrays' own. An error
// leaves everything unwritten.
func (p *Program) Run(in []Array, span func(leaf int) (lo, hi uintptr)) error {
	clear(p.known)
	p.arrays = append(p.arrays[:0], in...)
	for _, w := range p.whole {
		w.done = false
		p.arrays = append(p.arrays, w.value)
	}
	in = p.arrays
	for i, s := range p.stores {
		p.written[i] = s.Cond < 0 || p.scalar(in, s.Cond) != 0
	}
	p.targets = p.targets[:0]
	for _, i := range p.scalars {
		if !p.written[i] {
			continue
		}
		s := p.stores[i]
		v := p.scalar(in, s.Node)
		if in[s.Leaf].Type == Int64 && (v != math.Trunc(v) || math.Abs(v) > 1<<53) {
			return IntegerError{i, v}
		}
		p.addTarget(in, span, target{store: i})
	}
	for _, ps := range p.passes {
		for k := range ps.stores {
			ps.stores[k].wait = false
			if p.active(ps) {
				p.addTarget(in, span, target{store: ps.stores[k].store, pass: ps, slot: k})
			}
		}
		if p.active(ps) {
			p.prepare(in, ps)
		}
	}
	if err := p.plan(in); err != nil {
		return err
	}
	for _, ps := range p.passes {
		if p.active(ps) {
			if ps.typ == Float32 {
				store(p, p.f32, ps, in)
			} else {
				store(p, p.f64, ps, in)
			}
		}
	}
	for _, ps := range p.passes {
		for _, s := range ps.stores {
			if s.wait {
				dst := in[p.stores[s.store].Leaf]
				copy(dst.bytes(), staging(s, dst).bytes())
			}
		}
	}
	for _, i := range p.scalars {
		if p.written[i] {
			s := p.stores[i]
			in[s.Leaf].setScalar(p.value[s.Node])
		}
	}
	return nil
}

// Written reports whether the last run wrote store i.
func (p *Program) Written(i int) bool { return p.written[i] }

func (p *Program) active(ps *pass) bool { return p.written[ps.stores[0].store] }

func (p *Program) addTarget(in []Array, span func(int) (lo, hi uintptr), t target) {
	leaf := p.stores[t.store].Leaf
	if span != nil {
		t.lo, t.hi = span(leaf)
	} else {
		t.lo, t.hi = in[leaf].Bytes()
	}
	if t.lo < t.hi {
		p.targets = append(p.targets, t)
	}
}

// plan refuses stores that share memory, and finds the ones that cannot be written in place since something else still has
// to read the old value there.
func (p *Program) plan(in []Array) error {
	slices.SortFunc(p.targets, func(a, b target) int { return cmp.Compare(a.lo, b.lo) })
	for i := 1; i < len(p.targets); i++ {
		if a, b := p.targets[i-1], p.targets[i]; b.lo < a.hi {
			return ConflictError{min(a.store, b.store), max(a.store, b.store)}
		}
	}
	for _, ps := range p.passes {
		if !p.active(ps) {
			continue
		}
		for _, leaf := range ps.leaves {
			lo, hi := in[leaf].Bytes()
			i, _ := slices.BinarySearchFunc(p.targets, lo, func(t target, lo uintptr) int {
				if t.hi <= lo {
					return -1
				}
				return 1
			})
			for ; i < len(p.targets) && p.targets[i].lo < hi; i++ {
				if t := p.targets[i]; t.pass != nil && (t.pass != ps || t.lo != lo) {
					s := &t.pass.stores[t.slot]
					s.wait = true
					if n := (len(in[p.stores[s.store].Leaf].bytes()) + 7) / 8; len(s.staged) < n {
						s.staged = make([]uint64, n)
					}
				}
			}
		}
	}
	return nil
}

// staging is the array of the same form where a new value waits.
func staging(s passStore, dst Array) Array {
	dst.Ptr = unsafe.Pointer(unsafe.SliceData(s.staged))
	return dst
}

// scalar evaluates node i once per run.
func (p *Program) scalar(in []Array, i int) float64 {
	if p.known[i] {
		return p.value[i]
	}
	n := p.nodes[i]
	v := p.value[i : i+1]
	switch {
	case n.Op == Const:
		v[0] = math.Float64frombits(n.Bits)
	case n.Op == Leaf:
		v[0] = in[n.Leaf].Scalar()
	case p.reduce[i] != nil:
		ps := p.reduce[i]
		p.prepare(in, ps)
		if ps.typ == Float32 {
			v[0] = reduce(p, p.f32, ps, n.Op, in)
		} else {
			v[0] = reduce(p, p.f64, ps, n.Op, in)
		}
	default:
		var a [3]float64
		for k := range n.Op.Arity() {
			a[k] = p.scalar(in, n.Args[k])
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

// prepare evaluates what a pass reads besides bound arrays.
func (p *Program) prepare(in []Array, ps *pass) {
	for c := 0; c < len(ps.consts); c += 2 {
		p.scalar(in, ps.consts[c])
	}
	for _, k := range ps.needs {
		p.evaluate(in, k)
	}
}

// at is the strip [lo,hi) of an operand.
func at[T float](regs []T, in []Array, o operand, lo, hi int) []T {
	if o.kind == array {
		return elements[T](in[o.index])[lo:hi]
	}
	return regs[o.index*strip:][:hi-lo]
}

func broadcast[T float](p *Program, regs []T, ps *pass) {
	for c := 0; c < len(ps.consts); c += 2 {
		v, r := T(p.value[ps.consts[c]]), regs[ps.consts[c+1]*strip:][:strip]
		for i := range r {
			r[i] = v
		}
	}
}

func compute[T float](regs []T, ps *pass, in []Array, lo, hi int) {
	for i := range ps.steps {
		s := &ps.steps[i]
		if s.op == Const { // filled once, by broadcast
			continue
		}
		d, a := at(regs, in, s.dst, lo, hi), at(regs, in, s.args[0], lo, hi)
		var b, c []T
		switch s.op.Arity() {
		case 0:
			copy(d, a)
			continue
		case 3:
			c = at(regs, in, s.args[2], lo, hi)
			fallthrough
		case 2:
			b = at(regs, in, s.args[1], lo, hi)
		}
		apply(s.op, d, a, b, c)
	}
}

func store[T float](p *Program, regs []T, ps *pass, in []Array) {
	broadcast(p, regs, ps)
	for lo := 0; lo < ps.n; lo += strip {
		hi := min(lo+strip, ps.n)
		compute(regs, ps, in, lo, hi)
		for _, s := range ps.stores {
			dst := in[p.stores[s.store].Leaf]
			if s.wait {
				dst = staging(s, dst)
			}
			copy(elements[T](dst)[lo:hi], at(regs, in, s.reg, lo, hi))
		}
	}
}

func reduce[T float](p *Program, regs []T, ps *pass, op Op, in []Array) float64 {
	broadcast(p, regs, ps)
	p.acc.reset(op)
	for lo := 0; lo < ps.n; lo += strip {
		hi := min(lo+strip, ps.n)
		compute(regs, ps, in, lo, hi)
		add(&p.acc, at(regs, in, ps.result, lo, hi))
	}
	return p.acc.result()
}
