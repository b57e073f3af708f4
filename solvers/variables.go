package solvers

import (
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/saved"
)

// Variables are what the solver remembers between steps, in a stable order: the global step, the learning rates that are
// numbers and not schedules, and then counters and slots as Build, or the first step, made them, and those of AddVariable.
// There are none before. Other hyperparameters are no variables: Config has them.
func (s *Solver) Variables() (all []*graphops.State) {
	if s.Err() != nil {
		return nil
	}
	var rates, rest []*graphops.State
	for _, st := range s.store.States() {
		switch name := st.Name(); {
		case name == globalStep:
			all = append(all, st)
		case st.Kind() != graphops.Hyper:
			rest = append(rest, st)
		case strings.HasSuffix(name, "/learning_rate") && s.scheduled(name) == nil && s.bound[name] == nil:
			rates = append(rates, st)
		}
	}
	return append(append(all, rates...), rest...)
}

// Weights are copies of the values of Variables, in their order.
func (s *Solver) Weights() (values []gorgonia.Value, err error) {
	if err := s.CatchUp(); err != nil {
		return nil, err
	}
	for _, st := range s.Variables() {
		v, err := st.Value()
		if err != nil {
			return nil, err
		}
		if v, err = saved.Copy(v); err != nil {
			return nil, errors.Wrapf(err, "solvers: %s", st.Name())
		}
		values = append(values, v)
	}
	return values, nil
}

// SetWeights gives Variables other values, which are copied: one for each, of its dtype and shape, in their order. Another
// number of them, a value that does not fit, or that is illegal for a counter or a learning rate, is an error, and then
// nothing is changed. Before Build there is nothing to set, and between UseAverages and its end, after which the weights of before come
// back, it is an error.
func (s *Solver) SetWeights(values []gorgonia.Value) error {
	vars, err := s.accept(values)
	if err == nil {
		err = s.store.Locked()
	}
	if err != nil {
		return err
	}
	for i, st := range vars {
		if err := st.Assign(values[i]); err != nil {
			return errors.Wrap(err, "solvers")
		}
	}
	return nil
}

// accept are the variables that a list of values is for.
func (s *Solver) accept(values []gorgonia.Value) ([]*graphops.State, error) {
	if err := s.CatchUp(); err != nil {
		return nil, err
	}
	vars := s.Variables()
	if len(vars) == 0 {
		return nil, errors.New("solvers: there are no variables yet: call Build")
	}
	if len(values) != len(vars) {
		return nil, errors.Errorf("solvers: %d values for %d variables", len(values), len(vars))
	}
	for i, st := range vars {
		if err := st.Takes(values[i]); err != nil {
			return nil, errors.Wrapf(err, "solvers: value %d", i)
		}
	}
	return vars, nil
}

// AddVariable makes a variable of the solver's, which is saved and reset with the others: float32 or float64, of any shape,
// with any first values. A name that something else has, or that is of the form of the solver's own (global_step, adam/step, w/adam/m),
// is an error. For those of a rule, see Builder.Slot and
// Builder.Variable.
func (s *Solver) AddVariable(name string, dt tensor.Dtype, shape tensor.Shape, first graphops.Initializer) (*graphops.State, error) {
	return s.variable(name, "", dt, shape, first)
}

func (s *Solver) variable(name, param string, dt tensor.Dtype, shape tensor.Shape, first graphops.Initializer) (*graphops.State, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	if strings.Trim(name, "/ ") == "" {
		return nil, errors.Errorf("solvers: %q is no name of a variable", name)
	}
	if s.store.Lookup(name) != nil {
		return nil, errors.Errorf("solvers: there is already a variable %q", name)
	}
	if s.reserved(name) {
		return nil, errors.Errorf("solvers: a variable %q may be the solver's own: take another name", name)
	}
	return s.store.Variable(name, param, dt, shape, first)
}

// reserved reports whether a name is one that the solver or one of its rules may give to a state.
func (s *Solver) reserved(name string) bool {
	parts := strings.Split(name, "/")
	return name == globalStep || len(parts) > 1 && slices.ContainsFunc(s.rules, func(r *ruleInfo) bool { return r.name == parts[len(parts)-2] })
}

// AddVariableFromReference is AddVariable for one of the model's parameters, of its dtype and shape. Its name is
// <name of the parameter>/<name>.
func (s *Solver) AddVariableFromReference(of gorgonia.ValueGrad, name string, first graphops.Initializer) (*graphops.State, error) {
	made, err := s.AddOptimizerVariables([]gorgonia.ValueGrad{of}, []string{name}, first)
	if err != nil {
		return nil, err
	}
	return made[0][0], nil
}

// AddOptimizerVariables makes variables for each of some parameters, under each of some names: made[i][k] is names[i] of
// model[k]. They are made parameter by parameter. There is one initializer for each name, or one for all; none means zeros.
// Either all are made or none.
func (s *Solver) AddOptimizerVariables(model []gorgonia.ValueGrad, names []string, first ...graphops.Initializer) (made [][]*graphops.State, err error) {
	if len(first) == 0 {
		first = make([]graphops.Initializer, 1)
	}
	if len(first) != 1 && len(first) != len(names) {
		return nil, errors.Errorf("solvers: %d initializers for %d names", len(first), len(names))
	}
	params, forms, keep, err := s.identify(model)
	if err != nil {
		return nil, err
	}
	for _, f := range first {
		if err := f.Validate(); err != nil {
			return nil, errors.Wrap(err, "solvers")
		}
	}
	seen := map[string]bool{}
	for _, param := range params {
		for _, name := range names {
			full := param + "/" + name
			if seen[full] || s.store.Lookup(full) != nil || s.reserved(full) || strings.Trim(name, "/ ") == "" {
				return nil, errors.Errorf("solvers: %q is no name of a new variable", full)
			}
			seen[full] = true
		}
	}
	keep()
	made = make([][]*graphops.State, len(names))
	for k, param := range params {
		for i, name := range names {
			st, err := s.variable(param+"/"+name, param, forms[k].dt, forms[k].shape, first[min(i, len(first)-1)])
			if err != nil {
				return nil, err
			}
			made[i] = append(made[i], st)
		}
	}
	return made, nil
}
