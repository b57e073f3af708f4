package updater

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// customUpdate replaces the gradient update of a variable.
type customUpdate struct {
	v  *gorgonia.Node
	by func(old Expr) Expr
}

type customUpdates []customUpdate

func (c customUpdates) of(v *gorgonia.Node) func(Expr) Expr {
	for _, x := range c {
		if x.v == v {
			return x.by
		}
	}
	return nil
}

// CustomUpdate makes f of a variable's value its new value in each run, in the place of an update by gradients: it gets neither gradient nor
// decay nor slots. f may read other nodes of the graph, which are those of before the step. The variable must be trainable.
func CustomUpdate(v *gorgonia.Node, f func(old Expr) Expr) Option {
	return func(o *options) { o.custom = append(o.custom, customUpdate{v, f}) }
}

// ExponentialAverage is a custom update that moves a variable towards another node of its shape: w ← w + α·(average − w).
func ExponentialAverage(average *gorgonia.Node, alpha float64) func(old Expr) Expr {
	return func(old Expr) Expr { return old.Add(graphops.Of(average).Sub(old).Mul(graphops.Const(alpha))) }
}

// extraUpdate comes after a variable's own update.
type extraUpdate struct {
	name string
	f    func(Extra) Expr
}

// Extra is what an extra update can use.
type Extra struct {
	Var      *gorgonia.Node
	Old      Expr // the value of before the step
	New      Expr // what the variable's own update makes of it
	Gradient Expr // as the optimizer got it, clipped and all; the zero Expr if the variable has none
}

// ExtraUpdate changes what the update of the variable of that name makes, after it: the new value is what f returns, such as a
// projection of x.New. It is computed in the runs in which the variable is updated.
func ExtraUpdate(name string, f func(x Extra) Expr) Option {
	return func(o *options) { o.extra = append(o.extra, extraUpdate{name, f}) }
}

// MetaLoss is a further loss of the first loss's variables.
type MetaLoss struct {
	Name  string
	Loss  *gorgonia.Node
	Scale float64
}

// WithMetaLoss adds scale·loss to what the variables of New are trained on, as a loss that is not the model's own: synthetic
// gradients, Tikhonov regularization. The step is one, of the sum of the gradients. See Updater.MetaLosses.
func WithMetaLoss(name string, loss *gorgonia.Node, scale float64) Option {
	return func(o *options) { o.metas = append(o.metas, MetaLoss{name, loss, scale}) }
}

// MetaLosses are those of WithMetaLoss, in their order; to be read, give their nodes to NewMachine.
func (u *Updater) MetaLosses() []MetaLoss { return append([]MetaLoss(nil), u.metas...) }

// trained are those of the variables that gradients update.
func (u *Updater) trained(vars gorgonia.Nodes) (out gorgonia.Nodes) {
	for _, v := range vars {
		if u.custom.of(v) == nil {
			out = append(out, v)
		}
	}
	return out
}

// checkCustom looks at custom and extra updates and meta losses.
func (u *Updater) checkCustom(losses []objective) error {
	vars := union(losses)
	seen := map[*gorgonia.Node]bool{}
	for _, c := range u.custom {
		switch {
		case c.v == nil || c.by == nil:
			return errors.New("CustomUpdate: the variable or the function is nil")
		case !vars.Contains(c.v):
			return errors.Errorf("CustomUpdate: %q is not among the trainable variables", c.v.Name())
		case seen[c.v]:
			return errors.Errorf("CustomUpdate: %q has two", c.v.Name())
		}
		seen[c.v] = true
	}
	named := map[string]bool{}
	var names []string
	for _, s := range u.settings {
		names = append(names, s.name)
	}
	for _, x := range u.extra {
		switch {
		case x.f == nil:
			return errors.Errorf("ExtraUpdate: the function of %q is nil", x.name)
		case u.named(x.name) == nil:
			return errors.Errorf("ExtraUpdate: no variable is called %q; there are %q", x.name, names)
		case named[x.name]:
			return errors.Errorf("ExtraUpdate: %q has two", x.name)
		}
		named[x.name] = true
	}
	return nil
}

// call calls a function of the user's.
func call[T any](what string, f func(T) Expr, x T) (e Expr, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("%s panicked: %v", what, p)
		}
	}()
	e = f(x)
	return e, errors.Wrap(e.Err(), what)
}

// extras applies the extra updates.
func (b *built) extras() (err error) {
	for _, x := range b.u.extra {
		v := b.u.named(x.name).node
		for i, up := range b.updates {
			if up.Target != v {
				continue
			}
			e := Extra{v, graphops.Of(v), up.Value, b.u.pipe.seen[v].processed}
			if b.updates[i].Value, err = call("the extra update of "+x.name, x.f, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// customs adds the custom updates.
func (b *built) customs() error {
	for _, v := range union(b.u.losses) {
		f := b.u.custom.of(v)
		if f == nil {
			continue
		}
		value, err := call("the custom update of "+v.Name(), f, graphops.Of(v))
		if err != nil {
			return err
		}
		for _, x := range b.u.extra {
			if b.u.of(v).name != x.name {
				continue
			}
			if value, err = call("the extra update of "+x.name, x.f, Extra{v, graphops.Of(v), value, Expr{}}); err != nil {
				return err
			}
		}
		b.updates = append(b.updates, graphops.Update{Target: v, Value: value})
	}
	return nil
}

// metaLosses adds their gradients.
func (b *built) metaLosses() error {
	vars := b.u.trained(b.u.losses[0].vars)
	for _, m := range b.u.metas {
		if len(vars) == 0 {
			break
		}
		if err := b.differentiate(m.Loss, vars, m.Scale); err != nil {
			return errors.Wrapf(err, "meta loss %q", m.Name)
		}
		b.after = append(b.after, m.Loss)
	}
	return nil
}

// of is the setting of a variable, which has one.
func (u *Updater) of(v *gorgonia.Node) *setting { return u.byNode[v] }

// named finds a variable's setting by its name, or nil.
func (u *Updater) named(name string) *setting {
	for _, s := range u.settings {
		if s.name == name {
			return s
		}
	}
	return nil
}

// AccumGradMultipleStep makes one accumulator for gradients of a variable, and returns their sum as a node and the update that keeps
// it: commit that with your own updates in each run.
//
//	sum ← g where trainStep mod n ≤ 0, else sum + g
//
// The sum is that of this run included, of the variable's shape and dtype, and not divided by n. The accumulator is the slot
// <name of v>/accum_grad of the store, zero at the start. trainStep is a scalar node, such as that of a counter, of before its increment.
func AccumGradMultipleStep(store *graphops.Store, grad, v, trainStep *gorgonia.Node, n int) (*gorgonia.Node, graphops.Update, error) {
	fail := func(err error) (*gorgonia.Node, graphops.Update, error) {
		return nil, graphops.Update{}, errors.Wrap(err, "updater: AccumGradMultipleStep")
	}
	switch {
	case store == nil || grad == nil || v == nil || trainStep == nil:
		return fail(errors.New("an argument is nil"))
	case n < 1:
		return fail(errors.Errorf("n is %d; it must be 1 or more", n))
	}
	g, s, steps := graphops.Of(grad), graphops.ScalarOf(trainStep), graphops.Const(float64(n))
	if err := g.Sub(graphops.Of(v)).Err(); err != nil { // same shape and dtype
		return fail(err)
	}
	st, err := store.Slot(v.Name()+"/accum_grad", v.Name(), grad.Dtype(), grad.Shape(), 0)
	if err != nil {
		return fail(err)
	}
	acc, err := st.Node(v.Graph())
	if err != nil {
		return fail(err)
	}
	begins := s.Sub(s.Div(steps).Floor().Mul(steps)).LessEqual(graphops.Const(0))
	sum, err := graphops.Expand(begins.Select(g, graphops.Of(acc).Add(g)))
	if err != nil {
		return fail(err)
	}
	return sum, graphops.Update{Target: acc, Value: graphops.Of(sum)}, nil
}

var _ solvers.Rule = (*pipeline)(nil)
