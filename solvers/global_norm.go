package solvers

import "github.com/pkg/errors"

// GlobalNorm says which norm a rule goes by: that of all the steps that it gets, unless an option says otherwise.
type GlobalNorm struct {
	// Raw is whether the norm is that of the gradients that the solver got, of all parameters, whatever the rules before and
	// Restrict made of them, but without the scale of the loss (see Builder.Gradients); default false.
	Raw bool

	// Over are the parameters that count, by name or pattern (see path.Match: "decoder/*"); default nil: all. One that no
	// parameter fits is an error; a parameter without a gradient does not count. Whatever counts, the rule acts on all steps that
	// it gets: Restrict it to act on some.
	Over []string
}

// Validate implements Validator.
func (o *GlobalNorm) Validate() error {
	return checkPatterns("over", o.Over)
}

// norm is the norm as a scalar.
func (o *GlobalNorm) norm(b *Builder, in []Step) (Expr, error) {
	if err := b.checkNames("over", o.Over); err != nil {
		return Expr{}, err
	}
	all := b.Gradients()
	counted := o.among(in)
	if o.Raw {
		counted = o.among(all)
	} else if len(counted) == 0 && len(o.among(all)) > 0 {
		return Expr{}, errors.Errorf("over: the rule gets no step of %q: with raw the gradients of all parameters count", o.Over)
	}
	return L2Norm(deltas(counted)...), nil
}

// among are the steps that count.
func (o *GlobalNorm) among(in []Step) (out []Step) {
	for _, s := range in {
		if len(o.Over) == 0 || fitsAny(o.Over, s.Param.Name) {
			out = append(out, s)
		}
	}
	return out
}

// shrink is the factor that bounds a norm: 1 where n ≤ c, else c/n, and 1 for the bound 0, which is none.
func shrink(n, c Expr) Expr { return c.Equal(zero).Or(n.LessEqual(c)).Select(one, c.Div(n)) }
