package updater

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// What RETURNN's tests of its engine, layers and tools want of the updater.

// train runs a net, and returns its losses.
func train(t *testing.T, n *net, vm G.VM, runs int) (losses []float64) {
	t.Helper()
	for range runs {
		require.NoError(t, vm.RunAll())
		vm.Reset()
		losses = append(losses, elements(n.loss)[0])
	}
	return losses
}

func TestEngineOptimizers(t *testing.T) {
	for name, cfg := range map[string]Config{
		"a rule":               {Optimizer: &solvers.NormalizedSGD{LearningRate: 1}},
		"a class":              {Optimizer: map[string]any{"class": func() solvers.Rule { return solvers.NewNormalizedSGD() }}},
		"a function of a name": {Optimizer: map[string]any{"class": func() string { return "NormalizedSGD" }}},
		"nadam":                {Optimizer: map[string]any{"class": "nadam"}},
		"nadam of RETURNN":     {Optimizer: map[string]any{"class": "nadam"}, Preset: "returnn"},
		"NadamKeras":           {Optimizer: map[string]any{"class": "NadamKeras"}, Preset: "returnn"},
		"momentum":             {Optimizer: "momentum", Momentum: .5},
	} {
		for _, dt := range floatTypes {
			n := newNet(dt)
			cfg.LearningRate = new(.01)
			u, err := New(n.loss, n.vars, cfg)
			require.NoError(t, err, name)
			losses := train(t, n, must(u.NewMachine()), 5)
			require.Less(t, losses[4], losses[0], name)
		}
	}
}

// A control of the learning rate by epochs sets it between them; the state of the optimizer stays.
func TestEngineLearningRatePerEpoch(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", 0.0})
	u := must(New(l.loss, l.vars, config(t, `{"optimizer": "momentum", "momentum": 0.5}`)))
	vm := must(u.NewMachine())
	w, velocity, rate := 0.0, 0.0, 1.0
	for range 5 {
		require.NoError(t, u.SetLearningRate(rate))
		for range 2 {
			l.run(t, vm, 1.0)
			velocity = velocity/2 + 1
			w -= rate * velocity
			require.InDelta(t, w, elements(l.vars[0])[0], 1e-15)
		}
		rate /= 2
	}
}

// embedding looks rows of a table up, one of them twice, and uses the table as a whole if dense is set.
func embedding(dt tensor.Dtype, dense bool) (loss, table *G.Node) {
	n := &net{g: G.NewGraph()}
	table = n.matrix(dt, "table", 4, 2, []float64{1, 2, 3, 4, 5, 6, 7, 8})
	rows := G.NewVector(n.g, tensor.Int, G.WithShape(3), G.WithName("rows"), G.WithValue(tensor.New(tensor.WithBacking([]int{1, 3, 1}))))
	loss = must(G.Sum(must(G.HadamardProd(must(G.ByIndices(table, rows, 0)), n.matrix(dt, "c", 3, 2, []float64{.1, -.1, 1, 2, .2, .3})))))
	if dense {
		loss = must(G.Add(loss, must(G.Sum(must(G.HadamardProd(table, n.matrix(dt, "d", 4, 2, []float64{1, 1, 1, 1, 0, 0, 0, 0})))))))
	}
	return loss, table
}

// Rows that are looked up twice get the sum, and those that are used otherwise too, the sum of both.
func TestEngineEmbedding(t *testing.T) {
	for _, dt := range floatTypes {
		for _, c := range []struct {
			dense bool
			want  []float64
		}{{false, []float64{1, 2, 2.7, 3.8, 5, 6, 6, 6}}, {true, []float64{0, 1, 1.7, 2.8, 5, 6, 6, 6}}} {
			loss, table := embedding(dt, c.dense)
			u := must(New(loss, G.Nodes{table}, config(t, `{"learning_rate": 1}`)))
			require.NoError(t, must(u.NewMachine()).RunAll())
			require.InDeltaSlice(t, c.want, elements(table), 1e-6)
		}
		loss, table := embedding(dt, false)
		u := must(New(loss, G.Nodes{table}, config(t, `{"learning_rate": 1, "accum_grad_multiple_step": 3}`)))
		vm := must(u.NewMachine())
		for range 7 {
			require.NoError(t, vm.RunAll())
		}
		require.InDeltaSlice(t, []float64{1, 2, 3 - 6*.3, 4 - 6*.2, 5, 6, 1, -4}, elements(table), 1e-5)

		loss, table = embedding(dt, false) // the noise moves all rows
		u = must(New(loss, G.Nodes{table}, config(t, `{"preset": "returnn", "optimizer": {"class": "nadam"}, "gradient_noise": 0.3}`)))
		before := elements(table)
		require.NoError(t, must(u.NewMachine()).RunAll())
		for i, x := range elements(table) {
			require.NotEqual(t, before[i], x)
		}
	}
}

// Seven runs with three to an update make two updates, those of three times the gradient where the weights stay.
func TestEngineAccumulation(t *testing.T) {
	n, whole := newNet(tensor.Float64), newNet(tensor.Float64)
	u, vm := n.updater(t, `{"learning_rate": 0.1, "accum_grad_multiple_step": 3}`)
	train(t, n, vm, 7)
	_, vm = whole.updater(t, `{"learning_rate": 0.3}`)
	train(t, whole, vm, 2)
	for i, want := range whole.elements() {
		require.InDeltaSlice(t, want, elements(n.vars[i]), 1e-14)
	}
	require.Equal(t, 7, must(u.GlobalStep()))
}

func TestEngineDeterminism(t *testing.T) {
	const text = `{"optimizer": "adam", "learning_rate": 0.01, "debug_add_check_numerics_ops": true, "gradient_noise": 0.1, "deterministic_train": true}`
	run := func() ([]float64, [][]float64) {
		n := newNet(tensor.Float32)
		u, vm := n.updater(t, text)
		require.NoError(t, u.InitOptimizerVars())
		return train(t, n, vm, 4), n.elements()
	}
	losses, weights := run()
	for range 2 {
		l, w := run()
		require.Equal(t, losses, l)
		require.Equal(t, weights, w)
	}
}

// tags are those of the numbers of a summary.
func tags(t *testing.T, u *Updater) (tags map[string]float64) {
	t.Helper()
	r, ok, err := u.Summary()
	require.NoError(t, err)
	require.True(t, ok)
	tags = map[string]float64{}
	for _, v := range r.Values {
		tags[v.Tag] = v.Value
	}
	return tags
}

func TestEngineGradSummaries(t *testing.T) {
	n := newNet(tensor.Float64)
	u, vm := n.updater(t, `{"debug_grad_summaries": true}`)
	train(t, n, vm, 1)
	got := tags(t, u)
	require.Positive(t, got["global_grad_norm"])
	for _, v := range n.vars {
		for _, what := range []string{"_mean", "_stddev", "_rms", "_l2", "_max", "_min"} {
			require.Contains(t, got, "grads/"+v.Name()+what)
			require.Contains(t, got, "vars/"+v.Name()+what)
		}
	}
	for tag := range got {
		require.True(t, tag == "global_grad_norm" || strings.HasPrefix(tag, "grads/") || strings.HasPrefix(tag, "vars/"), tag)
	}
}

// A layer that is active in even steps only is trained in those only.
func TestEngineConditionalLayer(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", 1.0})
	u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 0.1}`)))
	vm := must(u.NewMachine())
	for i := range 10 {
		require.Equal(t, i, must(u.GlobalStep()))
		before, active := elements(l.vars[0]), i%2 == 0
		l.run(t, vm, map[bool]float64{true: .5}[active])
		require.Equal(t, active, before[0] != elements(l.vars[0])[0], i)
	}
}

// A penalty of the first weights as a meta loss.
func TestEngineMetaLoss(t *testing.T) {
	n := newNet(tensor.Float64)
	penalty := must(G.Mean(must(G.Square(must(G.Add(n.vars[0], n.vars[0]))))))
	u, err := New(n.loss, n.vars, config(t, `{"learning_rate": 0.1}`), WithMetaLoss("penalty", penalty, .5))
	require.NoError(t, err)
	require.Equal(t, []MetaLoss{{"penalty", penalty, .5}}, u.MetaLosses())
	vm := must(u.NewMachine(penalty))
	var costs []float64
	for range 5 {
		train(t, n, vm, 1)
		costs = append(costs, elements(penalty)[0])
	}
	require.Less(t, costs[4], costs[0])
}

func TestEngineDefaultOptimizer(t *testing.T) {
	n := newNet(tensor.Float32)
	u, vm := n.updater(t, `{"optimizer": {"class": "adam"}, "learning_rate": 0.01, "debug_grad_summaries": true, "log_grad_norm": true,
		"debug_add_check_numerics_ops": true, "debug_add_check_numerics_on_output": true, "debug_save_updater_vars": true, "summary_interval": 10}`)
	o, err := u.DefaultOptimizer()
	require.NoError(t, err)
	require.Equal(t, []string{"adam"}, must(u.Solver().RuleNames(o.Solver)))
	for _, name := range []string{"m", "v"} {
		require.Equal(t, n.vars[0].Shape(), u.Slot(n.vars[0], name).Shape())
		require.Contains(t, u.OptimizerVars(), u.Solver().Store().Lookup("layer1/W/adam/"+name))
	}
	losses := train(t, n, vm, 1000)
	require.Less(t, losses[999], losses[0]/10)
	require.Equal(t, 1000, must(u.GlobalStep()))
}

// (w−1)² at 0 has the gradient −2, which every optimizer is given, in one update of the variable; plain descent by 1 makes it 2.
func TestEngineGradientOfUpdate(t *testing.T) {
	for _, text := range []string{
		`{"optimizer": "adam"}`, `{"optimizer": "sgd", "learning_rate": 1}`, `{"optimizer": "rmsprop", "learning_rate": 0.1}`,
		`{"optimizer": "momentum", "momentum": 0.9, "learning_rate": 0.1}`,
	} {
		g := G.NewGraph()
		w, at := inputOf(g, tensor.Float64, "w", 0.0), inputOf(g, tensor.Float64, "at", 1.0)
		var updates []Extra
		u, err := New(must(G.Square(must(G.Sub(w, at)))), G.Nodes{w}, config(t, text), ExtraUpdate("w", func(x Extra) Expr {
			updates = append(updates, x)
			return x.Gradient
		}))
		require.NoError(t, err, text)
		require.NoError(t, must(u.NewMachine()).RunAll())
		require.Len(t, updates, 1, text)
		require.Equal(t, []float64{-2}, elements(w), text)
	}
	g := G.NewGraph()
	w, at, old := inputOf(g, tensor.Float64, "w", 0.0), inputOf(g, tensor.Float64, "at", 1.0), inputOf(g, tensor.Float64, "old", 5.0)
	u := must(New(must(G.Square(must(G.Sub(w, at)))), G.Nodes{w, old}, config(t, `{"learning_rate": 1}`),
		CustomUpdate(old, func(Expr) Expr { return graphops.Of(w) })))
	require.NoError(t, must(u.NewMachine()).RunAll())
	require.Equal(t, []float64{0, 2}, []float64{elements(old)[0], elements(w)[0]})
}

// A further updater without a network: ten runs of Adam.
func TestEngineWithoutNetwork(t *testing.T) {
	g := G.NewGraph()
	w := G.NewVector(g, G.Float32, G.WithShape(3), G.WithName("w"), G.WithValue(tensor.New(tensor.WithBacking([]float32{1, -2, 3}))))
	loss := must(G.Sum(must(G.Square(w))))
	u := must(New(loss, G.Nodes{w}, config(t, `{"optimizer": "adam", "learning_rate": 0.1, "gradient_clip_global_norm": 5.0, "log_grad_norm": true}`)))
	vm := must(u.NewMachine())
	var losses []float64
	for range 10 {
		require.NoError(t, vm.RunAll())
		norm := tags(t, u)["global_grad_norm"]
		require.InEpsilon(t, 4*elements(loss)[0], norm*norm, 1e-5) // of before the clip
		losses = append(losses, elements(loss)[0])
	}
	require.Less(t, losses[9], .9*losses[0])
	require.Equal(t, 10, must(u.GlobalStep()))
	require.Equal(t, []string{"global_grad_norm"}, slices.Sorted(maps.Keys(tags(t, u))))
}

// A function of the step as the learning rate: it is not multiplied by the one of the optimizer.
func TestEngineRateFunction(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", 0.0})
	u := must(New(l.loss, l.vars, Config{LearningRateSchedule: ramp{}}))
	rate := must(u.LearningRateNode())
	vm := must(u.NewMachine(rate))
	w := 0.0
	for i := range 5 {
		l.run(t, vm, 1.0)
		want := .001 * float64(i+1)
		w -= want
		require.InDelta(t, want, elements(rate)[0], 1e-15)
		require.InDelta(t, w, elements(l.vars[0])[0], 1e-15)
	}
}

// ramp is 0.001·(s+1).
type ramp struct{}

func (ramp) At(step Expr) Expr { return step.Add(graphops.Const(1)).Mul(graphops.Const(.001)) }

// Weights are decayed, biases and a layer by name are not.
func TestEngineDecayedSet(t *testing.T) {
	const text = `{"optimizer": {"class": "adamw", "weight_decay": 0.5}, "learning_rate": 0.1, "updater_opts": [
		{"match": "*/b", "weight_decay_multiplier": 0}, {"match": "layer2/*", "weight_decay_multiplier": 0}]}`
	n, plain := newNet(tensor.Float64), newNet(tensor.Float64)
	_, vm := n.updater(t, text)
	train(t, n, vm, 1)
	_, vm = plain.updater(t, `{"optimizer": "adam", "learning_rate": 0.1}`)
	before := plain.elements()
	train(t, plain, vm, 1)
	for i, v := range n.vars {
		want := elements(plain.vars[i])
		if v.Name() == "layer1/W" || v.Name() == "output/W" {
			for k, w := range before[i] {
				want[k] -= .1 * .5 * w
			}
		}
		require.InDeltaSlice(t, want, elements(v), 1e-14, v.Name())
	}
}

// Further points: equal options share an optimizer, a multiplier outlasts a change of the rate, 0 switches off for a variable.
func TestEngineSharedOptimizers(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"a", 0.0}, initial{"b", 0.0}, initial{"c", 0.0})
	u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 1, "updater_opts": [
		{"match": "a", "optimizer": {"class": "adam", "beta1": 0.5}}, {"match": "b", "optimizer": {"beta1": 0.5, "class": "adam"}},
		{"match": "c", "optimizer": {"class": "adam"}}]}`)))
	all := u.Optimizers()
	require.Len(t, all, 2)
	require.Equal(t, l.vars[:2], must(u.VarsOf(all[0], l.vars)))
	require.Equal(t, all[0], must(u.OptimizerOf(l.vars[1])))
	l.run(t, must(u.NewMachine()), 1.0, -2.0, 3.0)
	require.Equal(t, 1.0, counter(t, u, "adam/step"))
	require.InDeltaSlice(t, []float64{-1, 1, -1}, []float64{elements(l.vars[0])[0], elements(l.vars[1])[0], elements(l.vars[2])[0]}, 1e-7)
}

func TestEngineMultipliers(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"a", 0.0}, initial{"b", 0.0})
	u := must(New(l.loss, l.vars, config(t, `{"optimizer": {"class": "sgd", "learning_rate_multiplier": 2}, "learning_rate": 1, "gradient_clip": 1,
		"updater_opts": [{"match": "a", "learning_rate_multiplier": 3, "gradient_clip": 0}]}`)))
	vm := must(u.NewMachine())
	l.run(t, vm, 2.0, 2.0)
	require.Equal(t, []float64{-12, -2}, append(elements(l.vars[0]), elements(l.vars[1])...))
	require.NoError(t, u.SetLearningRate(.5))
	l.run(t, vm, 2.0, 2.0)
	require.Equal(t, []float64{-18, -3}, append(elements(l.vars[0]), elements(l.vars[1])...))
	require.Equal(t, .5, must(u.LearningRate())) // without multipliers
}

// A gradient that is not finite costs its step, not the model; the third in a row is an error, and a good one starts the count anew.
func TestEngineNonFiniteSteps(t *testing.T) {
	l := newLinear(tensor.Float32, initial{"w", 0.0})
	u := must(New(l.loss, l.vars, config(t, `{"optimizer": "adam", "learning_rate": 0.1, "skip_non_finite_steps": true, "max_skipped_steps": 3}`)))
	vm := must(u.NewMachine())
	for i, g := range []float64{2, nan, nan, 2, nan, nan} {
		l.run(t, vm, g)
		total, row, what, err := u.Skipped()
		require.NoError(t, err)
		require.Equal(t, [][]int{{0, 0}, {1, 1}, {2, 2}, {2, 0}, {3, 1}, {4, 2}}[i], []int{total, row})
		if row > 0 {
			require.Equal(t, "the loss", what) // w·g is NaN too
		}
	}
	require.NoError(t, G.Let(l.grads[0], float32(math.Inf(1))))
	require.ErrorContains(t, vm.RunAll(), "not finite")
	require.InDelta(t, -.2, elements(l.vars[0])[0], 1e-6)
	require.Equal(t, 2.0, counter(t, u, "adam/step"))
	require.Equal(t, 6, must(u.GlobalStep()))
}
