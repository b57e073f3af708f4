package solvers

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// Restrict applies a rule to some parameters only; the steps of the others pass unchanged (Blocks). Parameters are named by
// their names in the solver; a name that no parameter has, or had before, is an error.
//
//	solvers.Chain(solvers.Restrict(solvers.NewClipByGlobalNorm(1), "w0"), solvers.NewAdam())
func Restrict(rule Rule, names ...string) *Solver { return New(&restrict{addressable(rule), names}) }

type restrict struct {
	rule  Rule
	names []string
}

// Rules implements Composite.
func (r *restrict) Rules() []Rule { return []Rule{r.rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*restrict) Transforms() {}

// Apply implements Rule.
func (r *restrict) Apply(b *Builder, in []Step) ([]Step, error) {
	var some []Step
	named := map[string]bool{}
	for _, name := range r.names {
		if !b.anyName(func(known string) bool { return known == name }) {
			return nil, errors.Errorf("solvers: Restrict: no parameter is called %q", name)
		}
		named[name] = true
	}
	for _, s := range in {
		if named[s.Param.Name] {
			some = append(some, s)
		}
	}
	if some == nil {
		b.skip(r.rule)
		return in, nil
	}
	done, err := b.Run(r.rule, some)
	if err != nil {
		return nil, err
	}
	of := map[*gorgonia.Node]Step{}
	for _, d := range done {
		of[d.Param.Node] = d
	}
	out := slices.Clone(in)
	for i, s := range out {
		if d, ok := of[s.Param.Node]; ok {
			out[i] = d
		}
	}
	return out, nil
}
