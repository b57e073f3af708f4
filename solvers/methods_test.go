package solvers

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/safetensors"
	"optimop/solvers/schedule"
)

// Any rule makes the same step statelessly, and the solver and all that it was given stay as they were.
func TestStatelessIsStateful(t *testing.T) {
	everyName(t, func(t *testing.T, dt tensor.Dtype, make func() *Solver) {
		model, grads := toy(dt)
		s, pure := make(), make()
		s.warned = true // of the gradient that is missing below
		require.NoError(t, pure.Build(model))
		first := must(pure.Weights())
		params, state := must2(copies(valuesOf(model))), must(pure.Weights())
		for step := range 4 {
			g := grads(step)
			if step == 2 {
				g[1] = nil
			}
			require.NoError(t, s.ApplyGradients(pairs(model, g)))
			before := floats(append(append(append([]G.Value{}, params...), state...), g[0])...)
			newParams, newState, err := pure.StatelessApply(state, g, params)
			require.NoError(t, err)
			require.Zero(t, differing(before, floats(append(append(append([]G.Value{}, params...), state...), g[0])...)))
			params, state = newParams, newState
			require.Zero(t, differing(floats(valuesOf(model)...), floats(params...)), "parameters at step %d", step)
			require.Zero(t, differing(floats(must(s.Weights())...), floats(state...)), "variables at step %d", step)
		}
		require.Zero(t, differing(floats(first...), floats(must(pure.Weights())...)))
		require.NoError(t, pure.SetWeights(state))
		require.Zero(t, differing(floats(must(s.Weights())...), floats(must(pure.Weights())...)))
	})
}

// A run that is saved in the middle and loaded into another solver goes on as if nothing had been.
func TestSaveMidRun(t *testing.T) {
	everyName(t, func(t *testing.T, dt tensor.Dtype, make func() *Solver) {
		model, grads := toy(dt)
		s := make()
		var file bytes.Buffer
		var halfway []G.Value
		for step := range 6 {
			if step == 3 {
				require.NoError(t, s.Save(&file))
				halfway = must2(copies(valuesOf(model)))
			}
			require.NoError(t, s.ApplyGradients(pairs(model, grads(step))))
		}
		other := make()
		again, _ := toy(dt)
		for i, m := range again {
			require.NoError(t, graphops.Copy(m.Value(), halfway[i]))
		}
		require.NoError(t, other.Build(again))
		require.NoError(t, other.Load(&file))
		for step := 3; step < 6; step++ {
			require.NoError(t, other.ApplyGradients(pairs(again, grads(step))))
		}
		require.Zero(t, differing(floats(valuesOf(model)...), floats(valuesOf(again)...)))
		require.Zero(t, differing(floats(must(s.Weights())...), floats(must(other.Weights())...)))
	})
}

func copies(vs []G.Value) (out []G.Value, err error) {
	for _, v := range vs {
		c, err := G.CloneValue(v)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func must2[T any](v []T, err error) []T { return must(v, err) }

func variableNames(s *Solver) (names []string) {
	for _, st := range s.Variables() {
		names = append(names, st.Name())
	}
	return names
}

// Keras' rows: SGD of rate .1, from [1] and [2] with gradients of 1.
func TestStatelessRow(t *testing.T) {
	a, b := vec("a", []float64{1}, nil), vec("b", []float64{2}, nil)
	s := New(&Momentum{LearningRate: .1, RateInside: true})
	model := []G.ValueGrad{a, b}
	require.NoError(t, s.Build(model))
	require.Equal(t, []string{"global_step", "momentum/learning_rate"}, variableNames(s)[:2])
	ones := []G.Value{value(tensor.Float64, []int{1}, []float64{1}), value(tensor.Float64, []int{1}, []float64{1})}
	params, state, err := s.StatelessApply(must(s.Weights()), ones, valuesOf(model))
	require.NoError(t, err)
	require.Equal(t, []float64{.9, 1.9}, floats(params...))
	require.Equal(t, []float64{1, .1}, floats(state...)[:2])
	require.Equal(t, []float64{1, 2}, floats(a.value, b.value))
	require.Zero(t, must(s.GlobalStep()))

	// Another learning rate in the state is that of the step, and not the solver's.
	state = must(s.Weights())
	*state[1].(*G.F64) = 2
	params, _, err = s.StatelessApply(state, ones, valuesOf(model))
	require.NoError(t, err)
	require.Equal(t, []float64{-1, 0}, floats(params...))
	require.Equal(t, .1, must(s.Get("learning_rate")))
	*state[1].(*G.F64) = -1
	_, _, err = s.StatelessApply(state, ones, valuesOf(model))
	require.ErrorContains(t, err, "momentum/learning_rate is -1")
}

func TestBuild(t *testing.T) {
	g := G.NewGraph()
	w := G.NewMatrix(g, G.Float32, G.WithShape(2, 3), G.WithName("w")) // has no value yet
	b := G.NewVector(g, G.Float32, G.WithShape(3), G.WithName("b"))
	s := Chain(NewClipByGlobalNorm(1), NewAdam(func(a *Adam) { a.AMSGrad = true }))
	require.Empty(t, s.Variables())
	require.ErrorContains(t, s.SetWeights(nil), "call Build")
	require.ErrorContains(t, s.Save(&bytes.Buffer{}), "call Build")
	require.ErrorContains(t, s.Load(&bytes.Buffer{}), "call Build")
	require.NoError(t, s.Build([]G.ValueGrad{w, b}))
	names := []string{"global_step", "adam/learning_rate", "adam/step", "w/adam/m", "w/adam/v", "w/adam/vhat", "b/adam/m", "b/adam/v", "b/adam/vhat"}
	require.Equal(t, names, variableNames(s))
	require.NoError(t, s.Build([]G.ValueGrad{w, b}))
	require.Equal(t, names, variableNames(s))
	require.Equal(t, "w/adam/m", s.Slot(w, "m").Name())
	require.NoError(t, s.Schedule("learning_rate", schedule.NewConstant(.5)))
	require.NotContains(t, variableNames(s), "adam/learning_rate")
	require.Equal(t, "global_step", variableNames(s)[0])

	built, stepped := NewNadam(), NewNadam()
	model, grads := toy(tensor.Float32)
	require.NoError(t, built.Build(model))
	require.NoError(t, stepped.ApplyGradients(pairs(model, grads(0))))
	require.Equal(t, variableNames(stepped), variableNames(built))

	for want, model := range map[string][]G.ValueGrad{
		"is empty":        nil,
		"0 is nil":        {nil},
		"has no value":    {vec("x", nil, nil), &pair{"y", nil, nil}},
		`"i" is int`:      {G.NewVector(g, G.Int, G.WithShape(3), G.WithName("i"))},
		"but was float32": {vec("b", []float64{1, 2, 3}, nil)},
		"is listed twice": {w, w},
	} {
		before := len(s.store.States())
		require.ErrorContains(t, s.Build(model), want)
		require.Len(t, s.store.States(), before)
	}
	require.ErrorContains(t, NewAdam(func(a *Adam) { a.Beta1 = 2 }).Build([]G.ValueGrad{w}), "beta1 is 2")
	none := Restrict(NewSGD(), "other")
	require.ErrorContains(t, none.Build([]G.ValueGrad{w}), "other")
	require.Empty(t, none.store.States())
}

// The order of Keras' apply: no pairs are no step, pairs without gradients are left out with one warning, none at all is an
// error.
func TestApplyGradients(t *testing.T) {
	var log strings.Builder
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(old)
	a, b := vec("a", []float64{1}, []float64{100}), vec("b", []float64{2}, []float64{100})
	s := NewSGD(func(s *SGD) { s.LearningRate = 1 })
	require.NoError(t, s.ApplyGradients(nil))
	require.Zero(t, must(s.GlobalStep()))
	require.ErrorContains(t, s.ApplyGradients([]Pair{{a, nil}, {b, nil}}), "no parameter has a gradient")
	require.Zero(t, must(s.GlobalStep()))
	g := value(tensor.Float64, []int{1}, []float64{.25})
	for range 2 {
		require.NoError(t, s.ApplyGradients([]Pair{{a, nil}, {b, g}}))
	}
	require.Equal(t, []float64{1, 1.5}, floats(a.value, b.value))
	require.Equal(t, []float64{.25, 100}, floats(g, b.grad), "gradients stay")
	require.Equal(t, 1, strings.Count(log.String(), "parameters=[a]"), log.String())
	require.Equal(t, 2, must(s.GlobalStep()))
	require.ErrorContains(t, s.ApplyGradients([]Pair{{a, value(tensor.Float64, []int{2}, []float64{1, 1})}}), "shape (1), its gradient (2)")
	require.ErrorContains(t, s.ApplyGradients([]Pair{{nil, g}}), "is nil")
	var none *Solver
	require.Error(t, none.ApplyGradients(nil))
}

func TestSetWeights(t *testing.T) {
	model, grads := toy(tensor.Float64)
	s := NewAdam()
	require.NoError(t, s.ApplyGradients(pairs(model, grads(0))))
	good := must(s.Weights())
	for want, change := range map[string]func(w []G.Value) []G.Value{
		"10 values for 11 variables":       func(w []G.Value) []G.Value { return w[:10] },
		"value 3: graphops: \"w0/adam/m\"": func(w []G.Value) []G.Value { w[3] = w[5]; return w },
		"no value is bound":                func(w []G.Value) []G.Value { w[10] = nil; return w },
		"learning_rate is -1":              func(w []G.Value) []G.Value { w[1] = G.NewF64(-1); return w },
		`"global_step" cannot be -1`:       func(w []G.Value) []G.Value { w[0] = G.NewI64(-1); return w },
		"not float64 of shape ()":          func(w []G.Value) []G.Value { w[2] = G.NewF64(1); return w },
	} {
		w := must(s.Weights())
		*w[2].(*G.I64) = 7
		require.ErrorContains(t, s.SetWeights(change(w)), want)
		require.Zero(t, differing(floats(good...), floats(must(s.Weights())...)))
	}
	params := valuesOf(model)
	for want, f := range map[string]func() error{
		"3 parameters for the 4": func() error { _, _, err := s.StatelessApply(good, grads(0), params[1:]); return err },
		"0 gradients":            func() error { _, _, err := s.StatelessApply(good, nil, params); return err },
		"1 values for 11":        func() error { _, _, err := s.StatelessApply(good[:1], grads(0), params); return err },
		"has a gradient":         func() error { _, _, err := s.StatelessApply(good, make([]G.Value, 4), params); return err },
		"has no value":           func() error { _, _, err := s.StatelessApply(good, grads(0), make([]G.Value, 4)); return err },
		"has shape (4), its":     func() error { g := grads(0); g[1] = g[0]; _, _, err := s.StatelessApply(good, g, params); return err },
		"is float64 of shape (3,": func() error {
			_, _, err := s.StatelessApply(good, append([]G.Value{params[1]}, grads(0)[1:]...), append([]G.Value{params[1]}, params[1:]...))
			return err
		},
		"there are no variables y": func() error { _, _, err := NewSGD().StatelessApply(nil, nil, nil); return err },
	} {
		err := f()
		require.Error(t, err, want)
		if !strings.Contains(want, "is float64 of shape (3,") {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	model, _ := toy(tensor.Float32)
	s, adam := NewMomentum(), NewAdam()
	require.NoError(t, s.Build(model))
	require.NoError(t, adam.Build(model))
	var file bytes.Buffer
	require.NoError(t, adam.Save(&file))
	text := file.Bytes()
	err := s.Load(bytes.NewReader(text))
	require.ErrorContains(t, err, "w0/momentum/momentum is missing")
	require.ErrorContains(t, err, "w0/adam/m is unexpected")
	for i := range len(text) / 97 { // a cut file, anywhere
		require.Error(t, adam.Load(bytes.NewReader(text[:97*i])))
	}
	file.Reset()
	require.NoError(t, safetensors.Write(&file, nil, map[string]string{"format": "pt"}))
	require.ErrorContains(t, s.Load(&file), `its format is "pt"`)

	nameless := NewSGD()
	require.NoError(t, nameless.Build([]G.ValueGrad{vec("", []float64{1}, nil)}))
	require.ErrorContains(t, nameless.Save(&file), "no name of its own")
	twins := NewSGD()
	g := G.NewGraph()
	require.NoError(t, twins.Build([]G.ValueGrad{vector(g, "w", 1), vector(g, "w", 1, 2)}))
	require.ErrorContains(t, twins.Save(&file), `"w#2"`)
}

func TestAddVariables(t *testing.T) {
	model, grads := toy(tensor.Float32)
	s := NewSGD()
	average, err := s.AddVariable("average", tensor.Float64, nil, graphops.Initializer{Name: "ones"})
	require.NoError(t, err)
	noise, err := s.AddVariableFromReference(model[0], "noise", graphops.Initializer{Name: "normal", StandardDeviation: 1})
	require.NoError(t, err)
	made, err := s.AddOptimizerVariables(model[1:3], []string{"m", "v"}, graphops.Initializer{}, graphops.Initializer{Name: "constant", Value: 3})
	require.NoError(t, err)
	require.Len(t, made, 2)
	require.Equal(t, []string{"average", "w0/noise", "w1/m", "w1/v", "w2/m", "w2/v"}, variableNames(s), "parameter by parameter")
	require.Equal(t, []float64{3, 3, 3, 3, 3}, floats(must(made[1][0].Value()), must(made[1][1].Value())))
	require.Equal(t, "w0", noise.Param())
	first := floats(must(noise.Value()))
	require.NotContains(t, first, 0.0)
	require.NoError(t, average.AssignAdd(G.NewF64(2)))
	require.NoError(t, noise.AssignSub(must(noise.Value())))
	require.NoError(t, s.ApplyGradients(pairs(model, grads(0))))
	require.Equal(t, []float64{3}, floats(must(average.Value())))
	require.Equal(t, make([]float64, 6), floats(must(noise.Value())))
	_, state, err := s.StatelessApply(must(s.Weights()), grads(1), valuesOf(model))
	require.NoError(t, err)
	require.Zero(t, differing(floats(must(s.Weights())[1:]...), floats(state[1:]...)))
	require.NoError(t, s.Reset())
	require.Equal(t, append([]float64{1}, first...), floats(must(average.Value()), must(noise.Value())))

	zeros := graphops.Initializer{}
	count, fresh := len(s.store.States()), NewSGD()
	for want, f := range map[string]func() error{
		`already a variable "average"`: func() error { _, err := s.AddVariable("average", tensor.Float64, nil, zeros); return err },
		"is no name":                   func() error { _, err := s.AddVariable(" /", tensor.Float64, nil, zeros); return err },
		"must be float32":              func() error { _, err := s.AddVariable("i", tensor.Int, nil, zeros); return err },
		"slot x":                       func() error { _, err := s.AddVariable("x", tensor.Float32, tensor.Shape{-2}, zeros); return err },
		"no initializer": func() error {
			_, err := s.AddVariable("x", tensor.Float32, nil, graphops.Initializer{Name: "?"})
			return err
		},
		`"w0/noise" is no name`: func() error { _, err := s.AddVariableFromReference(model[0], "noise", zeros); return err },
		"2 initializers for 3": func() error {
			_, err := s.AddOptimizerVariables(model, []string{"a", "b", "c"}, zeros, zeros)
			return err
		},
		`"w0/a" is no name`:                           func() error { _, err := s.AddOptimizerVariables(model, []string{"a", "a"}); return err },
		`"global_step" may be the solver's own`:       func() error { _, err := fresh.AddVariable("global_step", tensor.Float64, nil, zeros); return err },
		`"sgd/learning_rate" may be the solver's own`: func() error { _, err := fresh.AddVariable("sgd/learning_rate", tensor.Float64, nil, zeros); return err },
		`"w0/sgd/m" may be the solver's own`:          func() error { _, err := s.AddVariable("w0/sgd/m", tensor.Float64, nil, zeros); return err },
		`"w0/sgd/v" is no name`:                       func() error { _, err := s.AddVariableFromReference(model[0], "sgd/v", zeros); return err },
		`"w1/m" is no name`:                           func() error { _, err := s.AddOptimizerVariables(model, []string{"m"}); return err },
		"is nil":                                      func() error { _, err := s.AddVariableFromReference(nil, "x", zeros); return err },
	} {
		require.ErrorContains(t, f(), want)
		require.Len(t, s.store.States(), count)
	}
}
