package updater

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Where RETURNN's updater surprises, or is wrong, and what is done here instead: one test for each of these points.

// path1 is what runs with given gradients make of a variable that begins at 0, with a config.
func path1(t *testing.T, text string, grads ...float64) (w []float64, u *Updater) {
	t.Helper()
	l := newLinear(tensor.Float64, initial{"w", 0.0})
	u, err := New(l.loss, l.vars, config(t, text))
	require.NoError(t, err)
	vm := must(u.NewMachine())
	for _, g := range grads {
		l.run(t, vm, g)
		w = append(w, elements(l.vars[0])[0])
	}
	return w, u
}

// counter is the number of steps that a rule applied.
func counter(t *testing.T, u *Updater, name string) float64 {
	t.Helper()
	st := u.Solver().Store().Lookup(name)
	require.NotNil(t, st, name)
	return must(graphops.ScalarValue(must(st.Value())))
}

// 1. The factor of the decay has no effect in RETURNN; here it has one where it is given.
func TestQuirkDecayFactorIsUnused(t *testing.T) {
	for factor, want := range map[string][]float64{
		``:                                       {.98, .98 * .98},
		`, "decouple_constraints_factor": 0.025`: {1 - .025*.02, (1 - .025*.02) * (1 - .025/2*.02)},
	} {
		l := newLinear(tensor.Float64, initial{"w", 1.0})
		u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 0.1, "decouple_constraints": true`+factor+
			`, "updater_opts": [{"match": "w", "l2": 0.01}]}`)))
		vm := must(u.NewMachine())
		l.run(t, vm, 0.0)
		require.InDelta(t, want[0], elements(l.vars[0])[0], 1e-15)
		require.NoError(t, u.SetLearningRate(.05))
		l.run(t, vm, 0.0)
		require.InDelta(t, want[1], elements(l.vars[0])[0], 1e-15)
	}
}

// 2. A name as the optimizer is refused there.
func TestQuirkOptimizerAsString(t *testing.T) {
	want, _ := path1(t, `{"optimizer": {"class": "adam"}, "learning_rate": 0.1}`, 1, -3)
	for _, name := range []string{"adam", "Adam", "AdamOptimizer", "ADAMOPTIMIZER"} {
		got, _ := path1(t, `{"optimizer": "`+name+`", "learning_rate": 0.1}`, 1, -3)
		require.Equal(t, want, got, name)
	}
}

// 3. There must be a variable with the default optimizer.
func TestQuirkAllVariablesHaveTheirOwnOptimizer(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"a", 0.0}, initial{"b", 0.0})
	u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 0.1, "updater_opts": [
		{"match": "a", "optimizer": {"class": "adam"}}, {"match": "b", "optimizer": {"class": "adagrad"}}]}`)))
	l.run(t, must(u.NewMachine()), 2.0, -2.0)
	require.InDelta(t, -.1, elements(l.vars[0])[0], 1e-8)
	require.Positive(t, elements(l.vars[1])[0])
	require.Len(t, u.Optimizers(), 2)
	_, err := u.DefaultOptimizer()
	require.ErrorContains(t, err, "optimizers of their own")
}

// 4. The filter makes ±1e30 of infinities in some gradients.
func TestQuirkFilterOfInfinities(t *testing.T) {
	inf := math.Inf(1)
	for _, dt := range floatTypes {
		for _, opts := range hosts {
			l := newLinear(dt, initial{"w", []float64{0, 0, 0, 0}})
			u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 1, "gradient_nan_inf_filter": true}`), opts...))
			l.run(t, must(u.NewMachine()), []float64{nan, inf, -inf, 2})
			require.Equal(t, []float64{0, 0, 0, -2}, elements(l.vars[0]))
		}
	}
}

// 5. The factor of the variable that comes first is that of all. Here N = √(a² + 4b²), of the loss a²/2 + b².
func TestQuirkFirstFactorOfMaximizeGradNorm(t *testing.T) {
	for _, c := range []struct {
		text string
		a, b float64 // factors
	}{
		{`"maximize_grad_norm": 0.5, "updater_opts": [{"match": "b", "maximize_grad_norm": -1}]`, .5, -1},
		{`"updater_opts": [{"match": "b", "maximize_grad_norm": 2}]`, 0, 2},
		{`"maximize_grad_norm": 0.5, "updater_opts": [{"match": "a", "maximize_grad_norm": 0}]`, 0, .5},
	} {
		g := G.NewGraph()
		a, b, half := inputOf(g, tensor.Float64, "a", 3.0), inputOf(g, tensor.Float64, "b", 2.0), inputOf(g, tensor.Float64, "half", .5)
		loss := must(G.Add(must(G.HadamardProd(half, must(G.Square(a)))), must(G.Square(b))))
		u := must(New(loss, G.Nodes{a, b}, config(t, `{"learning_rate": 1, `+c.text+`}`)))
		require.NoError(t, must(u.NewMachine()).RunAll())
		require.InDelta(t, 3-(3-c.a*3/5), elements(a)[0], 1e-14, c.text)
		require.InDelta(t, 2-(4-c.b*8/5), elements(b)[0], 1e-14, c.text)
	}
}

// 6. The global norm is that of the last gradient, not of the accumulated ones; so it is here.
func TestQuirkNormOfTheLastOfAccumulated(t *testing.T) {
	const text = `{"learning_rate": 1, "accum_grad_multiple_step": 2, "grad_norm_to_clip_to_zero": 10}`
	got, _ := path1(t, text, 50, .5, .5, 50)
	require.Equal(t, []float64{0, -50.5, -50.5, -50.5}, got)
}

// 7. Groups that accumulate differently advance the time of an optimizer that they share once each.
func TestQuirkTimeOfSharedOptimizer(t *testing.T) {
	const adam = `"optimizer": "adam", "learning_rate": 0.1`
	grads := []float64{1, -3, 2, 2}
	a, _ := path1(t, `{`+adam+`}`, grads...)
	b, u := path1(t, `{`+adam+`, "accum_grad_multiple_step": 2}`, grads...)
	require.Equal(t, 2.0, counter(t, u, "adam/step"))
	l := newLinear(tensor.Float64, initial{"a", 0.0}, initial{"b", 0.0}, initial{"c", 0.0})
	u = must(New(l.loss, l.vars, config(t, `{`+adam+`, "updater_opts": [{"match": "b", "accum_grad_multiple_step": 2}]}`)))
	vm := must(u.NewMachine())
	for i, g := range grads {
		l.run(t, vm, g, g, g)
		for k, want := range [][]float64{a, b, a} {
			require.Equal(t, want[i], elements(l.vars[k])[0], l.vars[k].Name())
		}
	}
	require.Equal(t, 4.0, counter(t, u, "adam/step"))
	require.Equal(t, 2.0, counter(t, u, "adam#2/step"))
}

// 8. AMSGrad cannot be used with a config, and its slots not be seen.
func TestQuirkStateOfAMSGrad(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"a", 1.0}, initial{"b", 1.0})
	u := must(New(l.loss, l.vars[:1], config(t, `{"preset": "returnn", "optimizer": {"class": "amsgrad"}, "learning_rate": 0.1}`)))
	require.Empty(t, u.SlotNames())
	l.run(t, must(u.NewMachine()), 2.0, 2.0)
	require.InDelta(t, .9, elements(l.vars[0])[0], 1e-15)
	require.Equal(t, []string{"m", "v", "vhat"}, u.SlotNames())
	require.InDelta(t, .04, elements(u.Slot(l.vars[0], "vhat"))[0], 1e-15)
	require.NoError(t, u.SetTrainableVars(l.vars))
	l.run(t, must(u.NewMachine()), 2.0, 2.0)
	require.InDelta(t, .9, elements(l.vars[1])[0], 1e-15)
}

// 9. The time of Keras' optimizers stays 1. With equal gradients a step of Adamax is the learning rate, if time goes on.
func TestQuirkTimeOfKerasOptimizers(t *testing.T) {
	got, u := path1(t, `{"preset": "returnn", "optimizer": "adamax", "optimizer_epsilon": 0, "learning_rate": 0.1}`, 2, 2, 2)
	require.InDeltaSlice(t, []float64{-.1, -.2, -.3}, got, 1e-14)
	require.Equal(t, 3.0, counter(t, u, "adamax/step"))
	_, u = path1(t, `{"preset": "returnn", "optimizer": "nadamkeras"}`, 2, 2, 2)
	require.Equal(t, 3.0, counter(t, u, "nadam/step"))
}

// 10. CustomAdam makes its powers of β anew in each step, and rows that are used twice are undefined.
func TestQuirkCustomAdam(t *testing.T) {
	const text = `{"preset": "returnn", "optimizer": "customadam", "optimizer_epsilon": 0, "learning_rate": 0.1}`
	got, _ := path1(t, text, 2, 2, 2)
	require.InDeltaSlice(t, []float64{-.1, -.2, -.3}, got, 1e-14)
	loss, table := embedding(tensor.Float64, false)
	u := must(New(loss, G.Nodes{table}, config(t, `{"preset": "returnn", "optimizer": "customadam"}`)))
	require.NoError(t, must(u.NewMachine()).RunAll())
	require.InDeltaSlice(t, []float64{0, 0, .03, .02, 0, 0, .1, .2}, elements(u.Slot(table, "m")), 1e-15)
}
