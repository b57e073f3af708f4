package schedule

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
	"optimop/internal/suggest"
)

// registry holds the classes by folded name. It is the only state of the package.
var registry = struct {
	sync.Mutex
	classes map[string]class
}{classes: map[string]class{}}

// class is a kind of schedules that configs can name.
type class struct {
	name    string
	factory func() Schedule
	typ     reflect.Type
}

func init() {
	for _, c := range []struct {
		name    string
		factory func() Schedule
	}{
		{"constant", func() Schedule { return Constant{} }},
		{"interval_decay", func() Schedule { return IntervalDecay{} }},
		{"exponential_decay", func() Schedule { return NewExponentialDecay(0, 0, 0) }},
		{"noam", func() Schedule { return NewNoam(0, 0) }},
		{"inverse_time_decay", func() Schedule { return NewInverseTimeDecay(0, 0, 0) }},
		{"linear", func() Schedule { return NewLinear(0, 0, 0) }},
		{"polynomial_decay", func() Schedule { return NewPolynomialDecay(0, 0) }},
		{"cosine_decay", func() Schedule { return NewCosineDecay(0, 0) }},
		{"warmup_cosine_decay", func() Schedule { return NewWarmupCosineDecay(0, 0, 0, 0) }},
		{"cosine_decay_restarts", func() Schedule { return NewCosineDecayRestarts(0, 0) }},
		{"cosine_annealing", func() Schedule { return NewCosineAnnealing(0, 0) }},
		{"piecewise_constant_decay", func() Schedule { return NewPiecewiseConstantDecay(nil, nil) }},
		{"piecewise_interpolate", func() Schedule { return NewPiecewiseInterpolate(nil, nil) }},
		{"step_decay", func() Schedule { return NewStepDecay(0, 0) }},
		{"multi_step_decay", func() Schedule { return NewMultiStepDecay(0, nil) }},
		{"one_cycle", func() Schedule { return NewOneCycle(0, 0) }},
		{"cyclic", func() Schedule { return NewCyclic(0, 0, 0) }},
		{"sequential", func() Schedule { return Sequential{} }},
		{"warmup", func() Schedule { return NewWarmup(nil, 0) }},
		{"product", func() Schedule { return Product{} }},
	} {
		registry.classes[spelling.Fold(c.name)] = class{c.name, c.factory, reflect.TypeOf(c.factory())}
	}
}

// Register makes a class of schedules available by name in configs. The factory returns a struct with its defaults, or a
// new pointer to one at each call; the exported fields are the options. Names that differ only in case, "_" or "-" are the
// same. A name or a type that is taken stays with its first owner, and is an error.
//
// Fields may be numbers, truth values, strings, schedules, and lists of these. The tag `schedule:"required"` marks an option
// that has no default; the tag `alias:"a,b"` gives other names by which configs may call it.
func Register(name string, factory func() Schedule) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("schedule: Register: the factory of %q panicked: %v", name, p)
		}
	}()
	key := spelling.Fold(name)
	if strings.TrimSpace(key) == "" {
		return errors.Errorf("schedule: Register: %q is no name", name)
	}
	if factory == nil {
		return errors.Errorf("schedule: Register: the factory of %q is nil", name)
	}
	s := factory()
	v := reflect.ValueOf(s)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return errors.Errorf("schedule: Register: %q is a %T, but must be a struct or a pointer to one", name, s)
	}
	registry.Lock()
	defer registry.Unlock()
	if old, ok := registry.classes[key]; ok {
		return errors.Errorf("schedule: Register: %q is taken by %q", name, old.name)
	}
	for _, old := range registry.classes {
		if old.typ == v.Type() {
			return errors.Errorf("schedule: Register: %v is already called %q", v.Type(), old.name)
		}
	}
	registry.classes[key] = class{name, factory, v.Type()}
	return nil
}

// Names are the registered names in alphabetical order.
func Names() []string {
	var names []string
	for _, c := range classes() {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

func classes() []class {
	registry.Lock()
	defer registry.Unlock()
	return slices.Collect(maps.Values(registry.classes))
}

// lookup finds a class by name.
func lookup(name string) (class, error) {
	registry.Lock()
	c, ok := registry.classes[spelling.Fold(name)]
	registry.Unlock()
	if !ok {
		return c, errors.Errorf("schedule: no schedule is called %q%s", name, suggest.For(name, Names()))
	}
	return c, nil
}

// classOf finds the class of a schedule.
func classOf(s Schedule) (class, bool) {
	t := reflect.TypeOf(s)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, c := range classes() {
		if c.typ == t {
			return c, true
		}
	}
	return class{}, false
}

// title names a schedule for people.
func title(s Schedule) string {
	if c, ok := classOf(s); ok {
		return c.name
	}
	return fmt.Sprintf("%T", s)
}

// configured applies the caller's options to a schedule with its defaults.
func configured[S any](s S, options []func(*S)) S {
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	return s
}
