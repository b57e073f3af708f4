package updater

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/solvers"
)

// Snapshot copies all that the algorithm needs to go on elsewhere: the parameters and the other targets of updates, the step rule's slots,
// counters and hyperparameters, and the states of random operations. Parameters and targets need names of their own.
func (a *GradientDescent) Snapshot() (*Snapshot, error) {
	items, err := a.items()
	if err != nil {
		return nil, errors.Wrap(err, "updater: Snapshot")
	}
	return snapshotOf(items, a.solver)
}

// Restore gives the algorithm, which must have the same parameters, step rule and updates, what a snapshot has, all or nothing.
func (a *GradientDescent) Restore(s *Snapshot, opts ...LoadOpt) error {
	items, err := a.items()
	if err != nil {
		return errors.Wrap(err, "updater: Restore")
	}
	return restore(items, a.solver, s, opts)
}

// SaveFile writes a Snapshot to a file: see Snapshot.WriteFile.
func (a *GradientDescent) SaveFile(path string) error { return saveFile(a.Snapshot, path) }

// LoadFile is Restore of what SaveFile wrote.
func (a *GradientDescent) LoadFile(path string, opts ...LoadOpt) error {
	return loadFile(a.Restore, path, opts)
}

// Snapshot copies what all models share: see GradientDescent.Snapshot. There must be a model (see Model).
func (b *Batched) Snapshot() (*Snapshot, error) {
	items, err := b.items()
	if err != nil {
		return nil, errors.Wrap(err, "updater: Snapshot")
	}
	return snapshotOf(items, b.solver)
}

// Restore gives all models what a snapshot has, all or nothing. There must be one (see Model).
func (b *Batched) Restore(s *Snapshot, opts ...LoadOpt) error {
	items, err := b.items()
	if err != nil {
		return errors.Wrap(err, "updater: Restore")
	}
	return restore(items, b.solver, s, opts)
}

// SaveFile writes a Snapshot to a file: see Snapshot.WriteFile.
func (b *Batched) SaveFile(path string) error { return saveFile(b.Snapshot, path) }

// LoadFile is Restore of what SaveFile wrote.
func (b *Batched) LoadFile(path string, opts ...LoadOpt) error {
	return loadFile(b.Restore, path, opts)
}

func snapshotOf(items []item, of *solvers.Solver) (*Snapshot, error) {
	s, err := newSnapshot(items)
	if err != nil {
		return nil, errors.Wrap(err, "updater: Snapshot")
	}
	return s, describeSchedules(s.about, of)
}

func restore(items []item, into *solvers.Solver, s *Snapshot, opts []LoadOpt) error {
	o, mine := newLoadOptions(opts), map[string]string{}
	if err := describeSchedules(mine, into); err != nil {
		return err
	}
	if err := o.compare(s, mine); err != nil {
		return err
	}
	_, err := o.load(items, s)
	return err
}

func saveFile(snapshot func() (*Snapshot, error), path string) error {
	s, err := snapshot()
	if err == nil {
		err = s.WriteFile(path)
	}
	return errors.Wrap(err, "updater: SaveFile")
}

func loadFile(restore func(*Snapshot, ...LoadOpt) error, path string, opts []LoadOpt) error {
	s, err := readSnapshotFile(path, !newLoadOptions(opts).unchecked)
	if err == nil {
		err = restore(s, opts...)
	}
	return errors.Wrap(err, "updater: LoadFile")
}

// items are what is saved of an algorithm.
func (a *GradientDescent) items() ([]item, error) {
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
		name, ok := givenName(n)
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

// items are what is saved: those of any model, as all share them.
func (b *Batched) items() ([]item, error) {
	if len(b.models) == 0 {
		return nil, errors.New("there is no model yet: call Model with a batch")
	}
	if err := b.share(); err != nil {
		return nil, err
	}
	return b.models[0].items()
}
