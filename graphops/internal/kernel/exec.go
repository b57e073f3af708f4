package kernel

import "unsafe"

const (
	strip = 256   // elements that the Go loops handle at a time
	chunk = 32768 // elements that a worker takes at a time: many blocks, and few enough that goroutines can be preempted
)

// work is the passes of one dispatch, cut into parts for workers.
type work struct {
	parts     []part
	groups    []int     // part groups[i] is the first of group i, which one worker does
	addresses []uintptr // of the arrays and stores of every part that runs on the machine
}

// part is a range of a pass, within one chunk. lay copies what the machine needs of the pass, whose own memory is scattered.
type part struct {
	pass   *pass
	lo, hi int
	typ    DType
	idle   bool
	fixed  bool  // it always has this form, and reads no whole values
	form   *form // nil: plain Go
	at     int   // where its addresses begin
}

func newWork(passes []*pass) *work {
	w := &work{}
	w.cut(passes)
	return w
}

// cut makes the parts anew.
func (w *work) cut(passes []*pass) {
	w.parts, w.groups = w.parts[:0], w.groups[:0]
	size := chunk
	for _, ps := range passes {
		for lo := 0; lo < ps.n; lo += chunk {
			hi := min(lo+chunk, ps.n)
			if size += hi - lo; size > chunk {
				w.groups = append(w.groups, len(w.parts))
				size = hi - lo
			}
			w.parts = append(w.parts, part{pass: ps, lo: lo, hi: hi, typ: ps.typ})
		}
	}
	w.groups = append(w.groups, len(w.parts))
}

// count is the number of groups.
func (w *work) count() int { return len(w.groups) - 1 }

// sizes says how much memory a worker needs.
type sizes struct {
	f32, f64   int // elements of the Go loops
	rows       int // of a variant
	scalars    int
	code       int // instructions
	accumulate int // reductions of a pass
}

func (s sizes) max(o sizes) sizes {
	return sizes{max(s.f32, o.f32), max(s.f64, o.f64), max(s.rows, o.rows), max(s.scalars, o.scalars), max(s.code, o.code), max(s.accumulate, o.accumulate)}
}

// worker is the memory with which one goroutine works.
type worker struct {
	sizes   sizes
	f32     []float32
	f64     []float64
	code    []record
	last    *form // whose scalars are in code
	rows    []row
	scalars []uint64
	scratch []byte // a strip for each row, aligned to cache lines
	sums    []accumulator
}

func (w *worker) reserve(need sizes) {
	if w.sizes.max(need) == w.sizes {
		return
	}
	s := w.sizes.max(need)
	*w = worker{sizes: s, f32: make([]float32, s.f32), f64: make([]float64, s.f64), code: make([]record, s.code), rows: make([]row, s.rows),
		scalars: make([]uint64, s.scalars), scratch: aligned(s.rows * stripBytes), sums: make([]accumulator, s.accumulate)}
}

// aligned makes n bytes that begin at a cache line.
func aligned(n int) []byte {
	b := make([]byte, n+63)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & 63
	return b[skip:][:n]
}

// do runs the active passes of w, on several goroutines if there is enough to do.
func (p *Program) do(w *work) {
	p.self.reserve(p.sizes)
	if w.count() >= minGroups && workers.run(p, w) {
		return
	}
	for g := range w.count() {
		p.group(&p.self, w, g)
	}
}

// lay prepares parts for the code and the arrays of their passes in this run. For the work of the stores, what it did mostly
// holds for the next run too.
func (p *Program) lay(w *work) {
	w.addresses = w.addresses[:0]
	for i := range w.parts {
		t := &w.parts[i]
		ps := t.pass
		t.idle, t.fixed, t.form, t.at = !p.active(ps), false, nil, len(w.addresses)
		if t.idle || ps.now == nil {
			continue
		}
		t.form, t.fixed = ps.now.form, len(ps.conditions) == 0 && len(ps.now.needs) == 0
		for _, r := range ps.now.refs {
			if r.kind == rowArray || r.kind == rowStore {
				w.addresses = append(w.addresses, uintptr(p.array(ps, r).Ptr))
			}
		}
	}
}

// group does group g of w.
func (p *Program) group(wk *worker, w *work, g int) {
	wk.last = nil
	parts := w.parts[w.groups[g]:w.groups[g+1]]
	for k := range parts {
		t := &parts[k]
		switch {
		case t.idle:
		case t.form != nil:
			next := &parts[min(k+1, len(parts)-1)]
			if next.form != t.form {
				next = t
			}
			p.accelerated(wk, t, w.addresses[t.at:], w.addresses[next.at:])
		case t.pass.random != nil:
			t.pass.random.fill(t.lo, t.hi)
		case t.pass.typ == Float32:
			interpret(p, wk, wk.f32, t)
		default:
			interpret(p, wk, wk.f64, t)
		}
	}
}

// interpret does a part in plain Go.
func interpret[T float](p *Program, wk *worker, regs []T, t *part) {
	ps := t.pass
	for c := 0; c < len(ps.consts); c += 2 {
		v, r := T(p.value[ps.consts[c]]), regs[ps.consts[c+1]*strip:][:strip]
		for i := range r {
			r[i] = v
		}
	}
	for i, r := range ps.sums {
		wk.sums[i].reset(p.nodes[r.node].Op)
	}
	for lo := t.lo; lo < t.hi; lo += strip {
		hi := min(lo+strip, t.hi)
		compute(regs, ps, p.arrays, lo, hi)
		for i := range ps.stores {
			dst := Elements[T](p.array(ps, rowRef{rowStore, i}))
			copy(dst[lo:hi], at(regs, p.arrays, ps.stores[i].reg, lo, hi))
		}
		for i := range ps.sums {
			add(&wk.sums[i], lo, at(regs, p.arrays, ps.sums[i].reg, lo, hi))
			if hi%block == 0 || hi == t.hi {
				wk.sums[i].endBlock()
			}
		}
	}
	for i, r := range ps.sums {
		r.partial[t.lo/chunk] = wk.sums[i].result()
	}
}

// at is the strip [lo,hi) of an operand.
func at[T float](regs []T, in []Array, o operand, lo, hi int) []T {
	if o.kind == array {
		return Elements[T](in[o.index])[lo:hi]
	}
	return regs[o.index*strip:][:hi-lo]
}

func compute[T float](regs []T, ps *pass, in []Array, lo, hi int) {
	for i := range ps.steps {
		s := &ps.steps[i]
		if s.op == Const { // filled once
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
