package solvers

import (
	"slices"

	"github.com/pkg/errors"

	"gorgonia.org/gorgonia"
)

// Part is a rule with the names of the parameters that it trains.
type Part struct {
	Rule   Rule
	Params []string
}

// MultiOptimizer trains parts of a model with rules of their own (TensorFlow Addons' MultiOptimizer, discriminative layer training). A
// parameter of several parts gets the steps of all of their rules, for the same gradient, one after the other; one of no part
// stays as it is. Every rule counts its own steps. A name that no parameter has, or had before, is an error.
//
//	solvers.MultiOptimizer(solvers.Part{Rule: solvers.NewAdam(), Params: []string{"w0"}}, …)
//
// For patterns and a default see OptimizerMap.
func MultiOptimizer(parts ...Part) *Solver {
	m := &multiOptimizer{slices.Clone(parts)}
	for i, p := range m.Parts {
		m.Parts[i] = Part{addressable(p.Rule), slices.Clone(p.Params)}
	}
	return New(m)
}

type multiOptimizer struct{ Parts []Part }

// Validate implements Validator.
func (m *multiOptimizer) Validate() error {
	if len(m.Parts) == 0 {
		return errors.New("there are no parts")
	}
	return nil
}

// Rules implements Composite.
func (m *multiOptimizer) Rules() (rules []Rule) {
	for _, p := range m.Parts {
		rules = append(rules, p.Rule)
	}
	return rules
}

// Transforms implements Transformation. What the rules within are counts by itself.
func (*multiOptimizer) Transforms() {}

// Apply implements Rule.
func (m *multiOptimizer) Apply(b *Builder, in []Step) (out []Step, err error) {
	value, trained := map[*gorgonia.Node]Expr{}, map[*gorgonia.Node]bool{}
	for _, s := range in {
		value[s.Param.Node] = s.Value
	}
	for _, p := range m.Parts {
		for _, name := range p.Params {
			if !b.anyName(func(known string) bool { return known == name }) {
				return nil, errors.Errorf("solvers: MultiOptimizer: no parameter is called %q", name)
			}
		}
		var mine []Step
		for _, s := range in {
			if slices.Contains(p.Params, s.Param.Name) {
				mine = append(mine, Step{s.Param, value[s.Param.Node], s.Delta})
			}
		}
		if mine == nil {
			b.skip(p.Rule)
			continue
		}
		done, err := b.Run(p.Rule, mine)
		if err != nil {
			return nil, err
		}
		for _, s := range done {
			value[s.Param.Node], trained[s.Param.Node] = s.Value.Sub(s.Delta), true
		}
	}
	for _, s := range in {
		if trained[s.Param.Node] {
			out = append(out, replace(s, value[s.Param.Node]))
		}
	}
	return out, nil
}
