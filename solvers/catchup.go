package solvers

import (
	"maps"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// CatchUp lets the rows of all tables that are trained with RowsCatchUp make the steps that they have missed. What remains to be
// missed are zero gradients, so that these steps are sums that have a closed form, or were added up while they were missed: a row
// costs about the same whether it has missed ten steps or a thousand.
//
// A row catches up by itself before a step changes it, and before graphops.Gather reads it on a graph that Minimize was called
// for; all rows do before anything of the solver is saved, loaded, reset or shown by Slot and Weights. Call CatchUp before you read
// a table in any other way, such as in a graph for evaluation, and before you save or change it; before a forward pass that is not a
// graph's of Minimize, CatchUpRows will do.
func (s *Solver) CatchUp() error {
	if err := s.Err(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.arrears)) {
		if err := s.arrears[name].settle(); err != nil {
			return errors.Wrapf(err, "solvers: parameter %q", name)
		}
	}
	return nil
}

// CatchUpRows is CatchUp for some rows of a parameter. An index out of range is an error.
func (s *Solver) CatchUpRows(param gorgonia.ValueGrad, rows []int) error {
	if err := s.Err(); err != nil {
		return err
	}
	name, ok := "", false
	if !absent(param) {
		if name, ok = s.params.known(param); !ok {
			name = ownName(param)
		}
	}
	a := s.arrears[name]
	if a == nil || a.table == nil {
		return nil
	}
	for k, i := range rows {
		if i < 0 || i >= len(a.last) {
			return errors.Errorf("solvers: index %d, element %d of the indices, is out of range: parameter %q has %d rows", i, k, name, len(a.last))
		}
	}
	return errors.Wrapf(a.Before(a.table, rows), "solvers: parameter %q", name)
}

// misses adds up what rows miss that have no gradient for some steps.
type misses interface {
	// slots are the names of the slots that it changes.
	slots() []string
	// reset forgets all steps.
	reset()
	// step adds a step, with the values of the scalars of the rule. It reports whether it can remember no more.
	step(told []float64) (full bool)
	// apply lets elements of a row and of its slots make all steps but the first n.
	apply(n int, w []float64, slots [][]float64)
	// quick is apply in float32. It reports false, and has done nothing, where that is not precise enough.
	quick(n int, w []float32, slots [][]float32) bool
}

// arrears are the steps that the rows of a table have missed. It is a graphops.Deferred.
type arrears struct {
	misses misses
	states []*graphops.State // of its slots
	table  gorgonia.Value    // of the last run
	last   []int32           // by row: the steps it has made
	now    int               // steps since the last reset

	// scratch memory
	w       []float64
	buffers [][]float64
	s       [][]float64
	s32     [][]float32
	whole   []graphops.RowValues
	one     [1]int
	made    []int32
}

// Before lets rows of a table catch up where they are.
func (a *arrears) Before(table gorgonia.Value, rows []int) error {
	if err := a.use(table); err != nil || a.now == 0 {
		return err
	}
	whole := append(a.whole[:0], rowValues(a.table))
	for _, st := range a.states {
		v, err := st.Value()
		if err != nil {
			return err
		}
		whole = append(whole, rowValues(v))
	}
	a.whole = whole
	n := len(a.w)
	part := make([]graphops.RowValues, len(whole))
	for _, r := range rows {
		for i, v := range whole {
			if v.F64 != nil {
				part[i].F64 = v.F64[r*n:][:n]
			} else {
				part[i].F32 = v.F32[r*n:][:n]
			}
		}
		a.one[0] = r
		a.Rows(a.one[:], part)
		a.last[r] = int32(a.now)
	}
	return nil
}

// rowValues are the elements of a dense tensor.
func rowValues(v gorgonia.Value) graphops.RowValues {
	d := v.(*tensor.Dense)
	if d.Dtype() == tensor.Float64 {
		return graphops.RowValues{F64: d.Float64s()}
	}
	return graphops.RowValues{F32: d.Float32s()}
}

// Begin implements graphops.Deferred.
func (a *arrears) Begin(table gorgonia.Value) error { return a.use(table) }

// Rows implements graphops.Deferred. That the rows have caught up counts once they are written.
func (a *arrears) Rows(rows []int, copies []graphops.RowValues) {
	if a.now == 0 {
		return
	}
	n := len(a.w)
	a.made = a.made[:0]
	for _, r := range rows { // all at once, as each waits for memory
		a.made = append(a.made, a.last[r])
	}
	for k, made := range a.made {
		if int(made) == a.now {
			continue
		}
		made := int(made)
		if copies[0].F64 != nil {
			for i, c := range copies[1:] {
				a.s[i] = c.F64[k*n:][:n]
			}
			a.misses.apply(made, copies[0].F64[k*n:][:n], a.s)
			continue
		}
		for i, c := range copies[1:] {
			a.s32[i] = c.F32[k*n:][:n]
		}
		if w := copies[0].F32[k*n:][:n]; !a.misses.quick(made, w, a.s32) {
			a.slow(made, w)
		}
	}
}

// slow is apply for a row of float32 and those of s32.
func (a *arrears) slow(made int, w []float32) {
	widen(a.w, w)
	for i, s := range a.s32 {
		a.s[i] = a.buffers[i]
		widen(a.s[i], s)
	}
	a.misses.apply(made, a.w, a.s)
	narrow(w, a.w)
	for i, s := range a.s32 {
		narrow(s, a.s[i])
	}
}

func widen(to []float64, from []float32) {
	for i, x := range from {
		to[i] = float64(x)
	}
}

func narrow(to []float32, from []float64) {
	for i, x := range from {
		to[i] = float32(x)
	}
}

// use makes a tensor the table. What another one has missed it makes up for before.
func (a *arrears) use(table gorgonia.Value) error {
	if table == a.table {
		return nil
	}
	d, ok := table.(*tensor.Dense)
	if !ok || d.RequiresIterator() || !d.DataOrder().IsRowMajor() {
		return errors.New("rows can catch up in a dense tensor only that has them one after the other")
	}
	if a.table != nil && a.table.Uintptr() != table.Uintptr() {
		if err := a.settle(); err != nil {
			return err
		}
	}
	a.table = table
	return nil
}

// After adds the step that other rows have just made.
func (a *arrears) After(rows []int, told []float64) {
	full := a.misses.step(told)
	a.now++
	for _, r := range rows {
		a.last[r] = int32(a.now)
	}
	if full { // at the cost of some whole updates, once in thousands of steps
		_ = a.settle() // its errors are of tables and slots that the step could not have used
	}
}

// settle lets all rows catch up.
func (a *arrears) settle() error {
	if a.table == nil || a.now == 0 {
		return nil
	}
	all := make([]int, len(a.last))
	for i := range all {
		all[i] = i
	}
	if err := a.Before(a.table, all); err != nil {
		return err
	}
	a.misses.reset()
	a.now = 0
	clear(a.last)
	return nil
}

// catchUp applies a rule to rows, and lets the others make up for the step later.
func (b *Builder) catchUp(r Rule, in []Step) ([]Step, error) {
	if b.store != b.s.store && !b.trial { // a step aside
		b.mode = RowsDense
		return b.Run(r, in)
	}
	out, err := b.Run(r, in)
	if err != nil {
		return nil, err
	}
	for _, s := range out {
		name, t := s.Param.Name, b.sparse[s.Param.Node]
		if t == nil {
			if !b.trial { // the whole tensor makes this step
				b.when = append(b.when, graphops.Before(func() error { return b.s.settleRows(name) }))
			}
			continue
		}
		m, told, slots, err := b.missed(r, s)
		if err != nil {
			return nil, err
		}
		if b.trial {
			continue
		}
		a, err := b.owed(name, s.Param.Node.Shape(), m, slots)
		if err != nil {
			return nil, err
		}
		var nodes gorgonia.Nodes
		for _, st := range a.states {
			n, err := st.Node(b.g)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
		}
		t.Defer(s.Param.Node, nodes, a, told...)
		if err := graphops.BeforeGather(s.Param.Node, a.Before); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkCatchUp refuses tables whose rows could not catch up before they are read.
func (s *Solver) checkCatchUp(vars gorgonia.Nodes, looked []bool) error {
	for _, r := range within[*rows](s.rule) {
		for i, v := range vars {
			if looked[i] && RowMode(r.Mode) == RowsCatchUp {
				if err := graphops.OnlyGathered(v); err != nil {
					return errors.Wrap(err, "solvers.RowsCatchUp")
				}
			}
		}
	}
	return nil
}

// owed are the arrears of a parameter, which all updates of it share.
func (b *Builder) owed(name string, shape tensor.Shape, m misses, slots []string) (*arrears, error) {
	if a := b.s.arrears[name]; a != nil {
		return a, nil
	}
	width := shape[1:].TotalSize()
	a := &arrears{misses: m, last: make([]int32, shape[0]), w: make([]float64, width)}
	for _, slot := range slots {
		st := b.store.Lookup(slot)
		if st == nil {
			return nil, errors.Errorf("there is no slot %q", slot)
		}
		a.states, a.buffers = append(a.states, st), append(a.buffers, make([]float64, width))
	}
	a.s, a.s32 = slices.Clone(a.buffers), make([][]float32, len(slots))
	if b.s.arrears == nil {
		b.s.arrears = map[string]*arrears{}
	}
	b.s.arrears[name] = a
	return a, nil
}

// settleRows lets all rows of a parameter catch up.
func (s *Solver) settleRows(name string) error {
	if a := s.arrears[name]; a != nil {
		return a.settle()
	}
	return nil
}
