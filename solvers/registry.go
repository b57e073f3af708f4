package solvers

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
	"optimop/internal/suggest"
)

// registry holds the optimizers by folded name. It is the only state of the package.
var registry = struct {
	sync.Mutex
	factory map[string]func() Rule
	name    map[string]string // as registered
}{factory: map[string]func() Rule{}, name: map[string]string{}}

func init() {
	add := func(prefix string, ps []preset) {
		for _, p := range ps {
			name := prefix + p.name
			registry.factory[fold(name)], registry.name[fold(name)] = p.factory, name
		}
	}
	add("", own)
	for family, ps := range families {
		add(family+"/", ps)
	}
}

// Register makes a rule available by name: to Lookup, FromConfig and configs. The factory must return a new rule at each
// call, with its defaults set. Names that differ only in case, "_", "-" or the ending "Optimizer" are the same. A name that is taken
// stays with its first owner, and is an error.
func Register(name string, factory func() Rule) error {
	registry.Lock()
	defer registry.Unlock()
	key := fold(name)
	switch {
	case slices.ContainsFunc(strings.Split(key, "/"), func(part string) bool { return strings.TrimSpace(part) == "" }):
		return errors.Errorf("solvers: Register: %q is no name", name)
	case factory == nil:
		return errors.Errorf("solvers: Register: the factory of %q is nil", name)
	case slices.ContainsFunc(holders, func(h preset) bool { return fold(h.name) == key }):
		return errors.Errorf("solvers: Register: %q is a rule that holds others", name)
	case registry.factory[key] != nil:
		return errors.Errorf("solvers: Register: %q is taken by %q", name, registry.name[key])
	}
	registry.factory[key], registry.name[key] = factory, name
	return nil
}

// Lookup finds a factory by name.
func Lookup(name string) (func() Rule, error) {
	registry.Lock()
	f := registry.factory[fold(name)]
	registry.Unlock()
	if f == nil {
		return nil, errors.Errorf("solvers: no optimizer is called %q%s", name, suggest.For(fold(name), Names()))
	}
	return f, nil
}

// Resolve finds a factory by whatever names an optimizer in RETURNN's configs: a name, a function that returns a name, a factory
// or a rule, which is then the one that every call of the factory returns.
func Resolve(class any) (_ func() Rule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("solvers: the function that names an optimizer panicked: %v", p)
		}
	}()
	switch c := class.(type) {
	case string:
		return Lookup(c)
	case func() string:
		if c != nil {
			return Lookup(c())
		}
	case func() Rule:
		if c != nil {
			return c, nil
		}
	case func() *Solver:
		if c != nil {
			return func() Rule { return c() }, nil
		}
	case Rule:
		if _, err := walk(c, nil); err != nil {
			return nil, err
		}
		return func() Rule { return c }, nil
	}
	return nil, errors.Errorf("solvers: %T names no optimizer: want a name, a function that returns one, a factory or a rule", class)
}

// Names are the registered names in alphabetical order.
func Names() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Sorted(maps.Values(registry.name))
}

// Optimizers are those of the registered names that can be used alone: all but those of a Transformation.
func Optimizers() []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		s, err := FromConfig(name, nil)
		return err == nil && !s.Optimizes()
	})
}

// FromConfig makes a solver by name, with options by the names of the rule's fields in snake case: "learning_rate", or
// "adam/learning_rate" where several rules have one; the short name means the last of them, the optimizer itself. The
// spellings of the original libraries are understood too (lr, min_lr, betas, l1_regularization_strength, …), but not options that
// the rule does not have. Every optimizer has those of Keras' base class, which put a Base around it (weight_decay, clipnorm, use_ema, …);
// where its rule has one of that name, it is the rule's. Values
// are numbers, truth values, strings and lists as JSON has them. An unknown name or option is an error with a suggestion. The
// options "use_locking" (true or false) and "name" (a string) of TensorFlow's optimizers are accepted and mean nothing here.
func FromConfig(name string, options map[string]any, opts ...Option) (_ *Solver, err error) {
	r, own, err := configuredRule(name, options, 0)
	if err != nil {
		return nil, err
	}
	s := New(r, append(own, opts...)...)
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

func fold(name string) string {
	s := spelling.Fold(name)
	if short := strings.TrimSuffix(s, "optimizer"); short != "" && !strings.HasSuffix(short, "/") {
		return short
	}
	return s
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
