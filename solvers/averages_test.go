package solvers

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// stateBits are all states of a solver.
func stateBits(s *Solver) (all []float64) {
	for _, st := range s.Store().States() {
		all = append(all, floats(must(st.Value()))...)
	}
	return all
}

// While averages are in, training fails in every host and changes nothing; afterwards all is as if they had never been, bit for bit.
func TestUseAverages(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for name, solver := range map[string]func() *Solver{
			"ema":    func() *Solver { return ema1(NewAdam(), .7, 0) },
			"swa":    func() *Solver { return swa1(NewAdam(), 1, 2) },
			"moving": func() *Solver { return moving(NewAdam()) },
			"nested": func() *Solver {
				return Chain(NewClipByGlobalNorm(1), Lookahead(OptimizerMap(moving(NewSGD()), Route{".*", ema1(NewAdam(), .7, 0)})))
			},
		} {
			m, s := newModel(dt), solver()
			op := must(s.Minimize(m.loss, m.vars...))
			vm := must(graphops.NewMachine(op, m.loss))
			eval := must(graphops.NewEvalMachine(m.loss))
			for range 5 {
				require.NoError(t, vm.RunAll())
			}
			weights, states := floats(values(m.vars)...), stateBits(s)
			require.NoError(t, eval.RunAll())
			loss := floats(m.loss.Value())
			var averages []float64
			for _, v := range m.vars {
				averages = append(averages, floats(must(s.averageOf(v.Name())))...)
			}

			restore, err := s.UseAverages(G.NodesToValueGrads(m.vars)...)
			require.NoError(t, err, name)
			require.Equal(t, averages, floats(values(m.vars)...), name)
			require.NotEqual(t, weights, averages, name)
			require.NoError(t, eval.RunAll())
			require.NotEqual(t, loss, floats(m.loss.Value()), name)

			const why = "the parameters hold averages of the weights"
			require.ErrorContains(t, s.Store().Locked(), why)
			require.ErrorContains(t, vm.RunAll(), why)
			m2 := newModel(dt)
			must(G.Grad(m2.loss, m2.vars...))
			duals := G.NewTapeMachine(m2.g, G.BindDualValues(m2.vars...))
			require.NoError(t, duals.RunAll())
			require.ErrorContains(t, s.Step(G.NodesToValueGrads(m2.vars)), why)
			require.Equal(t, floats(values(newModel(dt).vars)...), floats(values(m2.vars)...))
			require.ErrorContains(t, must(graphops.NewMachine(must(s.Minimize(m2.loss, m2.vars...)))).RunAll(), why)
			_, err = s.UseAverages(m.vars[0])
			require.ErrorContains(t, err, why)
			require.ErrorContains(t, s.AssignAverages(m.vars[0]), why)
			require.Equal(t, averages, floats(values(m.vars)...), name)

			require.NoError(t, restore(), name)
			require.Zero(t, differing(weights, floats(values(m.vars)...)), name)
			require.Zero(t, differing(states, stateBits(s)), name)
			require.NoError(t, s.Store().Locked())
			require.NoError(t, vm.RunAll())
			after := floats(values(m.vars)...)
			require.NoError(t, restore(), "again")
			require.Equal(t, after, floats(values(m.vars)...), name)

			straight, s2 := newModel(dt), solver()
			vm2 := must(graphops.NewMachine(must(s2.Minimize(straight.loss, straight.vars...))))
			for range 6 {
				require.NoError(t, vm2.RunAll())
			}
			require.Zero(t, differing(floats(values(straight.vars)...), after), name)
		}
	}
}

// The averages outlive whatever happens to the store while they are in, and a late restore does not undo a later UseAverages.
func TestUseAveragesIsSafe(t *testing.T) {
	w := vec("w", []float64{1, 2}, []float64{1, 1})
	s := ema1(sgd(1), .5, 0)
	step := func() {
		w.grad = tensor.New(tensor.WithBacking([]float64{1, 1}))
		require.NoError(t, s.Step([]G.ValueGrad{w}))
	}
	step()
	step()
	restore, err := s.UseAverages(w)
	require.NoError(t, err)
	require.Equal(t, []float64{-.5, .5}, floats(w.value))
	require.NoError(t, s.Reset())
	w.value = tensor.New(tensor.WithBacking([]float64{7, 7})) // the weights come back wherever the parameter is now
	require.NoError(t, restore())
	require.Equal(t, []float64{-1, 0}, floats(w.value))

	_, err = s.UseAverages(w)
	require.ErrorContains(t, err, "none of the parameters has an average")
	step()
	again, err := s.UseAverages(w)
	require.NoError(t, err)
	require.NoError(t, restore())
	require.Error(t, s.Store().Locked())

	// Meanwhile states can be saved and computed with, but not replaced.
	state := must(s.Weights())
	var file bytes.Buffer
	require.NoError(t, s.Save(&file))
	_, after, err := s.StatelessApply(state, []G.Value{d64(1, 1)}, []G.Value{d64(1, 2)})
	require.NoError(t, err)
	require.NotEqual(t, floats(state...), floats(after...))
	const why = "the parameters hold averages of the weights"
	require.ErrorContains(t, s.SetWeights(after), why)
	require.ErrorContains(t, s.Load(&file), why)
	require.ErrorContains(t, s.ApplyGradients([]Pair{{w, d64(1, 1)}}), why)
	require.NoError(t, s.Build([]G.ValueGrad{w, vec("v", []float64{1}, nil)}))
	require.Zero(t, differing(floats(state...), floats(must(s.Weights())[:len(state)]...)))

	w.value = tensor.New(tensor.WithBacking([]float64{1, 2, 3}))
	require.ErrorContains(t, again(), `parameter "w" is float64 of shape (3)`)
	require.Error(t, s.Store().Locked(), "the weights are not back")
	w.value = nil
	require.ErrorContains(t, again(), `"w" has no value`)
	w.value = tensor.New(tensor.WithShape(2), tensor.Of(tensor.Float64))
	require.NoError(t, again())
	require.Equal(t, []float64{-2, -1}, floats(w.value))
}

// What UseAverages refuses leaves everything as it was.
func TestUseAveragesRefuses(t *testing.T) {
	a, b := vec("a", []float64{1}, []float64{1}), vec("b", []float64{1}, []float64{1})
	s := ema1(sgd(1), .5, 0)
	require.NoError(t, s.Step([]G.ValueGrad{a, b}))
	require.NoError(t, s.Step([]G.ValueGrad{vec("a", []float64{5}, []float64{1}), vec("b", []float64{5}, []float64{1})}))
	require.Equal(t, []float64{0, 0}, floats(a.value, b.value))
	locked := ema1(sgd(1), .5, 0)
	locked.Store().Lock(errors.New("busy"))
	for name, c := range map[string]struct {
		s     *Solver
		model []G.ValueGrad
		want  string
	}{
		"no wrapper":   {NewSGD(), []G.ValueGrad{a}, "no rule of the solver averages weights"},
		"no step":      {ema1(sgd(1), .5, 0), []G.ValueGrad{a}, "none of the parameters has an average of its weights yet"},
		"no model":     {s, nil, "none of the parameters has an average"},
		"unknown":      {s, []G.ValueGrad{vec("c", []float64{1}, nil)}, "none of the parameters has an average"},
		"nil":          {s, []G.ValueGrad{a, nil}, "parameter 1 is nil"},
		"no value":     {s, []G.ValueGrad{a, &pair{"b", nil, nil}}, `"b" has no value`},
		"shape":        {s, []G.ValueGrad{a, vec("b", []float64{1, 2}, nil)}, `"b" is float64 of shape (2), its average float64 of shape (1)`},
		"dtype":        {s, []G.ValueGrad{a, &pair{"b", random(tensor.Float32, 1, 1), nil}}, `parameter "b" is float32`},
		"other locked": {locked, []G.ValueGrad{a}, "busy"},
		"broken":       {ema1(sgd(-1), .5, 0), []G.ValueGrad{a}, "learning_rate is -1"},
	} {
		_, err := c.s.UseAverages(c.model...)
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, c.s.AssignAverages(c.model...), c.want, name)
		require.ErrorContains(t, c.s.WithAverages(func() error { panic("not run") }, c.model...), c.want, name)
		require.Equal(t, []float64{0, 0}, floats(a.value, b.value), name)
	}
	require.NoError(t, s.Store().Locked())
	_, err := (*Solver)(nil).UseAverages(a)
	require.ErrorContains(t, err, "the solver is nil")
	require.ErrorContains(t, s.WithAverages(nil, a), "the function is nil")
	require.NoError(t, s.Store().Locked())
}

// HasAverages says so from the first average on, of any of the parameters, also while they are in.
func TestHasAverages(t *testing.T) {
	a, b := vec("a", []float64{1}, []float64{1}), vec("b", []float64{1}, []float64{1})
	for name, c := range map[string]struct {
		s     *Solver
		steps int // without an average
	}{
		"ema":   {OptimizerMap(sgd(1), Route{"b", ema1(sgd(1), .5, 0)}), 0},
		"swa":   {OptimizerMap(sgd(1), Route{"b", swa1(sgd(1), 2, 1)}), 2},
		"base":  {OptimizerMap(sgd(1), Route{"b", WithBase(sgd(1), func(b *Base) { b.UseEMA = true })}), 0},
		"none":  {WithBase(sgd(1), func(b *Base) { b.WeightDecay = .1 }), 3},
		"plain": {sgd(1), 3},
	} {
		for step := range 3 {
			require.NoError(t, c.s.Step([]G.ValueGrad{a, b}))
			has := step >= c.steps
			require.Equal(t, has, must(c.s.HasAverages(a, b)), name)
			require.Equal(t, has, must(c.s.HasAverages(b)), name)
			require.False(t, must(c.s.HasAverages(a)), name)
			if !has {
				continue
			}
			require.NoError(t, c.s.WithAverages(func() error { require.True(t, must(c.s.HasAverages(a, b)), name); return nil }, a, b))
		}
		require.False(t, must(c.s.HasAverages()), name)
	}
	for want, s := range map[string]*Solver{"the solver is nil": nil, "learning_rate is -1": ema1(sgd(-1), .5, 0), "parameter 1 is nil": sgd(1)} {
		_, err := s.HasAverages(a, nil)
		require.ErrorContains(t, err, want)
	}
}

// AssignAverages is for good, and the averages stay what they are; a parameter of another rule, or of none, is left alone.
func TestAssignAverages(t *testing.T) {
	w, plain := vec("w", []float64{1}, []float64{.1}), vec("plain", []float64{1}, []float64{.1})
	s := OptimizerMap(sgd(1), Route{"w", moving(sgd(2))})
	require.NoError(t, s.Step([]G.ValueGrad{w, plain}))
	require.InDeltaSlice(t, []float64{.8, .9}, floats(w.value, plain.value), 1e-15)
	require.NoError(t, s.AssignAverages(plain, w))
	require.InDeltaSlice(t, []float64{.9, .9}, floats(w.value, plain.value), 1e-15)
	slot := must(s.averageOf("w")).(*tensor.Dense)
	w.value.(*tensor.Dense).Float64s()[0]++ // they share no memory
	slot.Float64s()[0] += 3
	require.InDeltaSlice(t, []float64{1.9, 3.9}, floats(w.value, slot), 1e-15)
	w.grad = tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{.1}))
	plain.grad = tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{.1}))
	require.NoError(t, s.Step([]G.ValueGrad{w, plain}))
	require.InDeltaSlice(t, []float64{1.7, .8, 2.8}, floats(w.value, plain.value, slot), 1e-15)

	// Keras' fit of w² with a rate of 0.1: 1, 0.9, 0.81; the average of the last two is 0.891.
	f := &goldenFile{}
	f.Problem.Params = constant([]float64{1, 1}, nil).Problem.Params
	f.Problem.Gradient, f.Problem.Scale = "quadratic", []float64{1, 1}
	fit := func() *Solver { return ema1(sgd(.1), .9, 0) }
	everyHost(t, f, fit, 2, func(what string, tol float64, s *Solver, step int, params []G.Value) {
		if step == 2 {
			require.InDeltaSlice(t, []float64{.81, .81}, floats(params...), tol, what)
			require.NoError(t, s.AssignAverages(&pair{"w0", params[0], nil}))
			require.InDeltaSlice(t, []float64{.891, .891}, floats(params...), tol, what)
		}
	})
}

// WithAverages ends as it should whatever the function does; scalars, views and parameters of other graphs are like any.
func TestWithAverages(t *testing.T) {
	back := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6}))
	view := must(back.Slice(nil, tensor.S(1))).(*tensor.Dense)
	one := func() G.Value { return tensor.New(tensor.WithShape(3), tensor.WithBacking([]float64{1, 1, 1})) }
	v, x := &pair{"v", view, one()}, &pair{"x", G.NewF32(5), G.NewF32(1)}
	s := moving(sgd(1))
	require.NoError(t, s.Step([]G.ValueGrad{v, x}))
	weights := []float64{1, 1, 3, 3, 5, 5}
	require.Equal(t, weights, floats(back))
	seen := 0
	look := func() {
		seen++
		require.Equal(t, []float64{1, 1.5, 3, 3.5, 5, 5.5, 4.5}, floats(back, x.value))
	}
	require.NoError(t, s.WithAverages(func() error { look(); return nil }, v, x))
	require.ErrorContains(t, s.WithAverages(func() error { look(); return errors.New("no") }, v, x), "no")
	require.Panics(t, func() { _ = s.WithAverages(func() error { look(); panic("oh") }, v, x) })
	require.Equal(t, 3, seen)
	require.Equal(t, weights, floats(back))
	require.NoError(t, s.Store().Locked())

	g := G.NewGraph()
	n := number(g, "x2", 1)
	other := G.NewScalar(g, G.Float32, G.WithName("x"), G.WithValue(float32(7)))
	require.NoError(t, s.AssignAverages(n, other))
	require.Equal(t, []float64{1, 4.5}, floats(n.Value(), other.Value()))
}
