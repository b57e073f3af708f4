package graphops

import (
	"slices"
	"sync"
	"weak"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Kind says what a state is for.
type Kind uint8

const (
	Slot    Kind = iota // a tensor or scalar that an optimizer remembers, mostly for one parameter
	Counter             // an int64, zero at the start
	Hyper               // a float64 that the user sets
)

// Store owns named states: what an optimizer remembers between steps, apart from any graph. A graph reads and writes a
// state through a node, and several graphs (another batch size, another loss) have nodes of the same states. A Store is for
// one goroutine at a time, but for Between.
type Store struct {
	running sync.Mutex
	states  []*State
	byName  map[string]*State
	nodes   map[weak.Pointer[gorgonia.Node]]*State
	names   names // on the graph of the last new node
	changes int   // counts the nodes that were made
	locked  error
}

// State is one value of a store.
type State struct {
	value gorgonia.Value // the one object that every node is bound to
	check func(float64) error
	nodes []weak.Pointer[gorgonia.Node]
	store *Store
	name  string
	kind  Kind
	param string
	first Initializer // of a slot
}

// NewStore makes an empty store.
func NewStore() *Store { return &Store{} }

// Slot returns the slot of that name, filled with a value at its first use. param says which parameter it is for, or "".
// Asking for it with another dtype or shape is an error.
func (s *Store) Slot(name, param string, dt tensor.Dtype, shape tensor.Shape, fill float64) (*State, error) {
	return s.Variable(name, param, dt, shape, Initializer{Name: "constant", Value: fill})
}

// Variable is Slot with another initializer, which Reset uses again.
func (s *Store) Variable(name, param string, dt tensor.Dtype, shape tensor.Shape, first Initializer) (st *State, err error) {
	defer rescue(&err, "slot "+name) // of an impossible shape
	if dt != tensor.Float32 && dt != tensor.Float64 {
		return nil, errors.Errorf("graphops: slot %q: dtype must be float32 or float64, not %v", name, dt)
	}
	if old := s.byName[name]; old != nil {
		if v := old.value; old.kind != Slot || v.Dtype() != dt || !v.Shape().Eq(shape) {
			return nil, errors.Errorf("graphops: slot %q is %v of shape %v, not %v of shape %v", name, v.Dtype(), v.Shape(), dt, shape)
		}
		return old, nil
	}
	if err := first.Validate(); err != nil {
		return nil, errors.Wrapf(err, "graphops: slot %q", name)
	}
	var v gorgonia.Value
	switch {
	case !shape.IsScalar():
		v = tensor.New(tensor.Of(dt), tensor.WithShape(shape...))
	case dt == tensor.Float32:
		v = gorgonia.NewF32(0)
	default:
		v = gorgonia.NewF64(0)
	}
	st = s.add(&State{name: name, kind: Slot, param: param, first: first, value: v})
	return st, st.reset()
}

// Counter returns the counter of that name, zero at its first use.
func (s *Store) Counter(name string) (*State, error) {
	if old := s.byName[name]; old != nil {
		if old.kind != Counter {
			return nil, errors.Errorf("graphops: %q is not a counter", name)
		}
		return old, nil
	}
	return s.add(&State{name: name, kind: Counter, value: gorgonia.NewI64(0)}), nil
}

// Renew puts a new counter of that name, with the old one's value if there is one, in the place of the old. What was compiled
// with the old one fails from then on with the error stale, and changes nothing. check, if not nil, refuses values of the new
// one, as that of a hyperparameter does: it is asked by Set and before each run.
func (s *Store) Renew(name string, stale error, check func(float64) error) error {
	st := &State{name: name, kind: Counter, value: gorgonia.NewI64(0), check: check}
	old := s.byName[name]
	if old == nil {
		s.add(st)
		return nil
	}
	if old.kind != Counter {
		return errors.Errorf("graphops: %q is not a counter", name)
	}
	v, err := old.Value()
	if err == nil {
		err = Copy(st.value, v)
	}
	if err != nil {
		return err
	}
	old.check = func(float64) error { return stale }
	s.states[slices.Index(s.states, old)] = st
	st.store, s.byName[name] = s, st
	return nil
}

// Hyper returns the hyperparameter of that name, whose value is *field: whoever changes the field changes the
// hyperparameter on every graph. check refuses values out of its range; it is asked by Set, and by a run that finds that
// gorgonia.Let gave a node another value.
func (s *Store) Hyper(name string, field *float64, check func(float64) error) (*State, error) {
	if field == nil {
		return nil, errors.Errorf("graphops: the field of %q is nil", name)
	}
	v := (*gorgonia.F64)(field)
	if old := s.byName[name]; old != nil {
		if old.kind != Hyper || old.value != gorgonia.Value(v) {
			return nil, errors.Errorf("graphops: %q is already another state", name)
		}
		return old, nil
	}
	return s.add(&State{name: name, kind: Hyper, value: v, check: check}), nil
}

func (s *Store) add(st *State) *State {
	if s.byName == nil {
		s.byName, s.nodes = map[string]*State{}, map[weak.Pointer[gorgonia.Node]]*State{}
	}
	st.store = s
	s.byName[st.name] = st
	s.states = append(s.states, st)
	return st
}

// Lock lets everything that was compiled with the store fail with an error from now on, and change nothing; nil unlocks it. It is for
// times when the states, or parameters that go with them, are not what training needs.
func (s *Store) Lock(why error) { s.locked = why }

// Locked is the error of Lock while the store is locked, or nil.
func (s *Store) Locked() error { return s.locked }

// Between calls f between two runs of the commits From the store: machines of NewMachine wait for f, and f for a run that has begun. It may be
// called by any goroutine while others train, and by several. In f everything may be read and changed that may be between two steps: states, the
// hyperparameters of a solver, parameters. The goroutine that trains needs it for what it does itself between its runs, if others
// change something then. f must neither run such a machine nor call Between, which would wait for ever.
func (s *Store) Between(f func() error) error {
	s.running.Lock()
	defer s.running.Unlock()
	return f()
}

// States are all states in the order in which they were made.
func (s *Store) States() []*State { return s.states }

// Lookup finds a state by name, or nil.
func (s *Store) Lookup(name string) *State { return s.byName[name] }

// Reset gives slots and counters their initial values. Hyperparameters stay.
func (s *Store) Reset() error {
	for _, st := range s.states {
		if st.kind == Hyper {
			continue
		}
		if err := st.rebind(); err != nil { // whatever gorgonia.Let gave its nodes
			return err
		}
		if err := st.reset(); err != nil {
			return err
		}
	}
	return nil
}

// reset gives a slot or counter its initial value.
func (st *State) reset() error {
	if v, ok := st.value.(*gorgonia.I64); ok {
		*v = 0
		return nil
	}
	return st.first.fill(st.value, st.name)
}

// of finds the state that a node shows, or nil.
func (s *Store) of(n *gorgonia.Node) *State {
	if s == nil {
		return nil
	}
	return s.nodes[weak.Make(n)]
}

// Name is unique in the store: <param>/<rule>/<slot>, or <rule>/<name> where no parameter is concerned.
func (st *State) Name() string { return st.name }

// Param is the name of the parameter that a slot is for; "" of what is for all.
func (st *State) Param() string { return st.param }

// Kind says what the state is for.
func (st *State) Kind() Kind { return st.kind }

// Value is the live value, not a copy: what is written to it is the state. If gorgonia.Let bound another value to one of
// the state's nodes, that value is taken over first; the error is that of a value that does not fit.
func (st *State) Value() (gorgonia.Value, error) {
	for _, w := range st.nodes {
		if n := w.Value(); n != nil && n.Value() != st.value {
			if _, err := st.adopt(n.Value()); err != nil {
				return nil, err
			}
		}
	}
	return st.value, nil
}

// legal is Value, checked also where nothing is new: the field of a hyperparameter is its owner's to change.
func (st *State) legal() (gorgonia.Value, error) {
	v, err := st.Value()
	if err == nil && st.check != nil {
		var x float64
		if x, err = ScalarValue(v); err == nil {
			err = st.check(x)
		}
	}
	return v, err
}

// legalAt is legal for one who knows the value of one of the state's nodes, which mostly is the only one.
func (st *State) legalAt(v gorgonia.Value) (gorgonia.Value, error) {
	if st.check == nil && len(st.nodes) == 1 && v == st.value {
		return v, nil
	}
	return st.legal()
}

// Accepts reports what keeps Set from making a number the value: a hyperparameter has a legal range.
func (st *State) Accepts(v float64) error {
	if st.check != nil {
		return st.check(v)
	}
	return nil
}

// Set changes a scalar state.
func (st *State) Set(v float64) error {
	if _, err := st.Value(); err != nil && st.kind != Hyper { // a Let that did not fit is overridden by Set
		return err
	}
	if st.check != nil {
		if err := st.check(v); err != nil {
			return err
		}
	}
	switch x := st.value.(type) {
	case *gorgonia.F64:
		*x = gorgonia.F64(v)
	case *gorgonia.F32:
		*x = gorgonia.F32(v)
	case *gorgonia.I64:
		if v != float64(int64(v)) {
			return errors.Errorf("graphops: counter %q cannot be %v", st.name, v)
		}
		*x = gorgonia.I64(int64(v))
	default:
		return errors.Errorf("graphops: %q has shape %v, it is not a scalar", st.name, st.value.Shape())
	}
	return st.rebind()
}

// Node is the state's node on a graph, made at its first use. Its name is the state's; where another node of the graph
// already has that name, since Gorgonia would merge the two, a number is appended.
func (st *State) Node(g *gorgonia.ExprGraph) (*gorgonia.Node, error) {
	for _, w := range st.nodes {
		if n := w.Value(); n != nil && n.Graph() == g {
			return n, nil
		}
	}
	v := st.value
	n, err := st.store.names.newInput(g, v.Dtype(), v.Shape(), st.name)
	if err != nil {
		return nil, err
	}
	if err := gorgonia.Let(n, v); err != nil {
		return nil, errors.Wrapf(err, "graphops: binding %q", st.name)
	}
	live := st.nodes[:0]
	for _, w := range st.nodes {
		if w.Value() != nil {
			live = append(live, w)
		} else {
			delete(st.store.nodes, w)
		}
	}
	st.nodes = append(live, weak.Make(n))
	st.store.changes++
	st.store.nodes[weak.Make(n)] = st
	return n, nil
}

// adopt takes over the content of a value that gorgonia.Let, or a machine that cloned, bound to one of the nodes. It returns
// the state's own value.
func (st *State) adopt(v gorgonia.Value) (gorgonia.Value, error) {
	if v == nil || v == st.value {
		return st.value, nil
	}
	if v.Dtype() != st.value.Dtype() || !v.Shape().Eq(st.value.Shape()) {
		return nil, errors.Errorf("graphops: %q was given a value of %v %v; it is %v %v",
			st.name, v.Dtype(), v.Shape(), st.value.Dtype(), st.value.Shape())
	}
	if st.check != nil {
		x, err := ScalarValue(v)
		if err == nil {
			err = st.check(x)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := Copy(st.value, v); err != nil {
		return nil, errors.Wrapf(err, "graphops: %q", st.name)
	}
	return st.value, st.rebind()
}

// rebind gives every node of the state its one value again.
func (st *State) rebind() error {
	for _, w := range st.nodes {
		if n := w.Value(); n != nil && n.Value() != st.value {
			if err := gorgonia.Let(n, st.value); err != nil {
				return errors.Wrapf(err, "graphops: binding %q", st.name)
			}
		}
	}
	return nil
}
