package solvers

import "optimop/graphops"

// RemoveNotFinite replaces the step of a parameter that would bring NaN or an infinity (Blocks).
//
//	w ← c·w if an element of the step, or of w − g, is not finite, else w − g
//
// With Scaler 1 the parameter stays, with 0.1 it shrinks to a tenth, with 0 it becomes zero. Put it last, and also first
// if the rules between have slots, since it cannot take NaN out of these. It has no slots.
type RemoveNotFinite struct {
	Scaler float64 // c, default 1
}

// NewRemoveNotFinite makes a solver of RemoveNotFinite.
func NewRemoveNotFinite(options ...func(*RemoveNotFinite)) *Solver {
	return configured(&RemoveNotFinite{Scaler: 1}, options)
}

// Transforms implements Transformation.
func (*RemoveNotFinite) Transforms() {}

// Apply implements Rule.
func (r *RemoveNotFinite) Apply(b *Builder, in []Step) ([]Step, error) {
	c := b.Hyper("scaler")
	return b.eachStep(in, func(s Step) Step {
		w := graphops.Of(s.Param.Node) // what the rules before made of it can be NaN, too
		fine := s.Delta.IsFinite().All().And(s.Value.Sub(s.Delta).IsFinite().All())
		scaled := c.Equal(zero).Select(zero, c.Equal(one).Select(w, w.Mul(c))) // also where w is infinite
		s.Value, s.Delta = fine.Select(s.Value, scaled), fine.Select(s.Delta, zero)
		return s
	})
}
