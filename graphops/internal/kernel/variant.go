package kernel

import (
	"slices"
	"unsafe"
)

// variant is the machine code of a pass for one outcome of its conditions: of a Select by a scalar only the chosen value is
// computed.
type variant struct {
	outcome uint64
	code    []instruction
	rows    []rowRef
	scalars []int // nodes
	needs   []int // whole values read
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
	if len(ps.conditions) == 0 && len(ps.variants) > 0 {
		return ps.variants[0].orNil()
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
		clear(p.codes)
	}
	v := p.compile(ps, outcome)
	ps.variants = append(ps.variants, v)
	return v.orNil()
}

// like reports whether two variants have the same code and scalars.
func (v *variant) like(o *variant) bool {
	return unsafe.SliceData(v.code) == unsafe.SliceData(o.code) && slices.Equal(v.scalars, o.scalars)
}

func (v *variant) orNil() *variant {
	if v.code == nil {
		return nil
	}
	return v
}

// compile translates a pass. Passes that the machine has no instructions for get no code.
func (p *Program) compile(ps *pass, outcome uint64) *variant {
	v := &variant{outcome: outcome}
	c := newCoder(p, ps, v)
	for k, s := range ps.stores {
		c.store(k, c.resolve(s.node))
	}
	for k := range ps.sums {
		v.lanes = append(v.lanes, c.row(rowRef{rowLanes, k}))
		c.accumulate(p.nodes[ps.sums[k].node].Op, c.resolve(ps.sums[k].arg), v.lanes[k])
	}
	switch {
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
	v.rows, v.scalars, v.needs = c.rows, c.scalars, c.needs
	if c.failed {
		return &variant{outcome: outcome}
	}
	p.sizes = p.sizes.max(sizes{rows: max(1, len(v.rows)), scalars: max(1, len(v.scalars)), code: max(len(v.code), len(v.tail))})
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

// link finds the handlers of the instructions. Equal code is shared, so that the code of many small tensors stays in the
// cache.
func (c *coder) link() []instruction {
	c.emit(opEnd, 0, 0)
	for i := range c.code {
		in := &c.code[i]
		in.handler = c.p.machine.handler(c.ps.typ, in.op, in.a, in.b)
	}
	key := string(unsafe.Slice((*byte)(unsafe.Pointer(&c.code[0])), len(c.code)*int(unsafe.Sizeof(c.code[0]))))
	if old, ok := c.p.codes[key]; ok {
		return old
	}
	c.p.codes[key] = c.code
	return c.code
}
