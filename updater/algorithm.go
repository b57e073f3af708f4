package updater

import (
	"slices"
	"time"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/batch"
)

// TrainingAlgorithm trains on batches: Initialize once, then ProcessBatch for each. A batch has the data of each source by its
// name: a tensor.Tensor, a gorgonia.Value, a Go number, or a slice, of slices where the source has several axes.
type TrainingAlgorithm interface {
	Initialize() error
	ProcessBatch(batch map[string]any) error
}

// Observer keeps values of nodes in each batch. All algorithms are ones.
type Observer interface {
	// Observe names nodes whose values are to be kept in each batch: any node of the graph. Nodes need names, and no two of
	// them the same; a node that is observed already makes no difference. It takes effect at the next Initialize.
	Observe(nodes ...*gorgonia.Node) error
	// Observed is the value that a node had in the last batch that succeeded, before the update of that batch. It is valid
	// until the next batch; whoever keeps it clones it.
	Observed(name string) (gorgonia.Value, error)
}

var (
	_ TrainingAlgorithm = (*UpdatesAlgorithm)(nil)
	_ Observer          = (*UpdatesAlgorithm)(nil)
)

// AlgorithmOptions are what all algorithms have in common. The zero value is the default.
type AlgorithmOptions struct {
	// OnUnusedSources says what a batch with sources that are no inputs does: "raise" (the default) is an error, "warn" warns
	// by log/slog, once in the life of the algorithm, "ignore" does nothing. That a source is missing is always an error.
	OnUnusedSources string

	// Sources are inputs that batches supply though they have a value already, from another algorithm on the graph, for instance.
	// Other inputs with a value are parameters and states; those without one are sources. A batch with a source of the
	// name of an input that has a value is an error.
	Sources gorgonia.Nodes

	// CheckFinite refuses a batch in which the cost or a new value is not finite: ProcessBatch then names it, and nothing
	// has changed. It costs a pass over each new value.
	CheckFinite bool

	// Profile measures the time of each operation: see UpdatesAlgorithm.Profile.
	Profile bool

	// Commit are options of the commit, such as graphops.Expanded(), or graphops.From for updates of a store's states.
	Commit []graphops.CommitOpt
}

// UpdatesAlgorithm makes a list of updates with each batch: any parameters or states become any expressions of parameters,
// states and inputs. All expressions are of the values of before the batch, so that the order of the list makes no difference. A
// batch that fails changes nothing. It is Blocks' UpdatesAlgorithm (https://github.com/mila-iqia/blocks).
//
// An algorithm is for one goroutine at a time.
type UpdatesAlgorithm struct {
	opts     AlgorithmOptions
	updates  []graphops.Update
	hidden   []graphops.Update       // made too, but not shown: they count the runs
	commit   []graphops.CommitOpt    // of the algorithm's own
	after    gorgonia.Nodes          // to be computed before anything is written: the cost
	sources  map[*gorgonia.Node]bool // inputs that had no value when they were first met
	observed gorgonia.Nodes
	warned   bool
	run      *compiled // nil before Initialize
}

// NewUpdatesAlgorithm makes an algorithm of a list of updates, which is copied. A target twice in the list, and an expression
// that does not fit its target, are errors of Initialize.
func NewUpdatesAlgorithm(updates []graphops.Update, options ...func(*AlgorithmOptions)) (*UpdatesAlgorithm, error) {
	var o AlgorithmOptions
	for _, f := range options {
		if f != nil {
			f(&o)
		}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	return newUpdatesAlgorithm(o, updates), nil
}

func newUpdatesAlgorithm(o AlgorithmOptions, updates []graphops.Update) *UpdatesAlgorithm {
	return &UpdatesAlgorithm{opts: o, updates: slices.Clone(updates), sources: map[*gorgonia.Node]bool{}}
}

func (o *AlgorithmOptions) validate() error {
	switch o.OnUnusedSources {
	case "":
		o.OnUnusedSources = "raise"
	case "raise", "warn", "ignore":
	default:
		return errors.Errorf(`updater: OnUnusedSources is %q; it must be "raise", "warn" or "ignore"`, o.OnUnusedSources)
	}
	for _, n := range o.Sources {
		if n == nil || !n.IsVar() {
			return errors.Errorf("updater: the source %s is no input of a graph", nodeName(n))
		}
	}
	o.Sources, o.Commit = slices.Clone(o.Sources), slices.Clone(o.Commit)
	return nil
}

// Updates are the updates, as a copy, in their order: as they were given, set and added.
func (a *UpdatesAlgorithm) Updates() []graphops.Update { return slices.Clone(a.updates) }

// SetUpdates replaces the list of updates by a copy of another. It takes effect at the next Initialize.
func (a *UpdatesAlgorithm) SetUpdates(updates []graphops.Update) { a.updates = slices.Clone(updates) }

// AddUpdates appends updates, such as those of running statistics. They take effect at the next Initialize.
func (a *UpdatesAlgorithm) AddUpdates(updates ...graphops.Update) {
	a.updates = append(a.updates, updates...)
}

// Initialize compiles the updates as they are now. It may be called again, for instance after AddUpdates; the state of
// training stays. An error leaves what was compiled before as it was.
func (a *UpdatesAlgorithm) Initialize() error {
	c, err := a.compile()
	if err != nil {
		return errors.Wrap(err, "updater: Initialize")
	}
	a.stop()
	for _, s := range c.sources {
		a.sources[s.Node] = true
	}
	a.run = c
	return nil
}

// stop ends what was compiled.
func (a *UpdatesAlgorithm) stop() {
	if a.run != nil && a.run.vm != nil {
		_ = graphops.Supersede(a.run.op) // it is a commit
		_ = a.run.vm.Close()             // never fails, and its work is done
	}
	a.run = nil
}

// Inputs are the inputs that a batch supplies, in the order of their making: all that the updates and the observed nodes depend
// on. There are none before Initialize.
func (a *UpdatesAlgorithm) Inputs() (ns gorgonia.Nodes) {
	if a.run != nil {
		for _, s := range a.run.sources {
			ns = append(ns, s.Node)
		}
	}
	return ns
}

// ProcessBatch makes the updates for a batch. The data are copied, and may be changed afterwards. They are converted where
// nothing is lost: integers to floats, float32 to float64. A single Go float64 is rounded to float32; slices and tensors of float64
// for a float32 input are an error, whatever their values.
//
// Before anything is computed the whole batch is checked: an input without data, data of another shape or dtype, and, see
// OnUnusedSources, a source that is no input are errors. Any error leaves parameters and states as they were, and the next
// batch is as if this one had not been.
func (a *UpdatesAlgorithm) ProcessBatch(batch map[string]any) error {
	c := a.run
	if c == nil {
		return errors.New("updater: ProcessBatch before Initialize")
	}
	if err := a.checkNames(batch); err != nil {
		return err
	}
	for _, s := range c.sources {
		if err := s.Accept(batch[s.Name]); err != nil {
			return errors.Wrapf(err, "updater: source %q", s.Name)
		}
	}
	for _, s := range c.sources {
		if err := s.Bind(); err != nil {
			return errors.Wrapf(err, "updater: source %q", s.Name)
		}
	}
	if c.vm == nil { // there is nothing to do
		return nil
	}
	if err := c.vm.RunAll(); err != nil {
		return errors.Wrap(err, "updater: ProcessBatch")
	}
	c.values, c.next = c.next, nil
	return nil
}

// Observe implements Observer.
func (a *UpdatesAlgorithm) Observe(nodes ...*gorgonia.Node) error {
	all := slices.Clone(a.observed)
	for _, n := range nodes {
		if n == nil || n.Graph() == nil || n.Type() == nil {
			return errors.Errorf("updater: %s has no value that could be observed", nodeName(n))
		}
		if mine := a.someNode(all); mine != nil && mine.Graph() != n.Graph() {
			return errors.Errorf("updater: %s cannot be observed: it is on another graph than %s", nodeName(n), nodeName(mine))
		}
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	var nameless int
	var twice []string
	for i, n := range all {
		if name, ok := batch.GivenName(n); !ok {
			nameless++
		} else if slices.ContainsFunc(all[:i], func(m *gorgonia.Node) bool { return m.Name() == name }) {
			twice = append(twice, name)
		}
	}
	switch {
	case nameless > 0:
		return errors.Errorf("updater: observed nodes must have names, and %d of them have none: use gorgonia.WithName", nameless)
	case twice != nil:
		return errors.Errorf("updater: the names of observed nodes must be unique; several nodes are called %q", twice)
	}
	a.observed = all
	return nil
}

// someNode is a node of the algorithm's graph; nil if there is none yet.
func (a *UpdatesAlgorithm) someNode(observed gorgonia.Nodes) *gorgonia.Node {
	for _, u := range a.updates {
		if u.Target != nil {
			return u.Target
		}
	}
	for _, n := range slices.Concat(a.after, observed) {
		return n
	}
	return nil
}

// Observed implements Observer. An algorithm makes new values for each batch: they stay as they are.
func (a *UpdatesAlgorithm) Observed(name string) (gorgonia.Value, error) {
	if a.run == nil {
		return nil, errors.New("updater: Observed before Initialize")
	}
	i := slices.IndexFunc(a.run.observed, func(n *gorgonia.Node) bool { return n.Name() == name })
	switch {
	case i < 0:
		return nil, errors.Errorf("updater: %q is not observed: call Observe, and then Initialize", name)
	case a.run.values == nil:
		return nil, errors.Errorf("updater: %q has no value before the first batch", name)
	}
	return a.run.values[i], nil
}

// ProfileRow is what one operation took in all batches since Initialize.
type ProfileRow struct {
	Op    string
	Node  string
	Calls int
	Time  time.Duration
}

// Profile are the operations of the compiled machine in the order in which they run, with how often and how long they ran since
// Initialize. It is nil without the option.
func (a *UpdatesAlgorithm) Profile() (rows []ProfileRow) {
	if a.run == nil || a.run.profile == nil {
		return nil
	}
	for _, r := range a.run.profile.Rows() {
		rows = append(rows, ProfileRow(r))
	}
	return rows
}
