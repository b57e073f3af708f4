package graphops

import (
	"slices"
	"sync"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// CommitOpt is an option of Commit and Compile.
type CommitOpt func(*commitConfig)

type commitConfig struct {
	planConfig
	after    gorgonia.Nodes
	expanded bool
	label    func(*gorgonia.Node) string
}

func newCommitConfig(opts []CommitOpt) *commitConfig {
	c := &commitConfig{label: func(*gorgonia.Node) string { return "update" }}
	for _, o := range opts {
		if o != nil {
			o(c)
		}
	}
	return c
}

// After makes the commit wait for nodes, such as the loss: they are computed in every run of the commit, and if one of them
// fails nothing is written.
func After(nodes ...*gorgonia.Node) CommitOpt {
	return func(c *commitConfig) { c.after = append(c.after, nodes...) }
}

// When writes only in runs where the scalar condition holds: to the given targets, or to all if none is given. Otherwise
// their memory is not touched, and nothing that only they need is computed. Conditions on one target must all hold.
func When(cond Expr, targets ...*gorgonia.Node) CommitOpt {
	return func(c *commitConfig) {
		c.when = append(c.when, condition{cond, targets})
	}
}

// Expanded makes each primitive of the new values a node of the graph, so that the update can be drawn, read and
// differentiated through. The numbers are those of the fused form, the speed is not.
func Expanded() CommitOpt { return func(c *commitConfig) { c.expanded = true } }

// Label names the visible node of each target, which links it in pictures to the tensors that its new value reads: its
// gradient, its slots. The name of the rule is a good one; an empty name means no node. The default is "update".
func Label(name func(target *gorgonia.Node) string) CommitOpt {
	return func(c *commitConfig) {
		if name != nil {
			c.label = name
		}
	}
}

// From tells which store owns the state nodes among the leaves.
func From(s *Store) CommitOpt { return func(c *commitConfig) { c.store = s } }

// Aside tells of a second store, whose states are written without being operands of the optim op. It is for numbers that
// are only looked at after a run: for a machine each operand has its cost, also in runs in which When leaves the number alone.
func Aside(s *Store) CommitOpt { return func(c *commitConfig) { c.aside = s } }

// Commit adds updates to the graph as one operation. A machine that runs it computes every new value from the old values of
// everything and then writes all of them, last: the loss, and whatever else was built before the commit, is of the old
// values, and a run that fails before that has changed nothing. The node's value is a float64 scalar, the number of
// runs that wrote anything.
//
// A node that is built after the commit and reads a target may see the new value. Such readers are refused: by
// NewMachine, and at the first run by a machine over the whole graph. A
// machine that would run two commits is refused likewise. A tape machine over a subgraph that was chosen by hand cannot be
// checked, in neither respect: choose the nodes of one commit only. One in gorgonia.EvalMode fails when it reaches the commit.
//
// All checks (see Compile) come before the first node is made.
func Commit(updates []Update, opts ...CommitOpt) (op *gorgonia.Node, err error) {
	defer rescue(&err, "Commit") // of a Label that panics
	c := newCommitConfig(opts)
	p, err := compile(updates, c.planConfig)
	if err != nil {
		return nil, err
	}
	g := updates[0].Target.Graph()
	for _, n := range c.after {
		if n == nil || n.Graph() != g || n.Type() == nil {
			return nil, errors.Errorf("graphops: After: %s is no value on the graph of the updates", nodeName(n))
		}
	}
	labels := make([]string, len(p.updates))
	for i, u := range p.updates {
		labels[i] = c.label(u.Target)
	}
	o := &commitOp{training: true}
	guard := &guardOp{op: newOp("guard", gorgonia.Nodes{updates[0].Target}, tensor.Float64, tensor.ScalarShape()), commit: o}
	if _, err := apply(guard, &guard.op, false, updates[0].Target); err != nil {
		return nil, err
	}
	var lead gorgonia.Nodes
	if c.expanded {
		if lead, err = c.separate(updates[0].Target, o); err != nil {
			return nil, err
		}
		if p, err = p.expand(c.planConfig, lead); err != nil {
			return nil, err
		}
	}
	visible, err := p.visible(labels)
	if err != nil {
		return nil, err
	}
	lead = slices.Concat(lead, visible, c.after)
	for i, n := range p.leaves {
		if c.aside.of(n) == nil {
			o.given = append(o.given, i)
		}
	}
	kids := slices.Clone(lead)
	for _, i := range o.given {
		kids = append(kids, p.leaves[i])
	}
	o.values = make([]gorgonia.Value, len(p.leaves))
	name := "optim op"
	for _, l := range labels {
		if l != "" {
			name += "(" + l + ")"
			break
		}
	}
	o.op, o.plan, o.skip = newOp(name, kids, tensor.Float64, tensor.ScalarShape()), p, len(lead)
	if o.node, err = apply(o, &o.op, false, kids...); err != nil {
		return nil, err
	}
	return o.node, nil
}

// visible makes the visible nodes of the targets.
func (p *Plan) visible(labels []string) (ns gorgonia.Nodes, err error) {
	for i, u := range p.updates {
		what := labels[i]
		if what == "" {
			continue
		}
		kids := gorgonia.Nodes{u.Target}
		for _, n := range u.Value.x.leaves(true) {
			if n != u.Target {
				kids = append(kids, n)
			}
		}
		o := &updateOp{newOp(what, kids, tensor.Float64, tensor.ScalarShape())}
		n, err := apply(o, &o.op, false, kids...)
		if err != nil {
			return nil, err
		}
		gorgonia.WithName(what + "(" + u.Target.Name() + ")")(n)
		ns = append(ns, n)
	}
	return ns, nil
}

// expand replaces every new value by nodes, made after the node in lead if there is one.
func (p *Plan) expand(c planConfig, lead gorgonia.Nodes) (*Plan, error) {
	x := newExpander(p.updates[0].Target)
	if len(lead) > 0 {
		x.after = lead[0].ID()
	}
	updates := make([]Update, len(p.updates))
	for i, u := range p.updates {
		n, err := x.expand(u.Value)
		if err != nil {
			return nil, errors.Wrapf(err, "graphops: expanding the update of %s", nodeName(u.Target))
		}
		updates[i] = Update{u.Target, Of(n)}
		if u.Value.IsScalar() {
			updates[i].Value = ScalarOf(n)
		}
	}
	q, err := compile(updates, c)
	if err == nil { // the nodes read states too
		for _, l := range p.want {
			q.also = append(q.also, l.state)
		}
	}
	return q, err
}

// Supersede makes a commit inert: machines that contain it run it to no effect. It is for whoever builds a new commit in
// the place of an old one on the same graph, where a machine over the whole graph would otherwise run both. What the commit needed
// to run, the functions of Before among it, is let go.
func Supersede(commit *gorgonia.Node) error {
	o, err := commitOf(commit)
	if err != nil {
		return err
	}
	o.inert, o.plan, o.values = true, nil, nil
	if o.before != nil {
		o.before.calls = nil
	}
	return nil
}

func commitOf(n *gorgonia.Node) (*commitOp, error) {
	if n == nil {
		return nil, errors.New("graphops: the optim op is nil")
	}
	if o, ok := n.Op().(*commitOp); ok {
		return o, nil
	}
	return nil, errors.Errorf("graphops: %s is no optim op; want the node that Commit or Minimize returned", nodeName(n))
}

// updateOp is the visible node of a target. It computes nothing.
type updateOp struct{ op }

func (o *updateOp) Do(...gorgonia.Value) (gorgonia.Value, error) { return gorgonia.NewF64(0), nil }

// commitOp runs a plan. Its operands are the visible nodes, what it waits for, and the plan's leaves.
type commitOp struct {
	op
	plan     *Plan            // nil if inert
	before   *beforeOp        // of an expanded one
	skip     int              // operands before the leaves
	given    []int            // leaves that are operands
	values   []gorgonia.Value // by leaf, in a run
	node     *gorgonia.Node
	count    int
	training bool
	inert    bool
	mu       sync.Mutex
}

// SetTraining is called by every machine that is built over the commit.
func (o *commitOp) SetTraining(t bool) error {
	o.training = t
	return nil
}

func (o *commitOp) Do(in ...gorgonia.Value) (v gorgonia.Value, err error) {
	defer o.rescue(&err, in)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.inert:
	case !o.training:
		return nil, errors.New("graphops: the optim op runs in evaluation mode: a machine with gorgonia.EvalMode was built over it; " +
			"evaluate with graphops.NewEvalMachine, or over a subgraph without the optim op")
	default:
		for k, i := range o.given {
			o.values[i] = in[o.skip+k]
		}
		p := o.plan // a function of Before may supersede the commit
		err := p.Run(o.values)
		clear(o.values)
		if err != nil {
			return nil, err
		}
		if p.wrote() {
			o.count++
		}
	}
	return gorgonia.NewF64(float64(o.count)), nil
}

// guardOp is a root of its own, so that of all programs only those over the whole graph contain it. Both machines call
// SetTraining on every operation of a new program: that is when it looks for what must not run beside the commit.
type guardOp struct {
	op
	commit *commitOp
	err    error
}

func (o *guardOp) SetTraining(bool) error {
	o.err = nil
	if n := o.commit.node; n != nil && !o.commit.inert {
		o.err = o.commit.check(n.Graph().AllNodes())
	}
	return nil
}

func (o *guardOp) Do(...gorgonia.Value) (gorgonia.Value, error) {
	if o.err != nil && !o.commit.inert {
		return nil, o.err
	}
	return gorgonia.NewF64(0), nil
}

// check refuses a program of nodes ns that holds another live commit, or a node that was built after the commit and reads
// a target or a view of one.
func (o *commitOp) check(ns gorgonia.Nodes) error {
	written := map[*gorgonia.Node]*gorgonia.Node{}
	for _, u := range o.plan.updates {
		written[u.Target] = u.Target
	}
	ns = slices.Clone(ns) // in the order of their making, so that views of views are seen
	slices.SortFunc(ns, func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	for _, n := range ns {
		if c, ok := n.Op().(*commitOp); ok && c != o && !c.inert {
			return errors.New("graphops: this machine would run two optim ops, and the second would see what the first wrote; " +
				"give each a machine of its own with graphops.NewMachine")
		}
	}
	for _, n := range ns {
		switch n.Op().(type) {
		case *commitOp, *guardOp, *beforeOp, *updateOp, *keepOp: // they read nothing, or are of an inert commit
			continue
		}
		for _, k := range children(n) {
			t := written[k]
			if t == nil {
				continue
			}
			if n.ID() > o.node.ID() {
				return errors.Errorf("graphops: node %d (%v) was built after the optim op and reads %s, which it updates; "+
					"build it before Minimize, or leave it out of the machine", n.ID(), n.Op(), nodeName(t))
			}
			if isView(n.Op()) {
				written[n] = t
			}
		}
	}
	return nil
}
