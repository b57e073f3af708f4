package graphops

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// rowsPlan is the part of a plan that is about rows: before the program runs, it copies rows out of the tensors, and afterwards
// back into them.
type rowsPlan struct {
	runs    []*rowsRun
	stages  []*rowsStage
	buffers []rowsBuffer // the arrays after the leaves
	writes  []rowsWrite
	lengths []int         // in this run, for Resize
	made    map[*expr]int // while the plan is compiled
}

// rowsStage computes expressions that something is made of, and makes it.
type rowsStage struct {
	builder kernel.Builder
	memo    map[*expr]int
	stores  []kernel.Store
	prog    *kernel.Program
	makes   []*making
}

// making fills an array in each run.
type making struct {
	kind     takeKind
	form     rowForm
	merged   bool // of rows, not of values
	run      int
	to       int
	buffer   int // of to
	from     int // negative: nothing
	base     int
	leftover bool // the array may hold something, else it is zero
	late     bool // it is made with others, for Deferred
}

// rowsBuffer is memory of the plan's own. Its length is that of a number for Resize, or n elements.
type rowsBuffer struct {
	kernel.Array
	typ            kernel.DType
	size, n, width int
}

// rowsWrite says that an array holds the new rows of an update's target.
type rowsWrite struct{ update, run, from, to int }

// rowsRun is what is known of a gradient's rows in a run.
type rowsRun struct {
	t      *Touched
	leaf   int   // of the gradient
	apart  bool  // nothing reads the gradient as a tensor
	update int   // of the target that Deferred is told of; negative: none
	copies []int // arrays for it: rows of the target and of slots
	makes  []*making
	rowsOf []RowValues
	told   []int // arrays of scalars
	tell   []float64

	rows   *Rows
	values kernel.Array
	at     []int   // the rows, each once
	to     []int   // by value: which of at it belongs to
	seen   []int32 // by row of the tensor: one more than its place in at
}

// compile makes the programs of the stages.
func (r *rowsPlan) compile(p *Plan) {
	for _, s := range r.stages {
		if len(s.stores) > 0 {
			s.prog = s.builder.Program(s.stores, gorgonia.WhichBLAS())
		}
		s.memo, s.stores = nil, nil
	}
	for _, run := range r.runs {
		run.tell = make([]float64, len(run.told))
		for _, i := range run.copies {
			for _, m := range r.stages[0].makes {
				if m.to == i {
					m.late, run.makes = true, append(run.makes, m)
				}
			}
		}
		p.want[run.leaf].apart = run.apart
		run.seen = make([]int32, run.t.whole.shape[0])
	}
	p.arrays = make([]kernel.Array, len(p.leaves)+len(r.buffers))
	r.made = nil
}

// bindRows gives the whole tensor of a gradient of rows, in a copy.
func (b *binding) bindRows(r *Rows, dt tensor.Dtype, shape tensor.Shape) (kernel.Array, error) {
	b.memory = memory{}
	if err := r.fits(dt, shape); err != nil {
		return kernel.Array{}, err
	}
	typ := kernelType(dt)
	if n := r.shape.TotalSize(); b.copied.Len != n || b.copied.Type != typ {
		b.copied = newArray(typ, n)
	}
	kernel.Zero(b.copied)
	return b.copied, r.addTo(b.copied)
}

// fits reports what keeps rows from being the value of a node.
func (r *Rows) fits(dt tensor.Dtype, shape tensor.Shape) error {
	switch {
	case r == nil:
		return errors.New("no value is bound")
	case r.dt != dt:
		return errors.Errorf("its value is %v, not %v", r.dt, dt)
	case !r.shape.Eq(shape):
		return errors.Errorf("its value has shape %v, not %v", r.shape, shape)
	}
	return nil
}

// begin finds the rows of this run and makes what the program reads.
func (r *rowsPlan) begin(p *Plan, values []gorgonia.Value) error {
	for k, run := range r.runs {
		rows, ok := values[run.leaf].(*Rows)
		if !ok {
			return errors.Errorf("graphops: the value of %s is a %T; it must be a *graphops.Rows", nodeName(run.t.grad), values[run.leaf])
		}
		if err := run.begin(rows); err != nil {
			return errors.Wrapf(err, "graphops: %s", nodeName(run.t.grad))
		}
		width := rows.width()
		r.lengths[2*k+1], r.lengths[2*k+2] = len(rows.Indices)*width, len(run.at)*width
	}
	if err := r.apart(p); err != nil {
		return err
	}
	for i := range r.buffers {
		b := &r.buffers[i]
		n := b.n
		if b.size > 0 {
			n = r.lengths[b.size]
		}
		if b.Len < n {
			b.Array = newArray(b.typ, n)
		}
		p.arrays[len(p.leaves)+i] = kernel.Array{Ptr: b.Ptr, Len: n, Type: b.typ}
	}
	for _, run := range r.runs {
		if run.update < 0 {
			continue
		}
		if err := run.t.missed.Begin(values[p.targets[run.update]]); err != nil {
			return err
		}
	}
	for i, s := range r.stages {
		if s.prog != nil {
			s.prog.Resize(r.lengths)
			if err := s.prog.Run(p.arrays[:s.prog.Arrays()], nil); err != nil {
				return errors.Wrap(err, "graphops")
			}
		}
		for _, m := range s.makes {
			if !m.late {
				m.make(r.runs[m.run], p.arrays)
			}
		}
		if i == 0 { // in which rows are copied
			r.catchUp(p)
		}
	}
	p.prog.Resize(r.lengths)
	return nil
}

// block is how many rows catch up at a time. Meanwhile the next ones are on their way from memory.
const block = 64

// catchUp copies rows and lets them make up for what they missed.
func (r *rowsPlan) catchUp(p *Plan) {
	for _, run := range r.runs {
		if run.update < 0 {
			continue
		}
		for lo := 0; lo < len(run.at); lo += block {
			at, next := run.at[lo:min(lo+block, len(run.at))], run.at[min(lo+block, len(run.at)):]
			run.rowsOf = run.rowsOf[:0]
			for _, m := range run.makes {
				whole := p.arrays[m.from]
				width := p.arrays[m.to].Len / len(run.at)
				rows := part(p.arrays[m.to], lo*width, len(at)*width)
				kernel.Take(rows, whole, at)
				kernel.Fetch(whole, width, next[:min(block, len(next))])
				if rows.Type == kernel.Float32 {
					run.rowsOf = append(run.rowsOf, RowValues{F32: kernel.Elements[float32](rows)})
				} else {
					run.rowsOf = append(run.rowsOf, RowValues{F64: kernel.Elements[float64](rows)})
				}
			}
			run.t.missed.Rows(at, run.rowsOf)
			clear(run.rowsOf)
		}
	}
}

// apart refuses targets of which rows are written and that share memory with another target: the program, which looks for that, writes
// the rows elsewhere.
func (r *rowsPlan) apart(p *Plan) error {
	for _, w := range r.writes {
		lo, hi := p.span(w.to)
		for i, leaf := range p.targets {
			if l, h := p.span(leaf); i != w.update && l < hi && lo < h {
				return SharedMemoryError{p.updates[min(i, w.update)].Target, p.updates[max(i, w.update)].Target}
			}
		}
	}
	return nil
}

// begin takes stock of a gradient's rows.
func (run *rowsRun) begin(rows *Rows) (err error) {
	if run.values, err = rows.array(); err != nil {
		return err
	}
	if err := rows.inRange(); err != nil {
		return err
	}
	run.rows, run.at, run.to = rows, run.at[:0], run.to[:0]
	for _, i := range rows.Indices {
		if run.seen[i] == 0 {
			run.at = append(run.at, i)
			run.seen[i] = int32(len(run.at))
		}
		run.to = append(run.to, int(run.seen[i])-1)
	}
	return nil
}

// make fills the array.
func (m *making) make(run *rowsRun, arrays []kernel.Array) {
	to := arrays[m.to]
	at := run.at
	if m.kind == takeWhole && !m.merged || m.kind == takeRows && m.form == valuesForm {
		at = run.rows.Indices
	}
	switch m.kind {
	case takeValues: // which nothing writes
		arrays[m.to] = run.values
	case takeRows:
		kernel.Take(to, arrays[m.from], at)
	case takeMerged:
		if len(run.at) == len(run.to) { // no row is named twice
			arrays[m.to] = arrays[m.from]
			return
		}
		kernel.Zero(to)
		sumRows(to, arrays[m.from], run.to)
	case takeWhole:
		sumRows(to, arrays[m.from], at)
	case takeOverlay:
		kernel.Copy(to, arrays[m.base])
		kernel.Put(to, arrays[m.from], at)
	case takeMask:
		fillRows(to, at, run.rows.width(), 1)
	}
	m.leftover = m.kind == takeWhole || m.kind == takeMask
}

// write copies new rows into the targets that the program wrote, and tells of it.
func (r *rowsPlan) write(p *Plan) {
	for _, w := range r.writes {
		if p.prog.Written(w.update) {
			kernel.Put(p.arrays[w.to], p.arrays[w.from], r.runs[w.run].at)
		}
	}
	for _, run := range r.runs {
		if run.update < 0 || !p.prog.Written(run.update) {
			continue
		}
		for i, a := range run.told {
			run.tell[i] = p.arrays[a].Scalar()
		}
		run.t.missed.After(run.at, run.tell)
	}
}

// end leaves all as it was before begin.
func (r *rowsPlan) end() {
	for _, s := range r.stages {
		for _, m := range s.makes {
			if m.leftover {
				b := &r.buffers[m.buffer]
				fillRows(b.Array, r.runs[m.run].at, b.width, 0)
				m.leftover = false
			}
		}
	}
	for _, run := range r.runs {
		for _, i := range run.at {
			run.seen[i] = 0
		}
		run.rows, run.values, run.at = nil, kernel.Array{}, run.at[:0]
	}
}

// sumRows adds row k of src to row at[k] of dst.
func sumRows(dst, src kernel.Array, at []int) {
	if len(at) == 0 {
		return
	}
	width := src.Len / len(at)
	if src.Type == kernel.Float32 {
		addRows(kernel.Elements[float32](dst), kernel.Elements[float32](src), at, width)
	} else {
		addRows(kernel.Elements[float64](dst), kernel.Elements[float64](src), at, width)
	}
}

// fillRows sets the elements of rows.
func fillRows(a kernel.Array, at []int, width int, x float64) {
	if a.Type == kernel.Float32 {
		setRows(kernel.Elements[float32](a), at, width, float32(x))
	} else {
		setRows(kernel.Elements[float64](a), at, width, x)
	}
}

func setRows[T float32 | float64](whole []T, at []int, width int, x T) {
	for _, i := range at {
		row := whole[i*width:][:width]
		for j := range row {
			row[j] = x
		}
	}
}
