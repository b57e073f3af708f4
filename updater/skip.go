package updater

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// The states of what was skipped.
const (
	skippedTotal = "skipped/total"
	skippedInRow = "skipped/in_a_row"
	skippedFirst = "skipped/first" // 0: none; else the place in pipeline.suspects, from 1
)

// skips lets steps pass whose losses or gradients are not finite; with a dynamic scale of the loss alone, gradients.
func (b *built) skips() error {
	if !b.u.cfg.skips() {
		return nil
	}
	var who []string
	var oks []Expr
	for _, o := range b.u.losses {
		if b.u.cfg.SkipNonFiniteSteps {
			who, oks = append(who, "the loss"), append(oks, graphops.ScalarOf(o.loss).IsFinite())
		}
	}
	for i, v := range b.vars {
		if g := b.grads[i]; g.Raw != (Expr{}) {
			ok := g.Raw.IsFinite().All()
			if g.More != (Expr{}) {
				ok = ok.And(g.More.IsFinite().All())
			}
			who, oks = append(who, "the gradient of "+v.Name()), append(oks, ok)
		}
	}
	first := graphops.Const(0)
	for i, ok := range slices.Backward(oks) {
		first = ok.Select(first, graphops.Const(b.u.pipe.suspect(who[i])))
	}
	bad := first.NotEqual(graphops.Const(0))
	b.skipped = bad
	var nodes gorgonia.Nodes
	for _, name := range []string{skippedTotal, skippedInRow} {
		st, err := b.u.solver.Store().Counter(name)
		if err != nil {
			return err
		}
		n, err := st.Node(b.u.graph())
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	st, err := b.u.solver.Store().Slot(skippedFirst, "", tensor.Float64, tensor.ScalarShape(), 0)
	if err != nil {
		return err
	}
	last, err := st.Node(b.u.graph())
	if err != nil {
		return err
	}
	total, row := graphops.ScalarOf(nodes[0]), graphops.ScalarOf(nodes[1]).Add(one)
	step, err := b.u.stepNode()
	if err != nil {
		return err
	}
	var targets gorgonia.Nodes
	for _, up := range b.updates {
		if up.Target != step {
			targets = append(targets, up.Target)
		}
	}
	b.opts = append(b.opts, graphops.When(bad.Not(), targets...))
	b.updates = append(b.updates,
		graphops.Update{Target: nodes[0], Value: bad.Select(total.Add(one), total)},
		graphops.Update{Target: nodes[1], Value: bad.Select(row, graphops.Const(0))},
		graphops.Update{Target: last, Value: bad.Select(first, graphops.ScalarOf(last))})
	b.rescale(bad.Not())
	if k := b.u.cfg.MaxSkippedSteps; k > 0 {
		enough := bad.And(row.GreaterEqual(graphops.Const(float64(k))))
		b.opts = append(b.opts, graphops.Refuse(enough.Select(first, graphops.Const(0)), func(code float64) error {
			return errors.Errorf("updater: %s is not finite, in step %d in a row that had to be skipped", b.u.pipe.suspects[int(code)-1], k)
		}))
	}
	return nil
}

func (c Config) skips() bool { return c.SkipNonFiniteSteps || c.DynamicLossScale != nil }

// suspect is the number of something that may be not finite. It stays the same where the variables change, and is the same for all
// updaters that share the state.
func (p *pipeline) suspect(what string) float64 {
	if !slices.Contains(p.suspects, what) {
		p.suspects = append(p.suspects, what)
	}
	return float64(slices.Index(p.suspects, what) + 1)
}

// Skipped tells what SkipNonFiniteSteps or DynamicLossScale did: how many steps were skipped, how many of them just now in a row, and what was not finite in
// the last of them, the first of its kind in the order of losses and variables: "the gradient of w".
func (u *Updater) Skipped() (total, inARow int, what string, err error) {
	if u.solver == nil {
		return 0, 0, "", errors.New("updater: make it with New")
	}
	var n [3]float64
	for i, name := range []string{skippedTotal, skippedInRow, skippedFirst} {
		st := u.solver.Store().Lookup(name)
		if st == nil {
			return 0, 0, "", nil
		}
		v, err := st.Value()
		if err == nil {
			n[i], err = graphops.ScalarValue(v)
		}
		if err != nil {
			return 0, 0, "", errors.Wrap(err, "updater")
		}
	}
	if i := int(n[2]); i > 0 && i <= len(u.pipe.suspects) {
		what = u.pipe.suspects[i-1]
	}
	return int(n[0]), int(n[1]), what, nil
}
