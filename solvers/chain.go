package solvers

import (
	"slices"

	"github.com/pkg/errors"
)

// Chain applies rules one after the other: the steps that come out of one go into the next. Solvers are rules too, so
//
//	solvers.Chain(solvers.NewClipByGlobalNorm(1), solvers.NewAdam())
//
// clips the gradients by their global norm and hands them to Adam. Of a solver in a chain only the rule is used; the state is
// the chain's.
func Chain(rules ...Rule) *Solver { return New(&chain{slices.Clone(rules)}) }

type chain struct{ Rules []Rule }

func (c *chain) Apply(b *Builder, in []Step) (out []Step, err error) {
	if len(c.Rules) == 0 {
		return nil, errors.New("solvers: a chain of no rules")
	}
	for _, r := range c.Rules {
		if in, err = b.Run(r, in); err != nil {
			return nil, err
		}
	}
	return in, nil
}
