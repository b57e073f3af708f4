package solvers

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"optimop/internal/suggest"
)

// registry holds the optimizers by folded name. It is the only state of the package.
var registry = struct {
	sync.Mutex
	factory map[string]func() Rule
	name    map[string]string // as registered
}{factory: map[string]func() Rule{}, name: map[string]string{}}

func init() {
	for _, e := range []struct {
		name    string
		factory func() Rule
	}{
		{"adam", func() Rule { return NewAdam() }},
		{"adamw", func() Rule { return NewAdamW() }},
		{"clip_by_global_norm", func() Rule { return NewClipByGlobalNorm(1) }},
		{"momentum", func() Rule { return NewMomentum() }},
		{"nesterov", func() Rule { return NewNesterov() }},
		{"sgd", func() Rule { return NewSGD() }},
	} {
		registry.factory[fold(e.name)], registry.name[fold(e.name)] = e.factory, e.name
	}
}

// Register makes a rule available by name: to Lookup, FromConfig and configs. The factory must return a new rule at each
// call, with its defaults set. Case, "_", "-" and the ending "Optimizer" do not distinguish names. A name that is taken
// stays with its first owner, and is an error.
func Register(name string, factory func() Rule) error {
	registry.Lock()
	defer registry.Unlock()
	key := fold(name)
	switch {
	case key == "":
		return errors.Errorf("solvers: Register: %q is no name", name)
	case factory == nil:
		return errors.Errorf("solvers: Register: the factory of %q is nil", name)
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
		return nil, errors.Errorf("solvers: no optimizer is called %q%s", name, suggest.For(name, Names()))
	}
	return f, nil
}

// Names are the registered names in alphabetical order.
func Names() []string {
	registry.Lock()
	defer registry.Unlock()
	return slices.Sorted(maps.Values(registry.name))
}

// FromConfig makes a solver by name, with options by the names of the rule's fields in snake case: "learning_rate". Values
// are numbers, truth values and strings as JSON has them. An unknown name or option is an error with a suggestion.
func FromConfig(name string, options map[string]any, opts ...Option) (_ *Solver, err error) {
	factory, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("solvers: the factory of %q panicked: %v", name, p)
		}
	}()
	r := factory()
	for s, ok := r.(*Solver); ok; s, ok = r.(*Solver) {
		if err := s.Err(); err != nil {
			return nil, err
		}
		r, opts = s.rule, append([]Option{s.options()}, opts...)
	}
	r = addressable(r)
	if err := setOptions(r, options); err != nil {
		return nil, errors.Wrapf(err, "solvers: %s", name)
	}
	s := New(r, opts...)
	return s, s.err
}

// letters drops what does not distinguish names.
func letters(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

func fold(name string) string {
	s := letters(name)
	if short := strings.TrimSuffix(s, "optimizer"); short != "" {
		return short
	}
	return s
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
