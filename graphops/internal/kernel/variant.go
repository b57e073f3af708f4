package kernel

import "unsafe"

// variant is the machine code of a pass for one outcome of its conditions: of a Select by a scalar only the chosen value is
// computed.
type variant struct {
	outcome    uint64
	code       []record
	rows       []rowRef
	broadcasts []int // rows of scalars
	needs      []int // whole values read
	// Of reductions: the rows of the lanes; code for what is left after the last whole strip, and the rows where that puts
	// the elements to be reduced.
	lanes    []int
	laneMask uintptr
	tail     []record
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
	rowScalar                 // of broadcasts
	rowScratch                // the worker's: a value that waits
	rowLanes                  // the worker's: partial sums
)

// variant finds the code for the outcome of the conditions in this run, and compiles it when it is met first. It is nil
// where the pass runs in plain Go.
func (p *Program) variant(ps *pass) *variant {
	if p.machine == nil {
		return nil
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
	v := &variant{outcome: outcome}
	c := newCoder(p, ps, v)
	for k, s := range ps.stores {
		c.store(k, c.resolve(s.node))
	}
	for k := range ps.sums {
		v.lanes = append(v.lanes, c.row(rowRef{rowLanes, k}))
		c.accumulate(p.nodes[ps.sums[k].node].Op, c.resolve(ps.sums[k].arg), v.lanes[k])
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
	v.rows, v.broadcasts, v.needs = c.rows, c.broadcasts, c.needs
	if c.failed {
		return &variant{outcome: outcome}
	}
	p.sizes = p.sizes.max(sizes{rows: len(v.rows), accumulate: len(ps.sums)})
	return v
}

// link makes records of the instructions. Equal code is shared, so that the code of many small tensors stays in the cache.
func (c *coder) link() []record {
	code := make([]record, len(c.code)+1)
	for i, in := range c.code {
		code[i].handler = c.p.machine.handler(c.ps.typ, in.op, in.a, in.b)
		for k, r := range in.rows {
			code[i].rows[k] = uint32(r) * uint32(rowSize)
		}
	}
	code[len(c.code)].handler = c.p.machine.handler(c.ps.typ, opEnd, 0, 0)
	key := string(unsafe.Slice((*byte)(unsafe.Pointer(&code[0])), len(code)*int(unsafe.Sizeof(code[0]))))
	if old, ok := c.p.codes[key]; ok {
		return old
	}
	c.p.codes[key] = code
	return code
}
