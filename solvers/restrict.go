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
	Rule  Rule
	Names []string
}

// Rules implements Composite.
func (r *restrict) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*restrict) Transforms() {}

// Apply implements Rule.
func (r *restrict) Apply(b *Builder, in []Step) ([]Step, error) {
	named := map[string]bool{}
	for _, name := range r.Names {
		if !b.anyName(func(known string) bool { return known == name }) {
			return nil, errors.Errorf("solvers: Restrict: no parameter is called %q", name)
		}
		named[name] = true
	}
	if !slices.ContainsFunc(in, func(s Step) bool { return named[s.Param.Name] }) {
		b.skip(r.Rule)
		return in, nil
	}
	return b.Partly(in, func(p Param) bool { return named[p.Name] }, func(some []Step) ([]Step, error) { return b.Run(r.Rule, some) })
}

// Partly applies something to the steps of some parameters. The others pass unchanged, at their places.
func (b *Builder) Partly(in []Step, of func(Param) bool, apply func([]Step) ([]Step, error)) ([]Step, error) {
	var some []Step
	for _, s := range in {
		if of(s.Param) {
			some = append(some, s)
		}
	}
	if some == nil {
		return in, nil
	}
	done, err := apply(some)
	if err != nil {
		return nil, err
	}
	at := map[*gorgonia.Node]Step{}
	for _, d := range done {
		at[d.Param.Node] = d
	}
	var out []Step
	for _, s := range in {
		d, ok := at[s.Param.Node]
		switch {
		case ok:
			out = append(out, d)
		case !of(s.Param):
			out = append(out, s)
		}
	}
	return out, nil
}
