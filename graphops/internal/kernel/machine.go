package kernel

import (
	"log/slog"
	"math"
	"os"
	"sync"
	"unsafe"
)

// machine is a vector machine written in assembly. Its code is a list of records, each the address of a handler with the
// operands of that handler: a handler does its work on a strip of every array and jumps to the next one's. Values between
// operations stay in accumulators, which are groups of vector registers; what it reads and writes in memory are rows. See
// README.md.
type machine struct {
	name         string
	accumulators int
	strip        int            // bytes of an accumulator
	tables       [2][]uintptr   // handlers, by DType
	first        [opEnd + 1]int // index of an instruction's first handler
	masked       bool           // stores as the mask says
	// run does the strip at offset first, if the mask of the elements to be stored is not zero, and then the strips that begin
	// at offsets from, before to. Offsets are in bytes.
	run func(code *record, from, to, first uintptr, mask uint64)
}

// stripBytes is the longest strip, and the length of every row of scratch memory.
const stripBytes = 256

// record is one instruction, as the assembly reads it.
type record struct {
	handler uintptr
	rows    [2]row
	scalars [3]uint64 // bits of a float32 or float64
}

// row is where a row begins, and which bits of the strip's offset are added to that: all for an array, none for memory that
// is the same in every strip.
type row struct{ base, mask uintptr }

// fastest is the machine of this processor, or nil for plain Go.
var fastest = sync.OnceValue(detect)

// detect finds the fastest machine that the processor has. OPTIMOP_KERNEL=go, avx2 or avx512 asks for another back end.
func detect() *machine {
	ms, want := machines(), os.Getenv("OPTIMOP_KERNEL")
	for _, m := range ms {
		if want == "" || want == m.name {
			return m
		}
	}
	if want != "" && want != "go" {
		slog.Warn("OPTIMOP_KERNEL names no back end that this processor has: plain Go is used", "OPTIMOP_KERNEL", want)
	}
	return nil
}

func newMachine(name string, accumulators, strip int, masked bool, tables func() (f64, f32 *uintptr, n int), run func(_ *record, from, to, first uintptr, mask uint64)) *machine {
	m := &machine{name: name, accumulators: accumulators, strip: strip, masked: masked, run: run}
	f64, f32, n := tables()
	m.tables[Float64], m.tables[Float32] = unsafe.Slice(f64, n), unsafe.Slice(f32, n)
	next := 0
	for op := range m.first {
		m.first[op] = next
		next += []int{accumulators, accumulators * accumulators, accumulators * accumulators, 1}[opcodeForms[op]]
	}
	return m
}

// handler finds the code of an instruction.
func (m *machine) handler(t DType, op opcode, a, b int) uintptr {
	i := [...]int{a, a*m.accumulators + b, a*m.accumulators + b, 0}[opcodeForms[op]]
	return m.tables[t][m.first[op]+i]
}

// accelerated does a part on the machine. next are the addresses of the part that it will do then.
func (p *Program) accelerated(wk *worker, t *part, addresses, next []uintptr) {
	v, size := t.form, int(t.typ.size())
	if wk.last != v {
		wk.begin(p, t)
	}
	for _, l := range v.own {
		wk.code[l.record].rows[l.row] = row{addresses[l.place] + l.plus, ^uintptr(0)}
	}
	for _, l := range v.next {
		wk.code[l.record].rows[l.row] = row{next[l.place], ^uintptr(0)}
	}
	if len(v.lanes) > 0 {
		p.accumulate(wk, t)
		return
	}
	per := p.machine.strip / size
	full := t.hi - (t.hi-t.lo)%per
	// The last elements are done in a whole strip that ends with them, and are alone stored. It comes first, since it reads what
	// the other strips write.
	var first uintptr
	var mask uint64
	if full < t.hi && t.hi >= per && p.machine.masked {
		first, mask = uintptr((t.hi-per)*size), last(t.hi-full, size)
	}
	if t.lo < full || mask != 0 {
		p.machine.run(&wk.code[0], uintptr(t.lo*size), uintptr(full*size), first, mask)
	}
	if full < t.hi && mask == 0 {
		p.rest(wk, t, v.code, t.hi-full)
	}
}

// begin gives the worker the code of a part: all but the addresses of its arrays.
func (wk *worker) begin(p *Program, t *part) {
	v := t.form
	for i, node := range v.scalars {
		if t.typ == Float32 {
			wk.scalars[i] = uint64(math.Float32bits(float32(p.value[node])))
		} else {
			wk.scalars[i] = math.Float64bits(p.value[node])
		}
	}
	for i, kind := range v.rows {
		wk.rows[i] = row{base: address(wk.row(i))}
		if kind == rowLanes {
			wk.rows[i].mask = v.laneMask
		}
	}
	wk.link(v.code)
	wk.bind(v.code)
	wk.last = v
}

// last is the mask for the last n elements of a strip: 16 bits for each of its registers.
func last(n, size int) (mask uint64) {
	per := 64 / size // elements of a register
	for u := range 4 {
		k := min(n-(3-u)*per, per)
		if k > 0 {
			mask |= (1<<k - 1) << (per - k) << (16 * u)
		}
	}
	return mask
}

// link gives instructions their handlers and scalars.
func (w *worker) link(code []instruction) {
	for i := range code {
		in, r := &code[i], &w.code[i]
		r.handler = in.handler
		for k, s := range in.scalars {
			r.scalars[k] = w.scalars[s]
		}
	}
}

// bind gives instructions their rows.
func (w *worker) bind(code []instruction) {
	for i := range code {
		in, r := &code[i], &w.code[i]
		for k, i := range in.rows {
			if i >= 0 {
				r.rows[k] = w.rows[i]
			}
		}
	}
}

// rest does the last n elements, which are fewer than a strip: it reads a whole strip that ends with them, as far as the
// array has one, and keeps only their results. What comes before them may have been done already.
func (p *Program) rest(wk *worker, t *part, code []instruction, n int) {
	v, size := t.pass.now, int(t.typ.size())
	if len(t.pass.sums) > 0 {
		wk.link(code)
		wk.last = nil
	}
	from, skip := t.hi*size-p.machine.strip, p.machine.strip-n*size // in bytes
	for i, r := range v.refs {
		switch r.kind {
		case rowArray:
			a := p.array(t.pass, r)
			if from >= 0 {
				wk.rows[i] = row{uintptr(a.Ptr) + uintptr(from), 0}
				continue
			}
			copy(wk.row(i)[-from:], a.bytes())
			fallthrough
		case rowStore:
			wk.rows[i] = row{address(wk.row(i)), 0}
		}
	}
	wk.bind(code)
	p.machine.run(&wk.code[0], 0, 1, 0, 0)
	for i, r := range v.refs {
		if r.kind == rowStore {
			copy(p.array(t.pass, r).bytes()[from+skip:], wk.row(i)[skip:p.machine.strip])
		}
	}
}

// array is the array that a row is of.
func (p *Program) array(ps *pass, r rowRef) Array {
	if r.kind == rowArray {
		return p.arrays[r.index]
	}
	s := &ps.stores[r.index]
	if s.wait {
		return s.staging(p.arrays[s.array])
	}
	return p.arrays[s.array]
}

// address is where scratch memory lies: on the heap, where it stays.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// accumulate does a part of reductions.
func (p *Program) accumulate(wk *worker, t *part) {
	if t.pass.typ == Float32 {
		accumulate[float32](p, wk, t)
	} else {
		accumulate[float64](p, wk, t)
	}
}

func accumulate[T float](p *Program, wk *worker, t *part) {
	v, sums := t.pass.now, t.pass.sums
	size := int(t.pass.typ.size())
	per := p.machine.strip / size
	for i, r := range sums {
		op := p.nodes[r.node].Op
		wk.sums[i].reset(op)
		row, v := of[T](wk.row(v.lanes[i])), T(neutral(op))
		for l := range row {
			row[l] = v
		}
	}
	for lo := t.lo; lo < t.hi; lo += block {
		hi := min(lo+block, t.hi)
		full := hi - (hi-lo)%per
		if lo < full {
			p.machine.run(&wk.code[0], uintptr(lo*size), uintptr(full*size), 0, 0)
		}
		if full < hi {
			p.rest(wk, t, v.tail, hi-full)
		}
		for i := range sums {
			r, row := &wk.sums[i], wk.row(v.lanes[i])
			switch {
			case r.sums():
				copy(r.lanes[:], of[float64](row))
				clear(row)
			case hi == t.hi:
				add(r, 0, of[T](row))
			}
			if full < hi {
				add(r, full, of[T](wk.row(v.tails[i]))[per-(hi-full):per])
			}
			r.endBlock()
		}
	}
	for i, r := range sums {
		r.partial[t.lo/chunk] = wk.sums[i].result()
	}
}

// row is a row of the worker's scratch memory.
func (w *worker) row(i int) []byte { return w.scratch[i*stripBytes:][:stripBytes] }

// of views a row as elements.
func of[T float](r []byte) []T {
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(r))), len(r)/int(unsafe.Sizeof(z)))
}
