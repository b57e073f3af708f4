package solvers

import "optimop/graphops"

// Ftrl is follow the regularised leader (McMahan et al. 2013, https://research.google/pubs/pub41159/), which sets small
// weights to exactly zero. With p = −LearningRatePower:
//
//	n' = n + g²          z ← z + g + 2·shrink·w − (n'ᵖ − nᵖ)/α·w
//	w ← (clip(z, −l₁, l₁) − z) / (n'ᵖ/α + 2·l₂ + β/α), 0 where |z| ≤ l₁          n ← n'
//
// The weight is computed anew from z at each step: its initial value only matters by way of z.
//
// Slots accum (n): InitialAccumulatorValue at the start, and linear (z): zero.
type Ftrl struct {
	LearningRate            float64 `range:"(0,inf)" why:"the weight is computed with 1/learning_rate"` // α, default 0.001
	LearningRatePower       float64 `range:"(-inf,0]"`                                                  // −p, default -0.5
	InitialAccumulatorValue float64 `range:"[0,inf)"`                                                   // default 0.1
	L1                      float64 `range:"[0,inf)"`                                                   // l₁, default 0
	L2                      float64 `range:"[0,inf)"`                                                   // l₂, default 0
	L2Shrinkage             float64 `range:"[0,inf)"`                                                   // shrink, default 0
	Beta                    float64 `range:"[0,inf)"`                                                   // β, default 0
}

// NewFtrl makes a solver of Ftrl.
func NewFtrl(options ...func(*Ftrl)) *Solver {
	return configured(&Ftrl{LearningRate: 0.001, LearningRatePower: -0.5, InitialAccumulatorValue: 0.1}, options)
}

// Apply implements Rule.
func (r *Ftrl) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, p := b.Hyper("learning_rate"), b.Hyper("learning_rate_power").Neg()
	l1, l2, shrink, beta := b.Hyper("l1"), b.Hyper("l2"), b.Hyper("l2_shrinkage"), b.Hyper("beta")
	return b.eachStep(in, func(s Step) Step {
		g, w, n, z := s.Delta, s.Value, b.Slot(s, "accum", Fill(r.InitialAccumulatorValue)), b.Slot(s, "linear")
		n1 := n.Set(n.Add(g.Square()))
		power := toPower(n1, p)
		z1 := z.Set(z.Add(g).Add(w.Mul(two.Mul(shrink))).Sub(power.Sub(toPower(n.Expr, p)).Div(lr).Mul(w)))
		q := power.Div(lr).Add(two.Mul(l2).Add(beta.Div(lr)))
		return replace(s, z1.Abs().LessEqual(l1).Select(zero, z1.Max(l1.Neg()).Min(l1).Sub(z1).Div(q)))
	})
}

// toPower is xᵖ for x ≥ 0, by the root where p is ½, the default, as that is so much quicker.
func toPower(x, p Expr) Expr { return p.Equal(graphops.Const(0.5)).Select(x.Sqrt(), x.Pow(p)) }
