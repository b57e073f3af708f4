package solvers

import (
	"regexp"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// ExcludeFromWeightDecay exempts parameters from the weight decay of the solver's Base rules, and of the rules within them, as
// Keras' exclude_from_weight_decay does: those that are listed, and those in whose short name, what follows its last "/", one of the
// regular expressions is found. A second call replaces what the first one said. Calls after the first Step or Minimize are errors.
//
//	solver := solvers.WithBase(solvers.NewAdamW())
//	err := solver.ExcludeFromWeightDecay([]string{"bias", "^gamma$"})
//
// Expressions are Go's (see regexp), which have neither look-around nor back-references.
func (s *Solver) ExcludeFromWeightDecay(names []string, vars ...gorgonia.ValueGrad) error {
	if err := s.Err(); err != nil {
		return err
	}
	var bases []*Base
	for _, info := range s.rules {
		r, ok := info.rule.(*Base)
		if ok && info.built {
			return errors.New("solvers: ExcludeFromWeightDecay must come before the first Step or Minimize")
		}
		if ok {
			bases = append(bases, r)
		}
	}
	if bases == nil {
		return errors.New("solvers: no rule of the solver is a Base, which excludes parameters from weight decay: make it with WithBase")
	}
	for _, p := range names {
		if _, err := regexp.Compile(p); err != nil {
			return errors.Wrap(err, "solvers: ExcludeFromWeightDecay")
		}
	}
	var excluded []string
	if len(vars) > 0 {
		named, err := s.params.name(vars)
		if err != nil {
			return err
		}
		s.params.keep(named)
		excluded = slices.Clone(named.names)
	}
	for _, r := range bases {
		r.ExcludeFromWeightDecay, r.ExcludedVariables = slices.Clone(names), excluded
	}
	return nil
}

// Exempting runs rules that exempt parameters from their weight decay, by name.
func (b *Builder) Exempting(exempt func(name string) bool, apply func() ([]Step, error)) ([]Step, error) {
	before := b.exempt
	defer func() { b.exempt = before }()
	b.exempt = append(slices.Clone(before), exempt)
	return apply()
}

// Decays reports whether a rule's weight decay is for a parameter, too: it is unless a rule around it exempts that.
func (b *Builder) Decays(p Param) bool {
	return !slices.ContainsFunc(b.exempt, func(exempt func(string) bool) bool { return exempt(p.Name) })
}

// decayOf is a weight decay, 0 for a parameter that is exempt from it, and for the rows of one that are.
func (b *Builder) decayOf(s Step, decay Expr) Expr {
	if t := b.sparse[s.Param.Node]; t != nil && b.mode == RowsDecay {
		decay = t.Mask().Select(decay, zero)
	}
	return either(b.Decays(s.Param), decay, zero)
}
