package updater

import (
	"encoding/json"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/durable"
	"optimop/internal/safetensors"
	"optimop/internal/saved"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// SaveFile writes a Snapshot to a file: the values of all variables and the whole state of the optimizers (slots, counters with the global
// step, hyperparameters, accumulators, averages, the states of random operations), the config and the schedules. A run that is
// interrupted, a full disk, a loss of power leave the old file: see Snapshot.WriteFile. Two variables of one name are an error. The
// optim op is built if there is none. While averages of the weights stand in for them (UseAverages) SaveFile is an error.
func (u *Updater) SaveFile(path string) error {
	return errors.Wrap(saveFile(u.makeSnapshot, path), "updater: SaveFile")
}

// Snapshot copies what SaveFile saves, to be written later, or by another goroutine while the training goes on.
func (u *Updater) Snapshot() (*Snapshot, error) {
	s, err := u.makeSnapshot()
	return s, errors.Wrap(err, "updater: Snapshot")
}

func (u *Updater) makeSnapshot() (*Snapshot, error) {
	if _, err := u.OptimOp(); err != nil {
		return nil, err
	}
	items, err := u.items()
	if err != nil {
		return nil, err
	}
	if err := u.checkNames(); err != nil {
		return nil, err
	}
	s, err := newSnapshot(items)
	if err != nil {
		return nil, err
	}
	return s, u.describe(s.about)
}

// saveFile writes a snapshot to a file.
func saveFile(make func() (*Snapshot, error), path string) error {
	s, err := make()
	if err != nil {
		return err
	}
	return durable.WriteFile(path, s.write)
}

// describe adds the config, if it has a form in a file, and the schedules.
func (u *Updater) describe(about map[string]string) error {
	if text, err := json.Marshal(u.cfg); err == nil {
		about[metaConfig] = string(text)
	}
	return describeSchedules(about, u.solver)
}

// describeSchedules adds the schedules. One that only Go can name is there without what it is.
func describeSchedules(about map[string]string, s *solvers.Solver) error {
	all := map[string]any{}
	for name, sch := range s.Schedules() { // into another map
		c, err := schedule.Config(sch)
		if all[name] = c; err != nil {
			all[name] = nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	return putJSON(about, metaSchedules, all)
}

// copied is a copy of the values of all variables and states.
type copied struct {
	items   []item
	tensors []safetensors.Tensor // of the items
}

// snapshot copies everything.
func (u *Updater) snapshot() (s copied, err error) {
	if s.items, err = u.items(); err != nil {
		return s, err
	}
	for _, it := range s.items {
		t, err := it.tensor()
		if err != nil {
			return s, err
		}
		s.tensors = append(s.tensors, t)
	}
	return s, nil
}

// restore writes everything back that it can, and returns the first error.
func (s copied) restore() (err error) {
	for i, it := range s.items {
		if e := it.restore(s.tensors[i]); err == nil {
			err = errors.Wrapf(e, "restoring %s", it.name)
		}
	}
	return err
}

// The kinds of what a file holds.
const (
	kindParameter = "parameter"
	kindState     = "state"
)

// item is one thing that is saved.
type item struct {
	name, kind string
	value      gorgonia.Value
	node       *gorgonia.Node  // of a variable, or nil
	state      *graphops.State // or nil
}

// checkNames reports variables that a file could not tell apart.
func (u *Updater) checkNames() error {
	for _, s := range u.settings {
		if s.name != s.node.Name() {
			return errors.Errorf("a variable has no name of its own, so that it is called %q: give it one with gorgonia.WithName", s.name)
		}
	}
	return nil
}

// collector collects items, whose names must differ.
type collector struct {
	items []item
	seen  map[string]bool
}

func (c *collector) add(it item) error {
	if c.seen[it.name] {
		return errors.Errorf("two things are called %q: give the variables names of their own", it.name)
	}
	c.seen[it.name] = true
	c.items = append(c.items, it)
	return nil
}

func (c *collector) variable(name string, n *gorgonia.Node) error {
	if n.Value() == nil {
		return errors.Errorf("variable %q has no value", name)
	}
	return c.add(item{name: name, kind: kindParameter, value: n.Value(), node: n})
}

// allStates are some states, and those of the random operations that some nodes depend on.
func allStates(states []*graphops.State, roots gorgonia.Nodes) []*graphops.State {
	states = slices.Clone(states)
	for _, g := range graphops.Generators(roots...) {
		for _, st := range g.States() {
			if !slices.Contains(states, st) {
				states = append(states, st)
			}
		}
	}
	return states
}

func (c *collector) states(states []*graphops.State) error {
	for _, st := range states {
		v, err := st.Value()
		if err != nil {
			return err
		}
		if err := c.add(item{name: st.Name(), kind: kindState, value: v, state: st}); err != nil {
			return err
		}
	}
	return nil
}

// items are the variables and states, in order. While averages stand in for the weights there are none.
func (u *Updater) items() (items []item, err error) {
	if len(u.losses) == 0 {
		return nil, errors.New("make the updater with New")
	}
	if why := u.solver.Store().Locked(); why != nil {
		return nil, why
	}
	if err := u.solver.CatchUp(); err != nil {
		return nil, err
	}
	c := collector{seen: map[string]bool{}}
	for _, s := range u.settings {
		if err := c.variable(s.name, s.node); err != nil {
			return nil, err
		}
	}
	var losses gorgonia.Nodes
	for _, o := range u.losses {
		losses = append(losses, o.loss)
	}
	for _, m := range u.metas {
		losses = append(losses, m.Loss)
	}
	err = c.states(allStates(u.OptimizerVars(), losses))
	return c.items, err
}

// tensor is a copy of the value, in the order of its elements.
func (it item) tensor() (safetensors.Tensor, error) { return saved.FromValue(it.name, it.value) }

// restore writes a copy back. A variable's node may have got another value in the meantime, by gorgonia.Let: then into both.
func (it item) restore(t safetensors.Tensor) (err error) {
	if it.state != nil {
		_, err = it.state.Value() // takes over what Let gave its nodes, so that it does not come back later
	} else if now := it.node.Value(); now != nil && now != it.value {
		err = graphops.Copy(now, saved.Value(t))
	}
	if e := it.assign(t); err == nil {
		err = e
	}
	return err
}

// accepts looks at what was read for a hyperparameter or a counter.
func (it item) accepts(t safetensors.Tensor) error {
	if it.state == nil || it.state.Kind() == graphops.Slot {
		return nil
	}
	v, err := graphops.ScalarValue(saved.Value(t))
	switch {
	case err != nil:
		return err
	case it.state.Kind() == graphops.Counter && (v < 0 || v > 1<<53):
		return errors.Errorf("%s is %v, which no counter can be", it.name, v)
	}
	return it.state.Accepts(v)
}
