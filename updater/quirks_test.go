package updater

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

// Where RETURNN's updater surprises, or is wrong, and what is done here instead: one test for each of these points.

// follow is what runs with given gradients make of a variable that begins at 0, with a config.
func follow(t *testing.T, text string, grads ...float64) (w []float64, u *Updater) {
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
	want, _ := follow(t, `{"optimizer": {"class": "adam"}, "learning_rate": 0.1}`, 1, -3)
	for _, name := range []string{"adam", "Adam", "AdamOptimizer", "ADAMOPTIMIZER"} {
		got, _ := follow(t, `{"optimizer": "`+name+`", "learning_rate": 0.1}`, 1, -3)
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
	got, _ := follow(t, text, 50, .5, .5, 50)
	require.Equal(t, []float64{0, -50.5, -50.5, -50.5}, got)
}

// 7. Groups that accumulate differently advance the time of an optimizer that they share once each.
func TestQuirkTimeOfSharedOptimizer(t *testing.T) {
	const adam = `"optimizer": "adam", "learning_rate": 0.1`
	grads := []float64{1, -3, 2, 2}
	a, _ := follow(t, `{`+adam+`}`, grads...)
	b, u := follow(t, `{`+adam+`, "accum_grad_multiple_step": 2}`, grads...)
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
	got, u := follow(t, `{"preset": "returnn", "optimizer": "adamax", "optimizer_epsilon": 0, "learning_rate": 0.1}`, 2, 2, 2)
	require.InDeltaSlice(t, []float64{-.1, -.2, -.3}, got, 1e-14)
	require.Equal(t, 3.0, counter(t, u, "adamax/step"))
	_, u = follow(t, `{"preset": "returnn", "optimizer": "nadamkeras"}`, 2, 2, 2)
	require.Equal(t, 3.0, counter(t, u, "nadam/step"))
}

// 10. CustomAdam makes its powers of β anew in each step, and rows that are used twice are undefined.
func TestQuirkCustomAdam(t *testing.T) {
	const text = `{"preset": "returnn", "optimizer": "customadam", "optimizer_epsilon": 0, "learning_rate": 0.1}`
	got, _ := follow(t, text, 2, 2, 2)
	require.InDeltaSlice(t, []float64{-.1, -.2, -.3}, got, 1e-14)
	loss, table := embedding(tensor.Float64, false)
	u := must(New(loss, G.Nodes{table}, config(t, `{"preset": "returnn", "optimizer": "customadam"}`)))
	require.NoError(t, must(u.NewMachine()).RunAll())
	require.InDeltaSlice(t, []float64{0, 0, .03, .02, 0, 0, .1, .2}, elements(u.Slot(table, "m")), 1e-15)
}

// 11. A tag that nobody has, and one of a variable without gradient, are errors about a key.
func TestQuirkTags(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", []float64{0, 0}}, initial{"b", 0.0})
	unused := inputOf(l.loss.Graph(), tensor.Float64, "unused", 7.0)
	vars := append(G.Nodes{unused}, l.vars...)
	_, err := New(l.loss, vars, Config{GradientClipGlobalNorm: 1, GlobalNormTag: "enc", UpdaterOpts: []VarOptions{{Match: "w", Tags: []string{"dec"}}}})
	require.ErrorContains(t, err, `global_norm_tag: no updater_opts gives the tag "enc" to a variable`)
	u := must(New(l.loss, vars, config(t, `{"learning_rate": 1, "gradient_clip_global_norm": 1, "global_norm_tag": "enc",
		"updater_opts": [{"match": "[wu]*", "tags": ["enc"]}]}`)))
	l.run(t, must(u.NewMachine()), []float64{3, 4}, 20.0)
	require.InDeltaSlice(t, []float64{-.6, -.8}, elements(l.vars[0]), 1e-15)
	require.InDeltaSlice(t, []float64{-4, 7}, append(elements(l.vars[1]), elements(unused)...), 1e-14) // scaled by the norm of w
}

// 12. The number that the summaries call l2 is half of the norm.
func TestQuirkHalfNormInSummaries(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", []float64{6, 8}})
	u := must(New(l.loss, l.vars, config(t, `{"debug_grad_summaries": true}`)))
	l.run(t, must(u.NewMachine()), []float64{3, 4})
	got := tags(t, u)
	require.Equal(t, []float64{5, 10}, []float64{got["grads/w_l2"], got["vars/w_l2"]})
}

// 13. Resets are documented by epochs, but go by the steps within an epoch.
func TestQuirkResetsWithinEpochs(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", 0.0})
	u := must(New(l.loss, l.vars, config(t, `{"optimizer": "momentum", "momentum": 0.5, "reset_updater_vars_mod_step": 2}`)))
	vm := must(u.NewMachine())
	for i, want := range []float64{1, 1.5, 1, 1, 1.5, 1} { // epochs of three runs
		if i%3 == 0 {
			require.NoError(t, u.StartEpoch())
		}
		l.run(t, vm, 1.0)
		require.Equal(t, []float64{want}, elements(u.Slot(l.vars[0], "momentum")), i)
	}
	require.Equal(t, 6, must(u.GlobalStep()))
}

// 14. Nothing is trained before the learning rate is set: it is 0.
func TestQuirkLearningRateIsNotSet(t *testing.T) {
	got, u := follow(t, `{}`, 1)
	require.Equal(t, []float64{-.01}, got)
	require.Equal(t, .01, must(u.LearningRate()))
	got, _ = follow(t, `{"learning_rate": 0}`, 1)
	require.Zero(t, got[0])
}

// 15. sgd is the optimizer of Keras. Without momentum it is plain descent; with it a change of the rate comes late.
func TestQuirkSGD(t *testing.T) {
	for _, text := range []string{`"optimizer": "sgd"`, `"preset": "returnn", "optimizer": "sgd"`, `"optimizer": "returnn/gradientdescent"`} {
		got, _ := follow(t, `{"learning_rate": 0.5, `+text+`}`, 1, -3, 2)
		require.Equal(t, []float64{-.5, 1, 0}, got, text)
	}
	for _, c := range []struct {
		optimizer string
		want      float64
	}{{"sgd", -1.9}, {"momentum", -1.09}} {
		l := newLinear(tensor.Float64, initial{"w", 0.0})
		u := must(New(l.loss, l.vars, config(t, `{"preset": "returnn", "optimizer": "`+c.optimizer+`", "momentum": 0.9, "learning_rate": 1}`)))
		vm := must(u.NewMachine())
		l.run(t, vm, 1.0)
		require.NoError(t, u.SetLearningRate(.1))
		l.run(t, vm, 0.0)
		require.InDelta(t, c.want, elements(l.vars[0])[0], 1e-15, c.optimizer)
	}
}

// 16. The average norm is the norm over the number of elements, not over its root.
func TestQuirkAverageNorm(t *testing.T) {
	for clip, want := range map[string][]float64{"2.6": {-3, -4}, "2.5": {-3, -4}, "1.25": {-1.5, -2}} {
		l := newLinear(tensor.Float64, initial{"w", []float64{0, 0}})
		u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 1, "gradient_clip_avg_norm": `+clip+`}`)))
		l.run(t, must(u.NewMachine()), []float64{3, 4})
		require.InDeltaSlice(t, want, elements(l.vars[0]), 1e-15, clip)
	}
}

// 17. What the numeric checks find may have been written already.
func TestQuirkNumericCheckAfterUpdate(t *testing.T) {
	for _, opts := range hosts {
		l := newLinear(tensor.Float64, initial{"a", 1.0}, initial{"b", 1.0})
		u := must(New(l.loss, l.vars, config(t, `{"optimizer": "adam", "debug_add_check_numerics_ops": true}`), opts...))
		vm := must(u.NewMachine())
		l.run(t, vm, 1.0, 1.0)
		state := func() (all [][]float64) {
			for _, v := range l.vars {
				all = append(all, elements(v), elements(u.Slot(v, "m")), elements(u.Slot(v, "v")))
			}
			return append(all, []float64{counter(t, u, "adam/step"), counter(t, u, "global_step")})
		}
		before := state()
		require.NoError(t, G.Let(l.grads[1], nan))
		require.ErrorContains(t, vm.RunAll(), "not finite")
		require.Equal(t, before, state())
		vm.Reset()
		l.run(t, vm, 1.0, 1.0)
		require.NotEqual(t, before, state())
	}
}

// 18. The step, the learning rate and the loss of a run are those of before it. Here the rate is the step.
func TestQuirkValuesOfBeforeTheRun(t *testing.T) {
	for _, opts := range hosts {
		l := newLinear(tensor.Float64, initial{"w", 1.0})
		u := must(New(l.loss, l.vars, Config{LearningRateSchedule: schedule.Func(func(s Expr) Expr { return s.Add(graphops.Const(0)) })}, opts...))
		rate := must(u.LearningRateNode())
		vm := must(u.NewMachine(rate))
		w := 1.0
		for s := range 4 {
			l.run(t, vm, 2.0)
			require.Equal(t, []float64{float64(s)}, elements(rate))
			require.Equal(t, []float64{2 * w}, elements(l.loss))
			w -= 2 * float64(s)
			require.Equal(t, []float64{w}, elements(l.vars[0]))
			require.Equal(t, s+1, must(u.GlobalStep()))
		}
	}
}

// 19. The state of the optimizers is not in the checkpoints.
func TestQuirkStateIsNotSaved(t *testing.T) {
	const text = `{"optimizer": "adam", "learning_rate": 0.1, "accum_grad_multiple_step": 2, "gradient_noise": 0.1}`
	file := filepath.Join(t.TempDir(), "state.safetensors")
	grads := []float64{1, -3, 2, 2, .5, 1, 1, 7}
	want, _ := follow(t, text, grads...)
	_, u := follow(t, text, grads[:3]...) // in the middle of a group
	require.NoError(t, u.SaveFile(file))
	l := newLinear(tensor.Float64, initial{"w", 5.0})
	u = must(New(l.loss, l.vars, config(t, text)))
	require.NoError(t, u.LoadFile(file))
	require.Equal(t, 3, must(u.GlobalStep()))
	vm := must(u.NewMachine())
	for i, g := range grads[3:] {
		l.run(t, vm, g)
		require.Equal(t, want[3+i], elements(l.vars[0])[0])
	}
}

// 20. Meta losses make a second pass: the decay is applied twice, and the optimizer's time goes twice as fast.
func TestQuirkSecondPassOfMetaLosses(t *testing.T) {
	const text = `{"optimizer": "adam", "learning_rate": 0.1, "decouple_constraints": true, "updater_opts": [{"match": "w", "l2": 0.01}]}`
	sum, l := newLinear(tensor.Float64, initial{"w", 1.0}), newLinear(tensor.Float64, initial{"w", 1.0})
	meta := must(G.HadamardProd(l.vars[0], inputOf(l.loss.Graph(), tensor.Float64, "h", 3.0)))
	u := must(New(l.loss, l.vars, config(t, text), WithMetaLoss("meta", meta, .5)))
	one := must(New(sum.loss, sum.vars, config(t, text)))
	vm, vm1 := must(u.NewMachine()), must(one.NewMachine())
	for i, g := range []float64{1, -1.5, 2} { // the second: nothing but decay and momentum
		l.run(t, vm, g)
		sum.run(t, vm1, g+1.5)
		require.InDelta(t, elements(sum.vars[0])[0], elements(l.vars[0])[0], 1e-15)
		require.Equal(t, float64(i+1), counter(t, u, "adam/step"))
	}
	require.Equal(t, 3, must(u.GlobalStep()))
}
