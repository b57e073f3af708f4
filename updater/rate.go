package updater

import (
	"path"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/spelling"
	"optimop/solvers/schedule"
)

const learningRate = "learning_rate"

// full is the name of an optimizer's hyperparameter in the updater's solver, or "" while that does not know the optimizer or there
// is none. A name may be that of one of its rules, "adam/beta1"; of several the last counts.
func (u *Updater) full(o *optimizer, name string) (found string) {
	dir, base := path.Split(name)
	own, err := o.Solver.RuleNames(o.Solver)
	if err != nil {
		return ""
	}
	names, err := u.solver.RuleNames(o.Solver)
	if err != nil {
		return ""
	}
	for i, r := range own {
		if _, err := o.Solver.Get(r + "/" + base); err == nil && (dir == "" || spelling.Fold(dir) == spelling.Fold(r)+"/") {
			found = names[i] + "/" + base
		}
	}
	return found
}

// startRates gives new optimizers the learning rate.
func (u *Updater) startRates() error {
	p := u.pipe
	for _, o := range p.optimizers {
		name := o.has(learningRate)
		if o.started || name == "" {
			continue
		}
		if p.rate != nil {
			if err := o.Solver.Set(name, *p.rate); err != nil {
				return err
			}
		}
		o.started = true
	}
	return nil
}

// startDecay gives the decoupled decay the first learning rate, once that is known, schedule or not.
func (u *Updater) startDecay() error {
	p := u.pipe
	if p.decay == nil || p.first != 0 {
		return nil
	}
	rate, err := u.baseRate()
	if err != nil {
		return errors.Wrap(err, "decouple_constraints_factor")
	}
	if rate == 0 {
		return errors.New("decouple_constraints_factor: the first learning rate, which it is relative to, is 0")
	}
	p.first, p.decay.LearningRate = rate, rate
	return nil
}

// schedule attaches the schedules of the config to the optimizers that the solver knows by now.
func (u *Updater) schedule() error {
	attach := func(full string, s schedule.Schedule) error {
		if full == "" || u.pipe.scheduled[full] {
			return nil
		}
		if err := u.solver.Schedule(full, s); err != nil {
			return errors.Wrap(err, "config")
		}
		u.pipe.scheduled[full] = true
		return nil
	}
	for _, o := range u.pipe.optimizers {
		for _, s := range o.schedules {
			if err := attach(u.full(o, s.name), s.at); err != nil {
				return err
			}
		}
		if s := u.cfg.LearningRateSchedule; s != nil {
			if err := attach(u.full(o, learningRate), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetLearningRate sets the learning rate of all optimizers from the next step on. Multipliers and the dynamic learning rate still
// multiply it. Where learning_rate follows a schedule it is an error.
func (u *Updater) SetLearningRate(v float64) error {
	return errors.Wrap(u.setRate(v), "updater")
}

func (u *Updater) setRate(v float64) error {
	if u.cfg.LearningRateSchedule != nil {
		return errors.New("learning_rate follows a schedule")
	}
	if _, err := u.setRates(v); err != nil {
		return err
	}
	if u.pipe.decay != nil {
		u.pipe.decay.LearningRate = v
	}
	u.pipe.rate = &v
	return nil
}

// setRates sets the learning rate of all optimizers, or changes nothing. back gives them those that they had.
func (u *Updater) setRates(v float64) (back func() error, err error) {
	var undo []func() error
	back = func() (err error) {
		for _, f := range undo {
			if e := f(); err == nil {
				err = e
			}
		}
		return err
	}
	for _, o := range u.pipe.optimizers {
		s, name := u.solver, u.full(o, learningRate)
		if name == "" {
			s, name = o.Solver, o.has(learningRate)
		}
		if name == "" {
			continue
		}
		was, err := s.Get(name)
		if err == nil {
			err = s.Set(name, v)
		}
		if err != nil {
			_ = back() // they had it before
			return nil, err
		}
		undo = append(undo, func() error { return s.Set(name, was) })
	}
	if len(undo) == 0 {
		return nil, errors.Errorf("no optimizer here has a hyperparameter %s", learningRate)
	}
	return back, nil
}

// LearningRate is the effective learning rate of the next step, the dynamic factor included, but no multipliers: that of the config's
// optimizer, or the first that has one.
func (u *Updater) LearningRate() (float64, error) {
	v, err := u.baseRate()
	if err == nil && u.cfg.DynamicLearningRate != nil {
		var step int
		if step, err = u.solver.GlobalStep(); err == nil {
			v *= schedule.Value(u.cfg.DynamicLearningRate, step)
		}
	}
	return v, errors.Wrap(err, "updater")
}

func (u *Updater) baseRate() (float64, error) {
	o, err := u.rated()
	if err != nil {
		return 0, err
	}
	if name := u.full(o, learningRate); name != "" {
		return u.solver.Get(name)
	}
	return o.Solver.Get(o.has(learningRate))
}

// rated is the optimizer whose learning rate is the updater's: of those that variables with gradients use, if there are any.
func (u *Updater) rated() (first *optimizer, err error) {
	for _, inUse := range []bool{true, false} {
		for _, o := range u.needed() {
			if o.has(learningRate) == "" || inUse && u.full(o, learningRate) == "" {
				continue
			}
			if choiceOf(u.cfg.Optimizer, identity) == o.choice {
				return o, nil
			}
			if first == nil {
				first = o
			}
		}
		if first != nil {
			return first, nil
		}
	}
	return nil, errors.Errorf("no optimizer here has a hyperparameter %s", learningRate)
}

// LearningRateNode is the effective learning rate of a run (see LearningRate) as a node to read in that run, with NewMachine. It
// belongs to the present optim op, which is built if there is none.
func (u *Updater) LearningRateNode() (*gorgonia.Node, error) {
	if _, err := u.OptimOp(); err != nil {
		return nil, err
	}
	if u.rate == nil {
		_, err := u.rated()
		return nil, errors.Wrap(err, "updater")
	}
	return u.rate, nil
}

// rateExpr is the effective learning rate, once the updates have been composed.
func (u *Updater) rateExpr() (Expr, error) {
	o, err := u.rated()
	if err != nil {
		return Expr{}, err
	}
	g := u.losses[0].loss.Graph()
	n, err := u.solver.HyperNode(u.full(o, learningRate), g)
	if err != nil {
		return Expr{}, err
	}
	rate := graphops.ScalarOf(n)
	if u.cfg.DynamicLearningRate != nil {
		step, err := u.stepNode()
		if err != nil {
			return Expr{}, err
		}
		rate = rate.Mul(u.cfg.DynamicLearningRate.At(graphops.ScalarOf(step)))
	}
	return rate, rate.Err()
}

// stepNode is the global step on the graph of the losses.
func (u *Updater) stepNode() (*gorgonia.Node, error) {
	st, err := u.solver.Store().Counter(globalStep)
	if err != nil {
		return nil, err
	}
	return st.Node(u.losses[0].loss.Graph())
}
