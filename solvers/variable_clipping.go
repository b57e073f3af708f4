package solvers

import "github.com/pkg/errors"

// VariableClipping bounds the norm of what the parameter will be after the step (Blocks; Srebro & Shraibman 2005; Hinton et
// al. 2012, https://arxiv.org/abs/1207.0580): its last rule of plain descent.
//
//	d = w − g          n = the norm of d over Axes, or over all elements
//	w ← d·c/n where n > c, else d
//
// It is a step like any other, w − d·c/n, which the rules after it may change. It has no slots.
type VariableClipping struct {
	Threshold float64 `range:"[0,inf)"` // c
	Axes      []int   // over which the norm is taken; negative ones count from the end; default nil: all
}

// NewVariableClipping makes a solver of VariableClipping.
func NewVariableClipping(threshold float64, options ...func(*VariableClipping)) *Solver {
	return configured(&VariableClipping{Threshold: threshold}, options)
}

// Validate implements Validator.
func (r *VariableClipping) Validate() error {
	for i, a := range r.Axes {
		for _, o := range r.Axes[:i] {
			if a == o {
				return errors.Errorf("axes names the axis %d twice", a)
			}
		}
	}
	return nil
}

// Transforms implements Transformation.
func (*VariableClipping) Transforms() {}

// Apply implements Rule.
func (r *VariableClipping) Apply(b *Builder, in []Step) ([]Step, error) {
	c := b.Hyper("threshold")
	for _, s := range in {
		seen := map[int]bool{}
		rank := len(s.Delta.Shape())
		for _, a := range r.Axes {
			i := a
			if a < 0 {
				i += rank
			}
			if i < 0 || i >= rank || seen[i] {
				return nil, errors.Errorf("axes %v do not fit parameter %q of rank %d", r.Axes, s.Param.Name, rank)
			}
			seen[i] = true
		}
	}
	return b.Each(in, func(s Step) Expr {
		d := s.Value.Sub(s.Delta)
		n := normAlong(d, r.Axes)
		return n.Greater(c).Select(s.Value.Sub(d.Mul(c.Div(n))), s.Delta)
	})
}
