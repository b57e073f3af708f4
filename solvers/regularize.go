package solvers

import "optimop/graphops"

// Regularize prepares gradients as Gorgonia's solvers do before their own formula, in this order:
//
//	g ← g + l₁·sign(w)          g ← g + l₂·w          g ← g/BatchSize          g ← min(max(g, −Clip), Clip)
//
// So the penalties are divided by the batch size, too. A Clip of 0 is none. It has no slots.
type Regularize struct {
	L1        float64 `range:"[0,inf)"` // l₁, default 0
	L2        float64 `range:"[0,inf)"` // l₂, default 0
	BatchSize float64 `range:"[1,inf)"` // default 1
	Clip      float64 `range:"[0,inf)"` // default 0: none
}

// NewRegularize makes a solver of Regularize, to be chained.
func NewRegularize(options ...func(*Regularize)) *Solver {
	return configured(&Regularize{BatchSize: 1}, options)
}

// Transforms implements Transformation.
func (*Regularize) Transforms() {}

// Apply implements Rule.
func (r *Regularize) Apply(b *Builder, in []Step) ([]Step, error) {
	l1, l2, part, clip := b.Hyper("l1"), b.Hyper("l2"), one.Div(b.Hyper("batch_size")), b.Hyper("clip")
	limit := limited(clip)
	return b.Each(in, func(s Step) Expr {
		g := s.Delta.Add(s.Value.Sign().Mul(l1)).Add(s.Value.Mul(l2)).Mul(part)
		return g.Max(limit.Neg()).Min(limit)
	})
}

// limited is a bound for which 0 means none.
func limited(bound Expr) Expr { return bound.Greater(zero).Select(bound, graphops.Const(inf)) }
