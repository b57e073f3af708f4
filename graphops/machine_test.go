package graphops

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// halve commits w ← w/2 on a new graph and returns the nodes.
func halve(t *testing.T, opts ...CommitOpt) (g *G.ExprGraph, w, loss, op *G.Node) {
	t.Helper()
	g = G.NewGraph()
	w = input(g, tensor.Float64, "w", []int{2}, 2, 4)
	loss = must(G.Sum(w))
	op = must(Commit([]Update{{w, Of(w).Div(Const(2))}}, append(opts, After(loss))...))
	return g, w, loss, op
}

// What was built before the commit sees the values of before the step, in every kind of machine.
func TestEarlyReaders(t *testing.T) {
	for _, kind := range []string{"whole graph", "subgraph", "machine", "lisp"} {
		g := G.NewGraph()
		w := input(g, tensor.Float64, "w", []int{2}, 2, 4)
		var early G.Value
		G.Read(w, &early)
		norm := must(G.Sum(must(G.Square(w))))
		op := must(Commit([]Update{{w, Of(w).Div(Const(2))}}))
		var vm G.VM
		switch kind {
		case "whole graph":
			vm = G.NewTapeMachine(g)
		case "subgraph":
			vm = G.NewTapeMachine(g.SubgraphRoots(norm, op))
		case "machine":
			vm = must(NewMachine(op, norm))
		case "lisp":
			vm = G.NewLispMachine(g, G.ExecuteFwdOnly())
		}
		require.NoError(t, vm.RunAll(), kind)
		require.Equal(t, []float64{20}, floats(norm), kind)
		require.Equal(t, []float64{1, 2, 1}, floats(w, op), kind)
		if kind == "machine" { // the subgraphs contain the Read, too
			require.NotNil(t, early)
		}
	}
}

// A reader that was built after the commit is refused, and nothing happens.
func TestLateReaders(t *testing.T) {
	for name, reader := range map[string]func(*G.Node) *G.Node{
		"square":  func(w *G.Node) *G.Node { return must(G.Sum(must(G.Square(w)))) },
		"reshape": func(w *G.Node) *G.Node { return must(G.Reshape(w, tensor.Shape{2, 1})) },
		"read":    func(w *G.Node) *G.Node { return G.Read(w, new(G.Value)) },
	} {
		g, w, loss, op := halve(t)
		must(NewMachine(op, loss))
		late := reader(w)
		vm := G.NewTapeMachine(g)
		require.ErrorContains(t, vm.RunAll(), "built after the optim op", name)
		require.Equal(t, []float64{2, 4}, floats(w), name)
		if name == "read" {
			continue // it is part of every subgraph, as Gorgonia adds it
		}
		_, err := NewMachine(op, late)
		require.ErrorContains(t, err, "built after the optim op", name)
		run(t, must(NewMachine(op, loss)))
		require.Equal(t, []float64{1, 2}, floats(w), name)
	}
	// through a view that is older than the commit
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", []int{2}, 2, 4)
	view := must(G.Reshape(must(G.Reshape(w, tensor.Shape{2, 1})), tensor.Shape{1, 2}))
	op := must(Commit([]Update{{w, Of(w).Div(Const(2))}}))
	_, err := NewMachine(op, must(G.Sum(view)))
	require.ErrorContains(t, err, "built after the optim op")
	// what does not read a target may be built later
	x := input(g, tensor.Float64, "x", []int{2}, 5, 6)
	run(t, must(NewMachine(op, must(G.Sum(x)))))
}

// An operation that fails in the middle of a run leaves everything as it was, and the next run is a whole one.
func TestFailingRun(t *testing.T) {
	for _, kind := range []string{"whole graph", "machine"} {
		g := G.NewGraph()
		w := input(g, tensor.Float64, "w", []int{2}, 2, 4)
		o := &hook{id: 1}
		loss := must(G.ApplyOp(o, must(G.Sum(w))))
		op := must(Commit([]Update{{w, Of(w).Div(Const(2))}}, After(loss)))
		var vm G.VM = must(NewMachine(op))
		if kind == "whole graph" {
			vm = G.NewTapeMachine(g)
		}
		o.fail = errHook
		require.ErrorContains(t, vm.RunAll(), "boom")
		require.Equal(t, []float64{2, 4}, floats(w))
		o.fail, o.runs = nil, 0
		if kind == "whole graph" {
			vm.Reset()
		}
		require.NoError(t, vm.RunAll())
		require.Equal(t, 1, o.runs)
		require.Equal(t, []float64{1, 2, 1}, floats(w, op))
	}
}

// Each RunAll of NewMachine's machine is a step, with or without Reset.
func TestRunWithoutReset(t *testing.T) {
	_, w, loss, op := halve(t)
	vm := must(NewMachine(op, loss))
	for range 3 {
		require.NoError(t, vm.RunAll())
	}
	require.Equal(t, []float64{.25, .5, 1.5, 3}, floats(w, loss, op))
}

// Two machines on one graph: evaluation does not train.
func TestEvaluation(t *testing.T) {
	g, w, loss, op := halve(t)
	train, eval := must(NewMachine(op)), must(NewEvalMachine(loss))
	run(t, eval)
	require.Equal(t, []float64{2, 4, 6}, floats(w, loss))
	run(t, train)
	run(t, eval)
	require.Equal(t, []float64{1, 2, 3, 1}, floats(w, loss, op))
	_, err := NewEvalMachine(op)
	require.ErrorContains(t, err, "would run an optim op")
	_, err = NewEvalMachine()
	require.Error(t, err)
	_, err = NewEvalMachine(nil)
	require.Error(t, err)
	whole := G.NewTapeMachine(g)
	wrong := G.NewTapeMachine(g, G.EvalMode())
	require.ErrorContains(t, wrong.RunAll(), "evaluation mode")
	require.Equal(t, []float64{1, 2}, floats(w))
	require.ErrorContains(t, whole.RunAll(), "evaluation mode") // Gorgonia's mode is the graph's
	run(t, train)                                               // but that of our machines is theirs
	require.Equal(t, []float64{.5, 1}, floats(w))
	wrong.Reset()
	require.ErrorContains(t, wrong.RunAll(), "evaluation mode")
}

// The modes of dropout and batch normalisation are right in each machine, and what they were afterwards.
func TestModes(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float64, "x", []int{1, 64}, onesOf(64)...)
	w := input(g, tensor.Float64, "w", []int{1, 64}, onesOf(64)...)
	drop := must(G.Dropout(must(G.HadamardProd(x, w)), .5))
	var out G.Value
	G.Read(drop, &out)
	op := must(Commit([]Update{{w, Of(w)}}, After(drop)))
	train, eval := must(NewMachine(op)), must(NewEvalMachine(drop))
	flag := modeField(drop.Op().(G.TrainModeOp))
	require.NotNil(t, flag)
	for _, before := range []bool{true, false, true} {
		*flag = before
		run(t, train)
		require.Contains(t, valueFloats(out), 0.0)
		require.Equal(t, before, *flag)
		run(t, eval)
		require.Equal(t, onesOf(64), valueFloats(out))
		require.Equal(t, before, *flag)
		must(NewMachine(op))
		require.Equal(t, before, *flag)
	}
}

func onesOf(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// One machine never runs two commits; a superseded commit is inert.
func TestTwoCommits(t *testing.T) {
	g, w, loss, op := halve(t)
	v := input(g, tensor.Float64, "v", []int{2}, 1, 1)
	op2 := must(Commit([]Update{{v, Of(v).Mul(Const(3))}}))
	require.ErrorContains(t, G.NewTapeMachine(g).RunAll(), "two optim ops")
	_, err := NewMachine(op, op2)
	require.ErrorContains(t, err, "two optim ops")
	require.Equal(t, []float64{2, 4, 1, 1}, floats(w, v))
	run(t, must(NewMachine(op)))
	run(t, must(NewMachine(op2)))
	require.Equal(t, []float64{1, 2, 3, 3}, floats(w, v))

	old := must(NewMachine(op))
	require.NoError(t, Supersede(op))
	run(t, G.NewTapeMachine(g.SubgraphRoots(loss, op2)))
	require.Equal(t, []float64{1, 2, 9, 9}, floats(w, v))
	require.ErrorContains(t, old.RunAll(), "superseded")
	_, err = NewMachine(op)
	require.ErrorContains(t, err, "superseded")
	run(t, G.NewTapeMachine(g))
	require.Equal(t, []float64{1, 2, 27, 27}, floats(w, v))
}

func TestMachineRefuses(t *testing.T) {
	_, w, _, op := halve(t)
	g2 := G.NewGraph()
	other := input(g2, tensor.Float64, "other", nil, 1)
	for name, f := range map[string]func() error{
		"nil op":        func() error { _, err := NewMachine(nil); return err },
		"no op":         func() error { _, err := NewMachine(w); return err },
		"nil read":      func() error { _, err := NewMachine(op, nil); return err },
		"other graph":   func() error { _, err := NewMachine(op, other); return err },
		"supersede nil": func() error { return Supersede(nil) },
		"supersede w":   func() error { return Supersede(w) },
	} {
		require.Error(t, f(), name)
	}
}

// A clone of the graph trains its own copies.
func TestClone(t *testing.T) {
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", []int{2}, 2, 4)
	store := NewStore()
	m := must(must(store.Slot("w/m", "w", tensor.Float64, tensor.Shape{2}, 0)).Node(g))
	n := must(must(store.Counter("n")).Node(g))
	must(Commit([]Update{{w, Of(w).Sub(Of(m))}, {m, Of(m).Add(Const(1))}, {n, ScalarOf(n).Add(Const(1))}}, From(store)))
	c := g.Clone().(*G.ExprGraph)
	vm := G.NewTapeMachine(c)
	run(t, vm)
	run(t, vm)
	require.Equal(t, []float64{2, 4, 0, 0, 0}, floats(w, m, n))
	require.Equal(t, []float64{1, 3, 2, 2, 2}, floats(c.ByName("w")[0], c.ByName("w/m")[0], c.ByName("n")[0]))
}

// Our nodes never share a hash with another node, and the prediction that this rests on is right.
func TestHashes(t *testing.T) {
	g := G.NewGraph()
	w := input(g, tensor.Float32, "w", []int{2, 3}, 1, 2, 3, 4, 5, 6)
	s := input(g, tensor.Float64, "s", nil, 2)
	must(Commit([]Update{{w, Of(w).Mul(ScalarOf(s)).Add(Of(w).Square().Mul(Const(.5)))}}, Expanded()))
	must(Commit([]Update{{s, Of(w).Norm()}}, Expanded()))
	seen := map[uint32]bool{}
	for _, n := range g.AllNodes() {
		require.False(t, seen[n.Hashcode()], n.Name())
		seen[n.Hashcode()] = true
		if o, ok := n.Op().(interface{ identityOp() *op }); ok {
			b := o.identityOp()
			require.Equal(t, n.Hashcode(), hashCode(b.out, b.dims, b.identity, children(n)))
		}
	}
	// a name whose hash is taken gets a number
	free := must(newInput(g, tensor.Float64, tensor.ScalarShape(), "free"))
	require.Equal(t, "free", free.Name())
	again := must(newInput(g, tensor.Float64, tensor.ScalarShape(), "free"))
	require.Equal(t, "free#2", again.Name())
}

func (o *op) identityOp() *op { return o }

// Gorgonia panics at tensors without elements, on a goroutine of its machine; our operations do not.
func TestNoElements(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		g := G.NewGraph()
		w := input(g, dt, "w", []int{2}, 2, 4)
		x := G.NewMatrix(g, dt, G.WithShape(0, 2), G.WithName("x"))
		require.NoError(t, G.Let(x, tensor.New(tensor.Of(dt), tensor.WithShape(0, 2))))
		for _, n := range []*G.Node{G.Must(G.Mul(x, w)), G.Must(G.Sum(x, 0)), G.Must(G.Tanh(x))} {
			for range 2 {
				_, err := NewEvalMachine(n)
				require.ErrorContains(t, err, "no elements")
			}
			_, err := NewMachine(must(Commit([]Update{{w, Of(w)}})), n)
			require.ErrorContains(t, err, `"x" has shape (0, 2)`)
		}
		run(t, must(NewMachine(must(Commit([]Update{{w, Of(w).Sub(Of(x).Sum())}})))))
		require.Equal(t, []float64{2, 4}, floats(w))
	}
}
