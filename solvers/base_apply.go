package solvers

import (
	"slices"

	"optimop/graphops"
)

// Apply implements Rule.
func (r *Base) Apply(b *Builder, in []Step) ([]Step, error) {
	if err := b.checkNames("overwrite_with_gradient", r.OverwriteWithGradient); err != nil {
		return nil, err
	}
	in, err := r.unscaled(b, in)
	if err != nil {
		return nil, err
	}
	grads, err := r.unscaled(b, slices.DeleteFunc(b.Gradients(), func(s Step) bool { return r.overwrites(s.Param) }))
	if err != nil {
		return nil, err
	}
	apply := func() ([]Step, error) { return r.apply(b, in) }
	if b.Uses("loss_scale_factor") {
		return b.unscaledOnce(grads, apply)
	}
	return b.regarding(grads, apply)
}

// apply is what becomes of gradients without the scale of the loss.
func (r *Base) apply(b *Builder, in []Step) (_ []Step, err error) {
	all := func() ([]Step, error) { return r.split(b, in, r.train) }
	if r.GradientAccumulationSteps == 0 {
		return all()
	}
	n, run := graphops.Const(float64(r.GradientAccumulationSteps)), b.Count("iteration")
	group, last := run.Sub(one).Div(n).Floor(), every(run, n)
	if in, err = r.accumulated(b, in, n, group, last); err != nil {
		return nil, err
	}
	if r.KerasStrict && (r.UseEMA || len(r.Constraints) > 0) {
		return r.everyRun(b, in, group, last)
	}
	return b.When(last, all)
}

// unscaled undoes the scale of the loss.
func (r *Base) unscaled(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("loss_scale_factor") {
		return in, nil
	}
	factor := b.lossScaleFactor()
	return b.Partly(in, r.ordinary, func(in []Step) ([]Step, error) {
		return b.Each(in, func(s Step) Expr { return s.Delta.Div(factor) })
	})
}

// lossScaleFactor is that of a Base, with 0 for none.
func (b *Builder) lossScaleFactor() Expr {
	factor := b.Hyper("loss_scale_factor")
	return factor.Equal(zero).Select(one, factor)
}

// accumulated are the means of n runs; they are complete in the last of a group.
func (r *Base) accumulated(b *Builder, in []Step, n, group, last Expr) ([]Step, error) {
	return b.Each(in, func(s Step) Expr {
		slot := b.Slot(s, "gradient_accumulator")
		acc := slot.Expr
		if r.KerasStrict {
			of := b.ScalarSlot(s, "group", Fill(-1))
			acc = of.Equal(of.Set(group)).Select(acc, zero)
		}
		if r.overwrites(s.Param) {
			most := s.Delta.Max(acc)
			slot.Set(last.Select(zero, most))
			return most
		}
		sum := s.Delta.Add(acc)
		slot.Set(last.Select(zero, sum))
		return sum.Div(n)
	})
}

// split makes the steps of ordinary parameters, and those of the others, whose gradient is the new value.
func (r *Base) split(b *Builder, in []Step, train func(*Builder, []Step) ([]Step, error)) ([]Step, error) {
	if !slices.ContainsFunc(in, func(s Step) bool { return r.ordinary(s.Param) }) {
		for _, sub := range r.Rules() {
			b.skip(sub)
		}
	}
	out, err := b.Partly(in, r.ordinary, func(in []Step) ([]Step, error) { return train(b, in) })
	if err != nil {
		return nil, err
	}
	return b.Partly(out, r.overwrites, func(in []Step) ([]Step, error) {
		return b.eachStep(in, func(s Step) Step { return replace(s, s.Delta) })
	})
}

// train makes the whole step of ordinary parameters.
func (r *Base) train(b *Builder, in []Step) ([]Step, error) {
	out, err := r.stepped(b, in, func(in []Step) ([]Step, error) {
		if !r.UseEMA {
			return b.Run(r.Rule, in)
		}
		return b.follow(r.Rule, in, func(t Expr, out []Step) ([]Step, error) { return r.track(b, t, b.first, out) })
	})
	if err != nil {
		return nil, err
	}
	return r.constrained(b, out)
}

// stepped prepares steps for the rule within, and runs that.
func (r *Base) stepped(b *Builder, in []Step, run func([]Step) ([]Step, error)) ([]Step, error) {
	in, err := r.clipped(b, in)
	if err != nil {
		return nil, err
	}
	if b.Uses("weight_decay") {
		decay := b.HyperOf(r.Rule, "learning_rate").Mul(b.Hyper("weight_decay"))
		in, err = b.EachValue(in, func(s Step) Expr {
			if r.Excludes(s.Param.Name) {
				return s.Value
			}
			return s.Value.Mul(one.Sub(b.decayOf(s, decay)))
		})
		if err != nil {
			return nil, err
		}
	}
	return b.Exempting(r.Excludes, func() ([]Step, error) { return run(in) })
}

// clipped bounds the steps, by that of the limits that is set.
func (r *Base) clipped(b *Builder, in []Step) (_ []Step, err error) {
	if b.Uses("clip_norm") {
		c := b.Hyper("clip_norm")
		in, err = b.Each(in, func(s Step) Expr { return s.Delta.Mul(shrink(s.Delta.Norm(), c)) })
	}
	if err == nil && b.Uses("global_clip_norm") {
		n := L2Norm(deltas(in)...)
		scale := shrink(n.Add(n.Sub(n)), b.Hyper("global_clip_norm")) // see ClipByGlobalNorm
		in, err = b.Each(in, func(s Step) Expr { return s.Delta.Mul(scale) })
	}
	if err == nil && b.Uses("clip_value") {
		c := limited(b.Hyper("clip_value"))
		in, err = b.Each(in, func(s Step) Expr { return s.Delta.Min(c).Max(c.Neg()) })
	}
	return in, err
}

// constrained applies the constraints.
func (r *Base) constrained(b *Builder, out []Step) (_ []Step, err error) {
	for _, c := range r.Constraints {
		if out, err = b.Run(c, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// everyRun is for KerasStrict: the parameters are written in every run, but new only in the last of a group.
func (r *Base) everyRun(b *Builder, in []Step, group, last Expr) (out []Step, err error) {
	_, err = b.When(last, func() (_ []Step, err error) {
		out, err = r.split(b, in, func(b *Builder, in []Step) ([]Step, error) {
			return r.stepped(b, in, func(in []Step) ([]Step, error) { return b.Run(r.Rule, in) })
		})
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	out, err = b.eachStep(out, func(s Step) Step {
		return replace(s, last.Select(s.Value.Sub(s.Delta), graphops.Of(s.Param.Node)))
	})
	if err != nil {
		return nil, err
	}
	return b.Partly(out, r.ordinary, func(out []Step) (_ []Step, err error) {
		if r.UseEMA {
			first := func(s Step) Expr { return b.first(s).Or(group.Equal(zero)) }
			if out, err = r.track(b, group.Add(one), first, out); err != nil {
				return nil, err
			}
		}
		return r.constrained(b, out)
	})
}
