package solvers

// BarzilaiBorwein takes the size of a step from the last two points (Barzilai & Borwein 1988,
// https://doi.org/10.1093/imanum/8.1.141), over all parameters together.
//
//	α = ⟨Δw, Δg⟩/⟨Δg, Δg⟩ from the second step on, cut off at ±Clip if Clip > 0
//	step = α · g
//
// Where the gradient did not change the last α is kept. (Gorgonia divides 0/0 there.) α may become negative, and the step then
// goes uphill; Clip bounds it.
//
// Parameters that have no step behind them take no part in the sums. Slots w and g, of the last step; numbers seen (0, then 1)
// and, for all, rate (α, LearningRate at the start).
type BarzilaiBorwein struct {
	LearningRate float64 `range:"[0,inf)"` // α of the first step, default 0.001
	Clip         float64 `range:"[0,inf)"` // default 0: none
}

// NewBarzilaiBorwein makes a solver of BarzilaiBorwein.
func NewBarzilaiBorwein(options ...func(*BarzilaiBorwein)) *Solver {
	return configured(&BarzilaiBorwein{LearningRate: 0.001}, options)
}

// Apply implements Rule.
func (r *BarzilaiBorwein) Apply(b *Builder, in []Step) ([]Step, error) {
	start := b.Count("step").Equal(one)
	last := b.Variable("rate")
	above, below := zero, zero
	for _, s := range byName(in) {
		w, g, first := b.Slot(s, "w"), b.Slot(s, "g"), b.first(s)
		dg := s.Delta.Sub(g.Expr)
		above = above.Add(first.Select(zero, s.Value.Sub(w.Expr).Mul(dg).Sum()))
		below = below.Add(first.Select(zero, dg.SumSquares()))
		w.Set(s.Value)
		g.Set(s.Delta)
	}
	rate := below.Greater(zero).Select(above.Div(below), last.Expr)
	limit := limited(b.Hyper("clip"))
	rate = last.Set(start.Select(b.Hyper("learning_rate"), rate.Min(limit).Max(limit.Neg())))
	return b.Each(in, func(s Step) Expr { return rate.Mul(s.Delta) })
}
