package updater

import (
	"github.com/pkg/errors"

	"optimop/solvers"
)

// Modifier changes a hyperparameter between batches. It is Blocks' SharedVariableModifier.
type Modifier struct {
	solver *solvers.Solver
	name   string
	f      func(iteration int, old float64) float64
}

// NewModifier makes a modifier of a hyperparameter, by its name as Solver.Set has it, that makes it a function of the iteration, or
// of the iteration and the old value. See also Solver.Schedule, for functions that are computed in the graph.
func NewModifier[F func(iteration int) float64 | func(iteration int, old float64) float64](s *solvers.Solver, name string, f F) (*Modifier, error) {
	if _, err := s.Get(name); err != nil {
		return nil, errors.Wrap(err, "updater: modifier")
	}
	m := &Modifier{solver: s, name: name}
	switch f := any(f).(type) {
	case func(int) float64:
		if f != nil {
			m.f = func(n int, _ float64) float64 { return f(n) }
		}
	case func(int, float64) float64:
		m.f = f
	}
	if m.f == nil {
		return nil, errors.Errorf("updater: the function of the modifier of %s is nil", name)
	}
	return m, nil
}

// Apply is to be called after each batch, or whenever the hyperparameter is to change, with the number of batches that are done:
// 1 after the first. The next batch uses the new value. A value out of the hyperparameter's range is an error, and so is a function
// that panics; the old value then stays.
func (m *Modifier) Apply(iteration int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("updater: the modifier of %s panicked at iteration %d: %v", m.name, iteration, p)
		}
	}()
	old, err := m.solver.Get(m.name)
	if err == nil {
		err = m.solver.Set(m.name, m.f(iteration, old))
	}
	return errors.Wrapf(err, "updater: the modifier of %s at iteration %d", m.name, iteration)
}
