package solvers

import "github.com/pkg/errors"

// VariableClipping bounds the norm of what the parameter will be after the step (Blocks; Srebro & Shraibman 2005; Hinton et
// al. 2012, https://arxiv.org/abs/1207.0580): its last rule of plain descent.
//
//	d = w − g          n = the norm of d over Axes, or over all elements
//	w ← d·c/n where n > c, else d
//
// It has no slots.
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
	return b.eachStep(in, func(s Step) Step {
		d := s.Value.Sub(s.Delta)
		if r.Axes == nil {
			n := d.Norm()
			return s.choose(n.Greater(c), d.Mul(c.Div(n)))
		}
		n := d.Square().SumAlong(r.Axes...).Sqrt().BroadcastTo(d.Shape())
		return s.choose(n.Greater(c), d.Mul(c.Div(n)))
	})
}

// choose makes v the new value where a condition holds, and takes the step elsewhere.
func (s Step) choose(cond, v Expr) Step { return replace(s, cond.Select(v, s.Value.Sub(s.Delta))) }
