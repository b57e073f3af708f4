package updater

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/internal/batch"
)

// Snapshot copies all that the algorithm needs to go on elsewhere: the parameters and the other targets of updates, the step rule's slots,
// counters and hyperparameters, and the states of random operations. Parameters and targets need names of their own.
func (a *GradientDescent) Snapshot() (*Snapshot, error) {
	s, err := a.makeSnapshot()
	return s, errors.Wrap(err, "updater: Snapshot")
}

// Restore gives the algorithm, which must have the same parameters, step rule and updates, what a snapshot has, all or nothing.
func (a *GradientDescent) Restore(s *Snapshot, opts ...LoadOpt) error {
	return errors.Wrap(a.restore(s, newLoadOptions(opts)), "updater: Restore")
}

// SaveFile writes a Snapshot to a file: see Snapshot.WriteFile.
func (a *GradientDescent) SaveFile(path string) error {
	return errors.Wrap(saveFile(a.makeSnapshot, path), "updater: SaveFile")
}

// LoadFile is Restore of what SaveFile wrote.
func (a *GradientDescent) LoadFile(path string, opts ...LoadOpt) error {
	return errors.Wrap(loadFile(a.restore, path, newLoadOptions(opts)), "updater: LoadFile")
}

func (a *GradientDescent) makeSnapshot() (*Snapshot, error) {
	items, err := a.items()
	if err != nil {
		return nil, err
	}
	s, err := newSnapshot(items)
	if err != nil {
		return nil, err
	}
	return s, describeSchedules(s.about, a.solver)
}

func (a *GradientDescent) restore(s *Snapshot, o loadOptions) error {
	items, err := a.items()
	if err != nil {
		return err
	}
	mine := map[string]string{}
	if err := describeSchedules(mine, a.solver); err != nil {
		return err
	}
	return o.restore(items, mine, s)
}

// Snapshot copies what all models share: see GradientDescent.Snapshot. There must be a model (see Model).
func (b *Batched) Snapshot() (*Snapshot, error) {
	s, err := b.makeSnapshot()
	return s, errors.Wrap(err, "updater: Snapshot")
}

// Restore gives all models what a snapshot has, all or nothing. There must be one (see Model).
func (b *Batched) Restore(s *Snapshot, opts ...LoadOpt) error {
	return errors.Wrap(b.restore(s, newLoadOptions(opts)), "updater: Restore")
}

// SaveFile writes a Snapshot to a file: see Snapshot.WriteFile.
func (b *Batched) SaveFile(path string) error {
	return errors.Wrap(saveFile(b.makeSnapshot, path), "updater: SaveFile")
}

// LoadFile is Restore of what SaveFile wrote.
func (b *Batched) LoadFile(path string, opts ...LoadOpt) error {
	return errors.Wrap(loadFile(b.restore, path, newLoadOptions(opts)), "updater: LoadFile")
}

func (b *Batched) makeSnapshot() (*Snapshot, error) {
	m, err := b.any()
	if err != nil {
		return nil, err
	}
	return m.makeSnapshot()
}

func (b *Batched) restore(s *Snapshot, o loadOptions) error {
	m, err := b.any()
	if err != nil {
		return err
	}
	return m.restore(s, o)
}

// any is one of the models, which all share what is saved.
func (b *Batched) any() (*shaped, error) {
	if len(b.models) == 0 {
		return nil, errors.New("there is no model yet: call Model with a batch")
	}
	return b.models[0], b.share()
}

// items are what is saved of an algorithm.
func (a *GradientDescent) items() ([]item, error) {
	if err := a.solver.CatchUp(); err != nil {
		return nil, err
	}
	c := collector{seen: map[string]bool{}}
	roots := slices.Clone(a.after)
	for _, u := range a.updates {
		roots = append(roots, u.Value.Leaves()...)
	}
	states := allStates(a.solver.Store().States(), roots)
	isState := map[gorgonia.Value]bool{}
	for _, st := range states {
		v, err := st.Value()
		if err != nil {
			return nil, err
		}
		isState[v] = true
	}
	targets := slices.Clone(a.parameters)
	for _, u := range a.updates {
		if u.Target != nil && !isState[u.Target.Value()] && !targets.Contains(u.Target) {
			targets = append(targets, u.Target)
		}
	}
	for _, n := range targets {
		name, ok := batch.GivenName(n)
		if !ok {
			return nil, errors.Errorf("%s has no name of its own: give it one with gorgonia.WithName", nodeName(n))
		}
		if err := c.variable(name, n); err != nil {
			return nil, err
		}
	}
	err := c.states(states)
	return c.items, err
}
