package updater

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// UseAverages puts the averages of the weights into the variables, for evaluation, until restore puts the weights back, bit for bit.
// Config.UseEMA and the option use_ema of an optimizer keep such averages, and in Go the rules solvers.EMA, MovingAverage and SWA. A variable
// of which there is none, as none is kept or no step was made yet, stays as it is. That there is none at all is an error; see Averages.
//
// In between training is an error and changes nothing, also that of updaters of On, which share variables and state; so are a
// second UseAverages, AssignAverages, SaveFile, LoadFile and FindLearningRate. Values are written in place, so that evaluation
// machines of all graphs that share them see the averages. Only this updater's own variables are exchanged: for those that just an updater of
// On has, call solvers.Solver.UseAverages with all of them.
//
//	restore, err := u.UseAverages()
//	if err != nil { … }
//	defer restore()
func (u *Updater) UseAverages() (restore func() error, err error) {
	vars, err := u.averaged()
	if err == nil {
		restore, err = u.solver.UseAverages(vars...)
	}
	return restore, errors.Wrap(err, "updater: UseAverages")
}

// WithAverages runs something, such as an evaluation, between UseAverages and its end, also if it fails or panics. Its errors are
// returned as they are.
func (u *Updater) WithAverages(run func() error) error {
	vars, err := u.averaged()
	if err != nil {
		return errors.Wrap(err, "updater: WithAverages")
	}
	return u.solver.WithAverages(run, vars...)
}

// AssignAverages makes the averages of the weights the variables, for good, as at the end of a training, before SaveFile. Slots
// and counters stay. See UseAverages for which variables have one.
func (u *Updater) AssignAverages() error {
	vars, err := u.averaged()
	if err == nil {
		err = u.solver.AssignAverages(vars...)
	}
	return errors.Wrap(err, "updater: AssignAverages")
}

// Averages reports whether a variable has an average of its weights by now, so that there is something for UseAverages to put in: not
// before the first step, with SWA not before its own start, and never where no optimizer averages.
func (u *Updater) Averages() (bool, error) {
	vars, err := u.averaged()
	if err != nil {
		return false, errors.Wrap(err, "updater: Averages")
	}
	has, err := u.solver.HasAverages(vars...)
	return has, errors.Wrap(err, "updater: Averages")
}

// averaged are the variables that can have an average: those that optimizers train.
func (u *Updater) averaged() ([]gorgonia.ValueGrad, error) {
	if len(u.losses) == 0 {
		return nil, errors.New("make the updater with New")
	}
	return gorgonia.NodesToValueGrads(u.trained(union(u.losses))), nil
}
