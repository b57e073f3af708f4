package solvers

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/saved"
)

// Build makes the slots, counters and other variables for the parameters of a model, before the first step, which otherwise makes
// them: to read or set them, to load them, and for StatelessApply. The model is as in Step; nodes need no values yet. What a step
// would refuse is refused, and then nothing is made. To build again, for more parameters, only adds what is new.
func (s *Solver) Build(model []gorgonia.ValueGrad) error {
	if len(model) == 0 {
		return errors.New("solvers: there is nothing to train: the model is empty")
	}
	names, forms, keep, err := s.identify(model)
	if err != nil {
		return err
	}
	if err := s.trial(names, forms, names); err != nil {
		return err
	}
	if _, err := s.private(names, forms, names, s.store, false); err != nil {
		return err
	}
	keep()
	s.params.built = names
	for i, name := range names {
		s.params.form[name] = forms[i]
	}
	return nil
}

// identify finds the names and forms of parameters, which may have no values. What it says holds once keep is called.
func (s *Solver) identify(model []gorgonia.ValueGrad) (names []string, forms []form, keep func(), err error) {
	if err := s.Err(); err != nil {
		return nil, nil, nil, err
	}
	named, err := s.params.name(model)
	if err != nil {
		return nil, nil, nil, err
	}
	for i, m := range model {
		var f form
		switch n := asNode(m); {
		case n != nil && n.Type() != nil:
			f = form{dt: n.Dtype(), shape: n.Shape().Clone()}
		case n == nil && !absent(m.Value()):
			f = form{dt: m.Value().Dtype(), shape: m.Value().Shape().Clone()}
		default:
			return nil, nil, nil, errors.Errorf("solvers: parameter %q has no value", named.names[i])
		}
		if !isFloat(f.dt) {
			return nil, nil, nil, errors.Errorf("solvers: parameter %q is %v, but must be float32 or float64", named.names[i], f.dt)
		}
		if err := s.params.check(named.names[i], f); err != nil {
			return nil, nil, nil, err
		}
		forms = append(forms, f)
	}
	return slices.Clone(named.names), forms, func() { s.params.keep(named) }, nil
}

// Pair is a parameter and its gradient, which may be nil: there is none.
type Pair struct {
	Param gorgonia.ValueGrad // its own gradient is not looked at
	Grad  gorgonia.Value
}

// ApplyGradients is Step with gradients that are given, and stay as they are. Parameters without one are left out, with one
// warning of log/slog in the solver's life; that none has one is an error. No pairs at all are no step: nothing is done, and
// nothing counted.
func (s *Solver) ApplyGradients(pairs []Pair) error {
	if len(pairs) == 0 {
		return s.Err()
	}
	model, grads := make([]gorgonia.ValueGrad, len(pairs)), make([]gorgonia.Value, len(pairs))
	for i, p := range pairs {
		model[i], grads[i] = p.Param, p.Grad
	}
	return s.step(model, grads)
}

// leftOut are the names of those that have no gradient.
func (s *Solver) leftOut(names []string, grads []gorgonia.Value) {
	var without []string
	for i, name := range names {
		if absent(grads[i]) {
			without = append(without, name)
		}
	}
	if without != nil && !s.warned {
		s.warned = true
		slog.Warn("some parameters have no gradient, and are left out", "parameters", without)
	}
}

// StatelessApply computes a step without making it: new values of the parameters and of Variables, of old ones. The solver and
// everything given stay as they are. state is in the order of Variables (see Weights), params and grads are in that of the
// model of Build, or of the first step; a gradient may be nil. Hyperparameters other than learning rates are the solver's own.
//
// Each call builds the update anew: for many steps of one model, Step is quicker.
func (s *Solver) StatelessApply(state, grads, params []gorgonia.Value) (newParams, newState []gorgonia.Value, err error) {
	vars, err := s.accept(state)
	if err != nil {
		return nil, nil, err
	}
	names := s.params.built
	if len(grads) != len(names) || len(params) != len(names) {
		return nil, nil, errors.Errorf("solvers: %d gradients and %d parameters for the %d parameters of Build", len(grads), len(params), len(names))
	}
	var some []string
	var forms []form
	b := &batch{}
	for i, v := range params {
		if absent(v) {
			return nil, nil, errors.Errorf("solvers: parameter %q has no value", names[i])
		}
		fresh, err := saved.Copy(v)
		if err != nil {
			return nil, nil, errors.Wrapf(err, "solvers: parameter %q", names[i])
		}
		newParams = append(newParams, fresh)
		if absent(grads[i]) {
			continue
		}
		if err := s.checkStep(names[i], v, grads[i]); err != nil {
			return nil, nil, err
		}
		some, forms = append(some, names[i]), append(forms, form{v.Dtype(), v.Shape().Clone(), isRows(grads[i])})
		b.values, b.grads = append(b.values, fresh), append(b.grads, grads[i])
	}
	if len(some) == 0 {
		return nil, nil, errors.New("solvers: no parameter has a gradient")
	}
	for i, v := range state {
		if v, err = saved.Copy(v); err != nil {
			return nil, nil, errors.Wrapf(err, "solvers: %s", vars[i].Name())
		}
		newState = append(newState, v)
	}
	return newParams, newState, s.aside(b, some, forms, names, vars, newState)
}

// aside makes a step on other values of the parameters and variables than the solver's.
func (s *Solver) aside(b *batch, some []string, forms []form, all []string, vars []*graphops.State, state []gorgonia.Value) error {
	if err := s.trial(some, forms, all); err != nil {
		return err
	}
	other, store, g := *s, graphops.NewStore(), gorgonia.NewGraph()
	other.bound = maps.Clone(s.bound)
	for i, st := range vars {
		if st.Kind() == graphops.Hyper {
			other.bound[st.Name()] = gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName(st.Name()), gorgonia.WithValue(state[i]))
		}
	}
	if len(s.schedule) > 0 {
		if err := store.Renew(globalStep, nil, s.checkSchedules); err != nil {
			return err
		}
	}
	p, err := other.private(some, forms, all, store, false)
	if err != nil {
		return err
	}
	copies := func(from func(st *graphops.State, v gorgonia.Value) error) error {
		for i, st := range vars {
			if own := store.Lookup(st.Name()); own != nil {
				if err := from(own, state[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := copies((*graphops.State).Assign); err != nil {
		return err
	}
	c, err := p.compile(p.b.updates)
	if err != nil {
		return err
	}
	if err := c.run(b); err != nil {
		return err
	}
	return copies(func(own *graphops.State, v gorgonia.Value) error {
		now, err := own.Value()
		if err != nil {
			return err
		}
		return graphops.Copy(v, now)
	})
}
