package solvers

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// follow runs a rule, and then f on the steps that it made: it is how wrappers do something after each step. t counts the runs
// in which the rule made any. What f remembers for a parameter is written only in runs in which its step is made, since a rule
// within may have conditions (see When), as Accumulate has. Of steps with different conditions f gets each kind by itself.
func (b *Builder) follow(r Rule, in []Step, f func(t Expr, out []Step) ([]Step, error)) ([]Step, error) {
	out, err := b.Run(r, in)
	if err != nil {
		return nil, err
	}
	type kind struct {
		only  Expr // the zero Expr: made in every run
		steps []Step
	}
	var kinds []*kind
	some := never
	for _, s := range out {
		only := b.only[s.Param.Node]
		i := slices.IndexFunc(kinds, func(k *kind) bool { return k.only == only })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, &kind{only: only})
			if some = some.Or(only); slices.ContainsFunc(kinds, func(k *kind) bool { return k.only == Expr{} }) {
				some = Expr{}
			}
		}
		kinds[i].steps = append(kinds[i].steps, s)
	}
	var t Expr
	if err := b.under(some, func() error { t = b.Count("step"); return b.err }); err != nil {
		return nil, err
	}
	done := map[*gorgonia.Node]Step{}
	for _, k := range kinds {
		err := b.under(k.only, func() error {
			steps, err := f(t, k.steps)
			for _, s := range steps {
				done[s.Param.Node] = s
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for i, s := range out { // in their order
		out[i] = done[s.Param.Node]
	}
	return out, nil
}

// under is When for slots and counters alone; with the zero Expr they are written in every run.
func (b *Builder) under(cond Expr, apply func() error) error {
	if cond == (Expr{}) {
		return apply()
	}
	_, err := b.When(cond, func() ([]Step, error) { return nil, apply() })
	return err
}

// every is whether t is a multiple of n: never for an n of 0. It is exact up to 2⁵³.
func every(t, n Expr) Expr { return t.Div(n).Floor().Mul(n).Equal(t) }

// whole checks a field that counts something.
func whole(field string, v float64) error {
	if v != float64(int64(v)) {
		return errors.Errorf("%s is %v; it must be a whole number", field, v)
	}
	return nil
}

// wrapped makes a solver of a wrapper with its defaults after the caller's options.
func wrapped[R Rule, O any](r R, options []func(*O), of func(R) *O) *Solver {
	for _, o := range options {
		if o != nil {
			o(of(r))
		}
	}
	return New(r)
}
