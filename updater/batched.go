package updater

import (
	"maps"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/batch"
	"optimop/solvers"
)

// BatchedOptions are the settings of NewBatched.
type BatchedOptions struct {
	// Graphs is how many graphs are kept, 1 or more; the default is 8. Where a batch needs another, the one that was used least recently goes.
	Graphs int
}

// Batched is gradient descent on batches of different shapes, such as a short last one, or sentences. Gorgonia's graphs are of one
// shape, so it has one for each, all over the same parameters and the same state of the step rule. A cost that is a mean is one
// over the examples of its batch.
type Batched struct {
	build    func(shapes map[string]tensor.Shape) (Descent, error)
	keep     int
	solver   *solvers.Solver // nil before it
	recorder *recorder
	shared   map[string]gorgonia.Value // by name: parameters and other targets
	models   []*shaped                 // the last one used first
	last     *shaped                   // of the last batch
	observed []string
	warned   bool
	ready    bool
}

// shaped is what there is for one shape.
type shaped struct {
	*GradientDescent
	targets gorgonia.Nodes // that the models share
}

var (
	_ TrainingAlgorithm = (*Batched)(nil)
	_ Observer          = (*Batched)(nil)
)

// NewBatched makes the algorithm. build makes the model for batches whose sources have some shapes, () for a number, on a new
// graph each time: with other shapes of the inputs, but the same parameters, the same step rule and the same updates. Sources
// without a shape, such as texts, are not among the shapes.
//
// Parameters and other targets of updates are known by their names, which they need. Their values are those of the first model;
// all models share them. A value that gorgonia.Let gives one of the nodes is taken over by all before the next batch.
// Other inputs with values are each model's own. Make the generator of a Dropout (see graphops.NewGenerator) once, outside build.
func NewBatched(build func(shapes map[string]tensor.Shape) (Descent, error), options ...func(*BatchedOptions)) (*Batched, error) {
	o := BatchedOptions{Graphs: 8}
	for _, f := range options {
		if f != nil {
			f(&o)
		}
	}
	switch {
	case build == nil:
		return nil, errors.New("updater: the function that builds the models is nil")
	case o.Graphs < 1:
		return nil, errors.Errorf("updater: Graphs is %d; it must be 1 or more", o.Graphs)
	}
	return &Batched{build: build, keep: o.Graphs, shared: map[string]gorgonia.Value{}}, nil
}

// Initialize implements TrainingAlgorithm. Models are built when a batch needs them; those that are there are initialized anew.
func (b *Batched) Initialize() error {
	b.ready, b.last = true, nil
	for _, m := range b.models {
		if err := b.initialize(m); err != nil {
			return err
		}
	}
	return nil
}

// ProcessBatch implements TrainingAlgorithm. A model serves all batches that have the same shapes in the sources that it reads.
func (b *Batched) ProcessBatch(batch map[string]any) error {
	if !b.ready {
		return errors.New("updater: ProcessBatch before Initialize")
	}
	m, err := b.find(batch)
	if err != nil {
		return err
	}
	if err := b.share(); err != nil {
		return err
	}
	m.warned = m.warned || b.warned
	err = m.ProcessBatch(batch)
	if b.warned = m.warned; err == nil {
		b.last = m
	}
	return err
}

// Model is the algorithm for a batch of some shapes. It is built if there is none; the next batches may let it go.
func (b *Batched) Model(batch map[string]any) (*GradientDescent, error) {
	m, err := b.find(batch)
	if err != nil {
		return nil, err
	}
	return m.GradientDescent, nil
}

// Solver has the step rule's hyperparameters and the state; nil before the first model is built.
func (b *Batched) Solver() *solvers.Solver { return b.solver }

// Value is the value of a parameter, or of another target of updates, which all models share; nil if there is none, or no model
// yet. What is written to it is the parameter.
func (b *Batched) Value(name string) gorgonia.Value { return b.shared[name] }

// Observe implements Observer, by the names of the nodes: in each model the node of that name is observed. That there is none, or that
// there are several, is an error at once in a model that is there, and when it is initialized in a later one.
func (b *Batched) Observe(nodes ...*gorgonia.Node) error {
	var names []string
	for _, n := range nodes {
		name, ok := "", false
		if n != nil {
			name, ok = batch.GivenName(n)
		}
		if !ok {
			return errors.Errorf("updater: observed nodes must have names; %s has none", nodeName(n))
		}
		names = append(names, name)
	}
	for _, m := range b.models {
		if _, err := m.called(names); err != nil {
			return err
		}
	}
	b.ObserveNames(names...)
	return nil
}

// ObserveNames is Observe for those who have no model yet: of "total_gradient_norm", for instance.
func (b *Batched) ObserveNames(names ...string) {
	for _, name := range names {
		if !slices.Contains(b.observed, name) {
			b.observed = append(b.observed, name)
		}
	}
}

// Observed implements Observer.
func (b *Batched) Observed(name string) (gorgonia.Value, error) {
	if b.last == nil {
		return nil, errors.Errorf("updater: %q has no value before the first batch", name)
	}
	return b.last.Observed(name)
}

// find finds the model for a batch, or builds it, and lets go of what is too much.
func (b *Batched) find(data map[string]any) (*shaped, error) {
	shapes := batch.Shapes(data)
	i := slices.IndexFunc(b.models, func(m *shaped) bool { return m.fits(shapes) })
	if i < 0 {
		m, err := b.newModel(shapes)
		if err != nil && len(b.models) > 0 && b.models[0].lacks(data) {
			return nil, b.models[0].checkNames(data) // which is why
		}
		if err != nil {
			return nil, err
		}
		for len(b.models) >= b.keep {
			old := b.models[len(b.models)-1]
			old.stop()
			if b.models = slices.Delete(b.models, len(b.models)-1, len(b.models)); b.last == old {
				b.last = nil
			}
		}
		b.models = slices.Insert(b.models, 0, m)
		return m, nil
	}
	m := b.models[i]
	copy(b.models[1:i+1], b.models[:i])
	b.models[0] = m
	return m, nil
}

func (m *shaped) fits(shapes map[string]tensor.Shape) bool {
	for _, n := range m.Inputs() {
		shape, ok := shapes[n.Name()]
		if !ok || len(shape) != len(n.Shape()) || !slices.Equal(shape, n.Shape()) {
			return false
		}
	}
	return true
}

// newModel builds a model. Nothing is kept where that fails.
func (b *Batched) newModel(shapes map[string]tensor.Shape) (*shaped, error) {
	d, err := batch.Build(b.build, shapes)
	if err != nil {
		return nil, errors.Wrapf(err, "updater: building the model for %v", shapes)
	}
	targets, err := b.targets(d)
	if err != nil {
		return nil, errors.Wrapf(err, "updater: the model for %v", shapes)
	}
	s, r := b.solver, b.recorder
	if s == nil {
		if s, r, err = d.solver(); err != nil {
			return nil, err
		}
	}
	a, err := newGradientDescent(d, s, r)
	if err != nil {
		return nil, errors.Wrapf(err, "updater: the model for %v", shapes)
	}
	m := &shaped{a, targets}
	values, err := b.adopt(m)
	if err != nil {
		return nil, err
	}
	if err := b.initialize(m); err != nil {
		return nil, err
	}
	b.solver, b.recorder, b.shared = s, r, values
	return m, nil
}

// targets are what a model updates beside the state of the rule, which must be known by name, and the same in all models. That is
// checked before the rule makes slots, which are for all models.
func (b *Batched) targets(d Descent) (ns gorgonia.Nodes, err error) {
	all := slices.Clone(d.Parameters)
	if len(d.Gradients) > 0 { // which are used then
		all = nil
	}
	for _, g := range d.Gradients {
		all = append(all, g.Parameter)
	}
	for _, u := range d.Updates {
		all = append(all, u.Target)
	}
	names := map[string]bool{}
	for _, n := range all {
		if n == nil || slices.Contains(ns, n) {
			continue // for others to refuse
		}
		name, ok := batch.GivenName(n)
		_, known := b.shared[name]
		switch {
		case !ok:
			return nil, errors.Errorf("%s is updated, so it needs a name to be known by in all models", nodeName(n))
		case names[name]:
			return nil, errors.Errorf("two targets of updates are called %q", name)
		case b.solver != nil && !known:
			return nil, errors.Errorf("it updates %q, and the first model did not: all must update the same", name)
		case slices.ContainsFunc(b.models, func(m *shaped) bool { return m.targets[0].Graph() == n.Graph() }):
			return nil, errors.New("it is on the graph of another model: make a new graph each time")
		}
		names[name], ns = true, append(ns, n)
	}
	for _, name := range slices.Sorted(maps.Keys(b.shared)) {
		if !names[name] {
			return nil, errors.Errorf("it does not update %q, as the first model did: all must update the same", name)
		}
	}
	return ns, nil
}

// adopt gives the targets of a new model the values that all models share, or shares those of the first model. It returns all that is
// shared then.
func (b *Batched) adopt(m *shaped) (map[string]gorgonia.Value, error) {
	values := maps.Clone(b.shared)
	for _, n := range m.targets {
		if v := values[n.Name()]; v == nil {
			values[n.Name()] = n.Value()
		} else if err := gorgonia.Let(n, v); err != nil {
			return nil, errors.Wrapf(err, "updater: %q is not what it is in the other models", n.Name())
		}
	}
	return values, nil
}

// share takes over what gorgonia.Let gave targets in the meantime.
func (b *Batched) share() error {
	for _, m := range b.models {
		for _, n := range m.targets {
			v := b.shared[n.Name()]
			if n.Value() == v {
				continue
			}
			if n.Value() == nil {
				return errors.Errorf("updater: %q has no value any more: it was unbound", n.Name())
			}
			if err := graphops.Copy(v, n.Value()); err != nil {
				return errors.Wrapf(err, "updater: the new value of %q", n.Name())
			}
			if err := gorgonia.Let(n, v); err != nil {
				return errors.Wrapf(err, "updater: %q", n.Name())
			}
		}
	}
	return nil
}

// initialize compiles a model with what is to be observed now.
func (b *Batched) initialize(m *shaped) error {
	nodes, err := m.called(b.observed)
	if err != nil {
		return err
	}
	if err := m.Observe(nodes...); err != nil {
		return err
	}
	return m.Initialize()
}

// called are the nodes of some names, each of which must have one.
func (m *shaped) called(names []string) (nodes gorgonia.Nodes, err error) {
	for _, name := range names {
		all := m.parameters[0].Graph().ByName(name)
		if len(all) != 1 {
			return nil, errors.Errorf("updater: a model has %d nodes called %q; to be observed it must be one, and names unique", len(all), name)
		}
		nodes = append(nodes, all[0])
	}
	return nodes, nil
}
