package solvers

import (
	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// Expr is the type of the expressions that rules are written in.
type Expr = graphops.Expr

var one = graphops.Const(1)

// Rule turns the steps of all parameters into new steps. The first rule of a solver gets the gradients. A parameter for which a
// rule returns no step stays as it is. Rules hold
// hyperparameters, in exported float64 fields; what they remember between steps are slots and counters of the Builder, so
// one rule may serve several solvers, which then share its hyperparameters.
//
// Apply only describes the computation. It reads hyperparameters with Builder.Hyper: a field that it reads directly is frozen
// at its value of that moment. It must do the same at every call: it is called once for a trial and once for each
// graph or parameter list that the solver is used with.
type Rule interface {
	Apply(b *Builder, in []Step) ([]Step, error)
}

// Composite is a rule that runs others by Builder.Run and lists them, so that their hyperparameters are known before the first
// step.
type Composite interface {
	Rule
	Rules() []Rule
}

// Transformation is a rule that prepares steps for the rules after it, or mends those of the rules before it: a clip, a filter,
// a penalty. It is no optimizer by itself, and a config that names it as the optimizer is refused.
type Transformation interface {
	Rule
	Transforms() // does nothing
}

// RuleFunc is a function as a rule. It has no hyperparameters.
type RuleFunc func(b *Builder, in []Step) ([]Step, error)

// Apply calls f.
func (f RuleFunc) Apply(b *Builder, in []Step) ([]Step, error) { return f(b, in) }

// Param is a parameter that is being trained.
type Param struct {
	Name string         // unique within the solver; begins the names of its slots
	Node *gorgonia.Node // on the graph that the update is being built for
}

// Step is the update of one parameter: its new value will be Value − Delta. Value begins as the parameter, Delta as its
// gradient. Most rules replace Delta; a rule may also replace Value, as weight decay does.
type Step struct {
	Param Param
	Value Expr
	Delta Expr
}

// Slot is a tensor that a rule remembers for a parameter, of its shape and dtype, zero before the first step. As an
// expression it is its value of before the step.
type Slot struct {
	Expr
	b    *build
	node *gorgonia.Node
}

// Set makes v the slot's value after the step, and returns v.
func (s Slot) Set(v Expr) Expr {
	if s.node != nil {
		s.b.updates = append(s.b.updates, graphops.Update{Target: s.node, Value: v})
	}
	return v
}
