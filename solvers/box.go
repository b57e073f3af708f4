package solvers

import "github.com/pkg/errors"

// Box keeps every element of a parameter within bounds (optax.projections.projection_box).
//
//	w ← min(max(w, a), c)
//
// NaN stays NaN. It has no slots.
type Box struct {
	MinValue float64 `range:"[-inf,inf]"` // a
	MaxValue float64 `range:"[-inf,inf]"` // c, at least a
	Constrained
}

// NewBox makes a solver of Box, to be chained.
func NewBox(minValue, maxValue float64, options ...func(*Box)) *Solver {
	return configured(&Box{MinValue: minValue, MaxValue: maxValue}, options)
}

// Validate implements Validator.
func (r *Box) Validate() error {
	if err := ordered(r.MinValue, r.MaxValue); err != nil {
		return err
	}
	return r.Constrained.Validate()
}

func ordered(low, high float64) error {
	if low > high {
		return errors.Errorf("min_value is %v, which is above max_value %v", low, high)
	}
	return nil
}

// Apply implements Rule.
func (r *Box) Apply(b *Builder, in []Step) ([]Step, error) {
	low, high := b.Hyper("min_value"), b.Hyper("max_value")
	return r.values(b, in, func(w Expr) Expr { return w.Max(low).Min(high) })
}
