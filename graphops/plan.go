package graphops

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// Update says that a node's value becomes the value of an expression. The target is an input of the graph: a parameter or a
// state node. An elementwise expression must have its dtype and shape; a scalar expression needs a scalar target and is
// rounded to its dtype (an integer target refuses what is not whole).
type Update struct {
	Target *gorgonia.Node
	Value  Expr
}

// Plan is a compiled list of updates. It is what a commit holds, and also runs without a graph's machine, on values handed
// to it. A plan owns scratch memory: use it from one goroutine at a time.
type Plan struct {
	updates []Update
	leaves  gorgonia.Nodes
	want    []leaf   // by leaf
	also    []*State // that the new values depend on, but not as leaves
	prog    *kernel.Program
	before  []func() error
	refuse  []refusal
	targets []int          // by update: its leaf
	arrays  []kernel.Array // by leaf, in this run
	bound   []binding      // by leaf, of the values that direct refuses
	odd     []int          // leaves with such a value in this run
	strided bool           // one of them is read through strides
	store   *Store         // or nil
	rows    *rowsPlan      // or nil
	changes int            // of the store, when its slots were last settled
	span    func(leaf int) (lo, hi uintptr)
}

type planConfig struct {
	store  *Store
	aside  *Store
	when   []condition
	refuse []refusal
	before []func() error
}

// condition holds for its targets, or for all if there are none.
type condition struct {
	when    Expr
	targets gorgonia.Nodes
}

// Compile checks updates and compiles them; it adds nothing to the graph. It understands the options When, Refuse, Before
// and From.
//
// Every leaf and target must lie on one graph, no target may appear twice, and expressions must fit their targets.
func Compile(updates []Update, opts ...CommitOpt) (*Plan, error) {
	return compile(updates, newCommitConfig(opts).planConfig)
}

// Check reports what Compile would refuse, in a fraction of the time.
func Check(updates []Update, opts ...CommitOpt) error {
	_, _, _, err := lower(updates, newCommitConfig(opts).planConfig)
	return err
}

func compile(updates []Update, c planConfig) (*Plan, error) {
	p, b, stores, err := lower(updates, c)
	if err != nil {
		return nil, err
	}
	for _, n := range p.leaves {
		p.want = append(p.want, newLeaf(n, cmp.Or(c.store.of(n), c.aside.of(n))))
	}
	p.store, p.changes = c.store, -1
	p.prog = b.Program(stores, gorgonia.WhichBLAS())
	p.bound, p.arrays = make([]binding, len(p.leaves)), make([]kernel.Array, len(p.leaves))
	if p.rows != nil {
		p.rows.compile(p)
	}
	p.span = func(leaf int) (lo, hi uintptr) {
		if leaf < len(p.bound) && p.bound[leaf].strides != nil {
			return p.bound[leaf].Bytes()
		}
		return p.arrays[leaf].Bytes()
	}
	return p, nil
}

// lower checks updates and translates them for the kernel. The plan knows only its updates, targets and leaves.
func lower(updates []Update, c planConfig) (p *Plan, b *kernel.Builder, stores []kernel.Store, err error) {
	fail := func(err error) (*Plan, *kernel.Builder, []kernel.Store, error) { return nil, nil, nil, err }
	if len(updates) == 0 {
		return fail(errors.New("graphops: there is nothing to update"))
	}
	conds, err := c.conditions(updates)
	if err != nil {
		return fail(err)
	}
	p, b = &Plan{updates: slices.Clone(updates), before: c.before, refuse: c.refuse}, &kernel.Builder{}
	l := &lowering{p: p, index: map[*gorgonia.Node]int{}}
	l.number(updates, conds, c.refuse)
	memo := map[*expr]int{}
	seen := map[*gorgonia.Node]bool{}
	for i, u := range updates {
		if err := u.check(); err != nil {
			return fail(err)
		}
		if seen[u.Target] {
			return fail(errors.Errorf("graphops: %s is updated twice; merge the two updates into one", nodeName(u.Target)))
		}
		seen[u.Target] = true
		p.targets = append(p.targets, l.node(u.Target))
		st := kernel.Store{Leaf: l.target(i, u), Node: u.Value.x.lower(b, memo, l), Cond: -1}
		if conds[i].x != nil {
			st.Cond = conds[i].x.lower(b, memo, l)
		}
		stores = append(stores, st)
	}
	for _, r := range c.refuse {
		if err := r.check(); err != nil {
			return fail(err)
		}
		b.Check(r.code.x.lower(b, memo, l))
	}
	if stores, err = l.tell(b, memo, stores); err != nil {
		return fail(err)
	}
	for _, n := range p.leaves {
		if n.Graph() != updates[0].Target.Graph() {
			return fail(errors.Errorf("graphops: %s is not on the graph of %s", nodeName(n), nodeName(updates[0].Target)))
		}
	}
	return p, b, stores, nil
}

func (u Update) check() error {
	t := u.Target
	if t == nil {
		return errors.New("graphops: an update has a nil target")
	}
	if err := u.Value.Err(); err != nil {
		return errors.Wrapf(err, "the new value of %s", nodeName(t))
	}
	if !t.IsVar() {
		return errors.Errorf("graphops: %s is computed by the graph: only its inputs can be updated", nodeName(t))
	}
	dt, err := dtypeOf(t)
	if err != nil {
		return err
	}
	switch v := u.Value.x; {
	case v.scalar && !t.IsScalar():
		return errors.Errorf("graphops: %s has shape %v, its new value is a scalar", nodeName(t), t.Shape())
	case v.scalar && dt != tensor.Float64 && dt != tensor.Float32 && dt != tensor.Int64 && dt != tensor.Int:
		return errors.Errorf("graphops: %s is %v; an update needs float32, float64 or int64", nodeName(t), dt)
	case !v.scalar && v.dt != dt:
		return errors.Errorf("graphops: %s is %v, its new value %v", nodeName(t), dt, v.dt)
	case v.form == valuesForm:
		return errors.Errorf("graphops: the new value of %s are values of rows, which may name a row twice; Merge them", nodeName(t))
	case !v.scalar && !v.shape.Eq(t.Shape()):
		return errors.Errorf("graphops: %s has shape %v, its new value %v", nodeName(t), t.Shape(), v.shape)
	}
	return nil
}

// conditions gives the condition of each update; the zero Expr where there is none.
func (c planConfig) conditions(updates []Update) ([]Expr, error) {
	conds := make([]Expr, len(updates))
	updated := map[*gorgonia.Node]bool{}
	for _, u := range updates {
		updated[u.Target] = true
	}
	for _, g := range c.when {
		if err := g.when.Err(); err != nil {
			return nil, errors.Wrap(err, "graphops: When")
		}
		if !g.when.x.scalar || !g.when.x.op.IsCondition() {
			return nil, errors.New("graphops: When needs a scalar condition, such as a comparison of scalars or All of one")
		}
		named := set(g.targets)
		for _, n := range g.targets {
			if !updated[n] {
				return nil, errors.Errorf("graphops: When names %s, which is not updated", nodeName(n))
			}
		}
		for i, u := range updates {
			switch {
			case len(named) > 0 && !named[u.Target]:
			case conds[i].x == nil:
				conds[i] = g.when
			default:
				conds[i] = conds[i].And(g.when)
			}
		}
	}
	return conds, nil
}

// Leaves are the nodes whose values Run wants: all that the new values read, and all targets.
func (p *Plan) Leaves() gorgonia.Nodes { return p.leaves }

// Run computes every new value from the old values of everything, then writes all of them, in place. values follow Leaves;
// for a leaf that is a node of the plan's store the value may be nil and is then the store's. An error leaves every value
// as it was; it names the node. Values may be views, or share memory with each other, as long
// as the ranges of memory of no two targets overlap.
func (p *Plan) Run(values []gorgonia.Value) error {
	if len(values) != len(p.leaves) {
		return errors.Errorf("graphops: %d values for %d leaves", len(values), len(p.leaves))
	}
	defer p.release()
	p.strided = false
	if p.store != nil && p.store.locked != nil {
		return p.store.locked
	}
	for _, st := range p.also {
		if st != nil {
			if _, err := st.legal(); err != nil {
				return err
			}
		}
	}
	if s := p.store; s != nil && s.changes != p.changes {
		for i := range p.want {
			p.want[i].settle(s)
		}
		p.changes = s.changes
	}
	for i, v := range values {
		if err := p.bind(i, v); err != nil {
			return errors.Wrapf(err, "graphops: %s", nodeName(p.leaves[i]))
		}
	}
	if len(p.before) > 0 {
		if err := callAll(p.before); err != nil {
			return err
		}
	}
	if p.rows != nil {
		defer p.rows.end()
		if err := p.rows.begin(p, values); err != nil {
			return err
		}
	}
	span := p.span
	if !p.strided {
		span = nil
	}
	if err := p.prog.Run(p.arrays, span); err != nil {
		return p.explain(err)
	}
	if p.rows != nil {
		p.rows.write(p)
	}
	for i, leaf := range p.targets {
		if p.strided && p.prog.Written(i) {
			p.bound[leaf].flush()
		}
	}
	return nil
}

// bind finds the memory of a leaf's value.
func (p *Plan) bind(i int, v gorgonia.Value) (err error) {
	l := &p.want[i]
	if r, ok := v.(*Rows); ok && l.apart {
		return r.fits(l.dt, l.shape)
	}
	if l.slot != nil && l.shows(v) {
		p.arrays[i] = l.found
		return nil
	}
	if s := l.state; s != nil {
		if own := l.node.Value(); v == nil || v == own { // another value is a cloned graph's own state
			if v, err = s.legalAt(own); err != nil {
				return err
			}
		}
	}
	if l.direct(v, &p.arrays[i]) {
		return nil
	}
	p.arrays[i], err = p.bound[i].bind(v, l.dt, l.shape)
	p.strided = p.strided || p.bound[i].strides != nil
	p.odd = append(p.odd, i)
	return err
}

// release lets go of the values, so that the memory of gradients is free between runs.
func (p *Plan) release() {
	clear(p.arrays)
	for _, i := range p.odd {
		p.bound[i].memory = memory{}
	}
	p.odd = p.odd[:0]
}

// SharedMemoryError says that the memory of two targets overlaps.
type SharedMemoryError struct{ A, B *gorgonia.Node }

func (e SharedMemoryError) Error() string {
	return fmt.Sprintf("graphops: %s and %s share memory (their ranges overlap), so they cannot both be updated; give one a copy of its own",
		nodeName(e.A), nodeName(e.B))
}

func (p *Plan) explain(err error) error {
	switch e := err.(type) {
	case kernel.ConflictError:
		return SharedMemoryError{p.updates[e.A].Target, p.updates[e.B].Target}
	case kernel.RefusedError:
		return p.refuse[e.Check].refused(e.Value)
	case kernel.IntegerError:
		return errors.Errorf("graphops: the new value of %s is %v, which is not a whole number", nodeName(p.updates[e.Store].Target), e.Value)
	}
	return errors.Wrap(err, "graphops")
}

// wrote reports whether the last run wrote anything.
func (p *Plan) wrote() bool {
	for i := range p.updates {
		if p.prog.Written(i) {
			return true
		}
	}
	return false
}
