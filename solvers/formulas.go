package solvers

import (
	"cmp"
	"math"
	"slices"

	"optimop/graphops"
)

// The pieces that several rules share.

var (
	zero = graphops.Const(0)
	two  = graphops.Const(2)
	inf  = math.Inf(1)

	never = zero.Equal(one)
)

// average moves an average towards x: decay·old + (1−decay)·x.
func average(old, x, decay Expr) Expr { return old.Mul(decay).Add(x.Mul(one.Sub(decay))) }

// correction is what the bias of an average that began at zero is divided by: 1 − decayᵗ.
func correction(decay, t Expr) Expr { return one.Sub(decay.Pow(t)) }

// soft moves x towards zero by c, at most to zero.
func soft(x, c Expr) Expr { return x.Sign().Mul(x.Abs().Sub(c).Max(zero)) }

// either chooses by a condition that is known when the update is built.
func either(c bool, a, b Expr) Expr {
	if c {
		return a
	}
	return b
}

// adaptive is the denominator √v + ε of the Adam family, and the factor of the numerator, with the bias of both moments
// corrected: algorithm 1 of the paper, or with hat the form in which ε meets the uncorrected root. Both corrections are
// products with a reciprocal, which is a scalar, since a division for every element is what costs most.
func adaptive(m, v, c1, c2, eps Expr, hat bool) (step Expr) {
	if hat {
		return m.Mul(c2.Sqrt().Div(c1)).Div(v.Sqrt().Add(eps))
	}
	return m.Mul(one.Div(c1)).Div(v.Mul(one.Div(c2)).Sqrt().Add(eps))
}

// warmUp raises the rate linearly from 0 during the first proportion·total steps, then lowers it linearly to low, which it
// reaches at step total and keeps. A total of 0 leaves the rate alone. literal repeats a published slip of the bracket, by
// which the rate grows after the warm-up.
func warmUp(lr, t, total, proportion, low Expr, literal bool) Expr {
	w := total.Mul(proportion)
	d := total.Sub(w).Max(one)
	k := low.Sub(lr).Div(d)
	past := t.Sub(w).Min(d)
	down := lr.Add(k.Mul(past))
	if literal {
		down = lr.Add(k).Mul(past)
	}
	return total.Greater(zero).Select(t.LessEqual(w).Select(lr.Mul(t).Div(w), down), lr)
}

// rectification is the length of the simple moving average that an average with beta2 is worth after t steps, and the factor
// that makes up for the variance of such a short one (Liu et al. 2020, https://arxiv.org/abs/1908.03265). The factor is
// meaningful from a length of 4 on. With beta2 ≤ 0.6 no length is above 4; the factor is then that of an endless average, 1.
func rectification(beta2, t Expr) (length, factor Expr) {
	four := graphops.Const(4)
	p := beta2.Pow(t)
	end := two.Div(one.Sub(beta2)).Sub(one)
	length = end.Sub(two.Mul(t).Mul(p).Div(one.Sub(p)))
	square := length.Sub(four).Div(end.Sub(four)).Mul(length.Sub(two).Div(end.Sub(two))).Mul(end.Div(length))
	return length, end.Greater(four).Select(square.Max(zero).Sqrt(), one)
}

// trustRatio is ‖w‖/‖u‖, 1 where either is zero.
func trustRatio(w, u Expr) Expr {
	a, b := w.Norm(), u.Norm()
	return a.Greater(zero).And(b.Greater(zero)).Select(a.Div(b), one)
}

// first is whether this is the first step of this parameter, which may be later than that of the rule: a model can grow, and
// a gradient can be missing.
func (b *Builder) first(s Step) Expr {
	seen := b.ScalarSlot(s, "seen")
	seen.Set(one)
	return seen.Equal(zero)
}

// byName are the steps in the order of the names of their parameters. What is summed in that order does not depend on the order
// of the model.
func byName(in []Step) []Step {
	return slices.SortedFunc(slices.Values(in), func(a, b Step) int { return cmp.Compare(a.Param.Name, b.Param.Name) })
}

// replace makes v the new value of a parameter outright.
func replace(s Step, v Expr) Step {
	s.Value, s.Delta = v, zero
	return s
}

// eachStep changes value and delta of every step.
func (b *Builder) eachStep(in []Step, f func(Step) Step) ([]Step, error) {
	return b.each(in, func(s *Step) Expr {
		*s = f(*s)
		return s.Value.Sub(s.Delta)
	})
}
