package graphops

import (
	"runtime"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Several graphs show one state, under its name, and a taken name gets a number.
func TestStateNodes(t *testing.T) {
	s := NewStore()
	m := must(s.Slot("w/adam/m", "w", tensor.Float32, tensor.Shape{2}, 0))
	step := must(s.Counter("adam/step"))
	lr := .1
	hyper := must(s.Hyper("adam/learning_rate", &lr, nil))
	require.Equal(t, []*State{m, step, hyper}, s.States())
	require.Same(t, m, must(s.Slot("w/adam/m", "w", tensor.Float32, tensor.Shape{2}, 0)))
	require.Same(t, m, s.Lookup("w/adam/m"))
	require.Equal(t, []Kind{Slot, Counter, Hyper}, []Kind{m.Kind(), step.Kind(), hyper.Kind()})
	g1, g2 := G.NewGraph(), G.NewGraph()
	foreign := input(g2, tensor.Float32, "w/adam/m", []int{2}, 9, 9)
	n1, n2 := must(m.Node(g1)), must(m.Node(g2))
	require.Same(t, n1, must(m.Node(g1)))
	require.Equal(t, []string{"w/adam/m", "w/adam/m#2"}, []string{n1.Name(), n2.Name()})
	op1 := must(Commit([]Update{{n1, Of(n1).Add(Const(1))}}, From(s)))
	op2 := must(Commit([]Update{{n2, Of(n2).Mul(Const(3))}}, From(s)))
	run(t, must(NewMachine(op1)))
	run(t, must(NewMachine(op2)))
	require.Equal(t, []float64{3, 3}, floats(n1))
	require.Equal(t, []float64{9, 9}, floats(foreign))
	require.NoError(t, step.Set(4))
	require.NoError(t, s.Reset())
	require.Equal(t, []float64{0, 0}, floats(n2))
	require.Equal(t, []float64{0}, floats(must(step.Node(g1))))
	require.Equal(t, .1, lr)
}

func TestStateRefuses(t *testing.T) {
	s := NewStore()
	must(s.Slot("m", "w", tensor.Float32, tensor.Shape{2}, 0))
	c := must(s.Counter("c"))
	x, y := 1.0, 1.0
	h := must(s.Hyper("h", &x, func(v float64) error {
		if v > 1 {
			return errors.New("too large")
		}
		return nil
	}))
	for name, f := range map[string]func() error{
		"integer slot":   func() error { _, err := s.Slot("i", "w", tensor.Int, tensor.Shape{2}, 0); return err },
		"other shape":    func() error { _, err := s.Slot("m", "w", tensor.Float32, tensor.Shape{3}, 0); return err },
		"other dtype":    func() error { _, err := s.Slot("m", "w", tensor.Float64, tensor.Shape{2}, 0); return err },
		"other kind":     func() error { _, err := s.Slot("c", "w", tensor.Float64, tensor.ScalarShape(), 0); return err },
		"counter":        func() error { _, err := s.Counter("m"); return err },
		"other field":    func() error { _, err := s.Hyper("h", &y, nil); return err },
		"hyper kind":     func() error { _, err := s.Hyper("c", &y, nil); return err },
		"range":          func() error { return h.Set(2) },
		"no scalar":      func() error { return s.Lookup("m").Set(1) },
		"half a counter": func() error { return c.Set(.5) },
	} {
		require.Error(t, f(), name)
	}
	require.Len(t, s.States(), 3)
	require.Equal(t, 1.0, x)
}

// gorgonia.Let on a state's node is as good as Set, on every graph.
func TestLet(t *testing.T) {
	s := NewStore()
	lr := .5
	h := must(s.Hyper("lr", &lr, func(v float64) error {
		if v > 1 {
			return errors.New("too large")
		}
		return nil
	}))
	m := must(s.Slot("m", "w", tensor.Float64, tensor.Shape{2}, 0))
	g1, g2 := G.NewGraph(), G.NewGraph()
	var ops, lrs, ms G.Nodes
	for _, g := range []*G.ExprGraph{g1, g2} {
		l, n := must(h.Node(g)), must(m.Node(g))
		lrs, ms = append(lrs, l), append(ms, n)
		ops = append(ops, must(Commit([]Update{{n, Of(n).Add(ScalarOf(l))}}, From(s))))
	}
	vm1, vm2 := must(NewMachine(ops[0])), must(NewMachine(ops[1]))
	run(t, vm1)
	require.Equal(t, []float64{.5, .5}, floats(ms[1]))
	require.NoError(t, G.Let(lrs[1], .25))
	run(t, vm1)
	run(t, vm2)
	require.Equal(t, []float64{1, 1}, floats(ms[0]))
	require.Equal(t, .25, lr)
	require.NoError(t, G.Let(ms[0], dense(tensor.Float64, []int{2}, 10, 20)))
	run(t, vm2)
	require.Equal(t, []float64{10.25, 20.25}, floats(ms[0]))
	require.Equal(t, []float64{10.25, 20.25}, valueFloats(must(m.Value())))

	require.NoError(t, G.Let(lrs[0], 3.0))
	require.ErrorContains(t, vm1.RunAll(), "too large")
	require.NoError(t, h.Set(1))
	run(t, vm1)
	require.NoError(t, G.Let(lrs[0], float32(.5)))
	require.ErrorContains(t, vm1.RunAll(), "float32")
	require.ErrorContains(t, vm2.RunAll(), "float32")
	require.NoError(t, h.Set(.5))
	run(t, vm1)
	require.Equal(t, []float64{11.75, 21.75}, floats(ms[0]))
}

// A store does not keep graphs alive.
func TestStoreForgetsGraphs(t *testing.T) {
	s := NewStore()
	m := must(s.Slot("m", "w", tensor.Float64, tensor.Shape{2}, 0))
	freed := make(chan bool, 1)
	func() {
		g := G.NewGraph()
		runtime.AddCleanup(g, func(c chan bool) { c <- true }, freed)
		must(m.Node(g))
	}()
	for range 5 {
		runtime.GC()
	}
	require.True(t, <-freed)
	must(m.Node(G.NewGraph()))
	require.Len(t, s.nodes, 1)
}

// A renewed counter goes on where the old one was; what was compiled with that fails.
func TestRenewCounter(t *testing.T) {
	s, g := NewStore(), G.NewGraph()
	stale := errors.New("out of date")
	count := func() *Plan {
		n, err := must(s.Counter("n")).Node(g)
		require.NoError(t, err)
		return must(Compile([]Update{{n, ScalarOf(n).Add(Const(1))}}, From(s)))
	}
	require.NoError(t, s.Renew("n", stale, nil))
	must(s.Slot("v", "", tensor.Float64, tensor.ScalarShape(), 0))
	old := count()
	require.NoError(t, old.Run([]G.Value{nil}))
	before := s.Lookup("n")
	require.NoError(t, s.Renew("n", stale, func(v float64) error {
		if v > 2 {
			return errors.Errorf("%v is too many", v)
		}
		return nil
	}))
	require.ErrorIs(t, old.Run([]G.Value{nil}), stale)
	require.Equal(t, 1., must(ScalarValue(must(before.Value()))))
	now := count()
	require.NoError(t, now.Run([]G.Value{nil}))
	require.Equal(t, 2., must(ScalarValue(must(s.Lookup("n").Value()))))
	require.NoError(t, now.Run([]G.Value{nil}))
	require.ErrorContains(t, now.Run([]G.Value{nil}), "3 is too many")
	require.ErrorContains(t, s.Lookup("n").Set(4), "4 is too many")
	require.NoError(t, s.Reset())
	require.NoError(t, now.Run([]G.Value{nil}))
	require.Equal(t, []*State{s.Lookup("n"), s.Lookup("v")}, s.States())
	require.ErrorContains(t, s.Renew("v", stale, nil), "not a counter")
}

// A locked store keeps commits from running, and they change nothing.
func TestLock(t *testing.T) {
	g, s := G.NewGraph(), NewStore()
	n := must(must(s.Slot("x", "", tensor.Float64, nil, 3)).Node(g))
	vm := must(NewMachine(must(Commit([]Update{{n, Of(n).Add(Const(1))}}, From(s)))))
	require.NoError(t, vm.RunAll())
	require.NoError(t, s.Locked())
	s.Lock(errors.New("busy"))
	require.EqualError(t, s.Locked(), "busy")
	require.ErrorContains(t, vm.RunAll(), "busy")
	require.Equal(t, 4.0, n.Value().Data())
	s.Lock(nil)
	require.NoError(t, vm.RunAll())
	require.Equal(t, 5.0, n.Value().Data())
}
