package graphops

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// lowering numbers the arrays of a plan: first its leaves, then what is made of rows.
type lowering struct {
	p     *Plan
	index map[*gorgonia.Node]int
	whole []bool // by leaf: read as a tensor
}

// number finds the leaves beforehand where rows come into it, so that their numbers are the first.
func (l *lowering) number(updates []Update, conds []Expr, refuse []refusal) {
	found, seen := false, map[*expr]bool{}
	var nodes gorgonia.Nodes
	var visit func(e *expr)
	visit = func(e *expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		if e.node != nil {
			nodes = append(nodes, e.node)
		}
		if e.take != takeNone {
			found = true
			for _, s := range e.rows.told {
				visit(s.x)
			}
			nodes = append(nodes, e.rows.deferred...)
		}
		for _, a := range e.args {
			visit(a)
		}
	}
	for i, u := range updates {
		if u.Target != nil {
			nodes = append(nodes, u.Target)
		}
		visit(u.Value.x)
		visit(conds[i].x)
	}
	for _, r := range refuse {
		visit(r.code.x)
	}
	if !found {
		return
	}
	for _, n := range nodes {
		l.node(n)
	}
	l.p.rows = &rowsPlan{lengths: []int{0}, made: map[*expr]int{}}
}

// node is the number of a leaf.
func (l *lowering) node(n *gorgonia.Node) int {
	i, ok := l.index[n]
	if !ok {
		i = len(l.p.leaves)
		l.index[n] = i
		l.p.leaves, l.whole = append(l.p.leaves, n), append(l.whole, false)
	}
	return i
}

// leaf is the number of the array that a leaf reads.
func (l *lowering) leaf(e *expr) int {
	if e.take != takeNone {
		return l.made(e)
	}
	i := l.node(e.node)
	l.whole[i] = true
	return i
}

// size is the number of the length of an expression, 0 if that does not change.
func (l *lowering) size(e *expr) int {
	if e.form == wholeForm {
		return 0
	}
	return 1 + 2*l.run(e.rows) + int(e.form-valuesForm)
}

// run is the number of what a plan does with the rows of a gradient.
func (l *lowering) run(t *Touched) int {
	r := l.p.rows
	i := slices.IndexFunc(r.runs, func(run *rowsRun) bool { return run.t == t })
	if i < 0 {
		i = len(r.runs)
		r.runs = append(r.runs, &rowsRun{t: t, leaf: l.node(t.grad), update: -1})
		r.lengths = append(r.lengths, 0, 0)
	}
	return i
}

// made is the number of the array for what is made of rows.
func (l *lowering) made(e *expr) int {
	r := l.p.rows
	if i, ok := r.made[e]; ok {
		return i
	}
	m := &making{kind: e.take, form: e.form, run: l.run(e.rows), from: -1, base: -1}
	stage := e.level() - 1
	for len(r.stages) <= stage {
		r.stages = append(r.stages, &rowsStage{memo: map[*expr]int{}})
	}
	if len(e.args) > 1 {
		switch a := e.args[1]; {
		case a.op == kernel.Leaf:
			m.from = l.leaf(a)
		default:
			s := r.stages[stage]
			m.from = l.scratch(a)
			s.stores = append(s.stores, kernel.Store{Leaf: m.from, Node: a.lower(&s.builder, s.memo, l), Cond: -1})
		}
		m.merged = e.args[1].form == rowsForm
	}
	if len(e.args) > 2 {
		m.base = l.node(e.args[2].node)
	}
	m.to, m.buffer = l.scratch(e), len(r.buffers)-1
	r.made[e] = m.to
	r.stages[stage].makes = append(r.stages[stage].makes, m)
	return m.to
}

// level is how many stages must be done before an expression can be computed: what is made of rows is made in a stage, after
// that of what it is made of.
func (e *expr) level() int {
	seen := map[*expr]int{}
	var visit func(e *expr) int
	visit = func(e *expr) int {
		if n, ok := seen[e]; ok {
			return n
		}
		n := 0
		args := e.args
		if e.take != takeNone {
			args = args[1:] // without the gradient itself
		}
		for _, a := range args {
			n = max(n, visit(a))
		}
		if e.take != takeNone {
			n++
		}
		seen[e] = n
		return n
	}
	return visit(e)
}

// scratch is the number of an array of the plan's own, in the form of an expression.
func (l *lowering) scratch(e *expr) int {
	r := l.p.rows
	r.buffers = append(r.buffers, rowsBuffer{typ: kernelType(e.dt), size: l.size(e), n: e.shape.TotalSize(), width: rowWidth(e.shape)})
	return len(l.p.leaves) + len(r.buffers) - 1
}

// target is the number of the array that an update writes.
func (l *lowering) target(i int, u Update) int {
	x := u.Value.x
	if x.form != rowsForm {
		return l.node(u.Target)
	}
	r, k := l.p.rows, l.run(x.rows)
	if x.rows.isDeferred(u.Target) {
		r.runs[k].update = i
	}
	var at int
	if old, ok := x.rows.picked[picking{u.Target, rowsForm}]; ok {
		at = l.made(old.x)
	} else {
		at = l.scratch(x)
	}
	r.writes = append(r.writes, rowsWrite{update: i, run: k, from: at, to: l.node(u.Target)})
	return at
}

// tell adds stores for the scalars that Deferred gets to know.
func (l *lowering) tell(b *kernel.Builder, memo map[*expr]int, stores []kernel.Store) ([]kernel.Store, error) {
	if l.p.rows == nil {
		return stores, nil
	}
	for _, run := range l.p.rows.runs {
		if run.update < 0 {
			continue
		}
		for _, n := range run.t.deferred {
			e := run.t.Rows(Of(n))
			if err := e.Err(); err != nil {
				return nil, errors.Wrap(err, "graphops: Defer")
			}
			run.copies = append(run.copies, l.made(e.x))
		}
		for _, s := range run.t.told {
			if err := s.Err(); err != nil {
				return nil, errors.Wrap(err, "graphops: Defer")
			}
			if !s.IsScalar() {
				return nil, errors.New("graphops: Defer tells of scalars only")
			}
			to := l.scratch(&expr{dt: tensor.Float64, shape: tensor.Shape{1}})
			run.told = append(run.told, to)
			stores = append(stores, kernel.Store{Leaf: to, Node: s.x.lower(b, memo, l), Cond: stores[run.update].Cond})
		}
	}
	for _, run := range l.p.rows.runs {
		run.apart = !l.whole[run.leaf]
	}
	return stores, nil
}
