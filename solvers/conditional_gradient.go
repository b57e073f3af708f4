package solvers

// ConditionalGradient is the Frank-Wolfe method: each step moves towards a point of a ball of norm λ (Frank & Wolfe 1956,
// https://doi.org/10.1002/nav.3800030109; in the form of TensorFlow Addons).
//
//	w ← α·w − (1−α)·λ·s
//	s = g/(‖g‖ + ε)          Ord "fro": the ball of the Frobenius norm
//	s = u·vᵀ                 Ord "nuclear": of the nuclear norm, with the first pair of singular vectors of g
//
// The nuclear norm is for matrices; a scalar or vector counts as one row. It has no slots.
type ConditionalGradient struct {
	LearningRate float64 `range:"[0,1]"`   // α, default 0.01: how much of w is kept
	Lambda       float64 `range:"[0,inf)"` // λ, default 0.01
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-7
	Ord          string  // "fro" or "nuclear", default "fro"
}

// NewConditionalGradient makes a solver of ConditionalGradient.
func NewConditionalGradient(options ...func(*ConditionalGradient)) *Solver {
	return configured(&ConditionalGradient{LearningRate: 0.01, Lambda: 0.01, Epsilon: 1e-7, Ord: "fro"}, options)
}

// Validate implements Validator.
func (r *ConditionalGradient) Validate() error { return choice("ord", r.Ord, "fro", "nuclear") }

// Apply implements Rule.
func (r *ConditionalGradient) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, lambda := b.Hyper("learning_rate"), b.Hyper("lambda")
	return b.eachStep(in, func(s Step) Step {
		g := s.Delta
		point := g
		switch shape := g.Shape(); {
		case r.Ord == "fro":
			point = g.Div(g.Norm().Add(b.Hyper("epsilon")))
		case len(shape) < 2: // one row: its singular vectors are 1 and g/‖g‖
			norm := g.Norm()
			point = g.Div(norm.Greater(zero).Select(norm, one))
		default:
			point = g.SingularPair()
		}
		return replace(s, s.Value.Mul(lr).Sub(point.Mul(one.Sub(lr).Mul(lambda))))
	})
}
