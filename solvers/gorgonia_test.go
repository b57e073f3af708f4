package solvers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Where Gorgonia's solvers are right, ours give their numbers, side by side on a model.
func TestGorgoniaParity(t *testing.T) {
	for name, c := range map[string]struct {
		theirs func() G.Solver
		ours   func() *Solver
		bits64 bool // float64 tensors only
	}{
		"vanilla":          {func() G.Solver { return G.NewVanillaSolver(G.WithLearnRate(.1)) }, func() *Solver { return NewGorgoniaVanilla(func(_ *Regularize, s *SGD) { s.LearningRate = .1 }) }, false},
		"vanilla defaults": {func() G.Solver { return G.NewVanillaSolver() }, func() *Solver { return NewGorgoniaVanilla() }, false},
		"vanilla, regularised": {func() G.Solver {
			return G.NewVanillaSolver(G.WithLearnRate(.1), G.WithL1Reg(.01), G.WithL2Reg(.02), G.WithBatchSize(4), G.WithClip(.05))
		}, func() *Solver {
			return NewGorgoniaVanilla(func(r *Regularize, s *SGD) { s.LearningRate, *r = .1, Regularize{.01, .02, 4, .05} })
		}, false},
		"momentum": {func() G.Solver { return G.NewMomentum(G.WithLearnRate(.05), G.WithMomentum(.8)) }, func() *Solver {
			return NewGorgoniaMomentum(func(_ *Regularize, m *Momentum) { m.LearningRate, m.Momentum = .05, .8 })
		}, false},
		"momentum, batch": {func() G.Solver { return G.NewMomentum(G.WithLearnRate(.05), G.WithBatchSize(8), G.WithClip(.01)) }, func() *Solver {
			return NewGorgoniaMomentum(func(r *Regularize, m *Momentum) { m.LearningRate, r.BatchSize, r.Clip = .05, 8, .01 })
		}, false},
		"rmsprop": {func() G.Solver { return G.NewRMSPropSolver(G.WithLearnRate(.01), G.WithRho(.9)) }, func() *Solver {
			return NewGorgoniaRMSProp(func(_ *Regularize, r *RMSprop) { r.LearningRate, r.Rho = .01, .9 })
		}, false},
		"adagrad": {func() G.Solver { return G.NewAdaGradSolver() }, func() *Solver { return NewGorgoniaAdaGrad() }, false},
		"adam": {func() G.Solver { return G.NewAdamSolver(G.WithLearnRate(.02), G.WithBeta1(.8), G.WithEps(1e-6)) }, func() *Solver {
			return NewGorgoniaAdam(func(_ *Regularize, a *Adam) { a.LearningRate, a.Beta1, a.Epsilon = .02, .8, 1e-6 })
		}, false},
		"adam, regularised": {func() G.Solver {
			return G.NewAdamSolver(G.WithL1Reg(.01), G.WithL2Reg(.02), G.WithBatchSize(4), G.WithClip(.05))
		}, func() *Solver {
			return NewGorgoniaAdam(func(r *Regularize, _ *Adam) { *r = Regularize{.01, .02, 4, .05} })
		}, false},
		"barzilai-borwein": {func() G.Solver { return G.NewBarzilaiBorweinSolver(G.WithLearnRate(.1)) }, func() *Solver {
			return NewGorgoniaBarzilaiBorwein(func(_ *Regularize, b *BarzilaiBorwein) { b.LearningRate = .1 })
		}, true},
		"barzilai-borwein, clipped": {func() G.Solver { return G.NewBarzilaiBorweinSolver(G.WithLearnRate(.1), G.WithClip(.5)) }, func() *Solver {
			return NewGorgoniaBarzilaiBorwein(func(_ *Regularize, b *BarzilaiBorwein) { b.LearningRate, b.Clip = .1, .5 })
		}, true},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			if c.bits64 && dt == tensor.Float32 {
				continue
			}
			tol := 1e-12
			if dt == tensor.Float32 {
				tol = 1e-5
			}
			theirs, ours := newModel(dt), newModel(dt)
			for _, run := range []struct {
				m *model
				s G.Solver
			}{{theirs, c.theirs()}, {ours, c.ours()}} {
				vars := run.m.vars[:3] // their scalars are wrong or refused
				must(G.Grad(run.m.loss, vars...))
				vm := G.NewTapeMachine(run.m.g, G.BindDualValues(vars...))
				for range 20 {
					require.NoError(t, vm.RunAll())
					require.NoError(t, run.s.Step(G.NodesToValueGrads(vars)))
					vm.Reset()
				}
			}
			require.InDeltaSlice(t, floats(values(theirs.vars)...), floats(values(ours.vars)...), tol, "%s %v", name, dt)
		}
	}
}

// Where they are wrong, ours do what their documentation says.
func TestGorgoniaRepaired(t *testing.T) {
	scalar := func(s *Solver, grads ...float64) []float64 {
		w := &pair{"w", G.NewF64(1), nil}
		var out []float64
		for _, g := range grads {
			w.grad = G.NewF64(g)
			require.NoError(t, s.Step([]G.ValueGrad{w}))
			out = append(out, floats(w.value)...)
		}
		return out
	}
	// the velocity of scalars is kept
	require.InDeltaSlice(t, []float64{.9, .71, .439}, scalar(NewGorgoniaMomentum(func(_ *Regularize, m *Momentum) { m.LearningRate = .1 }), 1, 1, 1), 1e-15)
	// AdaGrad heeds its learning rate, also for scalars
	require.InDeltaSlice(t, []float64{.5, .1464466094}, scalar(NewGorgoniaAdaGrad(func(_ *Regularize, a *Adagrad) { a.LearningRate, a.Epsilon = .5, 1e-20 }), 1, 1), 1e-9)
	// AdamW changes weights
	require.InDeltaSlice(t, []float64{.99899}, scalar(NewGorgoniaAdamW(), 1), 1e-7)
	// the L2 term of Momentum is of the weight, and that of RMSProp is multiplied by the rate
	require.InDeltaSlice(t, []float64{.95}, scalar(NewGorgoniaMomentum(func(r *Regularize, m *Momentum) { m.LearningRate, r.L2 = .1, .5 }), 0), 1e-15)
	rms := scalar(NewGorgoniaRMSProp(func(r *Regularize, _ *RMSprop) { r.L2 = .1 }), 0)[0]
	require.InDelta(t, 1-.001*.1/math.Sqrt(1e-5+1e-8), rms, 1e-12)
	// Barzilai-Borwein on float32 scalars; equal gradients keep the rate
	w := &pair{"w", G.NewF32(1), nil}
	bb := NewGorgoniaBarzilaiBorwein(func(_ *Regularize, b *BarzilaiBorwein) { b.LearningRate = .25 })
	for _, want := range []float64{.5, 0} { // of w²: the second step is exact
		w.grad = G.NewF32(2 * float32(floats(w.value)[0]))
		require.NoError(t, bb.Step([]G.ValueGrad{w}))
		require.InDelta(t, want, floats(w.value)[0], 1e-7)
	}
	require.InDeltaSlice(t, []float64{.75, .5}, scalar(NewBarzilaiBorwein(func(b *BarzilaiBorwein) { b.LearningRate = .25 }), 1, 1), 1e-15)
}
