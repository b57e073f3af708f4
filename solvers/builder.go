package solvers

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Builder is what a rule builds its update with. It belongs to one rule: its hyperparameters, counters and slots have names
// that begin with the rule's, which is the lower-case name of its type; of two rules of one type the second is "adam#2".
type Builder struct {
	*build
	rule *ruleInfo
}

// build is the state of one pass of a solver's rules.
type build struct {
	s       *Solver
	g       *gorgonia.ExprGraph
	store   *graphops.Store
	bound   map[string]*gorgonia.Node // hyperparameters that are nodes of the user's
	read    map[string]bool           // those of them, and of the scheduled ones, that a rule has read
	names   []string                  // of all parameters, also those that get no step
	grads   []Step                    // as the first rule gets them
	trial   bool                      // may meet rules that the solver does not know yet
	updates []graphops.Update
	when    []graphops.CommitOpt    // conditions of some of the updates
	only    map[*gorgonia.Node]Expr // those that the steps of parameters have
	counts  map[string]Expr
	adjust  []adjustment                         // of the rules that run now
	exempt  []func(name string) bool             // parameters from weight decay, for them
	met     map[*ruleInfo]bool                   // in order, which settles the names of rules that cannot be told apart
	ran     map[*ruleInfo]bool                   // met, and applied
	mode    RowMode                              // for gradients of rows, of the rules that run now
	sparse  map[*gorgonia.Node]*graphops.Touched // those that the rule with this mode got, by parameter
	depth   int
	err     error
}

// ruleInfo is a rule with its name in the solver and its hyperparameters.
type ruleInfo struct {
	rule   Rule
	name   string
	fields []field
	built  bool // at least once, so that fields that it did not read as hyperparameters count no more
}

// maxDepth bounds how deep rules can be nested: one that runs itself would never end.
const maxDepth = 100

// Run applies another rule under its own name. It is how rules are composed. The rule must be the same object at each call of
// Apply; one that was made in Apply would have new hyperparameters and new slots each time, and is refused.
func (b *Builder) Run(r Rule, in []Step) ([]Step, error) {
	if b.depth++; b.depth > maxDepth {
		return nil, errors.Errorf("solvers: rules are nested more than %d deep; does one run itself?", maxDepth)
	}
	defer func() { b.depth-- }()
	switch r := r.(type) {
	case nil:
		return nil, errors.New("solvers: a rule is nil")
	case *Solver:
		if err := r.asRule(); err != nil {
			return nil, err
		}
		return b.Run(r.rule, in)
	case *chain:
		return r.Apply(b, in)
	}
	info, err := b.meet(r)
	if err != nil {
		return nil, err
	}
	b.ran[info] = true
	out, err := info.apply(&Builder{b.build, info}, in)
	if err == nil {
		err = b.err
	}
	return out, errors.Wrap(err, info.name)
}

// skip applies a rule to nothing, and keeps nothing of that but the names of the rules that it runs, so that those after it
// have the names that they have otherwise. A mistake shows when the rule is applied in earnest.
func (b *Builder) skip(r Rule) {
	dry := *b.build
	dry.g, dry.store, dry.updates, dry.bound = gorgonia.NewGraph(), graphops.NewStore(), nil, nil
	dry.when, dry.only, dry.adjust, dry.exempt, dry.sparse = nil, nil, nil, nil, nil
	dry.counts, dry.ran = map[string]Expr{}, map[*ruleInfo]bool{}
	_, _ = (&Builder{&dry, b.rule}).Run(r, nil)
}

// meet finds the name of a rule: that of the solver's rules, or a new one for a rule that another rule holds.
func (b *Builder) meet(r Rule) (*ruleInfo, error) {
	for _, info := range b.s.rules {
		if !b.met[info] && sameRule(info.rule, r) {
			b.met[info] = true
			return info, nil
		}
	}
	if !b.trial {
		return nil, errors.Errorf("solvers: a %T was made within Apply: make it once, where the rule that runs it is made", r)
	}
	rules, err := walk(r, slices.Clone(b.s.rules)) // of a Composite also those that it lists: see HyperOf
	if err != nil {
		return nil, err
	}
	info := rules[len(b.s.rules)]
	for _, added := range rules[len(b.s.rules):] {
		if err := added.validate(); err != nil {
			return nil, err
		}
	}
	b.met[info] = true
	b.s.rules = rules
	return info, nil
}

// sameRule compares rules by identity; functions, which have none, and no hyperparameters, by type.
func sameRule(a, b Rule) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	return !reflect.TypeOf(a).Comparable() || a == b
}

func (r *ruleInfo) apply(b *Builder, in []Step) (out []Step, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("the rule panicked: %v", p)
		}
	}()
	in = slices.Clone(in) // a rule may change what it gets
	for i, s := range in {
		s = b.present(r.rule, s)
		s.Value, s.Delta = spread(s, s.Value), spread(s, s.Delta)
		in[i] = s
	}
	given := map[*gorgonia.Node]bool{}
	for _, s := range in {
		given[s.Param.Node] = true
	}
	if out, err = r.rule.Apply(b, in); err != nil {
		return nil, err
	}
	return out, onceEach(out, given)
}

// onceEach checks that steps are of given parameters, and not two of one, of which only one could be made.
func onceEach(out []Step, given map[*gorgonia.Node]bool) error {
	for _, s := range out {
		left, known := given[s.Param.Node]
		switch {
		case !known:
			return errors.Errorf("a rule returned a step for %q, which it was not given", s.Param.Name)
		case !left:
			return errors.Errorf("a rule returned two steps for %q", s.Param.Name)
		}
		given[s.Param.Node] = false
	}
	return nil
}

// spread gives a scalar, as the delta of a rule that sets the value outright, the form of the parameter.
func spread(s Step, e Expr) Expr {
	if !e.IsScalar() {
		return e
	}
	return never.Select(like(s), e)
}

// Gradients are the steps that the solver's first rule gets: the gradients of all parameters that have one, whatever the rules
// before this one made of them, and also of those that this one does not get. Within a LossScale, or a Base with a LossScaleFactor,
// they are divided by that scale; within a Base those that are new values (OverwriteWithGradient) are not among them.
func (b *Builder) Gradients() []Step { return slices.Clone(b.grads) }

// anyName reports whether a parameter that the solver has, or had before, is called so.
func (b *Builder) anyName(is func(string) bool) bool {
	for name := range b.s.params.form {
		if is(name) {
			return true
		}
	}
	return slices.ContainsFunc(b.names, is)
}

// Hyper is a hyperparameter of the rule: the exported float64 field of that name, in snake case. It can be changed between
// steps (see Solver.Set) and is a scalar.
func (b *Builder) Hyper(name string) Expr {
	h := b.hyper(name)
	for _, a := range b.adjust {
		if a.name == name && h.Err() == nil {
			h = a.by(h)
		}
	}
	return h
}

func (b *Builder) hyper(name string) Expr {
	full := b.full(name)
	if n := b.bound[full]; n != nil {
		b.read[full] = true
		return graphops.ScalarOf(n)
	}
	f, ok := b.field(name)
	if !ok {
		return Expr{}
	}
	if h := b.s.scheduled(full); h != nil {
		b.read[full] = true
		step := b.GlobalStep()
		if step.Err() != nil {
			return step
		}
		value, err := h.at(step)
		if err != nil {
			return b.fail(err)
		}
		return value
	}
	st, err := b.store.Hyper(full, f.value, f.check)
	return b.scalar(st, err)
}

// field is the hyperparameter of that name; that there is none is an error of the rule.
func (b *Builder) field(name string) (field, bool) {
	var known []string
	if b.rule != nil {
		for _, f := range b.rule.fields {
			if f.name == name {
				return f, true
			}
			known = append(known, f.name)
		}
	}
	b.fail(errors.Errorf("no hyperparameter is called %q: the exported float64 fields, in snake case, are %v", name, known))
	return field{}, false
}

// Uses reports whether a hyperparameter for which 0 means "none" belongs into the update: if it is, or once was, another number,
// or is scheduled or bound to a node. What is built with it must do the right thing where it becomes 0 later; where it was left out,
// Solver.Set refuses to change it.
func (b *Builder) Uses(name string) bool {
	full := b.full(name)
	if b.bound[full] != nil || b.s.scheduled(full) != nil || b.s.store.Lookup(full) != nil {
		return true
	}
	f, ok := b.field(name)
	return ok && *f.value != 0
}

// Count is the number of steps that the rule has applied, with this one: 1 at the first. It is a scalar.
func (b *Builder) Count(name string) Expr {
	full := b.full(name)
	if t, ok := b.counts[full]; ok {
		return t
	}
	st, err := b.store.Counter(full)
	old := b.scalar(st, err)
	t := old.Add(one)
	b.counts[full] = t
	if t.Err() == nil {
		n, _ := st.Node(b.g)
		b.updates = append(b.updates, graphops.Update{Target: n, Value: t})
	}
	return t
}

// SlotOpt is an option of a slot.
type SlotOpt func(*slotForm)

type slotForm struct {
	fill  float64
	shape tensor.Shape
}

// Fill is the initial value of a slot's elements; the default is 0.
func Fill(v float64) SlotOpt { return func(f *slotForm) { f.fill = v } }

// OfShape gives a slot another shape than its parameter's.
func OfShape(shape tensor.Shape) SlotOpt { return func(f *slotForm) { f.shape = shape } }

// Slot is a tensor that is remembered for the parameter of a step, in its dtype and, without OfShape, its shape.
func (b *Builder) Slot(s Step, name string, opts ...SlotOpt) Slot {
	n := s.Param.Node
	f := slotForm{shape: n.Shape()}
	for _, o := range opts {
		o(&f)
	}
	node := b.slot(s.Param.Name, name, n.Dtype(), f)
	if node == nil {
		return Slot{b: b.build}
	}
	e := graphops.Of(node)
	if t, merged := formOf(s); merged {
		e = t.Rows(e)
	}
	return Slot{e, b.build, node}
}

// ScalarSlot is a float64 number that is remembered for the parameter of a step.
func (b *Builder) ScalarSlot(s Step, name string, opts ...SlotOpt) Slot {
	return b.number(s.Param.Name, name, opts)
}

// Variable is a float64 number that is remembered for the rule, whatever its parameters.
func (b *Builder) Variable(name string, opts ...SlotOpt) Slot { return b.number("", name, opts) }

func (b *Builder) number(param, name string, opts []SlotOpt) Slot {
	f := slotForm{shape: tensor.ScalarShape()}
	for _, o := range opts {
		o(&f)
	}
	node := b.slot(param, name, tensor.Float64, f)
	if node == nil {
		return Slot{b: b.build}
	}
	return Slot{graphops.ScalarOf(node), b.build, node}
}

func (b *Builder) slot(param, name string, dt tensor.Dtype, f slotForm) *gorgonia.Node {
	full := b.full(name)
	if param != "" {
		full = param + "/" + full
	}
	st, err := b.store.Slot(full, param, dt, f.shape, f.fill)
	if err == nil {
		var node *gorgonia.Node
		if node, err = st.Node(b.g); err == nil {
			return node
		}
	}
	b.fail(err)
	return nil
}

// Each replaces the delta of every step. The delta of the last rule is the whole step, learning rate included, and is
// subtracted from the parameter.
func (b *Builder) Each(in []Step, delta func(Step) Expr) ([]Step, error) {
	return b.each(in, func(s *Step) Expr { s.Delta = delta(*s); return s.Delta })
}

// EachValue replaces the value of every step.
func (b *Builder) EachValue(in []Step, value func(Step) Expr) ([]Step, error) {
	return b.each(in, func(s *Step) Expr { s.Value = value(*s); return s.Value })
}

func (b *Builder) each(in []Step, f func(*Step) Expr) ([]Step, error) {
	out := make([]Step, len(in))
	for i, s := range in {
		if err := f(&s).Err(); err != nil {
			if b.err != nil { // what made the expression fail
				err = b.err
			}
			return nil, errors.Wrapf(err, "parameter %q", s.Param.Name)
		}
		out[i] = s
	}
	return out, b.err
}

func (b *Builder) full(name string) string {
	if b.rule == nil {
		return name
	}
	return b.rule.name + "/" + name
}

func (b *Builder) scalar(st *graphops.State, err error) Expr {
	if err != nil {
		return b.fail(err)
	}
	n, err := st.Node(b.g)
	if err != nil {
		return b.fail(err)
	}
	return graphops.ScalarOf(n)
}

// fail remembers the first error; the zero Expr keeps whatever is made of it from being used.
func (b *Builder) fail(err error) Expr {
	if b.err == nil {
		b.err = err
	}
	return Expr{}
}

// numbered gives the second thing of a name the name "name#2".
func numbered(name string, i int) string {
	if i < 2 {
		return name
	}
	return fmt.Sprintf("%s#%d", name, i)
}
