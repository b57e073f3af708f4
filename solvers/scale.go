package solvers

// Scale multiplies all steps by a number (Blocks).
//
//	step = α · g
//
// It is SGD with another default, and the part of a chain that sets the learning rate. It has no slots.
type Scale struct {
	LearningRate float64 // α, default 1
}

// NewScale makes a solver of Scale.
func NewScale(options ...func(*Scale)) *Solver { return configured(&Scale{LearningRate: 1}, options) }

// Apply implements Rule.
func (r *Scale) Apply(b *Builder, in []Step) ([]Step, error) {
	lr := b.Hyper("learning_rate")
	return b.Each(in, func(s Step) Expr { return lr.Mul(s.Delta) })
}
