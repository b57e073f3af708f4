package solvers

import (
	"reflect"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
)

// holders are the classes of rules that hold others, for configs. They are no optimizers: Names and Lookup do not have them.
// What they hold is in exported fields of the types Rule, []Rule or map[string]Rule; a Composite's is known before the first
// step.
var holders = []preset{
	{"accumulate", func() Rule { return &accumulate{} }},
	{"base", func() Rule { return newBase(nil) }},
	{"chain", func() Rule { return &chain{} }},
	{"ema", func() Rule { return newEMA(nil) }},
	{"lookahead", func() Rule { return newLookahead(nil) }},
	{"loss_scale", func() Rule { return newLossScale(nil) }},
	{"moving_average", func() Rule { return newMovingAverage(nil) }},
	{"multi_optimizer", func() Rule { return &multiOptimizer{} }},
	{"optimizer_map", func() Rule { return &optimizerMap{} }},
	{"rows", func() Rule { return &rows{} }},
	{"restrict", func() Rule { return &restrict{} }},
	{"swa", func() Rule { return newSWA(nil) }},
}

// classFactory finds a factory by the name of a class.
func classFactory(name string) (func() Rule, error) {
	for _, h := range holders {
		if fold(name) == fold(h.name) {
			return h.factory, nil
		}
	}
	return Lookup(name)
}

// newRule makes a rule of a class with its defaults. Options are those of the solver that the factory may have made.
func newRule(name string) (r Rule, opts []Option, err error) {
	factory, err := classFactory(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, errors.Errorf("solvers: the factory of %q panicked: %v", name, p)
		}
	}()
	r = factory()
	for s, ok := r.(*Solver); ok; s, ok = r.(*Solver) {
		if err := s.asRule(); err != nil {
			return nil, nil, err
		}
		r, opts = s.rule, append([]Option{s.options()}, opts...)
	}
	if r == nil {
		return nil, nil, errors.Errorf("solvers: the factory of %q made nothing", name)
	}
	return addressable(r), opts, nil
}

// classOf finds the class of a rule by its type, and makes another rule of it: the class that is called like the type, or else
// the first registered name whose factory makes such a rule.
func classOf(r Rule) (name string, fresh Rule, err error) {
	t := reflect.TypeOf(r)
	if t == nil {
		return "", nil, errors.New("solvers: a rule is nil")
	}
	if t.Kind() == reflect.Func {
		return "", nil, errors.New("solvers: a function has no config: declare a struct with an Apply method, and Register it")
	}
	var names []string
	for _, p := range append(slices.Clone(holders), own...) {
		if t.Kind() == reflect.Pointer && spelling.Fold(p.name) == spelling.Fold(t.Elem().Name()) {
			names = append(names, p.name)
		}
	}
	for _, name := range append(names, Names()...) {
		fresh, _, err := newRule(name)
		if err == nil && reflect.TypeOf(fresh) == t {
			return name, fresh, nil
		}
	}
	return "", nil, errors.Errorf("solvers: a %v has no config: make its type known with Register", t)
}
