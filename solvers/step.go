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
// zero: those that belong to dual values (gorgonia.BindDualValues, a LispMachine) or to the caller's ValueGrads, but never
// the value of a node of the graph. It accepts float32 and float64 scalars and tensors of any layout.
//
// State belongs to parameters by name, never by position: the model may be reordered or be a part of the last one. An error
// (a missing gradient, a changed shape, two parameters that share memory) names the parameter and leaves everything as it
// was. A machine that is not Reset between runs computes nothing, and Step then gets gradients of zero.
func (s *Solver) Step(model []gorgonia.ValueGrad) (err error) {
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
	var keep []string
	var values, grads []gorgonia.Value
	var owned []gorgonia.Value
	for i, m := range model {
		v := m.Value()
		if absent(v) {
			return errors.Errorf("solvers: parameter %q has no value", names[i])
		}
		g, err := m.Grad()
		if s.missing && (err != nil || absent(g)) {
			continue
		}
		if err != nil {
			return errors.Wrapf(err, "solvers: parameter %q has no gradient: call gorgonia.Grad, bind dual values and run the machine "+
				"before Step (after Minimize, the run has already made the step)", names[i])
		}
		if absent(g) {
			return errors.Errorf("solvers: parameter %q has no gradient yet: run the machine first", names[i])
		}
		if err := s.checkStep(names[i], v, g); err != nil {
			return err
		}
		keep, values, grads = append(keep, names[i]), append(values, v), append(grads, g)
		if n := asNode(m); n == nil || n.Deriv() == nil || n.Deriv().Value() != g {
			owned = append(owned, g)
		}
	}
	if len(keep) == 0 {
		return errors.New("solvers: no parameter has a gradient")
	}
	p, err := s.plan(keep, values, names)
	if err != nil {
		return err
	}
	if err := p.run(values, grads); err != nil {
		return err
	}
	s.params.keep(named)
	for i, name := range keep {
		s.params.form[name] = form{values[i].Dtype(), values[i].Shape().Clone()}
	}
	return new(graphops.Zeroer).Zero(owned, values)
}

func absent(v gorgonia.Value) bool {
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
	return s.params.check(name, form{v.Dtype(), v.Shape()})
}

// stepPlan is the update of a list of parameters, compiled on a graph of leaves that no machine runs.
type stepPlan struct {
	b      *build
	names  []string
	forms  []form
	plan   *graphops.Plan
	param  map[*gorgonia.Node]int // leaf → parameter
	grad   map[*gorgonia.Node]int // leaf → gradient of parameter
	hyper  map[*gorgonia.Node]*gorgonia.Node
	values []gorgonia.Value
}

// maxPlans bounds the plans that a solver keeps, for those who step ever other parts of a model.
const maxPlans = 64

// plan finds the plan for parameters of these names and forms, or makes it.
func (s *Solver) plan(names []string, values []gorgonia.Value, all []string) (*stepPlan, error) {
	for _, p := range s.plans {
		if p.fits(names, values) {
			return p, nil
		}
	}
	forms := make([]form, len(values))
	for i, v := range values {
		forms[i] = form{v.Dtype(), v.Shape().Clone()}
	}
	if err := s.trial(names, forms, all); err != nil {
		return nil, err
	}
	p, err := s.private(names, forms, all, s.store, false)
	if err != nil {
		return nil, err
	}
	if p.plan, err = graphops.Compile(p.b.updates, graphops.From(s.store)); err != nil {
		return nil, err
	}
	p.values = make([]gorgonia.Value, len(p.plan.Leaves()))
	if len(s.plans) == maxPlans {
		s.plans = s.plans[1:]
	}
	s.plans = append(s.plans, p)
	return p, nil
}

func (p *stepPlan) fits(names []string, values []gorgonia.Value) bool {
	if !slices.Equal(p.names, names) {
		return false
	}
	for i, v := range values {
		if v.Dtype() != p.forms[i].dt || !slices.Equal(v.Shape(), p.forms[i].shape) {
			return false
		}
	}
	return true
}

// private builds the update for parameters and gradients that are inputs of a graph of their own; all are the names of those
// that get no step, too.
func (s *Solver) private(names []string, forms []form, all []string, store *graphops.Store, trial bool) (*stepPlan, error) {
	g := gorgonia.NewGraph()
	p := &stepPlan{names: slices.Clone(names), forms: forms, param: map[*gorgonia.Node]int{}, grad: map[*gorgonia.Node]int{},
		hyper: map[*gorgonia.Node]*gorgonia.Node{}}
	input := func(dt tensor.Dtype, shape tensor.Shape, kind, name string) *gorgonia.Node {
		return gorgonia.NewTensor(g, dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(kind+" "+name))
	}
	steps := make([]Step, len(names))
	for i, f := range forms {
		w, d := input(f.dt, f.shape, "parameter", names[i]), input(f.dt, f.shape, "gradient of", names[i])
		p.param[w], p.grad[d] = i, i
		steps[i] = Step{Param{names[i], w}, graphops.Of(w), graphops.Of(d)}
	}
	bound := map[string]*gorgonia.Node{}
	for name, n := range s.bound {
		bound[name] = input(n.Dtype(), tensor.ScalarShape(), "hyperparameter", name)
		p.hyper[bound[name]] = n
	}
	var err error
	p.b, err = s.build(&build{g: g, store: store, bound: bound, names: all, trial: trial}, steps)
	return p, err
}

func (p *stepPlan) run(values, grads []gorgonia.Value) error {
	for k, n := range p.plan.Leaves() {
		if i, ok := p.param[n]; ok {
			p.values[k] = values[i]
		} else if i, ok := p.grad[n]; ok {
			p.values[k] = grads[i]
		} else if h := p.hyper[n]; h != nil {
			p.values[k] = h.Value()
		} else {
			p.values[k] = nil // the store's
		}
	}
	defer clear(p.values)
	return p.plan.Run(p.values)
}
