package solvers

import (
	"reflect"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Step updates the values of a model from their gradients, as Gorgonia's own solvers do, and then sets the gradients to
// zero: those that belong to dual values (gorgonia.BindDualValues, a LispMachine) or to the caller's ValueGrads, but neither the
// values of the graph's derivative nodes, nor memory that overlaps with a parameter, a slot or a node that Bind named. It accepts
// float32 and float64 scalars and tensors of any layout.
//
// State belongs to parameters by name, never by position: the model may be reordered or be a part of the last one. An error
// (a missing gradient, a changed shape, two parameters that share memory) names the parameter and leaves everything as it
// was. A machine that is not Reset between runs computes nothing, and Step then gets gradients of zero.
//
// From the second step on the same model, Step allocates no memory.
func (s *Solver) Step(model []gorgonia.ValueGrad) error { return s.step(model, nil) }

// step is Step, with the gradients in grads if it is not nil; those are left as they are, and may be missing.
func (s *Solver) step(model []gorgonia.ValueGrad, grads []gorgonia.Value) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Errorf("solvers: Step: %v", r)
		}
	}()
	if err := s.Err(); err != nil {
		return err
	}
	if len(model) == 0 {
		return errors.New("solvers: there is nothing to train: the model is empty")
	}
	named, err := s.params.name(model)
	if err != nil {
		return err
	}
	names := named.names
	b := &s.batch
	defer b.clear()
	p := named.step // the plan of the last step, as long as all is as it was then
	for i, m := range model {
		v := m.Value()
		if absent(v) {
			return errors.Errorf("solvers: parameter %q has no value", names[i])
		}
		var g gorgonia.Value
		if grads != nil {
			g = grads[i]
		} else {
			g, err = m.Grad()
		}
		b.keep = append(b.keep, v)
		if (s.missing || grads != nil) && (err != nil || absent(g)) {
			err = nil
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "solvers: parameter %q has no gradient: call gorgonia.Grad, bind dual values and run the machine "+
				"before Step (after Minimize, the run has already made the step)", names[i])
		}
		if absent(g) {
			return errors.Errorf("solvers: parameter %q has no gradient yet: run the machine first", names[i])
		}
		if p == nil || !p.takes(len(b.names), names[i], v, g) {
			p = nil
			if err := s.checkStep(names[i], v, g); err != nil {
				return err
			}
		}
		b.names, b.values, b.grads = append(b.names, names[i]), append(b.values, v), append(b.grads, g)
		if n := asNode(m); grads == nil && (n == nil || n.Deriv() == nil || n.Deriv().Value() != g) {
			b.own(g)
		}
	}
	if len(b.names) == 0 {
		return errors.New("solvers: no parameter has a gradient")
	}
	if p == nil || len(p.names) != len(b.names) {
		if p, err = s.plan(b.names, b.values, b.grads, names); err != nil {
			return err
		}
	}
	if err := p.run(b); err != nil {
		return err
	}
	if grads != nil {
		s.leftOut(names, grads)
	}
	again := named.step == p
	s.params.train(named)
	if !again {
		for i, name := range p.names {
			s.params.form[name] = p.forms[i]
		}
	}
	named.step = p
	return nil
}

// batch is what one step works on. Each step uses the solver's again, so that it allocates nothing.
type batch struct {
	names                []string // of the parameters that have gradients
	values, grads, owned []gorgonia.Value
	keep                 []gorgonia.Value // what must not be set to zero: all parameters and, in the end, slots
}

// own adds a gradient that will be set to zero: of one of rows the values.
func (b *batch) own(g gorgonia.Value) {
	r, ok := g.(*graphops.Rows)
	switch {
	case !ok:
		b.owned = append(b.owned, g)
	case r.Values != nil:
		b.owned = append(b.owned, r.Values)
	}
}

// isRows reports whether a gradient is one of rows.
func isRows(g gorgonia.Value) bool {
	_, ok := g.(*graphops.Rows)
	return ok
}

// clear lets go of all values, so that the memory of gradients is free between steps.
func (b *batch) clear() {
	clear(b.values)
	clear(b.grads)
	clear(b.owned)
	clear(b.keep)
	b.names, b.values, b.grads, b.owned, b.keep = b.names[:0], b.values[:0], b.grads[:0], b.owned[:0], b.keep[:0]
}

func absent(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

func (s *Solver) checkStep(name string, v, g gorgonia.Value) error {
	switch {
	case !isFloat(v.Dtype()):
		return errors.Errorf("solvers: parameter %q is %v, but must be float32 or float64", name, v.Dtype())
	case v.Dtype() != g.Dtype():
		return errors.Errorf("solvers: parameter %q is %v, its gradient %v", name, v.Dtype(), g.Dtype())
	case !v.Shape().Eq(g.Shape()):
		return errors.Errorf("solvers: parameter %q has shape %v, its gradient %v", name, v.Shape(), g.Shape())
	}
	return s.params.check(name, form{dt: v.Dtype(), shape: v.Shape()})
}

// stepPlan is the update of a list of parameters, compiled on a graph of leaves that no machine runs.
type stepPlan struct {
	b      *build
	names  []string
	forms  []form
	source map[*gorgonia.Node]source
	grads  []*gorgonia.Node
	zeroes *compiled // also sets the gradients to zero, in the same pass
	plain  *compiled // does not; made when it is needed
	alone  bool      // that pass would see all memory that must be kept: all parameters are updated, and no hyperparameter is a node
	shared bool      // gradients share memory, so that they have to be set to zero afterwards
	zero   graphops.Zeroer
}

// compiled is a plan with the sources of its leaves.
type compiled struct {
	plan   *graphops.Plan
	leaves []source
	values []gorgonia.Value
}

// source says where a step finds the value of a leaf: the zero source is the store.
type source struct {
	kind  sourceKind
	index int            // of a parameter or of its gradient
	node  *gorgonia.Node // of the user's, for a hyperparameter
}

type sourceKind uint8

const (
	state sourceKind = iota
	parameter
	gradient
	hyper
)

// maxPlans bounds the plans that a solver keeps, for those who step ever other parts of a model.
const maxPlans = 64

// plan finds the plan for parameters of these names and forms, or makes it.
func (s *Solver) plan(names []string, values, grads []gorgonia.Value, all []string) (*stepPlan, error) {
	for _, p := range s.plans {
		if p.fits(names, values, grads) {
			return p, nil
		}
	}
	forms := make([]form, len(values))
	for i, v := range values {
		forms[i] = form{v.Dtype(), v.Shape().Clone(), isRows(grads[i])}
	}
	if err := s.trial(names, forms, all); err != nil {
		return nil, err
	}
	p, err := s.private(names, forms, all, s.store, false)
	if err != nil {
		return nil, err
	}
	updates := slices.Clone(p.b.updates)
	p.alone = len(s.bound) == 0
	for i, d := range p.grads {
		if forms[i].rows { // whose values are set to zero afterwards
			p.alone = false
			continue
		}
		updates = append(updates, graphops.Update{Target: d, Value: never.Select(graphops.Of(d), zero)})
	}
	if p.alone {
		if p.zeroes, err = p.compile(updates); err != nil {
			return nil, err
		}
	}
	targets := map[*gorgonia.Node]bool{}
	for _, u := range p.b.updates {
		targets[u.Target] = true
	}
	for n, from := range p.source {
		p.alone = p.alone && (from.kind != parameter || targets[n])
	}
	if len(s.plans) == maxPlans {
		s.plans = s.plans[1:]
	}
	s.plans = append(s.plans, p)
	return p, nil
}

func (p *stepPlan) fits(names []string, values, grads []gorgonia.Value) bool {
	if !slices.Equal(p.names, names) {
		return false
	}
	for i, v := range values {
		if !p.forms[i].is(v) || p.forms[i].rows != isRows(grads[i]) {
			return false
		}
	}
	return true
}

// takes reports whether a value and its gradient fit the k-th parameter.
func (p *stepPlan) takes(k int, name string, v, g gorgonia.Value) bool {
	return k < len(p.names) && p.names[k] == name && p.forms[k].is(v) && p.forms[k].is(g) && p.forms[k].rows == isRows(g)
}

func (f *form) is(v gorgonia.Value) bool {
	return v.Dtype() == f.dt && slices.Equal(v.Shape(), f.shape)
}

// private builds the update for parameters and gradients that are inputs of a graph of their own; all are the names of those
// that get no step, too.
func (s *Solver) private(names []string, forms []form, all []string, store *graphops.Store, trial bool) (*stepPlan, error) {
	g := gorgonia.NewGraph()
	p := &stepPlan{names: slices.Clone(names), forms: forms, source: map[*gorgonia.Node]source{}}
	input := func(dt tensor.Dtype, shape tensor.Shape, kind, name string) *gorgonia.Node {
		return gorgonia.NewTensor(g, dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(kind+" "+name))
	}
	pass := &build{g: g, store: store, names: all, trial: trial}
	steps := make([]Step, len(names))
	var err error
	for i, f := range forms {
		w, d := input(f.dt, f.shape, "parameter", names[i]), input(f.dt, f.shape, "gradient of", names[i])
		p.source[w], p.source[d] = source{kind: parameter, index: i}, source{kind: gradient, index: i}
		p.grads = append(p.grads, d)
		steps[i] = Step{Param{names[i], w}, graphops.Of(w), graphops.Of(d)}
		if f.rows && !s.expanded {
			if steps[i], err = rowsOf(steps[i], d); err != nil {
				return nil, err
			}
		}
	}
	bound := map[string]*gorgonia.Node{}
	pass.bound = bound
	for name, n := range s.bound {
		bound[name] = input(n.Dtype(), tensor.ScalarShape(), "hyperparameter", name)
		p.source[bound[name]] = source{kind: hyper, node: n}
	}
	p.b, err = s.build(pass, steps)
	return p, err
}

func (p *stepPlan) compile(updates []graphops.Update) (*compiled, error) {
	plan, err := graphops.Compile(updates, append(slices.Clone(p.b.when), graphops.From(p.b.store))...)
	if err != nil {
		return nil, err
	}
	c := &compiled{plan: plan}
	for _, n := range plan.Leaves() {
		c.leaves = append(c.leaves, p.source[n])
	}
	c.values = make([]gorgonia.Value, len(c.leaves))
	return c, nil
}

// run makes the step, and sets the gradients that are the caller's to zero.
func (p *stepPlan) run(b *batch) (err error) {
	if p.alone && !p.shared && len(b.owned) == len(b.grads) && len(b.keep) == len(b.values) {
		err := p.zeroes.run(b)
		if err == nil || !errors.As(err, new(graphops.SharedMemoryError)) {
			return err
		}
		p.shared = true // or parameters do, which the plain plan will say
	}
	if p.plain == nil {
		if p.plain, err = p.compile(p.b.updates); err != nil {
			return err
		}
	}
	for _, st := range p.b.store.States() {
		if st.Kind() != graphops.Slot {
			continue
		}
		v, err := st.Value()
		if err != nil {
			return err
		}
		b.keep = append(b.keep, v)
	}
	for _, l := range p.plain.leaves {
		if l.kind == hyper && l.node.Value() != nil {
			b.keep = append(b.keep, l.node.Value())
		}
	}
	return p.zero.After(func() error { return p.plain.run(b) }, b.owned, b.keep)
}

func (c *compiled) run(b *batch) error {
	defer clear(c.values)
	for k := range c.leaves {
		switch l := &c.leaves[k]; l.kind {
		case parameter:
			c.values[k] = b.values[l.index]
		case gradient:
			c.values[k] = b.grads[l.index]
		case hyper:
			c.values[k] = l.node.Value()
		}
	}
	return c.plan.Run(c.values)
}
