package graphops

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// NewMachine makes a machine that trains: it runs the optim op, the given nodes, and only what they need. (A machine over
// the whole graph would among other things compute the gradient of the input.) Each RunAll is one step; Reset is optional,
// also after an error. Dropout and batch normalisation are in training mode during a run, whatever evaluation machines do
// in between, and in their former mode afterwards. Other goroutines may look at the states and change them between runs: see Store.Between. In the error of a run errors.As and errors.Is find that of the operation.
//
// It refuses nodes that would not see the values of before the step: see Commit. Where nodes share memory, as Reshape does with
// its operand, it adds a node to the graph that keeps it from being written over.
func NewMachine(op *gorgonia.Node, reads ...*gorgonia.Node) (gorgonia.VM, error) {
	o, err := commitOf(op)
	if err != nil {
		return nil, err
	}
	if o.inert {
		return nil, errors.New("graphops: this optim op was superseded by a newer one")
	}
	sub, err := subgraph(append(gorgonia.Nodes{op}, reads...))
	if err != nil {
		return nil, err
	}
	if err := o.check(sub.AllNodes()); err != nil {
		return nil, err
	}
	return newMachine(sub, o)
}

// NewEvalMachine makes a machine that computes the given nodes without training: no optim op may be among what they need,
// and dropout and batch normalisation are in evaluation mode during a run.
func NewEvalMachine(reads ...*gorgonia.Node) (gorgonia.VM, error) {
	if len(reads) == 0 {
		return nil, errors.New("graphops: NewEvalMachine of nothing")
	}
	sub, err := subgraph(reads)
	if err != nil {
		return nil, err
	}
	for _, n := range sub.AllNodes() {
		if _, ok := n.Op().(*commitOp); ok {
			return nil, errors.Errorf("graphops: evaluating %s would run an optim op", nodeName(reads[0]))
		}
	}
	return newMachine(sub, nil)
}

func subgraph(roots gorgonia.Nodes) (*gorgonia.ExprGraph, error) {
	for _, n := range roots {
		if n == nil || n.Graph() == nil || n.Graph() != roots[0].Graph() {
			return nil, errors.Errorf("graphops: %s is not on the machine's graph", nodeName(n))
		}
	}
	sub := roots[0].Graph().SubgraphRoots(roots...)
	keep, err := keepShared(sub)
	if err != nil {
		return nil, err
	}
	if keep != nil {
		sub = roots[0].Graph().SubgraphRoots(append(slices.Clone(roots), keep)...)
	}
	seen := map[uint32]*gorgonia.Node{}
	for _, n := range sub.AllNodes() {
		h := n.Hashcode()
		if old := seen[h]; old != nil && old != n {
			return nil, errors.Errorf("graphops: the nodes %d (%v) and %d (%v) have the same 32-bit hash, so Gorgonia would run only one of them; "+
				"give one of their inputs another name", old.ID(), old, n.ID(), n)
		}
		seen[h] = n
	}
	return sub, nil
}

// machine runs a tape machine in a mode of its own.
type machine struct {
	gorgonia.VM
	commit *commitOp // nil: evaluation
	nodes  gorgonia.Nodes
	modes  []gorgonia.TrainModeOp
	before []bool
	ran    bool
	inputs []expected
}

// expected is an input and the form that its value must have.
type expected struct {
	node  *gorgonia.Node
	dt    tensor.Dtype
	shape tensor.Shape
}

func newMachine(sub *gorgonia.ExprGraph, commit *commitOp) (vm gorgonia.VM, err error) {
	defer rescue(&err, "compiling the graph")
	m := &machine{commit: commit, nodes: sub.AllNodes()}
	for _, n := range sub.AllNodes() {
		if o, ok := n.Op().(gorgonia.TrainModeOp); ok {
			m.modes = append(m.modes, o)
		}
		if n.IsVar() {
			m.inputs = append(m.inputs, expected{n, n.Dtype(), n.Shape()})
		}
		if e := noElements(n); e != nil {
			return nil, errors.Errorf("graphops: %s cannot be computed: %s has shape %v and so no elements, at which Gorgonia panics",
				nodeName(n), nodeName(e), e.Shape())
		}
	}
	m.save()
	defer m.restore() // NewTapeMachine sets modes too
	m.VM = gorgonia.NewTapeMachine(sub)
	return m, nil
}

// noElements is the node, of n and its operands, whose tensors have no elements, if there is one and n is computed by an operation
// for which a tape machine allocates memory: one of Gorgonia's, not of ours. It would panic on a goroutine of the machine.
func noElements(n *gorgonia.Node) *gorgonia.Node {
	if n.Op() == nil || !n.Op().ReturnsPtr() {
		return nil
	}
	for _, m := range append(children(n), n) {
		if m.Shape().TotalSize() == 0 {
			return m
		}
	}
	return nil
}

func (m *machine) RunAll() error {
	if m.commit != nil && !m.commit.inert && m.commit.plan.store != nil {
		return m.commit.plan.store.Between(m.run)
	}
	return m.run()
}

func (m *machine) run() error {
	if m.commit != nil && m.commit.inert {
		return errors.New("graphops: the optim op of this machine was superseded by a newer one; build a new machine")
	}
	if m.ran { // a tape machine would do nothing, or go on after the operation that failed
		m.VM.Reset()
	}
	m.ran = true
	if err := m.checkInputs(); err != nil {
		return err
	}
	m.save()
	defer m.restore()
	for _, o := range m.modes {
		setTraining(o, m.commit != nil)
	}
	return opened(m.VM.RunAll())
}

// checkInputs refuses values of another dtype or shape than their nodes have, which gorgonia.Let takes and an operation of Gorgonia's
// may panic at, on a goroutine of the tape machine, where nobody can catch it.
func (m *machine) checkInputs() error {
	for i := range m.inputs {
		in := &m.inputs[i]
		if v := in.node.Value(); v != nil && (v.Dtype() != in.dt || !slices.Equal(v.Shape(), in.shape)) {
			return errors.Errorf("graphops: %s: its value is %v %v; it must be %v %v", nodeName(in.node), v.Dtype(), v.Shape(), in.dt, in.shape)
		}
	}
	return nil
}

// runError lets errors.As and errors.Is find the error of an operation in that of a run.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error.(interface{ Err() error }).Err() }

func opened(err error) error {
	if _, ok := err.(interface{ Err() error }); ok {
		return runError{err}
	}
	return err
}

func (m *machine) Reset() {
	m.ran = false
	m.VM.Reset()
}

func (m *machine) save() {
	m.before = m.before[:0]
	for _, o := range m.modes {
		if f := modeField(o); f != nil {
			m.before = append(m.before, *f)
		} else {
			m.before = append(m.before, true)
		}
	}
}

func (m *machine) restore() {
	for i, o := range m.modes {
		setTraining(o, m.before[i])
	}
}

// setTraining changes the mode of an operation without the rest of what its SetTraining may do: batch normalisation's
// forgets its running statistics.
func setTraining(o gorgonia.TrainModeOp, t bool) {
	if f := modeField(o); f == nil {
		o.SetTraining(t)
	} else {
		*f = t
	}
}

// modeField finds the flag that says that an operation is in training mode. Gorgonia's operations have no method to ask.
func modeField(o gorgonia.TrainModeOp) *bool {
	v := reflect.ValueOf(o)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	for _, name := range []string{"isTraining", "training"} {
		if f := v.Elem().FieldByName(name); f.IsValid() && f.Kind() == reflect.Bool {
			return (*bool)(unsafe.Pointer(f.UnsafeAddr()))
		}
	}
	return nil
}
