package solvers

import (
	"cmp"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// When runs rules whose work is done only in steps where the scalar condition holds: then alone the slots and counters that
// they set, and the parameters whose steps they return, are written. In the other steps nothing of that is computed or read.
func (b *Builder) When(cond Expr, apply func() ([]Step, error)) ([]Step, error) {
	if err := cond.Err(); err != nil {
		return nil, cmp.Or(b.err, err) // what made the expression fail
	}
	from := len(b.updates)
	out, err := apply()
	if err != nil {
		return nil, err
	}
	var targets gorgonia.Nodes
	for _, u := range b.updates[from:] {
		targets = append(targets, u.Target)
	}
	if b.only == nil {
		b.only = map[*gorgonia.Node]Expr{}
	}
	for _, s := range out {
		n := s.Param.Node
		targets = append(targets, n)
		if other, ok := b.only[n]; ok {
			b.only[n] = other.And(cond)
		} else {
			b.only[n] = cond
		}
	}
	if len(targets) > 0 { // When without targets concerns all
		b.when = append(b.when, graphops.When(cond, targets...))
	}
	return out, nil
}

// adjustment replaces a hyperparameter where rules read it.
type adjustment struct {
	name string
	by   func(Expr) Expr
}

// Adjusting runs rules that read the hyperparameter of that name, "learning_rate", as what f makes of it: a multiple, for one
// group of parameters. The hyperparameter itself stays, as Solver.Get and Solver.Set see it.
func (b *Builder) Adjusting(name string, f func(Expr) Expr, apply func() ([]Step, error)) ([]Step, error) {
	before := b.adjust
	defer func() { b.adjust = before }()
	b.adjust = append(slices.Clone(before), adjustment{name, f})
	return apply()
}

// regarding runs rules for which Gradients are others: those without the scale of the loss.
func (b *Builder) regarding(grads []Step, apply func() ([]Step, error)) ([]Step, error) {
	before := b.grads
	defer func() { b.grads = before }()
	b.grads = grads
	return apply()
}

// HyperOf is a hyperparameter of another rule of the solver, or of those that it is made of: the last of them that has one,
// which is the optimizer itself. It is for wrappers, such as a decay by the learning rate of the rule within.
func (b *Builder) HyperOf(r Rule, name string) Expr {
	parts, err := walk(r, nil)
	if err != nil {
		return b.fail(err)
	}
	for _, p := range slices.Backward(parts) {
		for _, info := range b.s.rules {
			has := func(f field) bool { return f.name == name }
			if sameRule(info.rule, p.rule) && slices.ContainsFunc(info.fields, has) {
				return (&Builder{b.build, info}).Hyper(name)
			}
		}
	}
	return b.fail(errors.Errorf("no rule within has a hyperparameter %s", name))
}

// Names are those under which the solver knows variables, or would from the next Minimize on: they begin the names of their slots.
func (s *Solver) Names(vars ...*gorgonia.Node) ([]string, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	if err := checkInputs(vars); err != nil {
		return nil, err
	}
	named, err := s.params.name(gorgonia.NodesToValueGrads(vars))
	if err != nil {
		return nil, err
	}
	return slices.Clone(named.names), nil
}

// RuleNames are those that the solver gave to a rule that it was made of, and to those that it is made of: "adam#2" begins the
// names of its hyperparameters. A rule that the solver does not know is an error.
func (s *Solver) RuleNames(r Rule) (names []string, err error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	parts, err := walk(r, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		i := slices.IndexFunc(s.rules, func(k *ruleInfo) bool { return sameRule(k.rule, p.rule) })
		if i < 0 {
			return nil, errors.Errorf("solvers: the solver has no such %s", p.name)
		}
		names = append(names, s.rules[i].name)
	}
	return names, nil
}

// Rule is the rule of that name in this solver, as RuleNames has it, or nil. Rules that other rules run are known once something was built.
func (s *Solver) Rule(name string) Rule {
	for _, r := range s.rules {
		if r.name == name {
			return r.rule
		}
	}
	return nil
}
