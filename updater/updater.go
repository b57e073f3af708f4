package updater

import (
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// Updater owns the optim op of a loss. It is for one goroutine at a time.
type Updater struct {
	loss   *gorgonia.Node
	vars   gorgonia.Nodes
	solver *solvers.Solver
	op     *gorgonia.Node // nil: to be built
	last   *gorgonia.Node // the last one that was built
}

// Option is an option of New that has no place in a config file.
type Option func(*options)

type options struct{ solver []solvers.Option }

// Expanded makes every primitive of the update a node of the graph (see graphops.Expanded). A *solvers.Solver in the config
// stays expanded.
func Expanded() Option {
	return func(o *options) { o.solver = append(o.solver, solvers.Expanded()) }
}

// New makes an updater. The loss is a float scalar, the variables are float inputs of its graph, and the loss must depend on
// at least one of them. Everything is checked now; the graph is not touched before the optim op is first asked for.
func New(loss *gorgonia.Node, vars gorgonia.Nodes, cfg Config, opts ...Option) (*Updater, error) {
	var o options
	for _, f := range opts {
		if f != nil {
			f(&o)
		}
	}
	s, err := cfg.solver(o.solver...)
	if err != nil {
		return nil, errors.Wrap(err, "updater: config")
	}
	if err := s.Check(loss, vars...); err != nil {
		return nil, errors.Wrap(err, "updater")
	}
	if err := cfg.setRate(s); err != nil {
		return nil, errors.Wrap(err, "updater: config")
	}
	return &Updater{loss: loss, vars: slices.Clone(vars), solver: s}, nil
}

// OptimOp is the optim op: a scalar node that, when a machine runs it, does one training step and counts it. It is built at
// the first call, and again after ResetOptimOp or a change of the variables; the old one is then inert, and machines made
// for it say so. Slots of variables that stay are kept.
func (u *Updater) OptimOp() (*gorgonia.Node, error) {
	if u.op != nil {
		return u.op, nil
	}
	op, err := u.solver.Minimize(u.loss, u.vars...)
	if err != nil {
		return nil, errors.Wrap(err, "updater")
	}
	if u.last != nil {
		if err := graphops.Supersede(u.last); err != nil {
			return nil, err
		}
	}
	u.op, u.last = op, op
	return op, nil
}

// ResetOptimOp forgets the optim op, so that the next call of OptimOp builds a new one. Until then the old one works.
func (u *Updater) ResetOptimOp() { u.op = nil }

// SetTrainableVars changes the variables. The same list changes nothing; another is checked as in New and resets the optim op.
func (u *Updater) SetTrainableVars(vars gorgonia.Nodes) error {
	if slices.Equal(vars, u.vars) {
		return nil
	}
	if err := u.solver.Check(u.loss, vars...); err != nil {
		return errors.Wrap(err, "updater")
	}
	u.vars = slices.Clone(vars)
	u.ResetOptimOp()
	return nil
}

// InitOptimizerVars makes sure that the optim op exists, and sets all slots and counters to their initial values. Variables
// and hyperparameters stay as they are.
func (u *Updater) InitOptimizerVars() error {
	if _, err := u.OptimOp(); err != nil {
		return err
	}
	return errors.Wrap(u.solver.Reset(), "updater")
}

// NewMachine makes a machine that trains: see graphops.NewMachine. It runs the optim op, the loss, the given nodes, and only
// what they need.
func (u *Updater) NewMachine(reads ...*gorgonia.Node) (gorgonia.VM, error) {
	op, err := u.OptimOp()
	if err != nil {
		return nil, err
	}
	return graphops.NewMachine(op, append(gorgonia.Nodes{u.loss}, reads...)...)
}

// SetLearningRate sets the learning rate from the next step on.
func (u *Updater) SetLearningRate(v float64) error {
	return errors.Wrap(u.solver.Set("learning_rate", v), "updater")
}

// LearningRate is the learning rate of the next step.
func (u *Updater) LearningRate() (float64, error) {
	v, err := u.solver.Get("learning_rate")
	return v, errors.Wrap(err, "updater")
}

// Slot is the node of a variable's slot, such as "m"; nil if there is none, or the optim op has not been built.
func (u *Updater) Slot(v *gorgonia.Node, name string) *gorgonia.Node {
	if v == nil || u.loss == nil || v.Graph() != u.loss.Graph() {
		return nil
	}
	return u.solver.Slot(v, name)
}

// SlotNames are the names of the slots that variables have, sorted; none before the optim op is built.
func (u *Updater) SlotNames() []string {
	var names []string
	if u.solver == nil {
		return nil
	}
	for _, st := range u.solver.Store().States() {
		if st.Kind() == graphops.Slot {
			names = append(names, st.Name()[strings.LastIndexByte(st.Name(), '/')+1:])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
