package updater

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/internal/batch"
	"optimop/solvers"
)

// Saver is a training that can be saved and go on elsewhere: an Updater, a GradientDescent, a Batched, or what SaverOf makes.
type Saver interface {
	Snapshot() (*Snapshot, error)
	Restore(s *Snapshot, opts ...LoadOpt) error
}

var (
	_ Saver = (*Updater)(nil)
	_ Saver = (*GradientDescent)(nil)
	_ Saver = (*Batched)(nil)
)

// SaverOf is the training of a solver with its parameters, for those who train by Minimize or Step. The solver must be built (Build,
// Minimize or a Step), and the parameters must have names. Random operations that nodes depend on, such as dropout in the
// losses, are saved with it.
func SaverOf(s *solvers.Solver, params gorgonia.Nodes, losses ...*gorgonia.Node) Saver {
	return solverTraining{s, params, losses}
}

type solverTraining struct {
	solver         *solvers.Solver
	params, losses gorgonia.Nodes
}

func (x solverTraining) items() ([]item, error) {
	if x.solver == nil {
		return nil, errors.New("the solver is nil")
	}
	if err := x.solver.CatchUp(); err != nil {
		return nil, err
	}
	if why := x.solver.Store().Locked(); why != nil {
		return nil, why
	}
	if len(x.solver.Variables()) == 0 {
		return nil, errors.New("the solver is not built yet: call Build or Minimize")
	}
	c := collector{seen: map[string]bool{}}
	for _, n := range x.params {
		name, ok := "", false
		if n != nil {
			name, ok = batch.GivenName(n)
		}
		if !ok {
			return nil, errors.Errorf("parameter %s has no name of its own: give it one with gorgonia.WithName", nodeName(n))
		}
		if err := c.variable(name, n); err != nil {
			return nil, err
		}
	}
	err := c.states(allStates(x.solver.Store().States(), x.losses))
	return c.items, err
}

// Snapshot implements Saver.
func (x solverTraining) Snapshot() (*Snapshot, error) {
	items, err := x.items()
	if err != nil {
		return nil, errors.Wrap(err, "updater: Snapshot")
	}
	s, err := newSnapshot(items)
	if err == nil {
		err = describeSchedules(s.about, x.solver)
	}
	return s, errors.Wrap(err, "updater: Snapshot")
}

// Restore implements Saver.
func (x solverTraining) Restore(s *Snapshot, opts ...LoadOpt) error {
	items, err := x.items()
	mine := map[string]string{}
	if err == nil {
		err = describeSchedules(mine, x.solver)
	}
	if err == nil {
		err = newLoadOptions(opts).restore(items, mine, s)
	}
	return errors.Wrap(err, "updater: Restore")
}
