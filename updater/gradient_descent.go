package updater

import (
	"log/slog"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// ParameterGradient is a parameter with its gradient: graphops.Of(node), or any expression of its shape and dtype.
type ParameterGradient struct {
	Parameter *gorgonia.Node
	Gradient  Expr
}

// ParameterStep is a parameter with what is subtracted from it.
type ParameterStep struct {
	Parameter *gorgonia.Node
	Step      *gorgonia.Node
}

// KnownGrad is the gradient of a node of the cost's graph: see graphops.KnownGrads.
type KnownGrad struct {
	Of   *gorgonia.Node
	Grad *gorgonia.Node
}

// Descent says what GradientDescent trains. Either Cost and Parameters are given, or gradients.
type Descent struct {
	// Cost is a float scalar. Its gradients are those of the cost times the scale of a StepRule that divides by one
	// (solvers.WithLossScale); the cost that can be observed is not multiplied.
	Cost *gorgonia.Node

	// Parameters are inputs of the graph. Their order makes no difference to any result.
	Parameters gorgonia.Nodes

	// Gradients replace those of the cost. Their order is that of the parameters, where those are not given. A parameter
	// twice has its first place and its last gradient.
	Gradients []ParameterGradient

	// GradientMap is the same as a map. It has no fixed order, so Parameters must name the same parameters.
	GradientMap map[*gorgonia.Node]Expr

	// StepRule makes the steps of the gradients: any rule of package solvers. The default is solvers.NewScale(), whose learning
	// rate is 1. Algorithms that share a rule share its hyperparameters; slots and counters are the algorithm's own.
	StepRule solvers.Rule

	// KnownGrads and ConsiderConstant concern the gradients of the cost: see package graphops.
	KnownGrads       []KnownGrad
	ConsiderConstant gorgonia.Nodes

	// Updates are further updates, made with those of the parameters, such as of running statistics.
	Updates []graphops.Update

	// Setup is called with the algorithm's solver before any update is built, for Schedule and Bind; nil: nothing.
	Setup func(s *solvers.Solver) error

	AlgorithmOptions
}

// GradientDescent subtracts from each parameter the step that a rule makes of its gradient. It is Blocks' GradientDescent
// (https://github.com/mila-iqia/blocks). All of it is built into the graph by the constructor; Updates, SetUpdates, AddUpdates and
// Observe work until Initialize.
type GradientDescent struct {
	*UpdatesAlgorithm
	cost       *gorgonia.Node
	parameters gorgonia.Nodes
	given      []Expr // the gradients
	gradients  gorgonia.Nodes
	steps      []ParameterStep
	rule       []graphops.Update
	solver     *solvers.Solver
	gradNorm   *gorgonia.Node
	stepNorm   *gorgonia.Node
}

var (
	_ TrainingAlgorithm = (*GradientDescent)(nil)
	_ Observer          = (*GradientDescent)(nil)
)

// NewGradientDescent makes the algorithm. Its errors: no cost, or no parameters, where no gradients are given; a parameter
// that is listed twice, is no float input of the graph, or that the cost does not depend on; gradients without a fixed order;
// a gradient that does not fit its parameter; KnownGrads or ConsiderConstant together with gradients; what the rule refuses.
// A cost beside gradients, and Parameters that are not those of the gradients, are ignored with a warning of log/slog.
func NewGradientDescent(d Descent) (*GradientDescent, error) {
	s, r, err := d.solver()
	if err != nil {
		return nil, err
	}
	return newGradientDescent(d, s, r)
}

// solver makes a solver of the step rule.
func (d *Descent) solver() (*solvers.Solver, *recorder, error) {
	r := &recorder{rule: d.StepRule}
	if r.rule == nil {
		r.rule = solvers.NewScale()
	}
	s := solvers.New(r)
	if err := s.Err(); err != nil {
		return nil, nil, errors.Wrap(err, "updater: the step rule")
	}
	return s, r, errors.Wrap(d.setUp(s), "updater: Setup")
}

// setUp calls Setup.
func (d *Descent) setUp(s *solvers.Solver) (err error) {
	if d.Setup == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("it panicked: %v", p)
		}
	}()
	return d.Setup(s)
}

// newGradientDescent makes the algorithm with a solver whose rule is r.
func newGradientDescent(d Descent, s *solvers.Solver, r *recorder) (*GradientDescent, error) {
	if err := d.validate(); err != nil {
		return nil, err
	}
	a := &GradientDescent{UpdatesAlgorithm: newUpdatesAlgorithm(d.AlgorithmOptions, d.Updates), cost: d.Cost, solver: s}
	if err := a.findGradients(d); err != nil {
		return nil, err
	}
	if a.cost != nil {
		a.after = gorgonia.Nodes{a.cost}
	}
	return a, a.build(r)
}

func (d *Descent) validate() error {
	if err := d.AlgorithmOptions.validate(); err != nil {
		return err
	}
	for i, p := range d.Parameters {
		if p == nil {
			return errors.Errorf("updater: parameter %d is nil", i)
		}
		if slices.Contains(d.Parameters[:i], p) {
			return errors.Errorf("updater: parameter %s is listed twice", nodeName(p))
		}
	}
	if d.Gradients != nil && d.GradientMap != nil {
		return errors.New("updater: there are Gradients and a GradientMap: leave one of them out")
	}
	return nil
}

// findGradients settles what the parameters and their gradients are.
func (a *GradientDescent) findGradients(d Descent) error {
	if len(d.Gradients)+len(d.GradientMap) == 0 {
		return a.differentiate(d)
	}
	if d.Cost != nil {
		slog.Warn("the cost of the gradient descent is not used, as gradients are given", "cost", nodeName(d.Cost))
		a.cost = nil
	}
	var keys gorgonia.Nodes
	of := map[*gorgonia.Node]Expr{}
	for _, g := range d.Gradients {
		if !slices.Contains(keys, g.Parameter) {
			keys = append(keys, g.Parameter)
		}
		of[g.Parameter] = g.Gradient
	}
	for p, g := range d.GradientMap { // into another map
		of[p] = g
	}
	var err error
	if a.parameters, err = d.order(keys, of); err != nil {
		return err
	}
	if len(d.KnownGrads) > 0 {
		return errors.New("updater: KnownGrads have no effect where gradients are given")
	}
	if d.ConsiderConstant != nil {
		return errors.New("updater: ConsiderConstant has no effect where gradients are given")
	}
	for _, p := range a.parameters {
		a.given = append(a.given, of[p])
	}
	if err := a.checkGradients(); err != nil {
		return err
	}
	return a.checkRule()
}

// order is the order of the parameters that have gradients.
func (d *Descent) order(keys gorgonia.Nodes, of map[*gorgonia.Node]Expr) (gorgonia.Nodes, error) {
	other := slices.ContainsFunc(d.Parameters, func(p *gorgonia.Node) bool { return of[p] == Expr{} })
	if len(d.Parameters) == len(of) && !other {
		return slices.Clone(d.Parameters), nil
	}
	if len(d.Parameters) > 0 {
		slog.Warn("the parameters of the gradient descent are not those of the gradients, which are used instead",
			"parameters", names(d.Parameters))
	}
	if d.GradientMap != nil {
		return nil, errors.New("updater: a map of gradients has no fixed order: use Gradients, or give Parameters in the order that you want")
	}
	return keys, nil
}

func names(ns gorgonia.Nodes) (out []string) {
	for _, n := range ns {
		out = append(out, nodeName(n))
	}
	return out
}

// differentiate makes the gradients of the cost.
func (a *GradientDescent) differentiate(d Descent) error {
	switch {
	case d.Cost == nil:
		return errors.New("updater: no cost, and no gradients")
	case len(d.Parameters) == 0:
		return errors.New("updater: no parameters, and no gradients")
	}
	a.parameters = slices.Clone(d.Parameters)
	if err := a.checkRule(); err != nil {
		return err
	}
	var of, known gorgonia.Nodes
	for _, k := range d.KnownGrads {
		of, known = append(of, k.Of), append(known, k.Grad)
	}
	slog.Info("taking the gradient of the cost", "cost", nodeName(d.Cost), "parameters", len(a.parameters))
	scaled, err := a.solver.ScaleLoss(d.Cost) // by what the rule divides the gradients by
	if err != nil {
		return errors.Wrap(err, "updater: the cost")
	}
	grads, err := graphops.Gradients(scaled, a.parameters, graphops.KnownGrads(of, known),
		graphops.ConsiderConstant(d.ConsiderConstant...))
	if err != nil {
		return errors.Wrap(err, "updater: the gradients")
	}
	slog.Info("the gradient of the cost is built")
	for _, g := range grads {
		a.given = append(a.given, graphops.Of(g))
	}
	return nil
}

var never = graphops.Const(1).Less(graphops.Const(0))

// checkGradients checks gradients that were given, and gives a scalar the form of its scalar parameter.
func (a *GradientDescent) checkGradients() error {
	for i, p := range a.parameters {
		if p == nil {
			return errors.Errorf("updater: parameter %d is nil", i)
		}
		own, g := graphops.Of(p), a.given[i]
		if err := own.Err(); err != nil {
			return errors.Wrapf(err, "updater: parameter %s", nodeName(p))
		}
		if g.IsScalar() && p.IsScalar() {
			g = never.Select(own, g)
			a.given[i] = g
		}
		err := own.Sub(g).Err() // says how they differ
		if g.IsScalar() && err == nil {
			err = errors.Errorf("it is a scalar, but the parameter has shape %v", p.Shape())
		}
		if err != nil {
			return errors.Wrapf(err, "updater: the gradient of %s", nodeName(p))
		}
	}
	return nil
}

// checkRule tries the rule on the parameters, before anything is built.
func (a *GradientDescent) checkRule() error {
	has := make([]bool, len(a.parameters))
	for i := range has {
		has[i] = true
	}
	return errors.Wrap(a.solver.CheckCompose(a.parameters, has), "updater: the step rule")
}

// build makes the steps, the norms and the list of updates.
func (a *GradientDescent) build(r *recorder) error {
	grads := make([]solvers.Gradient, len(a.given))
	for i, g := range a.given {
		grads[i].Raw = g
	}
	updates, opts, err := a.solver.Compose(a.parameters, grads)
	if err != nil {
		return errors.Wrap(err, "updater: the step rule")
	}
	last := len(updates) - 1 // counts the runs of the solver
	a.hidden, updates = updates[last:], updates[:last]
	names, err := a.solver.RuleNames(r.rule)
	if err != nil {
		return err
	}
	a.commit = append(opts, graphops.Label(label(a.parameters, names)))
	for _, p := range a.parameters {
		for _, u := range updates {
			if u.Target == p {
				a.updates = append(a.updates, u)
			}
		}
	}
	for _, u := range updates {
		if !slices.Contains(a.parameters, u.Target) {
			a.rule = append(a.rule, u)
		}
	}
	a.updates = append(a.updates, a.rule...)
	return a.expand(r.takeSteps(a.parameters))
}
