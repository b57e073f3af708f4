package updater

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/batch"
)

// compiled is what Initialize makes.
type compiled struct {
	op       *gorgonia.Node
	vm       gorgonia.VM // nil: there is nothing to do
	sources  []*batch.Source
	fixed    map[string]bool // names of inputs whose value no batch and no update changes
	observed gorgonia.Nodes
	values   []gorgonia.Value // of observed, from the last batch that succeeded
	next     []gorgonia.Value // from the batch that is running
	profile  *graphops.Profile
}

func (a *UpdatesAlgorithm) compile() (*compiled, error) {
	c := &compiled{observed: slices.Clone(a.observed), fixed: map[string]bool{}}
	updates, opts := slices.Concat(a.updates, a.hidden), slices.Concat(a.opts.Commit, a.commit)
	after := slices.Concat(a.after, c.observed)
	if len(updates) == 0 {
		if len(after) == 0 {
			return c, nil
		}
		runs := graphops.NewStore() // a commit has an update
		u, err := countRun(runs, after[0].Graph())
		if err != nil {
			return nil, err
		}
		updates, opts = append(updates, u), append(opts, graphops.Aside(runs))
	}
	targets := map[*gorgonia.Node]bool{}
	for _, u := range updates {
		if u.Target != nil && u.Target.Value() == nil {
			return nil, errors.Errorf("the target %s has no value: give it one with gorgonia.Let", nodeName(u.Target))
		}
		targets[u.Target] = true
	}
	random, err := nextNumbers(updates, after, targets)
	if err != nil {
		return nil, err
	}
	if updates = append(updates, random...); a.opts.CheckFinite {
		opts = append(opts, refuseNotFinite(updates, a.after))
	}
	if len(c.observed) > 0 {
		opts = append(opts, graphops.Before(c.observe))
	}
	if c.op, err = graphops.Commit(updates, append(opts, graphops.After(after...))...); err != nil {
		return nil, err
	}
	if c.vm, err = graphops.NewMachine(c.op); err != nil {
		return nil, err
	}
	if a.opts.Profile {
		if c.profile, err = graphops.NewProfile(c.vm); err != nil {
			return nil, err
		}
	}
	return c, a.findSources(c, targets)
}

// findSources finds the inputs that batches supply.
func (a *UpdatesAlgorithm) findSources(c *compiled, targets map[*gorgonia.Node]bool) error {
	for _, n := range graphops.Inputs(c.op) {
		supplied := slices.Contains(a.opts.Sources, n)
		switch {
		case supplied && targets[n]:
			return errors.Errorf("%s is a source, so it cannot be updated", nodeName(n))
		case supplied || !targets[n] && (a.sources[n] || n.Value() == nil):
			s, err := batch.NewSource(n)
			if err != nil {
				return errors.Wrap(err, nodeName(n))
			}
			c.sources = append(c.sources, s)
		case !targets[n]:
			c.fixed[n.Name()] = true
		}
	}
	return nil
}

// nextNumbers are the updates that give the random operations other numbers in the next run, but for those that are updated
// already.
func nextNumbers(updates []graphops.Update, after gorgonia.Nodes, targets map[*gorgonia.Node]bool) ([]graphops.Update, error) {
	var next []graphops.Update
	roots := slices.Clone(after)
	for _, u := range updates {
		roots = append(roots, u.Value.Leaves()...)
	}
	for _, g := range graphops.Generators(roots...) {
		u, err := g.Update(roots[0].Graph())
		if err != nil {
			return nil, err
		}
		if !targets[u.Target] {
			next = append(next, u)
		}
	}
	return next, nil
}

func countRun(s *graphops.Store, g *gorgonia.ExprGraph) (graphops.Update, error) {
	st, err := s.Counter("runs")
	if err != nil {
		return graphops.Update{}, err
	}
	n, err := st.Node(g)
	if err != nil {
		return graphops.Update{}, err
	}
	return graphops.Update{Target: n, Value: graphops.ScalarOf(n).Add(one)}, nil
}

// observe keeps the values of the observed nodes. It is called when all of them are computed and nothing is written yet.
func (c *compiled) observe() error {
	c.next = make([]gorgonia.Value, len(c.observed))
	for i, n := range c.observed {
		v, err := gorgonia.CloneValue(n.Value())
		if err != nil {
			return errors.Wrapf(err, "updater: observing %s", nodeName(n))
		}
		c.next[i] = v
	}
	return nil
}

// refuseNotFinite refuses runs in which the cost or a new value is not finite.
func refuseNotFinite(updates []graphops.Update, cost gorgonia.Nodes) graphops.CommitOpt {
	values, names := make([]Expr, 0, len(updates)), []string{}
	for _, n := range cost {
		values, names = append(values, graphops.Of(n)), append(names, "the cost "+nodeName(n))
	}
	for _, u := range updates {
		values, names = append(values, u.Value), append(names, "the new value of "+nodeName(u.Target))
	}
	code := graphops.Const(0)
	for i := len(values) - 1; i >= 0; i-- {
		finite := values[i].IsFinite()
		if !values[i].IsScalar() {
			finite = finite.All()
		}
		code = finite.Select(code, graphops.Const(float64(i+1)))
	}
	return graphops.Refuse(code, func(code float64) error {
		return errors.Errorf("updater: %s is not finite", names[int(code)-1])
	})
}
