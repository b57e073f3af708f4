package kernel

import (
	"slices"
	"unsafe"
)

// variant is the machine code of a pass for one outcome of its conditions: of a Select by a scalar only the chosen value is
// computed.
type variant struct {
	*form
	needs   []int // whole values read
	outcome uint64
	refs    []rowRef // rows
}

// link says where in the code an address of a part belongs.
type link struct {
	record, row int
	place       int     // among the part's addresses
	plus        uintptr // to be added
}

// form is what variants of like passes share, so that the code of many small tensors stays in the cache.
type form struct {
	code    []instruction
	scalars []int // nodes
	rows    []rowKind
	own     []link // what each part binds anew: its arrays and stores
	next    []link // and those of the part after it
	// Of reductions: the rows of the lanes; code for what is left after the last whole strip, and the rows where that puts
	// the elements to be reduced.
	lanes    []int
	laneMask uintptr
	tail     []instruction
	tails    []int
}

// rowRef says what a row of the table is.
type rowRef struct {
	kind  rowKind
	index int
}

type rowKind uint8

const (
	rowArray   rowKind = iota // read from array index
	rowStore                  // written by store index of the pass
	rowScratch                // the worker's: a value that waits
	rowLanes                  // the worker's: partial sums
	rowNext                   // what row index is in the next pass
	rowAhead                  // what row index is further on
)

// maxSteps bounds the expressions that are compiled, as that takes the more stack the deeper they are.
const maxSteps = 100_000

// maxVariants bounds the code that a pass holds: the outcomes of its conditions may be many.
const maxVariants = 64

// variant finds the code for the outcome of the conditions in this run, and compiles it when it is met first. It is nil
// where the pass runs in plain Go.
func (p *Program) variant(ps *pass) *variant {
	if p.machine == nil || len(ps.steps) > maxSteps {
		return nil
	}
	if len(ps.conditions) == 0 && ps.now != nil {
		return ps.now
	}
	var outcome uint64
	for i, c := range ps.conditions {
		if p.scalar(c) != 0 {
			outcome |= 1 << i
		}
	}
	for _, v := range ps.variants {
		if v.outcome == outcome {
			return v.orNil()
		}
	}
	if len(ps.variants) == maxVariants { // many independent conditions: what was met long ago need not be met again
		ps.variants = nil
		clear(p.forms)
	}
	v := p.compile(ps, outcome)
	ps.variants = append(ps.variants, v)
	return v.orNil()
}

func (v *variant) orNil() *variant {
	if v.code == nil {
		return nil
	}
	return v
}

// compile translates a pass. Passes that the machine has no instructions for get no code.
func (p *Program) compile(ps *pass, outcome uint64) *variant {
	v := &variant{form: &form{}, outcome: outcome}
	c := newCoder(p, ps, v)
	for k, s := range ps.stores {
		c.store(k, c.resolve(s.node))
	}
	for k := range ps.sums {
		v.lanes = append(v.lanes, c.row(rowRef{rowLanes, k}))
		c.accumulate(p.nodes[ps.sums[k].node].Op, c.resolve(ps.sums[k].arg), v.lanes[k])
	}
	switch {
	case ps.size != 0: // some rows, which were just brought into the cache
	case ps.n*int(ps.typ.size()) <= small:
		c.fetch(rowNext)
	case len(ps.sums) > 0:
		c.fetch(rowAhead)
	}
	v.code = c.link()
	if len(ps.sums) > 0 {
		c.restart()
		for k := range ps.sums {
			v.tails = append(v.tails, c.scratchRow())
			c.leave(c.resolve(ps.sums[k].arg), v.tails[k])
		}
		v.tail = c.link()
		if ps.typ == Float64 {
			v.laneMask = uintptr(lanes*8 - p.machine.strip)
		}
	}
	v.refs, v.scalars, v.needs = c.rows, c.scalars, c.needs
	if c.failed {
		return &variant{form: &form{}, outcome: outcome}
	}
	p.share(v)
	p.sizes = p.sizes.max(sizes{rows: len(v.refs), scalars: max(1, len(v.scalars)), code: max(len(v.code), len(v.tail))})
	return v
}

// small is the size of arrays, in bytes, of which the next ones are fetched meanwhile: where every array is short, the
// processor's own guesses come too late.
const small = 8192

// ahead is how far before its use, in bytes, a pass that only reads fetches its arrays: two pages, where the processor's own
// guesses end at each, and cost half of the bandwidth. Passes that also write do not gain.
const ahead = 8192

// fetch begins the code with instructions that fetch what will be read later: in the next pass, if that is alike, or ahead.
func (c *coder) fetch(kind rowKind) {
	var next []int
	for i, r := range c.rows {
		if r.kind == rowArray {
			next = append(next, c.row(rowRef{kind, i}))
		}
	}
	work := c.code
	c.code = nil
	for pair := range slices.Chunk(next, 2) {
		c.emit(opFetch, 0, 0, pair[0], pair[len(pair)-1])
	}
	c.code = append(c.code, work...)
}

// link finds the handlers of the instructions.
func (c *coder) link() []instruction {
	c.emit(opEnd, 0, 0)
	for i := range c.code {
		in := &c.code[i]
		in.handler = c.p.machine.handler(c.ps.typ, in.op, in.a, in.b)
	}
	return c.code
}

// share gives a variant the form of an earlier one that has the same.
func (p *Program) share(v *variant) {
	places := make([]int, len(v.refs))
	n := 0
	for i, r := range v.refs {
		v.rows = append(v.rows, r.kind)
		switch r.kind {
		case rowArray, rowStore:
			places[i] = n
			n++
		case rowNext, rowAhead:
			places[i] = places[r.index]
		}
	}
	for i := range v.code {
		for k, r := range v.code[i].rows {
			if r < 0 {
				continue
			}
			switch l := (link{i, k, places[r], 0}); v.rows[r] {
			case rowNext:
				v.next = append(v.next, l)
			case rowAhead:
				l.plus = ahead
				v.own = append(v.own, l)
			case rowArray, rowStore:
				v.own = append(v.own, l)
			}
		}
	}
	key := bytesOf(v.code) + bytesOf(v.tail) + bytesOf(v.scalars) + bytesOf(v.rows) + bytesOf(v.own) + bytesOf(v.next) + bytesOf(v.lanes) + bytesOf(v.tails)
	if old, ok := p.forms[key]; ok {
		v.form = old
	} else {
		p.forms[key] = v.form
	}
}

func bytesOf[T instruction | link | rowKind | int](s []T) string {
	var z T
	return string(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z))))
}
