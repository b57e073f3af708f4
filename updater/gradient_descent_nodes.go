package updater

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// recorder runs a rule and remembers what it made, in its last Apply.
type recorder struct {
	rule    solvers.Rule
	in, out []solvers.Step
}

// Rules implements solvers.Composite.
func (r *recorder) Rules() []solvers.Rule { return []solvers.Rule{r.rule} }

// Apply implements solvers.Rule.
func (r *recorder) Apply(b *solvers.Builder, in []solvers.Step) (out []solvers.Step, err error) {
	out, err = b.Run(r.rule, in)
	r.in, r.out = in, out
	return out, err
}

// takeSteps are what is subtracted from each parameter: the delta, and what the rule took from its value otherwise, as a decay or a
// projection. A parameter for which the rule returned no step has the zero Expr. The recorder then forgets them, and their graph.
func (r *recorder) takeSteps(params gorgonia.Nodes) []Expr {
	steps := make([]Expr, len(params))
	for _, s := range r.out {
		i := slices.Index(params, s.Param.Node)
		steps[i] = s.Delta
		own := slices.ContainsFunc(r.in, func(o solvers.Step) bool { return o.Param.Node == s.Param.Node && o.Value == s.Value })
		if !own {
			steps[i] = graphops.Of(s.Param.Node).Sub(s.Value.Sub(s.Delta))
		}
		if steps[i].IsScalar() {
			steps[i] = never.Select(graphops.Of(s.Param.Node), steps[i])
		}
	}
	r.in, r.out = nil, nil
	return steps
}

func label(params gorgonia.Nodes, rules []string) func(*gorgonia.Node) string {
	text := strings.Join(rules, "+")
	return func(n *gorgonia.Node) string {
		if slices.Contains(params, n) {
			return text
		}
		return ""
	}
}

// expand makes the nodes that people look at. What nobody observes is never computed.
func (a *GradientDescent) expand(steps []Expr) (err error) {
	for i, p := range a.parameters {
		g, err := graphops.Expand(a.given[i])
		if err != nil {
			return errors.Wrapf(err, "updater: the gradient of %s", nodeName(p))
		}
		a.gradients = append(a.gradients, g)
		if steps[i] == (Expr{}) {
			continue
		}
		s, err := graphops.Expand(steps[i])
		if err != nil {
			return errors.Wrapf(err, "updater: the step of %s", nodeName(p))
		}
		a.steps = append(a.steps, ParameterStep{p, s})
	}
	if a.gradNorm, err = a.norm("total_gradient_norm", a.given); err != nil {
		return err
	}
	a.stepNorm, err = a.norm("total_step_norm", steps)
	slog.Debug("gradient descent is built", "parameters", names(a.parameters), "updates", len(a.updates), "rule", len(a.rule))
	return err
}

// norm makes a named node of the joint norm of what parameters have, added in the order of their names, so that their own order makes no
// difference.
func (a *GradientDescent) norm(name string, of []Expr) (*gorgonia.Node, error) {
	order := make([]int, len(of))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return strings.Compare(a.parameters[i].Name(), a.parameters[j].Name()) })
	var xs []Expr
	for _, i := range order {
		if of[i] != (Expr{}) {
			xs = append(xs, of[i])
		}
	}
	total := solvers.L2Norm(xs...)
	for {
		n, err := graphops.Expand(total)
		switch {
		case err != nil:
			return nil, errors.Wrapf(err, "updater: %s", name)
		case n.Name() == name:
			return n, nil
		case n.Graph().ByName("").Contains(n):
			gorgonia.WithName(name)(n)
			return n, nil
		}
		total = total.Mul(one) // the node is there by another name already, as where the steps are the gradients
	}
}

// Cost is the cost; nil where gradients were given.
func (a *GradientDescent) Cost() *gorgonia.Node { return a.cost }

// Parameters are the parameters, in their order.
func (a *GradientDescent) Parameters() gorgonia.Nodes { return slices.Clone(a.parameters) }

// Gradients are nodes of the gradients, in the order of the parameters.
func (a *GradientDescent) Gradients() gorgonia.Nodes { return slices.Clone(a.gradients) }

// Steps are nodes of the steps that the rule makes, in the order of the parameters, without those that it leaves alone.
func (a *GradientDescent) Steps() []ParameterStep { return slices.Clone(a.steps) }

// StepRuleUpdates are the updates of the rule's slots and counters.
func (a *GradientDescent) StepRuleUpdates() []graphops.Update { return slices.Clone(a.rule) }

// TotalGradientNorm is the norm of all gradients together, a float64 scalar node called "total_gradient_norm".
func (a *GradientDescent) TotalGradientNorm() *gorgonia.Node { return a.gradNorm }

// TotalStepNorm is the norm of all steps together, a float64 scalar node called "total_step_norm".
func (a *GradientDescent) TotalStepNorm() *gorgonia.Node { return a.stepNorm }

// Solver has the rule's hyperparameters, to Set between batches, and its state, to Save and Load.
func (a *GradientDescent) Solver() *solvers.Solver { return a.solver }
