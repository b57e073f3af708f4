package updater

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/updater/summary"
)

// stats are the numbers that the optim op computes about a run. Their states are not the optimizers': nothing depends on them.
type stats struct {
	store   *graphops.Store
	entries []entry
}

type entry struct {
	tag   string
	state *graphops.State
}

// statsStep is the global step of the run that the numbers are of.
const statsStep = "step"

// summaries adds what the config wants to know, in the runs in which it does.
func (b *built) summaries() error {
	c, u := b.u.cfg, b.u
	u.stats = stats{store: graphops.NewStore()}
	debug := slices.ContainsFunc(u.settings, func(s *setting) bool { return *s.DebugGradSummaries })
	every := c.SummaryInterval
	if every == 0 && (c.LogGradNorm || debug) {
		every = 1
	}
	if every == 0 {
		return nil
	}
	node, err := u.stepNode()
	if err != nil {
		return err
	}
	s := &summing{built: b, step: graphops.ScalarOf(node)}
	s.global(c.SummaryInterval > 0)
	for i, v := range b.vars {
		if b.grads[i].Raw == (Expr{}) {
			continue
		}
		if c.SummaryInterval > 0 {
			s.variable(v, b.grads[i].Raw)
		}
		if set := u.of(v); *set.DebugGradSummaries {
			s.moments("grads/"+set.name, u.pipe.seen[v].gradient)
			s.moments("vars/"+set.name, graphops.Of(v))
		}
	}
	s.put(statsStep, s.step)
	if s.err != nil {
		return s.err
	}
	k := graphops.Const(float64(every))
	on := s.step.Sub(s.step.Div(k).Floor().Mul(k)).Equal(graphops.Const(0))
	b.updates = append(b.updates, s.updates...)
	b.opts = append(b.opts, graphops.When(on, s.targets...))
	return nil
}

// summing collects the updates of the numbers.
type summing struct {
	*built
	step    Expr
	updates []graphops.Update
	targets gorgonia.Nodes
	err     error
}

// put makes an expression one of the numbers.
func (s *summing) put(tag string, e Expr) {
	u := s.u
	if s.err != nil {
		return
	}
	fill := 0.0
	if tag == statsStep {
		fill = -1
	}
	st, err := u.stats.store.Slot("summary/"+tag, "", tensor.Float64, tensor.ScalarShape(), fill)
	if err != nil {
		s.err = err
		return
	}
	n, err := st.Node(u.graph())
	if err != nil {
		s.err = err
		return
	}
	u.stats.entries = append(u.stats.entries, entry{tag, st})
	s.updates, s.targets = append(s.updates, graphops.Update{Target: n, Value: e}), append(s.targets, n)
}

// global are the numbers that no single variable has.
func (s *summing) global(all bool) {
	if all {
		s.put("loss", graphops.ScalarOf(s.u.losses[0].loss))
		if _, err := s.u.rated(); err == nil {
			if rate, err := s.u.rateExpr(); err == nil {
				s.put(learningRate, rate)
			}
		}
	}
	s.put("global_grad_norm", s.squares("").Sqrt())
	var tags []string
	for _, o := range s.u.settings {
		for _, t := range o.Tags {
			if !slices.Contains(tags, t) {
				tags = append(tags, t)
				s.put("global_norm_for_tag_"+t, s.squares(t).Sqrt())
			}
		}
	}
}

// variable are the numbers of one variable.
func (s *summing) variable(v *gorgonia.Node, raw Expr) {
	set, fed, zero := s.u.of(v), s.u.pipe.seen[v], graphops.Const(0)
	s.put("grad_norm/"+set.name, raw.Norm())
	s.put("grad_mean/"+set.name, raw.Mean())
	s.put("grad_max/"+set.name, raw.Abs().MaxAll())
	before, after := fed.gradient.Norm(), fed.processed.Norm()
	s.put("clip_ratio/"+set.name, before.Equal(zero).Select(one, after.Div(before)))
	for _, up := range s.built.updates {
		if up.Target != v {
			continue
		}
		old := graphops.Of(v)
		size, ratio := old.Norm(), up.Value.Sub(old).Norm()
		ratio = size.Equal(zero).Select(zero, ratio.Div(size))
		if n := set.steps().n; n > 1 { // else 0, in runs that only accumulate
			k := graphops.Const(float64(n))
			ratio = s.step.Sub(s.step.Div(k).Floor().Mul(k)).Equal(k.Sub(one)).Select(ratio, zero)
		}
		if s.skipped != (Expr{}) {
			ratio = s.skipped.Select(zero, ratio)
		}
		s.put("update_ratio/"+set.name, ratio)
	}
}

// moments are those of debug_grad_summaries. The norm is ‖x‖, where RETURNN has half of it.
func (s *summing) moments(tag string, x Expr) {
	mean := x.Mean()
	square := x.Square().Mean()
	s.put(tag+"_mean", mean)
	s.put(tag+"_stddev", x.Sub(mean).Square().Mean().Sqrt())
	s.put(tag+"_rms", square.Sqrt())
	s.put(tag+"_l2", x.Norm())
	s.put(tag+"_max", x.MaxAll())
	s.put(tag+"_min", x.Neg().MaxAll().Neg())
}

// Summary are the numbers of the last run: with SummaryInterval the loss, the learning rate, the global norm of the raw
// gradients and those of tags, and of each variable
//
//	grad_norm, grad_mean, grad_max (the largest magnitude)   of the raw gradient
//	clip_ratio     ‖gradient as the optimizer got it‖ / ‖gradient before noise and clips‖
//	update_ratio   ‖new − old value‖ / ‖old value‖, which is 0 in a run that only accumulates, or is skipped
//
// ok is false where the last run was not one of those that compute them, or there was none. A summary.Writer takes the record.
func (u *Updater) Summary() (r summary.Record, ok bool, err error) {
	if len(u.stats.entries) == 0 {
		return r, false, nil
	}
	for _, e := range u.stats.entries {
		v, err := e.state.Value()
		if err != nil {
			return r, false, errors.Wrap(err, "updater: summary")
		}
		x, err := graphops.ScalarValue(v)
		if err != nil {
			return r, false, errors.Wrap(err, "updater: summary")
		}
		if e.tag == statsStep {
			r.Step = int(x)
		} else {
			r.Values = append(r.Values, summary.Value{Tag: e.tag, Value: x})
		}
	}
	step, err := u.GlobalStep()
	return r, err == nil && step > 0 && r.Step == step-1, err
}

// SummaryNode is the node of one of the numbers of Summary, by its tag, such as "global_grad_norm"; nil if there is none. It has the
// number of a run after that run.
func (u *Updater) SummaryNode(tag string) *gorgonia.Node {
	for _, e := range u.stats.entries {
		if e.tag == tag {
			if n, err := e.state.Node(u.graph()); err == nil {
				return n
			}
		}
	}
	return nil
}
