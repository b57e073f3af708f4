package solvers

import (
	"maps"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

// globalStep is the counter of a solver's runs. Unlike a rule's own count it starts from 0 and counts every run, whatever
// the rules do in it.
const globalStep = "global_step"

// scheduled is a hyperparameter that follows a schedule.
type scheduled struct {
	name  string   // in full
	of    *float64 // the field
	sch   schedule.Schedule
	value func(step int) float64 // for checks and Get: the numbers that the update computes
	check func(float64) error
}

// Schedule lets a hyperparameter follow a schedule, a function of the solver's global step: the number of runs before this
// one, over all graphs and Steps of the solver. See Set for the names. A nil schedule removes the one that there is, and the
// hyperparameter has the value again that it had before.
//
// The schedule becomes a part of the update. Optim ops that Minimize has built before would not know of it, so they fail from
// then on, and change nothing, until Minimize is called again; Step needs nothing. Slots and counters go on.
//
// A value that is illegal for the hyperparameter is an error of the run that would use it, which names the step, and nothing
// is written. That the value of the next step is illegal is an error of Schedule; only this looks at conditions that concern several
// hyperparameters, too. What a rule reads only when the update is built cannot follow a schedule; the next Step or Minimize then
// says so. A hyperparameter cannot both follow a schedule
// and be bound to a node, and while it follows one, Set is an error. Schedules are the solver's, not the rule's: a solver that
// has some cannot be a rule of another.
//
// Get reads the value that the next step will use; HyperNode makes it a node of a graph.
func (s *Solver) Schedule(name string, sch schedule.Schedule) error {
	full, r, f, err := s.hyper(name)
	if err != nil {
		return err
	}
	if n := s.bound[full]; n != nil {
		return errors.Errorf("solvers: %s is bound to the node %q, so it cannot follow a schedule", full, n.Name())
	}
	old := s.scheduled(full)
	if sch == nil && old == nil {
		return nil
	}
	next := slices.DeleteFunc(slices.Clone(s.schedule), func(h *scheduled) bool { return h == old })
	if sch != nil {
		h := &scheduled{full, f.value, sch, nil, f.check}
		if h.value, err = schedule.Compile(sch); err != nil {
			return errors.Wrapf(err, "solvers: %s", full)
		}
		step, err := s.GlobalStep()
		if err != nil {
			return err
		}
		if err := r.accepts(f, h.value(step)); err != nil {
			return errors.Wrapf(err, "the schedule at step %d", step)
		}
		next = append(next, h)
	}
	var check func(float64) error
	if len(next) > 0 {
		check = s.checkSchedules
	}
	stale := errors.Errorf("the schedule of %s was changed since this optim op was built: call Minimize again", full)
	if err := s.store.Renew(globalStep, stale, check); err != nil {
		return err
	}
	s.schedule = next
	s.rebuild()
	return nil
}

// GlobalStep is the number of runs that the solver has made, over all its graphs and in Step. It is the counter "global_step" of
// the Store, saved and reset with the others: to go on elsewhere in the schedules, set that. A run that fails does not count.
func (s *Solver) GlobalStep() (int, error) {
	if err := s.Err(); err != nil {
		return 0, err
	}
	st := s.store.Lookup(globalStep)
	if st == nil {
		return 0, nil
	}
	v, err := st.Value()
	if err != nil {
		return 0, err
	}
	n, ok := v.(*gorgonia.I64)
	if !ok {
		return 0, errors.Errorf("solvers: the state %q is no counter", globalStep)
	}
	return int(*n), nil
}

// HyperNode is a hyperparameter as a node on a graph, to be read in a run or to compute with; see Set for the names. One that
// follows a schedule is computed from the global step: call HyperNode after Schedule and before Minimize, and give the node to
// the machine (graphops.NewMachine(op, node)); its value is then that of the run. One that does not is an input, and there is
// none before Minimize has made it.
func (s *Solver) HyperNode(name string, g *gorgonia.ExprGraph) (*gorgonia.Node, error) {
	full, _, _, err := s.hyper(name)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, errors.Errorf("solvers: %s: the graph is nil", full)
	}
	if n := s.bound[full]; n != nil {
		if n.Graph() != g {
			return nil, errors.Errorf("solvers: %s is bound to a node of another graph", full)
		}
		return n, nil
	}
	if h := s.scheduled(full); h != nil {
		n, err := s.store.Lookup(globalStep).Node(g)
		if err != nil {
			return nil, err
		}
		step := graphops.ScalarOf(n)
		value, err := h.at(step)
		if err != nil {
			return nil, err
		}
		return graphops.Expand(never.Select(step, value)) // reads a node even where the schedule does not
	}
	st := s.store.Lookup(full)
	if st == nil {
		return nil, errors.Errorf("solvers: %s is no state yet: call Minimize first", full)
	}
	return st.Node(g)
}

// Schedules are the schedules by the full names of their hyperparameters, as Schedule was given them.
func (s *Solver) Schedules() map[string]schedule.Schedule {
	all := map[string]schedule.Schedule{}
	for _, h := range s.schedule {
		all[h.name] = h.sch
	}
	return all
}

// scheduled finds the schedule of a hyperparameter by its full name, or nil. A rule that several rules run, and that has a name for
// each, has one schedule, as it has one value.
func (s *Solver) scheduled(full string) *scheduled {
	for _, h := range s.schedule {
		if h.name == full {
			return h
		}
		for _, r := range s.rules {
			for _, f := range r.fields {
				if f.value == h.of && r.name+"/"+f.name == full {
					return h
				}
			}
		}
	}
	return nil
}

// checkSchedules looks, before a run, at what the schedules give for it.
func (s *Solver) checkSchedules(step float64) error {
	for _, h := range s.schedule {
		if err := h.check(h.value(int(step))); err != nil {
			return errors.Wrapf(err, "the schedule at step %v", step)
		}
	}
	return nil
}

// asRule reports what keeps the solver from being a rule of another.
func (s *Solver) asRule() error {
	if err := s.Err(); err != nil {
		return err
	}
	if len(s.schedule) > 0 {
		return errors.Errorf("solvers: the schedule of %s would be lost in another solver: call Schedule of that one", s.schedule[0].name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.bound)) {
		return errors.Errorf("solvers: the node that %s is bound to would be lost in another solver: call Bind of that one", name)
	}
	return nil
}

// at is the value in the run of that step.
func (h *scheduled) at(step Expr) (e Expr, err error) {
	defer func() { // of a schedule of the user's
		if p := recover(); p != nil {
			err = errors.Errorf("solvers: the schedule of %s panicked: %v", h.name, p)
		}
	}()
	return h.sch.At(step), nil
}

// GlobalStep is the number of runs before this one, over all graphs and Steps of the solver, whatever the rules do in them.
func (b *Builder) GlobalStep() Expr { return b.scalar(b.store.Counter(globalStep)) }

// countStep counts the run.
func (b *build) countStep() error {
	st, err := b.store.Counter(globalStep)
	if err != nil {
		return err
	}
	n, err := st.Node(b.g)
	if err != nil {
		return err
	}
	b.updates = append(b.updates, graphops.Update{Target: n, Value: graphops.ScalarOf(n).Add(one)})
	return nil
}
