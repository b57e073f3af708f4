package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/graphops"
)

// The tables of RETURNN's specification: gradients 1, 2, … and the accumulator and parameter after each run.
func TestAccumulate(t *testing.T) {
	for _, c := range []struct {
		name     string
		solver   func() *Solver
		grads    []float64
		sum, w   []float64
		accurate float64
	}{
		{"sgd, n = 3", func() *Solver { return Accumulate(3, NewSGD(func(s *SGD) { s.LearningRate = .1 })) },
			[]float64{1, 2, 3, 4, 5, 6, 7}, []float64{1, 3, 6, 4, 9, 15, 7}, []float64{0, 0, -.6, -.6, -.6, -2.1, -2.1}, 1e-12},
		{"adam, n = 2", func() *Solver {
			return Accumulate(2, &Adam{LearningRate: .1, Beta1: .9, Beta2: .999, Epsilon: 1e-8, EpsilonHat: true})
		}, []float64{1, -3, 2, 2}, []float64{1, -2, 2, 4}, []float64{0, 0.0999999842, 0.0999999842, 0.0633896341}, 1e-8},
		{"mean, n = 2", func() *Solver {
			return AccumulateMean(2, NewSGD(func(s *SGD) { s.LearningRate = 1 }))
		}, []float64{1, 2, 3, 5}, []float64{1, 3, 3, 8}, []float64{0, -1.5, -1.5, -5.5}, 1e-12},
		{"n = 1", func() *Solver { return Accumulate(1, NewSGD(func(s *SGD) { s.LearningRate = 1 })) },
			[]float64{1, 2}, []float64{1, 2}, []float64{-1, -3}, 0},
	} {
		for _, inGraph := range []bool{true, false} {
			g := G.NewGraph()
			w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(0.0))
			x := G.NewScalar(g, G.Float64, G.WithName("x"), G.WithValue(0.0))
			loss := G.Must(G.Mul(w, x))
			s := c.solver()
			var vm G.VM
			if inGraph {
				op, err := s.Minimize(loss, w)
				require.NoError(t, err)
				vm, err = graphops.NewMachine(op)
				require.NoError(t, err)
			} else {
				_, err := G.Grad(loss, w)
				require.NoError(t, err)
				vm = G.NewTapeMachine(g, G.BindDualValues(w))
			}
			for i, x1 := range c.grads {
				require.NoError(t, G.Let(x, x1))
				require.NoError(t, vm.RunAll())
				if !inGraph {
					require.NoError(t, s.Step([]G.ValueGrad{w}))
				}
				vm.Reset()
				require.InDelta(t, c.w[i], w.Value().Data().(float64), c.accurate, "%s: run %d", c.name, i)
				require.InDelta(t, c.sum[i], s.Slot(w, "sum").Value().Data().(float64), c.accurate, "%s: run %d", c.name, i)
			}
			step, err := s.GlobalStep()
			require.NoError(t, err)
			require.Equal(t, len(c.grads), step)
		}
	}
}

// A run that only accumulates leaves the optimizer's counters alone, also where training begins in the middle of a group.
func TestAccumulateAfterReset(t *testing.T) {
	g := G.NewGraph()
	w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(0.0))
	s := Accumulate(3, NewAdam())
	op, err := s.Minimize(G.Must(G.Square(w)), w)
	require.NoError(t, err)
	vm, err := graphops.NewMachine(op)
	require.NoError(t, err)
	count := func(name string) any {
		v, err := s.Store().Lookup(name).Value()
		require.NoError(t, err)
		return v.Data()
	}
	for range 4 {
		require.NoError(t, vm.RunAll())
	}
	require.Equal(t, int64(1), count("adam/step"))
	require.NoError(t, s.Reset())
	require.NoError(t, s.Store().Lookup("global_step").Set(4))
	require.NoError(t, vm.RunAll())
	require.Equal(t, int64(0), count("adam/step"))
	require.NoError(t, vm.RunAll())
	require.Equal(t, int64(1), count("adam/step"))

	require.ErrorContains(t, Accumulate(0, NewAdam()).Err(), "n is 0; it must be 1 or more")
	require.ErrorContains(t, Accumulate(2, nil).Err(), "the rule is nil")
}
