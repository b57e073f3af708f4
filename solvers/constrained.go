package solvers

// Constrained is a part of the constraints: rules that change what a parameter becomes by a step. They stand after the
// optimizer, in a chain or as Base.Constraints:
//
//	solvers.Chain(solvers.NewAdam(), solvers.NewMaxNorm(2, func(c *solvers.MaxNorm) { c.Names = []string{"*/kernel"} }))
type Constrained struct {
	// Names are the parameters that are constrained, by name or pattern (see path.Match); default nil: all. One that no parameter
	// fits is an error. Whatever they are called, only parameters with a step are changed.
	Names []string
}

// Validate implements Validator.
func (o *Constrained) Validate() error { return checkPatterns("names", o.Names) }

// Transforms implements Transformation.
func (*Constrained) Transforms() {}

// values replaces what the parameters become.
func (o *Constrained) values(b *Builder, in []Step, to func(w Expr) Expr) ([]Step, error) {
	if err := b.checkNames("names", o.Names); err != nil {
		return nil, err
	}
	return b.eachStep(in, func(s Step) Step {
		if len(o.Names) > 0 && !fitsAny(o.Names, s.Param.Name) {
			return s
		}
		return replace(s, to(s.Value.Sub(s.Delta)))
	})
}

// partAxes are the axes of the parts of a parameter. A scalar is one part, whatever they are.
func partAxes(w Expr, axes []int) []int {
	if len(w.Shape()) == 0 {
		return nil
	}
	return axes
}
