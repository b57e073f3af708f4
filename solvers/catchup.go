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

// maxArrears is how many steps are remembered. After so many all rows catch up, at the cost of about two whole updates.
const maxArrears = 4096

// misses adds up what rows miss that have no gradient for some steps.
type misses interface {
	// slots are the names of the slots that it changes.
	slots() []string
	// reset forgets all steps.
	reset()
	// step adds a step, with the values of the scalars of the rule.
	step(told []float64)
	// apply lets elements of a row and of its slots make all steps but the first n.
	apply(n int, w []float64, slots [][]float64)
}

// arrears are the steps that the rows of a table have missed. It is a graphops.Deferred.
type arrears struct {
	misses misses
	states []*graphops.State // of its slots
	table  gorgonia.Value    // of the last run
	last   []int             // by row: the steps it has made
	now    int               // steps since the last reset
	w      []float64         // elements of a row
	s      [][]float64
}

// Before lets rows of a table catch up.
func (a *arrears) Before(table gorgonia.Value, rows []int) error {
	if err := a.use(table); err != nil || a.now == 0 {
		return err
	}
	t := a.table.(*tensor.Dense)
	slots := make([]*tensor.Dense, 0, 2)
	for _, st := range a.states {
		v, err := st.Value()
		if err != nil {
			return err
		}
		slots = append(slots, v.(*tensor.Dense))
	}
	for _, r := range rows {
		n := a.last[r]
		if n == a.now {
			continue
		}
		a.last[r] = a.now
		load(a.w, t, r)
		for i, s := range slots {
			load(a.s[i], s, r)
		}
		a.misses.apply(n, a.w, a.s)
		store(t, r, a.w)
		for i, s := range slots {
			store(s, r, a.s[i])
		}
	}
	return nil
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
	a.misses.step(told)
	a.now++
	for _, r := range rows {
		a.last[r] = a.now
	}
	if a.now == maxArrears {
		_ = a.settle() // whose table and slots the step has just used
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

// load reads a row.
func load(to []float64, from *tensor.Dense, row int) {
	if from.Dtype() == tensor.Float64 {
		copy(to, from.Float64s()[row*len(to):])
		return
	}
	for i, x := range from.Float32s()[row*len(to):][:len(to)] {
		to[i] = float64(x)
	}
}

// store writes a row.
func store(to *tensor.Dense, row int, from []float64) {
	if to.Dtype() == tensor.Float64 {
		copy(to.Float64s()[row*len(from):][:len(from)], from)
		return
	}
	for i, x := range to.Float32s()[row*len(from):][:len(from)] {
		if y := float32(from[i]); y != x {
			to.Float32s()[row*len(from)+i] = y
		}
	}
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
		t.Defer(s.Param.Node, a, told...)
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
	a := &arrears{misses: m, last: make([]int, shape[0]), w: make([]float64, width)}
	for _, slot := range slots {
		st := b.store.Lookup(slot)
		if st == nil {
			return nil, errors.Errorf("there is no slot %q", slot)
		}
		a.states, a.s = append(a.states, st), append(a.s, make([]float64, width))
	}
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
