package graphops

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// NumericsOpt is an option of CheckNumerics.
type NumericsOpt func(*numericsConfig)

type numericsConfig struct {
	all, inputs bool
	ignore      []func(*gorgonia.Node) bool
}

// CheckAllOps checks the operations too that cannot make NaN or an infinity out of finite numbers of moderate size.
func CheckAllOps() NumericsOpt { return func(c *numericsConfig) { c.all = true } }

// CheckInputs checks the inputs of the graph too: batches, parameters, states.
func CheckInputs() NumericsOpt { return func(c *numericsConfig) { c.inputs = true } }

// IgnoreNodes leaves out the nodes for which ignore holds, such as those whose n.Op().String() a regular expression matches.
func IgnoreNodes(ignore func(n *gorgonia.Node) bool) NumericsOpt {
	return func(c *numericsConfig) {
		if ignore != nil {
			c.ignore = append(c.ignore, ignore)
		}
	}
}

// CheckNumerics makes nodes that check the float32 and float64 values that fetches are computed from, fetches included: each
// fails the run with a NotFiniteError if its value holds a NaN or an infinity. Only values of operations that can make these are
// checked (a division, log, exp, softmax, an operation of another package), not those that only pass them on: add, sub, mul,
// neg, abs, sign, floor, ceil, comparisons, selections, matrix products, sums, minimum, maximum, constants, random numbers,
// dropout, and whatever moves elements about.
//
// Give the nodes to Commit with After, and a run fails before anything is written; or read them with a machine. They come
// in the order of what they check, so the first to fail is the origin. A value that is checked stays in memory until it is
// read at the end of the run, where Gorgonia might have written the next one over it. Make the checks before the commit,
// and after the gradients if those are to be checked.
func CheckNumerics(fetches gorgonia.Nodes, opts ...NumericsOpt) (checks gorgonia.Nodes, err error) {
	defer rescue(&err, "CheckNumerics") // of a function of the user's that panics
	c := &numericsConfig{}
	for _, o := range opts {
		if o != nil {
			o(c)
		}
	}
	if len(fetches) == 0 {
		return nil, errors.New("graphops: CheckNumerics of nothing")
	}
	for _, n := range fetches {
		if n == nil || n.Graph() == nil || n.Graph() != fetches[0].Graph() {
			return nil, errors.Errorf("graphops: CheckNumerics: %s is not on the graph of the others", nodeName(n))
		}
	}
	var nodes gorgonia.Nodes
	for _, n := range ancestors(fetches) {
		if c.wants(n) {
			nodes = append(nodes, n)
		}
	}
	aliases := aliasesOf(fetches[0].Graph().AllNodes())
	for _, n := range nodes {
		kids := append(gorgonia.Nodes{n}, aliases[n]...)
		o := &numericsOp{op: newOp("check numerics", kids, tensor.Float64, tensor.ScalarShape()), node: n}
		check, err := apply(o, &o.op, true, kids...)
		if err != nil {
			return nil, err
		}
		checks = append(checks, check)
	}
	return checks, nil
}

func (c *numericsConfig) wants(n *gorgonia.Node) bool {
	switch {
	case n.Type() == nil || n.Dtype() != tensor.Float32 && n.Dtype() != tensor.Float64:
		return false
	case n.Op() == nil:
		if !c.inputs {
			return false
		}
	case ofCommit(n.Op()) || !c.all && passesOn(n.Op()):
		return false
	}
	return !slices.ContainsFunc(c.ignore, func(ignore func(*gorgonia.Node) bool) bool { return ignore(n) })
}

// ancestors are the given nodes and all that they depend on, in the order of their making.
func ancestors(ns gorgonia.Nodes) (all gorgonia.Nodes) {
	seen := map[*gorgonia.Node]bool{}
	for queue := slices.Clone(ns); len(queue) > 0; {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
			queue = append(queue, children(n)...)
		}
	}
	slices.SortFunc(all, func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	return all
}

func ofCommit(o gorgonia.Op) bool {
	switch o.(type) {
	case *commitOp, *guardOp, *updateOp, *beforeOp, *numericsOp, *keepOp:
		return true
	}
	return false
}

// passesOn reports whether an operation makes finite numbers, of moderate size, of finite ones.
func passesOn(o gorgonia.Op) bool {
	switch o := o.(type) {
	case *product, *reshaped, *dropout, *constantOp:
		return true
	case *primitive:
		switch o.kernel {
		case kernel.Square, kernel.Sqrt, kernel.Exp, kernel.Log, kernel.Tanh, kernel.Div, kernel.Pow, kernel.SingularPair, kernel.Leaf:
			return false
		}
		return true
	}
	name, _, _ := strings.Cut(o.String(), " ")
	switch opType(o) {
	case "elemBinOp":
		return name != "÷" && name != "^"
	case "elemUnaryOp":
		return slices.Contains([]string{"abs", "sign", "ceil", "floor", "neg"}, name)
	case "constantScalar", "constantTensor", "Iop", "randomOp", "dropoutOp", "dropoutDiffOp", "linAlgBinOp", "tensordotOp",
		"sumOp", "maxOp", "minBetween", "maxBetween", "atOp", "sizeOp", "repeatOp", "sliceOp", "sliceIncrOp", "transposeOp",
		"concatOp", "reshapeOp", "byIndicesOp", "byIndicesOpDiffOp", "im2colOp", "col2imOp", "upsampleOp", "upsampleDiffOp",
		"diagFlatOp":
		return true
	}
	return false
}

// NotFiniteError says which value holds a NaN or an infinity.
type NotFiniteError struct {
	Node    *gorgonia.Node
	Element int // the first one, in the order of the indices
	Value   float64
}

func (e NotFiniteError) Error() string {
	op := "input"
	if o := e.Node.Op(); o != nil {
		op = o.String()
	}
	return fmt.Sprintf("graphops: element %d of node %d, %s of shape %v (operation %s), is %v",
		e.Element, e.Node.ID(), nodeName(e.Node), e.Node.Shape(), op, e.Value)
}

// numericsOp checks its first operand. Its value is 0.
type numericsOp struct {
	op
	node *gorgonia.Node

	mu sync.Mutex // machines share the operation
	in binding
}

func (o *numericsOp) Do(in ...gorgonia.Value) (v gorgonia.Value, err error) {
	defer o.rescue(&err, in)
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.in.memory = memory{} }()
	a, err := o.in.bind(in[0], in[0].Dtype(), in[0].Shape())
	if err != nil {
		return nil, errors.Wrapf(err, "graphops: checking node %d, %s", o.node.ID(), nodeName(o.node))
	}
	var i int
	var x float64
	switch a.Type {
	case kernel.Float32:
		i, x = notFinite(kernel.Elements[float32](a))
	case kernel.Float64:
		i, x = notFinite(kernel.Elements[float64](a))
	}
	if x != 0 {
		return nil, NotFiniteError{o.node, i, x}
	}
	return gorgonia.NewF64(0), nil
}

// notFinite finds the first element that is not finite, or 0.
func notFinite[T float32 | float64](x []T) (int, float64) {
	for i, v := range x {
		if v-v != 0 {
			return i, float64(v)
		}
	}
	return 0, 0
}
