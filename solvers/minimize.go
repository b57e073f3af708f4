package solvers

import (
	"log/slog"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Minimize builds one training step into the graph of the loss: the gradients of the loss with respect to the variables, the
// rules, and the commit that writes parameters, slots and counters. It returns the optim op, a scalar node that counts the
// steps that it has done itself; a machine that runs it, such as graphops.NewMachine(op) or a tape machine over g.SubgraphRoots(op), trains.
//
// The loss is a float scalar; the variables are float32 or float64 inputs of its graph. The loss that is read in a run is
// the one before the step, unless it is itself a variable or a view of one. Variables that the loss does not depend on are left out, with a warning of log/slog; if it depends on none
// that is an error. An error leaves the graph as it was.
//
// If the loss has random operations, such as graphops.Dropout, each step of the optim op also makes the next run of their
// generators another one.
//
// A second Minimize, of another loss, on this graph or another, shares slots and counters of parameters of the same name.
// Each optim op needs a machine of its own.
func (s *Solver) Minimize(loss *gorgonia.Node, vars ...*gorgonia.Node) (*gorgonia.Node, error) {
	b, err := s.updates(loss, vars)
	if err != nil {
		return nil, err
	}
	rules := ""
	for _, r := range s.rules {
		if rules != "" {
			rules += "+"
		}
		rules += r.name
	}
	isVar := map[*gorgonia.Node]bool{}
	for _, v := range vars {
		isVar[v] = true
	}
	return graphops.Commit(b.updates, append(s.commitOptions(), graphops.After(loss), graphops.Label(func(n *gorgonia.Node) string {
		if isVar[n] {
			return rules
		}
		return ""
	}))...)
}

// Updates builds what Minimize builds, without the commit: the list of all new values, as expressions on the graph of the
// loss. It is for those who want to look at them, differentiate through them (graphops.Expand) or commit them together with
// others, with graphops.From(s.Store()). The last one counts the run; two lists of one solver have that in common, and the updates
// of generators that both losses use.
func (s *Solver) Updates(loss *gorgonia.Node, vars ...*gorgonia.Node) ([]graphops.Update, error) {
	b, err := s.updates(loss, vars)
	if err != nil {
		return nil, err
	}
	return b.updates, nil
}

// Check reports what Minimize would refuse, and changes nothing.
func (s *Solver) Check(loss *gorgonia.Node, vars ...*gorgonia.Node) error {
	_, err := s.check(loss, vars)
	return err
}

func (s *Solver) updates(loss *gorgonia.Node, vars gorgonia.Nodes) (*build, error) {
	named, err := s.check(loss, vars)
	if err != nil {
		return nil, err
	}
	s.params.keep(named)
	names := named.names
	grads, err := graphops.Gradients(loss, vars, graphops.AllowUnused())
	if err != nil {
		return nil, err
	}
	var steps []Step
	var unused []string
	for i, v := range vars {
		if grads[i] != nil {
			steps = append(steps, Step{Param{names[i], v}, graphops.Of(v), graphops.Of(grads[i])})
			s.params.form[names[i]] = form{v.Dtype(), v.Shape()}
		} else {
			unused = append(unused, names[i])
		}
	}
	if len(unused) > 0 && !s.warned {
		s.warned = true
		slog.Warn("the loss does not depend on some variables, which are left out", "variables", unused)
	}
	runs, err := countRuns(loss)
	if err != nil {
		return nil, err
	}
	return s.build(&build{g: loss.Graph(), store: s.store, bound: s.bound, names: names, updates: runs}, steps)
}

// countRuns are the updates that give the random operations of the loss, such as dropout, other numbers in the next run.
func countRuns(loss *gorgonia.Node) (updates []graphops.Update, err error) {
	for _, g := range graphops.Generators(loss) {
		u, err := g.Update(loss.Graph())
		if err != nil {
			return nil, err
		}
		updates = append(updates, u)
	}
	return updates, nil
}

// check looks at all that can be wrong and returns the names of the parameters.
func (s *Solver) check(loss *gorgonia.Node, vars gorgonia.Nodes) (*naming, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	used, err := s.checkNodes(loss, vars)
	if err != nil {
		return nil, err
	}
	model := make([]gorgonia.ValueGrad, len(vars))
	forms := make([]form, len(vars))
	for i, v := range vars {
		model[i], forms[i] = v, form{v.Dtype(), v.Shape()}
	}
	named, err := s.params.name(model)
	if err != nil {
		return nil, err
	}
	var some []string
	var their []form
	for i, f := range forms {
		if err := s.params.check(named.names[i], f); err != nil {
			return nil, err
		}
		if used[i] {
			some, their = append(some, named.names[i]), append(their, f)
		}
	}
	return named, s.trial(some, their, named.names)
}

// checkNodes looks at the nodes, and says which variables the loss depends on.
func (s *Solver) checkNodes(loss *gorgonia.Node, vars gorgonia.Nodes) (used []bool, err error) {
	switch {
	case loss == nil:
		return nil, errors.New("solvers: the loss is nil")
	case loss.Graph() == nil || loss.Type() == nil:
		return nil, errors.New("solvers: the loss is not a value on a graph")
	case !loss.IsScalar():
		return nil, errors.Errorf("solvers: the loss has shape %v, but must be a scalar: reduce it with gorgonia.Sum or gorgonia.Mean", loss.Shape())
	case !isFloat(loss.Dtype()):
		return nil, errors.Errorf("solvers: the loss is %v, but must be float32 or float64", loss.Dtype())
	case len(vars) == 0:
		return nil, errors.New("solvers: there are no variables to train")
	}
	seen := map[*gorgonia.Node]bool{}
	for i, v := range vars {
		switch {
		case v == nil:
			return nil, errors.Errorf("solvers: variable %d is nil", i)
		case seen[v]:
			return nil, errors.Errorf("solvers: variable %q is listed twice", ownName(v))
		case v.Graph() != loss.Graph():
			return nil, errors.Errorf("solvers: variable %q is not on the graph of the loss", ownName(v))
		case !v.IsVar():
			return nil, errors.Errorf("solvers: variable %q is computed by the graph: only its inputs can be trained", ownName(v))
		case v.Type() == nil || !isFloat(v.Dtype()):
			return nil, errors.Errorf("solvers: variable %q is %v, but must be float32 or float64", ownName(v), v.Type())
		}
		seen[v] = true
	}
	for name, n := range s.bound {
		if n.Graph() != loss.Graph() {
			return nil, errors.Errorf("solvers: %s is bound to a node of another graph than the loss", name)
		}
	}
	used, err = graphops.TryGradients(loss, vars, graphops.AllowUnused())
	if err != nil {
		return nil, err
	}
	if !slices.Contains(used, true) {
		return nil, errors.New("solvers: the loss depends on none of the variables")
	}
	return used, nil
}

// trial applies the rules to parameters and gradients of the same form on a graph of their own, with a store of its own, so
// that whatever a rule refuses is refused before anything is made.
func (s *Solver) trial(names []string, forms []form, all []string) error {
	p, err := s.private(names, forms, all, graphops.NewStore(), true)
	if err != nil {
		return err
	}
	if !s.expanded { // what is made of checked updates then cannot fail
		return graphops.Check(p.b.updates)
	}
	_, err = graphops.Commit(p.b.updates, s.commitOptions()...)
	return err
}

// build applies the rules to steps, and says once and for all that a step is subtracted.
func (s *Solver) build(b *build, in []Step) (*build, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	b.s, b.grads, b.counts, b.read = s, slices.Clone(in), map[string]Expr{}, map[string]bool{}
	b.met, b.ran = map[*ruleInfo]bool{}, map[*ruleInfo]bool{}
	if len(in) == 0 {
		return nil, errors.New("solvers: there is nothing to train")
	}
	given := map[*gorgonia.Node]bool{}
	for _, st := range in {
		given[st.Param.Node] = true
	}
	out, err := (&Builder{build: b}).Run(s.rule, in)
	if err != nil {
		return nil, err
	}
	for _, r := range s.rules {
		r.built = r.built || b.ran[r] && !b.trial
		for _, f := range r.fields {
			full := r.name + "/" + f.name
			if !b.ran[r] || b.read[full] {
				continue
			}
			if b.bound[full] != nil {
				return nil, errors.Errorf("solvers: %s is bound to a node, but the rule does not read it while it runs", full)
			}
			if s.scheduled(full) != nil {
				return nil, errors.Errorf("solvers: %s follows a schedule, but the rule does not read it while it runs", full)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("solvers: the rules returned no step for any parameter")
	}
	for _, st := range out {
		if !given[st.Param.Node] {
			return nil, errors.Errorf("solvers: a rule returned a step for %q, which it was not given", st.Param.Name)
		}
		b.updates = append(b.updates, graphops.Update{Target: st.Param.Node, Value: st.Value.Sub(st.Delta)})
	}
	return b, b.countStep()
}

func (s *Solver) commitOptions() []graphops.CommitOpt {
	opts := []graphops.CommitOpt{graphops.From(s.store)}
	if s.expanded {
		opts = append(opts, graphops.Expanded())
	}
	return opts
}

func isFloat(dt tensor.Dtype) bool { return dt == tensor.Float32 || dt == tensor.Float64 }
