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
	return graphops.Commit(b.updates, append(s.commitOptions(b), graphops.After(loss), graphops.Label(s.label(vars)))...)
}

// label names the rules beside the parameters.
func (s *Solver) label(vars gorgonia.Nodes) func(*gorgonia.Node) string {
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
	return func(n *gorgonia.Node) string {
		if isVar[n] {
			return rules
		}
		return ""
	}
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

// Depends is the part of Check that does not concern the rules, and says which of the variables the loss depends on.
func (s *Solver) Depends(loss *gorgonia.Node, vars ...*gorgonia.Node) ([]bool, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	return s.checkNodes(loss, vars)
}

// CheckCompose reports what Compose would refuse for variables of which those that are marked have gradients, and changes nothing.
func (s *Solver) CheckCompose(vars gorgonia.Nodes, has []bool) error {
	if len(has) != len(vars) {
		return errors.Errorf("solvers: %d marks for %d variables", len(has), len(vars))
	}
	if err := s.Err(); err != nil {
		return err
	}
	_, err := s.checkVars(vars, has, make([]bool, len(vars)))
	return err
}

func (s *Solver) updates(loss *gorgonia.Node, vars gorgonia.Nodes) (*build, error) {
	named, err := s.check(loss, vars)
	if err != nil {
		return nil, err
	}
	nodes, err := graphops.Gradients(loss, vars, s.gradOptions()...)
	if err != nil {
		return nil, err
	}
	grads := make([]Gradient, len(vars))
	for i, n := range nodes {
		if n != nil {
			grads[i].Raw = graphops.Of(n)
		}
	}
	runs, err := countRuns(loss)
	if err != nil {
		return nil, err
	}
	b, err := s.compose(named, vars, grads)
	if err != nil {
		return nil, err
	}
	b.updates = append(runs, b.updates...)
	return b, nil
}

// gradOptions are those of the gradients that the solver asks for.
func (s *Solver) gradOptions() []graphops.GradOpt {
	if s.expanded {
		return []graphops.GradOpt{graphops.AllowUnused()}
	}
	return []graphops.GradOpt{graphops.AllowUnused(), graphops.KeepRows()}
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

// Gradient is what a parameter is trained with. The zero Gradient says that there is none, and leaves the parameter out.
type Gradient struct {
	Raw  Expr // the gradient, which Builder.Gradients shows
	More Expr // added to it in what the first rule gets; the zero Expr: nothing
}

// Compose is Updates for gradients that are given, one for each variable, instead of those of a loss. The options, which
// Commit has to get, say which of the updates are made in a run, where rules have conditions (see Builder.When).
func (s *Solver) Compose(vars gorgonia.Nodes, grads []Gradient) ([]graphops.Update, []graphops.CommitOpt, error) {
	if len(grads) != len(vars) {
		return nil, nil, errors.Errorf("solvers: %d gradients for %d variables", len(grads), len(vars))
	}
	used := make([]bool, len(vars))
	for i := range grads {
		used[i] = grads[i] != Gradient{}
	}
	if err := s.Err(); err != nil {
		return nil, nil, err
	}
	named, err := s.checkVars(vars, used, rowsOfAll(grads))
	if err != nil {
		return nil, nil, err
	}
	b, err := s.compose(named, vars, grads)
	if err != nil {
		return nil, nil, err
	}
	return b.updates, s.commitOptions(b), nil
}

// rowsOfAll says which gradients are rows.
func rowsOfAll(grads []Gradient) []bool {
	rows := make([]bool, len(grads))
	for i, g := range grads {
		rows[i] = graphops.RowsNode(g.Raw) != nil && g.More == (Expr{})
	}
	return rows
}

// compose applies the rules to gradients, once all is checked.
func (s *Solver) compose(named *naming, vars gorgonia.Nodes, grads []Gradient) (*build, error) {
	s.params.train(named)
	b := &build{g: vars[0].Graph(), store: s.store, bound: s.bound, names: named.names}
	var steps []Step
	var unused []string
	for i, v := range vars {
		if grads[i] == (Gradient{}) {
			unused = append(unused, named.names[i])
			continue
		}
		st := Step{Param{named.names[i], v}, graphops.Of(v), grads[i].Raw}
		var err error
		if n := graphops.RowsNode(st.Delta); n != nil && grads[i].More == (Expr{}) && !s.expanded {
			if st, err = rowsOf(st, n); err != nil {
				return nil, err
			}
		}
		b.grads = append(b.grads, st)
		if grads[i].More != (Expr{}) {
			st.Delta = st.Delta.Add(grads[i].More)
		}
		if err := st.Delta.Err(); err != nil {
			return nil, errors.Wrapf(err, "solvers: the gradient of %q", st.Param.Name)
		}
		steps = append(steps, st)
		s.params.form[st.Param.Name] = form{dt: v.Dtype(), shape: v.Shape()}
	}
	if len(unused) > 0 && !s.warned {
		s.warned = true
		slog.Warn("the loss does not depend on some variables, which are left out", "variables", unused)
	}
	return s.build(b, steps)
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
	looked := make([]bool, len(vars))
	if !s.expanded {
		if looked, err = graphops.TryRows(loss, vars, graphops.AllowUnused()); err != nil {
			return nil, err
		}
	}
	if err := s.checkCatchUp(vars, looked); err != nil {
		return nil, err
	}
	return s.checkVars(vars, used, looked)
}

// checkVars looks at all that does not concern the loss.
func (s *Solver) checkVars(vars gorgonia.Nodes, used, rows []bool) (*naming, error) {
	if err := checkInputs(vars); err != nil {
		return nil, err
	}
	model := make([]gorgonia.ValueGrad, len(vars))
	forms := make([]form, len(vars))
	for i, v := range vars {
		model[i], forms[i] = v, form{v.Dtype(), v.Shape(), rows[i]}
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
	}
	if err := checkInputs(vars); err != nil {
		return nil, err
	}
	for _, v := range vars {
		if v.Graph() != loss.Graph() {
			return nil, errors.Errorf("solvers: variable %q is not on the graph of the loss", ownName(v))
		}
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

// checkInputs looks at the variables alone.
func checkInputs(vars gorgonia.Nodes) error {
	if len(vars) == 0 {
		return errors.New("solvers: there are no variables to train")
	}
	seen := map[*gorgonia.Node]bool{}
	for i, v := range vars {
		switch {
		case v == nil:
			return errors.Errorf("solvers: variable %d is nil", i)
		case seen[v]:
			return errors.Errorf("solvers: variable %q is listed twice", ownName(v))
		case v.Graph() == nil || v.Graph() != vars[0].Graph():
			return errors.Errorf("solvers: variable %q is not on the graph of the others", ownName(v))
		case !v.IsVar():
			return errors.Errorf("solvers: variable %q is computed by the graph: only its inputs can be trained", ownName(v))
		case v.Type() == nil || !isFloat(v.Dtype()):
			return errors.Errorf("solvers: variable %q is %v, but must be float32 or float64", ownName(v), v.Type())
		}
		seen[v] = true
	}
	return nil
}

// trial applies the rules to parameters and gradients of the same form on a graph of their own, with a store of its own, so
// that whatever a rule refuses is refused before anything is made.
func (s *Solver) trial(names []string, forms []form, all []string) error {
	p, err := s.private(names, forms, all, graphops.NewStore(), true)
	if err != nil {
		return err
	}
	if !s.expanded { // what is made of checked updates then cannot fail
		return graphops.Check(p.b.updates, p.b.when...)
	}
	_, err = graphops.Commit(p.b.updates, s.commitOptions(p.b)...)
	return err
}

// build applies the rules to steps, and says once and for all that a step is subtracted.
func (s *Solver) build(b *build, in []Step) (*build, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	b.s, b.counts, b.read = s, map[string]Expr{}, map[string]bool{}
	if b.grads == nil {
		b.grads = slices.Clone(in)
	}
	b.met, b.ran = map[*ruleInfo]bool{}, map[*ruleInfo]bool{}
	if len(in) == 0 {
		return nil, errors.New("solvers: there is nothing to train")
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
		st = b.merged(st)
		b.updates = append(b.updates, graphops.Update{Target: st.Param.Node, Value: st.Value.Sub(st.Delta)})
	}
	return b, b.countStep()
}

func (s *Solver) commitOptions(b *build) []graphops.CommitOpt {
	opts := append([]graphops.CommitOpt{graphops.From(s.store)}, b.when...)
	if s.expanded {
		opts = append(opts, graphops.Expanded())
	}
	return opts
}

func isFloat(dt tensor.Dtype) bool { return dt == tensor.Float32 || dt == tensor.Float64 }
