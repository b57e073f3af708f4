package graphops

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// GradOpt is an option of Gradients.
type GradOpt func(*gradConfig)

type gradConfig struct {
	of, known   gorgonia.Nodes
	constant    gorgonia.Nodes
	allowUnused bool
	keepRows    bool
}

// KnownGrads gives the gradient of some expressions: grads[i] replaces whatever would be propagated back to of[i], and
// everything that of[i] depends on uses it. An expression that the cost does not depend on contributes too, so with known
// gradients the cost may be nil. For the cost itself the given gradient replaces the seed 1.
func KnownGrads(of, grads gorgonia.Nodes) GradOpt {
	return func(c *gradConfig) { c.of, c.known = append(c.of, of...), append(c.known, grads...) }
}

// ConsiderConstant stops the gradient at the given nodes: nothing flows through them to what they are computed from. The
// gradient with respect to such a node itself is still defined.
func ConsiderConstant(nodes ...*gorgonia.Node) GradOpt {
	return func(c *gradConfig) { c.constant = append(c.constant, nodes...) }
}

// AllowUnused gives nil for a node that the cost does not depend on, instead of an error.
func AllowUnused() GradOpt { return func(c *gradConfig) { c.allowUnused = true } }

// KeepRows gives the gradient of a node that the cost reads by Gather alone, or by gorgonia.ByIndices along axis 0, as the rows that
// were looked up: a node whose value is a *Rows, several lookups one after the other. For commits and plans it is a tensor like
// any other; operations of Gorgonia's cannot read it. Without KeepRows it is the whole tensor.
func KeepRows() GradOpt { return func(c *gradConfig) { c.keepRows = true } }

// Gradients builds the gradients of a scalar cost with respect to nodes of its graph, in their order. It is reverse mode over
// the operations' own SymDiff, as gorgonia.Grad is, and gives the same numbers, but for Log2, InverseSqrt and OuterProd, where
// Gorgonia's are wrong; but it leaves no mark on the nodes, so that several costs on one graph, also over shared nodes, are
// right. (gorgonia.Grad can still be called afterwards, but for graphs with SoftMax, where it panics on gradients that are there
// already, also its own.) Of a matrix product it makes only the gradients that are asked for.
//
// The gradient of a node has the node's dtype and shape. It may be a node that existed before, such as another parameter. A
// new one is named (d<cost>/d<node>) where both have names.
//
// The cost may be computed from gradients, such as their norm. MaxPool, AveragePool, Upsample2D, BatchNorm, GroupNorm,
// Sparsemax, CTCLoss and Gorgonia's Dropout (not ours) have no second derivative, which is an error. Run such derivatives with NewMachine
// or NewEvalMachine: a plain tape machine may overwrite what a Reshape shares memory with.
//
// Everything is tried on a sketch of the graph first: an error leaves the graph as it was. Among the errors are a cost that is
// no float scalar, a node that the cost does not depend on, an operation without derivative, and a derivative of Gorgonia's
// that would fail at run time as it meets a constant of another dtype.
func Gradients(cost *gorgonia.Node, wrt gorgonia.Nodes, opts ...GradOpt) (gorgonia.Nodes, error) {
	c := newGradConfig(opts)
	if _, err := c.try(cost, wrt); err != nil {
		return nil, err
	}
	return c.gradients(cost, wrt, func(n *gorgonia.Node) *gorgonia.Node { return n })
}

// TryGradients reports what Gradients would: an error, or else which nodes have a gradient. It leaves the graph alone.
func TryGradients(cost *gorgonia.Node, wrt gorgonia.Nodes, opts ...GradOpt) ([]bool, error) {
	grads, err := newGradConfig(opts).try(cost, wrt)
	if err != nil {
		return nil, err
	}
	has := make([]bool, len(grads))
	for i, n := range grads {
		has[i] = n != nil
	}
	return has, nil
}

func newGradConfig(opts []GradOpt) *gradConfig {
	c := &gradConfig{}
	for _, o := range opts {
		if o != nil {
			o(c)
		}
	}
	return c
}

// try builds the gradients on a sketch.
func (c *gradConfig) try(cost *gorgonia.Node, wrt gorgonia.Nodes) (gorgonia.Nodes, error) {
	g, err := c.check(cost, wrt)
	if err != nil {
		return nil, err
	}
	s, err := newSketch(g, slices.Concat(c.roots(cost), wrt, c.known))
	if err != nil {
		return nil, err
	}
	trial := gradConfig{s.all(c.of), s.all(c.known), s.all(c.constant), c.allowUnused, c.keepRows}
	return trial.gradients(s.to[cost], s.all(wrt), s.original)
}

func (c *gradConfig) roots(cost *gorgonia.Node) gorgonia.Nodes {
	roots := slices.Clone(c.of)
	if cost != nil && !roots.Contains(cost) {
		roots = append(roots, cost)
	}
	return roots
}

// check refuses what can be seen from the arguments alone.
func (c *gradConfig) check(cost *gorgonia.Node, wrt gorgonia.Nodes) (*gorgonia.ExprGraph, error) {
	switch {
	case len(c.of) != len(c.known):
		return nil, errors.Errorf("graphops: KnownGrads: %d nodes, %d gradients", len(c.of), len(c.known))
	case cost == nil && len(c.of) == 0:
		return nil, errors.New("graphops: Gradients of a nil cost")
	case len(wrt) == 0:
		return nil, errors.New("graphops: Gradients with respect to nothing")
	}
	roots := c.roots(cost)
	for _, n := range slices.Concat(roots, c.known, c.constant, wrt) {
		if n == nil {
			return nil, errors.New("graphops: Gradients: a node is nil")
		}
		if n.Graph() == nil || n.Graph() != roots[0].Graph() {
			return nil, errors.Errorf("graphops: Gradients: %s is not on the graph of the cost", nodeName(n))
		}
	}
	if cost != nil && !cost.IsScalar() {
		return nil, errors.Errorf("graphops: the cost %s has shape %v, but only a scalar has gradients: reduce it with gorgonia.Sum or gorgonia.Mean",
			nodeName(cost), cost.Shape())
	}
	for _, n := range slices.Concat(roots, wrt) {
		if dt, err := dtypeOf(n); err != nil {
			return nil, err
		} else if dt != tensor.Float32 && dt != tensor.Float64 {
			return nil, errors.Errorf("graphops: %s is %v: only float32 and float64 have gradients", nodeName(n), dt)
		}
	}
	seen := map[*gorgonia.Node]bool{}
	for i, n := range c.of {
		if seen[n] {
			return nil, errors.Errorf("graphops: KnownGrads: %s is listed twice", nodeName(n))
		}
		seen[n] = true
		if k := c.known[i]; k.Type() == nil || k.Dtype() != n.Dtype() || !k.Shape().Eq(n.Shape()) {
			return nil, errors.Errorf("graphops: KnownGrads: the gradient of %s must be %v of shape %v", nodeName(n), n.Dtype(), n.Shape())
		}
	}
	return roots[0].Graph(), nil
}

// gradients does the work. original says how to call a node in errors.
func (c *gradConfig) gradients(cost *gorgonia.Node, wrt gorgonia.Nodes, original func(*gorgonia.Node) *gorgonia.Node) (gorgonia.Nodes, error) {
	roots := c.roots(cost)
	w := &walk{x: newExpander(roots[0]), of: set(c.of), constant: set(c.constant),
		depends: map[*gorgonia.Node]bool{}, terms: map[*gorgonia.Node]*gorgonia.Node{}, rows: map[*gorgonia.Node][]rowsTerm{}, original: original}
	for _, n := range wrt {
		w.depends[n] = true
	}
	for _, r := range roots {
		w.visit(r)
	}
	if cost != nil && w.depends[cost] && !c.of.Contains(cost) {
		seed, err := newInput(cost.Graph(), cost.Dtype(), tensor.ScalarShape(), "grad/seed")
		if err != nil {
			return nil, err
		}
		var one any = 1.0
		if cost.Dtype() == tensor.Float32 {
			one = float32(1)
		}
		if err := gorgonia.Let(seed, one); err != nil {
			return nil, errors.Wrap(err, "graphops: seed")
		}
		w.terms[cost] = seed
	}
	for i, n := range c.of {
		w.terms[n] = c.known[i]
	}
	first := len(roots[0].Graph().AllNodes())
	if err := w.back(); err != nil {
		return nil, err
	}
	grads := make(gorgonia.Nodes, len(wrt))
	nameless := map[*gorgonia.Node]bool{}
	for _, n := range roots[0].Graph().ByName("") {
		nameless[n] = true
	}
	for i, n := range wrt {
		grad, err := w.gradient(n, c.keepRows)
		switch {
		case err != nil:
			return nil, err
		case grad == nil && c.allowUnused:
			continue
		case grad == nil:
			return nil, errors.Errorf("graphops: the cost %s does not depend on %s", nodeName(cost), nodeName(original(n)))
		case !grad.Shape().Eq(n.Shape()) || grad.Dtype() != n.Dtype():
			return nil, errors.Errorf("graphops: the gradient of %s, made by %v, is %v of shape %v instead of %v of shape %v",
				nodeName(original(n)), grad.Op(), grad.Dtype(), grad.Shape(), n.Dtype(), n.Shape())
		}
		grads[i] = grad
		if cost != nil && grad.ID() >= int64(first) && grad.Op() != nil && nameless[grad] && !nameless[cost] && !nameless[n] {
			nameless[grad] = false
			gorgonia.WithName(fmt.Sprintf("(d%s/d%s)", cost.Name(), n.Name()))(grad)
		}
	}
	return grads, nil
}

func set(ns gorgonia.Nodes) map[*gorgonia.Node]bool {
	s := map[*gorgonia.Node]bool{}
	for _, n := range ns {
		s[n] = true
	}
	return s
}

// walk is one reverse pass. terms holds the gradient collected so far for each node.
type walk struct {
	x        *expander
	of       map[*gorgonia.Node]bool // whose gradients are given
	constant map[*gorgonia.Node]bool
	order    gorgonia.Nodes // ancestors of the roots
	seen     map[*gorgonia.Node]bool
	depends  map[*gorgonia.Node]bool // lies on a differentiable path from a wanted node
	terms    map[*gorgonia.Node]*gorgonia.Node
	rows     map[*gorgonia.Node][]rowsTerm // to be added to terms
	original func(*gorgonia.Node) *gorgonia.Node
}

func (w *walk) visit(n *gorgonia.Node) {
	if w.seen == nil {
		w.seen = map[*gorgonia.Node]bool{}
	}
	if w.seen[n] {
		return
	}
	w.seen[n] = true
	kids := children(n)
	diff := w.differentiable(n, len(kids))
	for i, k := range kids {
		w.visit(k)
		if diff[i] && w.depends[k] {
			w.depends[n] = true
		}
	}
	w.order = append(w.order, n)
}

// differentiable says through which operands of n a gradient flows.
func (w *walk) differentiable(n *gorgonia.Node, kids int) []bool {
	flows := make([]bool, kids)
	if n.Op() == nil || kids == 0 || w.constant[n] {
		return flows
	}
	if r := ruleOf(n); r != nil {
		copy(flows, r.wrt)
		return flows
	}
	sd, ok := n.Op().(gorgonia.SDOp)
	if _, refused := noSecond(n.Op()); refused || !ok { // refused if the gradient gets here
		return slices.Repeat([]bool{true}, kids)
	}
	copy(flows, sd.DiffWRT(kids))
	return flows
}

// back propagates from the roots to the wanted nodes. An operation has a greater id than its operands.
func (w *walk) back() error {
	slices.SortFunc(w.order, func(a, b *gorgonia.Node) int { return int(b.ID() - a.ID()) })
	for _, n := range w.order {
		kids := children(n)
		diff := w.differentiable(n, len(kids))
		flows, wanted := false, make([]bool, len(kids))
		for i, k := range kids {
			flows = flows || diff[i] && w.depends[k]
			wanted[i] = diff[i] && w.depends[k] && !w.of[k]
		}
		if w.terms[n] == nil && w.rows[n] == nil || !flows {
			continue
		}
		if _, err := w.gradient(n, false); err != nil {
			return err
		}
		if looksUp(n) {
			if wanted[0] {
				w.rows[kids[0]] = append(w.rows[kids[0]], rowsTerm{w.terms[n], kids[1]})
			}
			continue
		}
		ds, err := w.symDiff(n, kids, wanted)
		if err != nil {
			return err
		}
		for i, k := range kids {
			if i >= len(ds) || ds[i] == nil || !wanted[i] {
				continue
			}
			if old := w.terms[k]; old != nil {
				if ds[i], err = w.x.expand(Of(old).Add(Of(ds[i]))); err != nil {
					return errors.Wrapf(err, "graphops: summing the gradients of %s", nodeName(w.original(k)))
				}
			}
			w.terms[k] = ds[i]
		}
	}
	return nil
}

// symDiff gives at least the wanted ones of the gradients of n's operands.
func (w *walk) symDiff(n *gorgonia.Node, kids gorgonia.Nodes, wanted []bool) (ds gorgonia.Nodes, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Errorf("graphops: the derivative of %s panics: %v", nodeName(w.original(n)), r)
		}
	}()
	if of, ok := noSecond(n.Op()); ok {
		return nil, refuseSecond(w.original(n), of)
	}
	if r := ruleOf(n); r != nil {
		ds, err = r.diff(n, kids, w.terms[n])
		return ds, errors.Wrapf(err, "graphops: the derivative of %s", nodeName(w.original(n)))
	}
	sd, ok := n.Op().(gorgonia.SDOp)
	if !ok {
		return nil, errors.Errorf("graphops: %s has no derivative (%T is no SDOp)", nodeName(w.original(n)), n.Op())
	}
	if transposed, ok := productOf(n, kids); ok {
		return productDiff(kids, transposed, w.terms[n], wanted)
	}
	g := n.Graph()
	first := len(g.AllNodes())
	defer soon(g, 16)()
	if ds, err = sd.SymDiff(kids, n, w.terms[n]); err != nil {
		return nil, errors.Wrapf(err, "graphops: the derivative of %s", nodeName(w.original(n)))
	}
	for _, d := range g.AllNodes()[first:] {
		if k := strangeConstant(d); k != nil {
			return nil, errors.Errorf("graphops: the derivative of %s would fail when it runs: Gorgonia merges constants of equal text, "+
				"so its constant %v turned out %v here; use a named scalar input (gorgonia.NewScalar) for your own constant %v, "+
				"or separate graphs for float32 and float64", nodeName(w.original(n)), k, k.Dtype(), k)
		}
	}
	return ds, nil
}

// strangeConstant finds a constant operand whose float dtype is not that of its sibling.
func strangeConstant(n *gorgonia.Node) *gorgonia.Node {
	if _, ours := n.Op().(*primitive); ours {
		return nil
	}
	isFloat := func(n *gorgonia.Node) bool { return n.Dtype() == tensor.Float32 || n.Dtype() == tensor.Float64 }
	kids := children(n)
	for _, k := range kids {
		if k.Op() == nil || len(children(k)) > 0 || !isFloat(k) {
			continue
		}
		for _, o := range kids {
			if isFloat(o) && o.Dtype() != k.Dtype() {
				return k
			}
		}
	}
	return nil
}
