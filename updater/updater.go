package updater

import (
	"maps"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// Updater owns the optim op of a loss, or several. It is for one goroutine at a time, but for Between, and for a Snapshot once it is made.
// Several updaters, on graphs of their own, train in parallel; build them one after the other, as Gorgonia's constants are
// shared by all graphs.
type Updater struct {
	options
	cfg      Config
	losses   []objective // the first is that of New
	solver   *solvers.Solver
	pipe     *pipeline
	settings []*setting // of all variables
	byNode   map[*gorgonia.Node]*setting
	product
}

// product is what building the optim op makes.
type product struct {
	stats stats
	rate  *gorgonia.Node // the effective learning rate
	op    *gorgonia.Node // nil: to be built
	last  *gorgonia.Node // the last one that was built
}

// objective is a loss with its variables.
type objective struct {
	loss *gorgonia.Node
	vars gorgonia.Nodes
}

// Option is an option of New that has no place in a config file.
type Option func(*options)

type options struct {
	solver  []solvers.Option
	onNew   []func(*gorgonia.Node) error
	outputs gorgonia.Nodes
	custom  customUpdates
	extra   []extraUpdate
	metas   []MetaLoss
}

// Expanded makes every primitive of the update a node of the graph (see graphops.Expanded).
func Expanded() Option {
	return func(o *options) { o.solver = append(o.solver, solvers.Expanded()) }
}

// OnNewOptimOp calls f with each optim op that is built, before OptimOp returns it; f may use the updater. An error of f is one of
// OptimOp, and the op is then inert.
func OnNewOptimOp(f func(op *gorgonia.Node) error) Option {
	return func(o *options) {
		if f != nil {
			o.onNew = append(o.onNew, f)
		}
	}
}

// Outputs are nodes that DebugAddCheckNumericsOnOutput checks beside the losses.
func Outputs(nodes ...*gorgonia.Node) Option {
	return func(o *options) { o.outputs = append(o.outputs, nodes...) }
}

// New makes an updater. The loss is a float scalar, the variables are float inputs of its graph, and the loss must depend on
// at least one of them; variables that it does not depend on are left out, which Table and a warning of log/slog say. All of
// this is checked now; the graph is not touched before the optim op is first asked for.
func New(loss *gorgonia.Node, vars gorgonia.Nodes, cfg Config, opts ...Option) (*Updater, error) {
	u := &Updater{cfg: cfg, losses: []objective{{loss, slices.Clone(vars)}}, pipe: newPipeline(cfg)}
	for _, f := range opts {
		if f != nil {
			f(&u.options)
		}
	}
	if err := cfg.check(); err != nil {
		return nil, errors.Wrap(err, "updater: config")
	}
	u.solver = solvers.New(u.pipe, u.options.solver...)
	if err := u.settle(u.losses); err != nil {
		return nil, err
	}
	cfg.warnExclusions(u.settings)
	return u, nil
}

// settle checks losses with their variables and gives all variables their settings; an error changes nothing.
func (u *Updater) settle(losses []objective) (err error) {
	p := u.pipe
	by, all, own, opts, chosen := maps.Clone(p.by), p.all, u.settings, slices.Clone(p.optimizers), maps.Clone(p.chosen)
	defer func() {
		if err != nil {
			u.use(own)
			p.by, p.all, p.optimizers, p.chosen = by, all, opts, chosen
			err = errors.Wrap(err, "updater")
		}
	}()
	vars := union(losses)
	names, err := u.solver.Names(vars...)
	if err != nil {
		return err
	}
	settings, err := u.cfg.settle(vars, names)
	if err != nil {
		return errors.Wrap(err, "config")
	}
	for _, s := range settings {
		s.custom = u.custom.of(s.node) != nil
	}
	if err := p.assign(settings); err != nil {
		return errors.Wrap(err, "config")
	}
	u.use(settings)
	if err := u.checkLosses(losses, vars); err != nil {
		return err
	}
	if err := u.checkCustom(losses); err != nil {
		return err
	}
	for _, f := range []func() error{u.startRates, u.schedule, u.startDecay} {
		if err := f(); err != nil {
			return errors.Wrap(err, "config")
		}
	}
	return nil
}

// use makes settings those of the updater's variables.
func (u *Updater) use(settings []*setting) {
	u.settings, u.byNode = settings, map[*gorgonia.Node]*setting{}
	for _, s := range settings {
		u.byNode[s.node] = s
	}
}

// checkLosses checks the losses, the variables that get gradients, and what the rules make of all of them together.
func (u *Updater) checkLosses(losses []objective, vars gorgonia.Nodes) error {
	trained := u.trained(vars)
	has := make([]bool, len(trained))
	mark := func(o objective) error {
		depends, err := u.checkLoss(o)
		for i, v := range u.trained(o.vars) {
			if k := slices.Index(trained, v); err == nil && depends[i] {
				has[k] = true
			}
		}
		return err
	}
	for _, o := range losses {
		if err := mark(o); err != nil {
			return err
		}
	}
	for _, m := range u.metas {
		if err := mark(objective{m.Loss, losses[0].vars}); err != nil {
			return errors.Wrapf(err, "meta loss %q", m.Name)
		}
	}
	for i, v := range trained {
		s := u.of(v)
		has[i] = has[i] || s.l2() != 0 && !u.cfg.DecoupleConstraints && !s.overwrite
		s.idle = !has[i]
	}
	if len(trained) == 0 { // all have custom updates
		return nil
	}
	return u.solver.CheckCompose(trained, has)
}

// checkLoss checks a loss with those of its variables that get gradients, and says which of these it depends on.
func (u *Updater) checkLoss(o objective) ([]bool, error) {
	if o.loss == nil {
		return nil, errors.New("the loss is nil")
	}
	for _, v := range o.vars {
		if v != nil && v.Graph() != o.loss.Graph() {
			return nil, errors.Errorf("variable %q is not on the graph of the loss", v.Name())
		}
	}
	trained := u.trained(o.vars)
	if len(trained) == 0 && len(o.vars) > 0 {
		return nil, nil
	}
	return u.solver.Depends(o.loss, trained...)
}

// union are the variables of all losses, each once.
func union(losses []objective) (vars gorgonia.Nodes) {
	for i, o := range losses {
		for _, v := range o.vars {
			if i == 0 || !vars.Contains(v) {
				vars = append(vars, v)
			}
		}
	}
	return vars
}

// OptimOp is the optim op: a scalar node that, when a machine runs it, does one training step and counts it. It is built at
// the first call, and again after ResetOptimOp or a change of the variables; the old one is then inert, and machines made
// for it say so. Slots of variables that stay are kept.
func (u *Updater) OptimOp() (*gorgonia.Node, error) {
	if u.op != nil {
		return u.op, nil
	}
	if len(u.losses) == 0 {
		return nil, errors.New("updater: make it with New")
	}
	old := u.product
	if err := u.renew(); err != nil {
		if u.last != old.last {
			_ = graphops.Supersede(u.last) // it is a commit
		}
		u.product = old
		return nil, errors.Wrap(err, "updater")
	}
	if old.last != nil {
		return u.last, graphops.Supersede(old.last)
	}
	return u.last, nil
}

// renew builds an optim op and announces it.
func (u *Updater) renew() error {
	op, err := u.build()
	if err != nil {
		return err
	}
	u.op, u.last = op, op
	for _, f := range u.onNew {
		if err := f(op); err != nil {
			return errors.Wrap(err, "OnNewOptimOp")
		}
	}
	return nil
}

// ResetOptimOp forgets the optim op, so that the next call of OptimOp builds a new one. Until then the old one works.
func (u *Updater) ResetOptimOp() { u.op = nil }

// SetTrainableVars changes the variables of New's loss. The same list changes nothing; another is checked as in New and resets the
// optim op.
func (u *Updater) SetTrainableVars(vars gorgonia.Nodes) error {
	if len(u.losses) == 0 {
		return errors.New("updater: make it with New")
	}
	if slices.Equal(vars, u.losses[0].vars) {
		return nil
	}
	return u.change(append([]objective{{u.losses[0].loss, slices.Clone(vars)}}, u.losses[1:]...))
}

// AddLoss trains variables on a further loss of the same graph, in the same step: a variable that several losses have goes by the sum of
// their gradients, and everything is one commit. It resets the optim op.
func (u *Updater) AddLoss(loss *gorgonia.Node, vars ...*gorgonia.Node) error {
	if len(u.losses) == 0 {
		return errors.New("updater: make it with New")
	}
	if loss == nil || loss.Graph() != u.losses[0].loss.Graph() {
		return errors.New("updater: the further loss is not on the graph of the first")
	}
	return u.change(append(slices.Clone(u.losses), objective{loss, slices.Clone(vars)}))
}

func (u *Updater) change(losses []objective) error {
	if err := u.settle(losses); err != nil {
		return err
	}
	u.losses = losses
	u.ResetOptimOp()
	return nil
}

// InitOptimizerVars makes sure that the optim op exists, and sets all slots and counters of the optimizers to their initial values.
// Variables, hyperparameters and the global step stay as they are.
func (u *Updater) InitOptimizerVars() error {
	if _, err := u.OptimOp(); err != nil {
		return err
	}
	return errors.Wrap(u.initState(), "updater")
}

// initState sets the state back, but for what counts runs.
func (u *Updater) initState() error {
	kept := map[string]float64{}
	for _, name := range counted {
		if st := u.solver.Store().Lookup(name); st != nil {
			v, err := st.Value()
			if err != nil {
				return err
			}
			if kept[name], err = graphops.ScalarValue(v); err != nil {
				return err
			}
		}
	}
	if err := u.solver.Reset(); err != nil {
		return err
	}
	for _, name := range counted {
		if v, ok := kept[name]; ok {
			if err := u.solver.Store().Lookup(name).Set(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// counted are the states that tell what happened in the training, not what an optimizer remembers.
var counted = []string{globalStep, epochStart, skippedTotal, skippedInRow, skippedFirst}

const (
	globalStep = "global_step" // the solver's counter of runs
	epochStart = "epoch_start" // the global step at the start of the epoch
)

// StartEpoch says that the next run is the first of an epoch, which ResetUpdaterVarsModStep counts from. It concerns the updaters of On
// too, and is a part of the saved state.
func (u *Updater) StartEpoch() error {
	step, err := u.GlobalStep()
	if err != nil || u.cfg.ResetUpdaterVarsModStep == 0 {
		return err
	}
	st, err := u.solver.Store().Counter(epochStart)
	if err == nil {
		err = st.Set(float64(step))
	}
	return errors.Wrap(err, "updater")
}

// GlobalStep is the number of runs of the optim op, also of those that only accumulated gradients or were skipped. It is a part of
// the saved state.
func (u *Updater) GlobalStep() (int, error) {
	step, err := u.solver.GlobalStep()
	return step, errors.Wrap(err, "updater")
}

// On makes an updater for a loss on another graph, or another loss of this one, with the same config: a model of another batch size. The two
// share the rules, their hyperparameters, and the state of variables of the same names, to which the caller binds the same
// values; each has its own optim op, machines and summaries. Options other than Expanded, which it inherits, are its own: repeat custom and extra updates.
func (u *Updater) On(loss *gorgonia.Node, vars gorgonia.Nodes, opts ...Option) (*Updater, error) {
	if len(u.losses) == 0 {
		return nil, errors.New("updater: make it with New")
	}
	v := &Updater{cfg: u.cfg, solver: u.solver, pipe: u.pipe, losses: []objective{{loss, slices.Clone(vars)}}}
	for _, f := range opts {
		if f != nil {
			f(&v.options)
		}
	}
	if err := v.settle(v.losses); err != nil {
		return nil, err
	}
	return v, nil
}

// CreateOptimOp builds the optim op anew, also where there is one, which is then inert.
func (u *Updater) CreateOptimOp() (*gorgonia.Node, error) {
	u.ResetOptimOp()
	return u.OptimOp()
}

// NewMachine makes a machine that trains: see graphops.NewMachine. It runs the optim op, the losses, the given nodes, and only
// what they need.
func (u *Updater) NewMachine(reads ...*gorgonia.Node) (gorgonia.VM, error) {
	op, err := u.OptimOp()
	if err != nil {
		return nil, err
	}
	var all gorgonia.Nodes
	for _, o := range u.losses {
		all = append(all, o.loss)
	}
	return graphops.NewMachine(op, append(all, reads...)...)
}

// Solver is the solver of all rules: for its hyperparameters (Get, Set, Bind, Schedule) and its Store. The state of everything
// that the updater trains is in it.
func (u *Updater) Solver() *solvers.Solver { return u.solver }
