package solvers

import (
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/spelling"
	"optimop/internal/suggest"
)

// Solver is a rule with its state. It is a gorgonia.Solver (Step), builds its update into a graph (Minimize), and is itself
// a Rule. The state belongs to parameters by name, so that Step and Minimize, several graphs (a short last batch) and
// several losses share it; a parameter without a name is known by its identity. Of two parameters of one name the second is
// called "w#2", in the order of their first appearance.
//
// A mistake in a hyperparameter does not panic: Err returns it, and so does whatever is done with the solver. A solver is
// for one goroutine at a time.
type Solver struct {
	rule     Rule
	err      error
	expanded bool
	missing  bool
	store    *graphops.Store
	rules    []*ruleInfo // chained ones from the start, those that other rules run from the first trial on
	bound    map[string]*gorgonia.Node
	schedule []*scheduled
	params   params
	plans    []*stepPlan
	batch    batch
	arrears  map[string]*arrears // by parameter
	warned   bool
}

var (
	_ gorgonia.Solver = (*Solver)(nil)
	_ Rule            = (*Solver)(nil)
)

// Option is an option of New.
type Option func(*Solver)

// Expanded lets Minimize make every primitive of the update a node of the graph (see graphops.Expanded).
func Expanded() Option { return func(s *Solver) { s.expanded = true } }

// SkipMissing lets Step pass over parameters that have no gradient, instead of failing.
func SkipMissing() Option { return func(s *Solver) { s.missing = true } }

// New makes a solver of a rule, whose fields are used as they are: the defaults are those of the constructors and of Lookup, not
// of the zero struct.
func New(r Rule, opts ...Option) *Solver {
	s := &Solver{rule: addressable(r), store: graphops.NewStore(), bound: map[string]*gorgonia.Node{}}
	for _, o := range opts {
		if o != nil {
			o(s)
		}
	}
	if s.rules, s.err = walk(s.rule, nil); s.err == nil {
		s.err = s.validate()
	}
	return s
}

// configured makes a solver of a rule with its defaults after the caller's options.
func configured[R Rule](r R, options []func(R)) *Solver {
	for _, o := range options {
		if o != nil {
			o(r)
		}
	}
	return New(r)
}

// walk appends the rules of a chain or composite, in order.
func walk(r Rule, all []*ruleInfo) (_ []*ruleInfo, err error) {
	switch r := r.(type) {
	case nil:
		return nil, errors.New("solvers: the rule is nil")
	case *Solver:
		if err := r.asRule(); err != nil {
			return nil, err
		}
		return walk(r.rule, all)
	case *chain:
		if len(r.Rules) == 0 {
			return nil, errors.New("solvers: a chain of no rules")
		}
		for i, sub := range r.Rules {
			r.Rules[i] = addressable(sub)
			if all, err = walk(r.Rules[i], all); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	if len(all) == maxRules {
		return nil, errors.Errorf("solvers: there are more than %d rules; does one list itself?", maxRules)
	}
	info, err := describe(r, all)
	if err != nil {
		return nil, err
	}
	all = append(all, info)
	if c, ok := r.(Composite); ok {
		inner, err := listed(c)
		if err != nil {
			return nil, errors.Wrap(err, info.name)
		}
		for _, sub := range inner {
			if all, err = walk(sub, all); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// maxRules bounds the rules of a solver.
const maxRules = 500

func listed(c Composite) (_ []Rule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("solvers: Rules panicked: %v", p)
		}
	}()
	return c.Rules(), nil
}

// options are those that the solver was made with.
func (s *Solver) options() Option {
	return func(o *Solver) { o.expanded, o.missing = o.expanded || s.expanded, o.missing || s.missing }
}

func (s *Solver) validate() error {
	for _, r := range s.rules {
		if err := r.validate(); err != nil {
			return err
		}
	}
	return nil
}

// Err is the first mistake in the making of the solver, or nil.
func (s *Solver) Err() error {
	if s == nil {
		return errors.New("solvers: the solver is nil")
	}
	return s.err
}

// Optimizes reports whether one of the solver's rules is an optimizer: any that is no Transformation.
func (s *Solver) Optimizes() bool {
	return s.Err() == nil && slices.ContainsFunc(s.rules, func(r *ruleInfo) bool {
		_, transforms := r.rule.(Transformation)
		return !transforms
	})
}

// Apply makes the solver a rule of other solvers: they use its rule, with slots and counters of their own.
func (s *Solver) Apply(b *Builder, in []Step) ([]Step, error) { return b.Run(s, in) }

// Set changes a hyperparameter from the next step on. Its name is that of the rule's type and that of the field,
// "adam/learning_rate", or just "learning_rate" if only one rule has it; case, "_" and "-" make no difference, and lr and eps are
// understood. A value out of its range, and a name that is unknown or not unique, are errors.
func (s *Solver) Set(name string, v float64) error {
	full, r, f, err := s.hyper(name)
	if err != nil {
		return err
	}
	if s.scheduled(full) != nil {
		return errors.Errorf("solvers: %s follows a schedule: remove that first, with Schedule(%q, nil)", full, full)
	}
	if n := s.bound[full]; n != nil {
		return errors.Errorf("solvers: %s is bound to the node %q: give that another value with gorgonia.Let", full, n.Name())
	}
	if err := r.accepts(f, v); err != nil {
		return err
	}
	if st := s.store.Lookup(full); st != nil {
		return st.Set(v)
	}
	if r.built && v != *f.value {
		return errors.Errorf("solvers: the update was built without %s, as it was %v: set the field before the first step, "+
			"and in a rule of your own read it with Builder.Hyper", full, *f.value)
	}
	*f.value = v
	return nil
}

// Get is the present value of a hyperparameter, which the next step uses; see Set for the names.
func (s *Solver) Get(name string) (float64, error) {
	full, _, f, err := s.hyper(name)
	if err != nil {
		return 0, err
	}
	if n := s.bound[full]; n != nil {
		v, err := graphops.ScalarValue(n.Value())
		return v, errors.Wrapf(err, "solvers: %s", full)
	}
	if h := s.scheduled(full); h != nil {
		step, err := s.GlobalStep()
		if err != nil {
			return 0, err
		}
		return h.value(step), nil
	}
	if st := s.store.Lookup(full); st != nil {
		if _, err := st.Value(); err != nil {
			return 0, err
		}
	}
	return *f.value, nil
}

// Bind makes a scalar float node the value of a hyperparameter, for graphs that contain it: an input, or anything computed, such
// as a learned learning rate (for a function of the step, see Schedule). What the node computes is used as it is, also out of
// the hyperparameter's range. What a rule reads only when the update is built (the initial value of a slot, a number of
// iterations) cannot be bound; the next Step or Minimize then says so.
func (s *Solver) Bind(name string, n *gorgonia.Node) error {
	full, _, _, err := s.hyper(name)
	if err != nil {
		return err
	}
	if s.scheduled(full) != nil {
		return errors.Errorf("solvers: %s follows a schedule, so it cannot be bound: remove that first, with Schedule(%q, nil)", full, full)
	}
	if err := graphops.ScalarOf(n).Err(); err != nil {
		return errors.Wrapf(err, "solvers: %s", full)
	}
	if !isFloat(n.Dtype()) {
		return errors.Errorf("solvers: %s: node %q is %v, but must be float32 or float64", full, n.Name(), n.Dtype())
	}
	s.bound[full] = n
	s.rebuild()
	return nil
}

// rebuild lets Step compile its plans anew.
func (s *Solver) rebuild() { s.plans, s.params.last = nil, nil }

// hyper resolves the name of a hyperparameter.
func (s *Solver) hyper(name string) (full string, rule *ruleInfo, f field, err error) {
	if err := s.Err(); err != nil {
		return "", nil, field{}, err
	}
	var known, hits []string
	for _, want := range []string{spelling.Fold(name), hyperName(name)} {
		if hits != nil {
			break
		}
		known = nil
		for _, r := range s.rules {
			for _, h := range r.fields {
				k := r.name + "/" + h.name
				if spelling.Fold(k) == want {
					return k, r, h, nil
				}
				if known = append(known, k); strings.HasSuffix(spelling.Fold(k), "/"+want) {
					full, rule, f, hits = k, r, h, append(hits, k)
				}
			}
		}
	}
	switch len(hits) {
	case 1:
		return full, rule, f, nil
	case 0:
		return "", nil, field{}, errors.Errorf("solvers: no hyperparameter is called %q%s", name, suggest.For(name, known))
	}
	return "", nil, field{}, errors.Errorf("solvers: several rules have a %q: say which of %s", name, strings.Join(hits, ", "))
}

// Store holds the solver's slots, counters and hyperparameters, in the order in which they were made: none before the first
// Step, Minimize or Schedule. To commit the list of Updates yourself, pass graphops.From(s.Store()).
func (s *Solver) Store() *graphops.Store { return s.store }

// Slot is the node of a slot on a graph, "m", "adam/m" or "w/adam/m", for the parameter v of that graph; nil if there is none.
// Case, "_" and "-" make no difference. The node is made where only Step has used the slot so far.
func (s *Solver) Slot(v *gorgonia.Node, name string) *gorgonia.Node {
	if v == nil || s.CatchUp() != nil {
		return nil
	}
	param, ok := s.params.known(v)
	if !ok {
		return nil
	}
	for _, st := range s.store.States() {
		if st.Kind() != graphops.Slot || st.Param() != param {
			continue
		}
		rest := "/" + spelling.Fold(strings.TrimPrefix(st.Name(), param+"/"))
		if !strings.HasSuffix(rest, "/"+spelling.Fold(strings.TrimPrefix(name, param+"/"))) {
			continue
		}
		if n, err := st.Node(v.Graph()); err == nil {
			return n
		}
	}
	return nil
}

// Reset makes slots and counters, the global step among them, what they were before the first step. Hyperparameters and parameters stay, and so do the
// counts of runs that the optim ops themselves show.
func (s *Solver) Reset() error {
	if err := s.CatchUp(); err != nil {
		return err
	}
	return s.store.Reset()
}

// hyperName folds the name of a hyperparameter and replaces the spellings of other libraries.
func hyperName(name string) string {
	s := spelling.Fold(name)
	rule, field := "", s
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		rule, field = s[:i+1], s[i+1:]
	}
	if other, ok := optionNames[field]; ok {
		field = other
	}
	return rule + field
}
