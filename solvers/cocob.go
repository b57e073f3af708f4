package solvers

import "optimop/graphops"

// COCOB bets coins on the sign of the next gradient, and has no learning rate (Orabona & Tommasi 2017,
// https://arxiv.org/abs/1705.07795).
//
//	L ← max(L, |g|)     N ← N + |g|     R ← max(R − g·o, 0)     S ← S + g
//	o' = −S/(L·max(N + L, α·L))·(R + L)
//	w ← w − o + o'          o ← o'
//
// Slots lr (L, 1e-8 at the start), gradients_sum (S), grad_norm_sum (N), reward (R) and tilde_w (o): zero.
type COCOB struct {
	Alpha float64 `range:"[1,inf)"` // α, default 100
}

// NewCOCOB makes a solver of COCOB.
func NewCOCOB(options ...func(*COCOB)) *Solver { return configured(&COCOB{Alpha: 100}, options) }

// Apply implements Rule.
func (r *COCOB) Apply(b *Builder, in []Step) ([]Step, error) {
	alpha := b.Hyper("alpha")
	return b.Each(in, func(s Step) Expr {
		g := s.Delta
		largest, sum, norms := b.Slot(s, "lr", Fill(1e-8)), b.Slot(s, "gradients_sum"), b.Slot(s, "grad_norm_sum")
		reward, offset := b.Slot(s, "reward"), b.Slot(s, "tilde_w")
		l := largest.Set(largest.Max(g.Abs()))
		n := norms.Set(norms.Add(g.Abs()))
		w := reward.Set(reward.Sub(g.Mul(offset.Expr)).Max(graphops.Const(0)))
		bet := sum.Set(sum.Add(g)).Neg().Div(l.Mul(n.Add(l).Max(l.Mul(alpha)))).Mul(w.Add(l))
		return offset.Sub(offset.Set(bet))
	})
}
