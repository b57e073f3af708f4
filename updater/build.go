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

// built is what one building of the optim op makes.
type built struct {
	u       *Updater
	vars    gorgonia.Nodes     // with gradients, or without
	grads   []solvers.Gradient // of vars
	nodes   gorgonia.Nodes     // of the gradients
	updates []graphops.Update
	opts    []graphops.CommitOpt
	after   gorgonia.Nodes
	skipped Expr           // whether the step is; the zero Expr: none ever is
	scale   Expr           // of the losses; the zero Expr: none
	scales  gorgonia.Nodes // the states of DynamicLossScale
}

// build builds the optim op: gradients, rules, custom and extra updates, checks, summaries, and one commit of them all.
func (u *Updater) build() (*gorgonia.Node, error) {
	u.pipe.all = u.settings
	b := &built{u: u, vars: u.trained(union(u.losses))}
	for _, o := range u.losses {
		b.after = append(b.after, o.loss)
	}
	for _, f := range []func() error{
		b.lossScale, b.gradients, b.maximize, b.compose, b.extras, b.customs, b.generators, b.effectiveRate, b.numerics, b.skips, b.resets, b.summaries,
	} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return graphops.Commit(b.updates, append(b.opts, graphops.Aside(u.stats.store), graphops.After(b.after...), graphops.Label(u.label))...)
}

// graph is that of the losses.
func (u *Updater) graph() *gorgonia.ExprGraph { return u.losses[0].loss.Graph() }

// label names the optimizer beside each variable.
func (u *Updater) label(n *gorgonia.Node) string {
	s := u.of(n)
	if s == nil {
		return ""
	}
	switch {
	case s.custom:
		return "custom"
	case s.overwrite:
		return "overwritten"
	}
	rules, err := u.solver.RuleNames(s.opt.Solver)
	if err != nil {
		return ""
	}
	return strings.Join(rules, "+")
}

// gradients adds up those of all losses, and the L2 penalties that are part of the loss.
func (b *built) gradients() error {
	b.grads = make([]solvers.Gradient, len(b.vars))
	for _, o := range b.u.losses {
		vars := b.u.trained(o.vars)
		if len(vars) == 0 {
			continue
		}
		if err := b.differentiate(o.loss, vars, 1); err != nil {
			return err
		}
	}
	if err := b.metaLosses(); err != nil {
		return err
	}
	if b.u.cfg.DecoupleConstraints {
		return nil
	}
	for _, v := range b.vars {
		if l2 := b.u.of(v).l2(); l2 != 0 && !b.u.of(v).overwrite {
			b.add(v, graphops.Of(v).Mul(graphops.Const(2*l2)))
		}
	}
	return nil
}

// differentiate adds the gradients of a loss, times a number.
func (b *built) differentiate(loss *gorgonia.Node, vars gorgonia.Nodes, by float64) error {
	loss, err := b.scaled(loss)
	if err != nil {
		return err
	}
	grads, err := graphops.Gradients(loss, vars, graphops.AllowUnused(), graphops.KeepRows())
	if err != nil {
		return err
	}
	for i, v := range vars {
		if grads[i] == nil {
			continue
		}
		g := b.unscaled(v, grads[i])
		if by != 1 {
			g = g.Mul(graphops.Const(by))
		}
		b.add(v, g)
		b.nodes = append(b.nodes, grads[i])
	}
	return nil
}

// add adds a gradient to that of a variable.
func (b *built) add(v *gorgonia.Node, g Expr) {
	i := slices.Index(b.vars, v)
	if b.grads[i].Raw != (Expr{}) {
		g = b.grads[i].Raw.Add(g)
	}
	b.grads[i].Raw = g
}

// maximize adds −f times the gradient of the global norm.
func (b *built) maximize() error {
	squares := b.squares("")
	var wrt gorgonia.Nodes
	for i, v := range b.vars {
		if s := b.u.of(v); b.grads[i].Raw != (Expr{}) && !s.overwrite && *s.MaximizeGradNorm != 0 {
			wrt = append(wrt, v)
		}
	}
	if wrt == nil {
		return nil
	}
	safe := squares.Greater(graphops.Const(0)).Select(squares, one) // the root has no derivative at 0
	norm, err := graphops.Expand(safe.Sqrt())
	if err != nil {
		return errors.Wrap(err, "maximize_grad_norm")
	}
	grads, err := graphops.Gradients(norm, wrt, graphops.AllowUnused())
	if err != nil {
		return errors.Wrap(err, "maximize_grad_norm: the gradient of the global norm")
	}
	for k, v := range wrt {
		if grads[k] != nil {
			f := *b.u.of(v).MaximizeGradNorm
			b.nodes = append(b.nodes, grads[k])
			b.grads[slices.Index(b.vars, v)].More = graphops.Of(grads[k]).Mul(graphops.Const(-f))
		}
	}
	return nil
}

// squares are those of the gradients of the variables with a tag, or all that are not overwritten, added in the order of the names.
func (b *built) squares(tag string) Expr {
	order := make([]int, len(b.vars))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(b.u.of(b.vars[i]).name, b.u.of(b.vars[j]).name) })
	sum := graphops.Const(0)
	for _, i := range order {
		s := b.u.of(b.vars[i])
		if g := b.grads[i].Raw; g != (Expr{}) && !s.overwrite && (tag == "" || slices.Contains(s.Tags, tag)) {
			sum = sum.Add(g.SumSquares())
		}
	}
	return sum
}

// compose applies the rules.
func (b *built) compose() (err error) {
	if slices.ContainsFunc(b.grads, func(g solvers.Gradient) bool { return g != solvers.Gradient{} }) {
		b.updates, b.opts, err = b.u.solver.Compose(b.vars, b.grads)
		return err
	}
	n, err := b.u.stepNode() // all variables have custom updates
	if err != nil {
		return err
	}
	b.updates = []graphops.Update{{Target: n, Value: graphops.ScalarOf(n).Add(one)}}
	b.opts = []graphops.CommitOpt{graphops.From(b.u.solver.Store())}
	return nil
}

// generators let random operations of the losses draw other numbers in the next run.
func (b *built) generators() error {
	for _, g := range graphops.Generators(b.after...) {
		up, err := g.Update(b.u.graph())
		if err != nil {
			return err
		}
		b.updates = append(b.updates, up)
	}
	return nil
}

// effectiveRate makes the node of the learning rate.
func (b *built) effectiveRate() error {
	b.u.rate = nil
	if _, err := b.u.rated(); err != nil { // there is none
		return nil
	}
	e, err := b.u.rateExpr()
	if err != nil {
		slog.Debug("the learning rate has no node", "reason", err)
		return nil
	}
	b.u.rate, err = graphops.Expand(e.Mul(one)) // a node of its own
	return err
}

// numerics checks what could be not finite, before anything is written.
func (b *built) numerics() error {
	c, losses := b.u.cfg, slices.Clone(b.after)
	if c.DebugAddCheckNumericsOnOutput {
		for _, n := range slices.Concat(b.u.outputs, losses) {
			value, what := graphops.Of(n), "the loss"
			if !losses.Contains(n) {
				what = "the output " + nodeName(n)
			}
			b.opts = append(b.opts, graphops.Refuse(value.IsFinite().All().Select(graphops.Const(0), one), func(float64) error {
				return errors.Errorf("updater: %s is not finite", what)
			}))
		}
	}
	if !c.DebugAddCheckNumericsOps {
		return nil
	}
	checks, err := graphops.CheckNumerics(append(losses, b.nodes...))
	if err != nil {
		return err
	}
	b.after = append(b.after, checks...)
	code := graphops.Const(0)
	for i := len(b.updates) - 1; i >= 0; i-- {
		if v := b.updates[i].Value; !v.IsScalar() {
			code = v.IsFinite().All().Select(code, graphops.Const(float64(i+1)))
		} else {
			code = v.IsFinite().Select(code, graphops.Const(float64(i+1)))
		}
	}
	targets := slices.Clone(b.updates)
	b.opts = append(b.opts, graphops.Refuse(code, func(code float64) error {
		return errors.Errorf("updater: the new value of %q is not finite", targets[int(code)-1].Target.Name())
	}))
	return nil
}

// resets sets the state of the optimizers back in every n-th run of an epoch.
func (b *built) resets() error {
	n := b.u.cfg.ResetUpdaterVarsModStep
	if n == 0 {
		return nil
	}
	start, err := b.u.solver.Store().Counter(epochStart)
	if err != nil {
		return err
	}
	b.opts = append(b.opts, graphops.Before(func() error {
		step, err := b.u.solver.GlobalStep()
		if err != nil {
			return err
		}
		v, err := start.Value()
		if err != nil {
			return err
		}
		from, err := graphops.ScalarValue(v)
		if err != nil || (step-int(from))%n != 0 {
			return err
		}
		return b.u.initState()
	}))
	return nil
}
