package solvers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

// linear is a schedule that gives from + by·step.
func linear(from, by float64) schedule.Schedule {
	return schedule.Func(func(step Expr) Expr { return graphops.Const(from).Add(step.Mul(graphops.Const(by))) })
}

// runOnce makes one run of a machine.
func runOnce(t *testing.T, vm G.VM) {
	t.Helper()
	require.NoError(t, vm.RunAll())
	vm.Reset()
}

// step makes a Step of one float64 parameter called w, with gradient 1.
func step(s *Solver, w *G.F64) error {
	return s.Step([]G.ValueGrad{&pair{"w", w, G.NewF64(1)}})
}

// w falls by the scheduled rate, run by run, whoever makes the run; Get and HyperNode say by what.
func TestSchedule(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		s := New(&SGD{LearningRate: 7}, opts...)
		require.NoError(t, s.Schedule("lr", schedule.NewIntervalDecay(1, 3, .5)))
		graph := func() (*G.Node, *G.Node, G.VM) {
			g := G.NewGraph()
			w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(0.0))
			x := G.NewScalar(g, G.Float64, G.WithName("x"), G.WithValue(1.0))
			rate := must(s.HyperNode("learning_rate", g))
			return w, rate, must(graphops.NewMachine(must(s.Minimize(must(G.Mul(w, x)), w)), rate))
		}
		w1, rate1, vm1 := graph()
		w2, rate2, vm2 := graph() // shares the step
		w3 := G.NewF64(0)
		want := []float64{0, 0, 0}
		for i := range 12 {
			rate := math.Pow(.5, float64(i%3))
			require.Equal(t, i, must(s.GlobalStep()))
			require.Equal(t, rate, must(s.Get("learning_rate")))
			switch i % 4 {
			case 0, 1:
				want[0] -= rate
				runOnce(t, vm1)
				require.Equal(t, []float64{rate}, floats(rate1.Value()))
			case 2:
				want[1] -= rate
				runOnce(t, vm2)
				require.Equal(t, []float64{rate}, floats(rate2.Value()))
			case 3:
				want[2] -= rate
				require.NoError(t, step(s, w3))
			}
			require.Equal(t, want, floats(w1.Value(), w2.Value(), w3))
		}
		require.NoError(t, s.Reset())
		require.Zero(t, must(s.GlobalStep()))
		require.Equal(t, 1., must(s.Get("learning_rate")))
		require.NoError(t, s.Store().Lookup(globalStep).Set(2)) // as one does who restores a run
		require.Equal(t, .25, must(s.Get("learning_rate")))
		runOnce(t, vm1)
		require.Equal(t, want[0]-.25, floats(w1.Value())[0])
		require.Equal(t, 3, must(s.GlobalStep()))
	}
}

// The global step counts all runs, with or without a schedule; a rule's own count only those of the rule.
func TestGlobalStep(t *testing.T) {
	s := NewSGD()
	require.Zero(t, must(s.GlobalStep()))
	w := G.NewF64(0)
	for range 5 {
		require.NoError(t, step(s, w))
	}
	require.Equal(t, 5, must(s.GlobalStep()))
	require.NoError(t, s.Schedule("learning_rate", linear(1, 1)))
	require.Equal(t, 6., must(s.Get("learning_rate")))
	require.Equal(t, graphops.Counter, s.Store().Lookup("global_step").Kind())
	*w = 0
	require.NoError(t, step(s, w))
	require.Equal(t, G.F64(-6), *w)

	require.Error(t, s.Step([]G.ValueGrad{&pair{"w", w, nil}})) // a run that fails is none
	require.Equal(t, 6, must(s.GlobalStep()))

	bad := New(&SGD{LearningRate: -1})
	_, err := bad.GlobalStep()
	require.Error(t, err)
	require.Error(t, bad.Schedule("learning_rate", linear(1, 0)))
}

func TestScheduleRefuses(t *testing.T) {
	g := G.NewGraph()
	lr := number(g, "rate", .1)
	s := NewAdam()
	require.ErrorContains(t, s.Schedule("learning_rat", linear(1, 0)), `did you mean "adam/learning_rate"?`)
	require.ErrorContains(t, s.Schedule("beta1", linear(1, 0)), "adam/beta1 is 1")
	require.ErrorContains(t, s.Schedule("learning_rate", schedule.NewNoam(0, 1)), `option "d_model" is 0`)
	require.ErrorContains(t, s.Schedule("learning_rate", schedule.Func(nil)), "adam/learning_rate: ")
	require.ErrorContains(t, s.Schedule("learning_rate", linear(math.NaN(), 0)), "is NaN")
	require.Empty(t, s.Store().States()) // nothing has happened
	require.NoError(t, s.Schedule("learning_rate", nil))

	require.NoError(t, s.Bind("beta1", lr))
	require.ErrorContains(t, s.Schedule("beta1", linear(.5, 0)), `adam/beta1 is bound to the node "rate"`)
	require.NoError(t, s.Schedule("learning_rate", linear(1, 1)))
	require.ErrorContains(t, s.Bind("learning_rate", lr), "follows a schedule")
	require.ErrorContains(t, s.Set("learning_rate", 1), `adam/learning_rate follows a schedule: remove that first, with Schedule("adam/learning_rate", nil)`)
	require.NoError(t, s.Set("beta2", .5))

	require.ErrorContains(t, Chain(NewClipByGlobalNorm(1), s).Err(), "adam/learning_rate would be lost")
	inner := NewSGD()
	outer := Chain(NewClipByGlobalNorm(1), inner)
	require.NoError(t, outer.Schedule("sgd/learning_rate", linear(1, 1)))
	require.NoError(t, step(outer, G.NewF64(0)))
	require.Equal(t, 2., must(outer.Get("learning_rate")))
	require.Equal(t, .01, must(inner.Get("learning_rate")))

	a := NewAdagrad() // its initial value is read once
	require.NoError(t, a.Schedule("initial_accumulator_value", linear(1, 0)))
	require.ErrorContains(t, step(a, G.NewF64(0)), "does not read it while it runs")

	moody := 0 // gives another expression, or none, when it likes
	b := NewSGD()
	require.NoError(t, b.Schedule("learning_rate", schedule.Func(func(step Expr) Expr {
		if moody++; moody > 1 {
			panic("ouch")
		}
		return step
	})))
	require.ErrorContains(t, step(b, G.NewF64(0)), "ouch")
	_, err := b.HyperNode("learning_rate", g)
	require.ErrorContains(t, err, "ouch")
}

// A value that the hyperparameter may not have is an error of the run that would use it, and the run changes nothing.
func TestScheduleOutOfRange(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		g := G.NewGraph()
		w := vector(g, "w", 1, 2)
		s := New(&Momentum{LearningRate: .1}, opts...)
		require.NoError(t, s.Schedule("momentum", linear(.5, -.25)))
		vm := must(graphops.NewMachine(must(s.Minimize(squares(w), w))))
		for range 3 {
			runOnce(t, vm)
		}
		before := append(floats(w.Value()), floats(s.Slot(w, "momentum").Value())...)
		want := "the schedule at step 3: solvers: momentum/momentum is -0.25; it must be in [0"
		require.ErrorContains(t, vm.RunAll(), want)
		vm.Reset()
		p := &pair{"w", random(tensor.Float64, 1, 2), random(tensor.Float64, 2, 2)}
		old := floats(p.value, p.grad)
		require.ErrorContains(t, s.Step([]G.ValueGrad{p}), want)
		require.Equal(t, old, floats(p.value, p.grad))
		require.Equal(t, before, append(floats(w.Value()), floats(s.Slot(w, "momentum").Value())...))
		require.Equal(t, 3, must(s.GlobalStep()))
		require.ErrorContains(t, s.Store().Lookup(globalStep).Set(4), "the schedule at step 4")
		require.NoError(t, s.Store().Lookup(globalStep).Set(2))
		runOnce(t, vm)
		require.Equal(t, -.25, must(s.Get("momentum")))
	}
}

// Schedules come, change and go; optim ops that were built before fail, and change nothing, until they are built anew.
func TestChangedSchedules(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		g := G.NewGraph()
		w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(0.0))
		loss := must(G.Mul(w, G.NewScalar(g, G.Float64, G.WithName("x"), G.WithValue(1.0))))
		s := New(&SGD{LearningRate: 8}, opts...)
		machine := func() G.VM { return must(graphops.NewMachine(must(s.Minimize(loss, w)))) }
		v, want := G.NewF64(0), 0.
		train := func(vm G.VM, rates ...float64) {
			t.Helper()
			for i, rate := range rates {
				if i%2 == 0 {
					runOnce(t, vm)
				} else {
					require.NoError(t, step(s, v))
				}
				want -= rate
				require.Equal(t, want, floats(w.Value())[0]+float64(*v))
			}
		}
		fails := func(vm G.VM) {
			t.Helper()
			require.ErrorContains(t, vm.RunAll(), "the schedule of sgd/learning_rate was changed since this optim op was built: call Minimize again")
			vm.Reset()
			require.Equal(t, want, floats(w.Value())[0]+float64(*v))
		}
		vm1 := machine()
		train(vm1, 8, 8)
		require.NoError(t, s.Schedule("learning_rate", linear(0, 1)))
		fails(vm1)
		vm2 := machine()
		train(vm2, 2, 3, 4)
		require.NoError(t, s.Schedule("learning_rate", linear(0, 2)))
		fails(vm1)
		fails(vm2)
		vm3 := machine()
		train(vm3, 10, 12)
		require.NoError(t, s.Schedule("learning_rate", nil))
		require.NoError(t, s.Schedule("learning_rate", nil)) // there is none now, and nothing changes
		fails(vm3)
		require.Equal(t, 8., must(s.Get("learning_rate")))
		vm4 := machine()
		train(vm4, 8, 8)
		require.NoError(t, s.Set("learning_rate", 4))
		train(vm4, 4, 4)
		require.Equal(t, 11, must(s.GlobalStep()))
		require.Equal(t, 1, count(s.Store().States(), globalStep))
	}
}

func count(states []*graphops.State, name string) (n int) {
	for _, st := range states {
		if st.Name() == name {
			n++
		}
	}
	return n
}

// A rule that leaves out what is 0 does not leave out what follows a schedule.
func TestScheduleFromZero(t *testing.T) {
	s := NewSGDW(func(r *SGDW) { r.LearningRate = 0 })
	require.NoError(t, s.Schedule("weight_decay", linear(0, .5)))
	w := G.NewF64(1)
	for _, want := range []float64{1, .5, 0} {
		require.NoError(t, step(s, w))
		require.Equal(t, G.F64(want), *w)
	}
}

func TestHyperNode(t *testing.T) {
	g, other := G.NewGraph(), G.NewGraph()
	w := vector(g, "w", 1, 2)
	lr := number(g, "rate", .1)
	s := NewAdam()
	require.NoError(t, s.Bind("epsilon", lr))
	require.NoError(t, s.Schedule("learning_rate", schedule.NewConstant(.5)))
	require.NoError(t, s.Schedule("beta1", linear(.5, .125)))
	require.Same(t, lr, must(s.HyperNode("eps", g)))
	for name, want := range map[string]string{"epsilon": "another graph", "beta": "no hyperparameter", "beta2": "call Minimize first"} {
		_, err := s.HyperNode(name, other)
		require.ErrorContains(t, err, want)
	}
	_, err := s.HyperNode("learning_rate", nil)
	require.ErrorContains(t, err, "graph is nil")
	rate, beta := must(s.HyperNode("learning_rate", g)), must(s.HyperNode("beta1", g))
	vm := must(graphops.NewMachine(must(s.Minimize(squares(w), w)), rate, beta))
	runOnce(t, vm)
	runOnce(t, vm)
	require.Equal(t, []float64{.5, .625, .999}, floats(rate.Value(), beta.Value(), must(s.HyperNode("beta2", g)).Value()))

	late := must(s.HyperNode("beta1", g)) // after Minimize
	op := must(s.Minimize(squares(w), w))
	require.NotNil(t, must(graphops.NewMachine(op, late)))
}
