package updater

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
)

// trainOnce runs a config once over variables a, b, … of one element.
func trainOnce(t *testing.T, c Config, values, grads []float64) []float64 {
	t.Helper()
	var vars []initial
	var feeds []any
	for i, x := range values {
		vars, feeds = append(vars, initial{string(rune('a' + i)), x}), append(feeds, grads[i])
	}
	l := newLinear(tensor.Float64, vars...)
	u, err := New(l.loss, l.vars, c)
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	l.run(t, vm, feeds...)
	return l.all()
}

// Rules that are given in Go look alike in JSON, and are told apart all the same.
func TestRulesOfOneFormAreTwo(t *testing.T) {
	one := 1.0
	of := func(a, b any) Config {
		return Config{LearningRate: &one, UpdaterOpts: []VarOptions{{Match: "a", Constraints: []any{a}}, {Match: "b", Constraints: []any{b}}}}
	}
	for _, c := range []Config{
		of(solvers.NewBox(0, 3), solvers.NewBox(0, 5)),
		of(map[string]any{"class": "chain", "rules": []any{solvers.NewBox(0, 3)}},
			map[string]any{"class": "chain", "rules": []any{solvers.NewBox(0, 5)}}),
		of(map[string]any{"class": "chain", "rules": []solvers.Rule{solvers.NewBox(0, 3)}},
			map[string]any{"class": "chain", "rules": []solvers.Rule{solvers.NewBox(0, 5)}}),
		{LearningRate: &one, UpdaterOpts: []VarOptions{
			{Match: "a", Optimizer: map[string]any{"class": "chain", "rules": []any{"sgd", solvers.NewBox(0, 3)}}},
			{Match: "b", Optimizer: map[string]any{"class": "chain", "rules": []any{"sgd", solvers.NewBox(0, 5)}}}}},
	} {
		got := trainOnce(t, c, []float64{8, 8}, []float64{1, 1})
		require.InDeltaSlice(t, []float64{3, 5}, got, 1e-12)
	}
	l := newLinear(tensor.Float64, initial{"a", 1.})
	u, err := New(l.loss, l.vars, Config{Constraints: []any{solvers.NewBox(0, 3)}})
	require.NoError(t, err)
	require.Equal(t, `{"class":"sgd","constraints":["*solvers.Solver"]}`, u.Optimizers()[0].Key)
}

// A config with rules of Go anywhere has no form in a file.
func TestRulesHaveNoJSON(t *testing.T) {
	box := solvers.NewBox(0, 3)
	for want, c := range map[string]Config{
		"config: constraints[1]: a *solvers.Solver has no form":            {Constraints: []any{"non_negative", box}},
		"config: constraints[0]: a *solvers.Box has no form":               {Constraints: []any{&solvers.Box{}}},
		"config: constraints[0].rules[0]: a *solvers.Solver has no form":   {Constraints: []any{map[string]any{"class": "chain", "rules": []any{box}}}},
		"config: optimizer.rule: a *solvers.Solver has no form":            {Optimizer: map[string]any{"class": "lookahead", "rule": solvers.NewSGD()}},
		"config: updater_opts[0].constraints[0]: a *solvers.Solver has no": {UpdaterOpts: []VarOptions{{Match: "a", Constraints: []any{box}}}},
	} {
		_, err := json.Marshal(c)
		require.ErrorContains(t, err, want)
	}
}

// The epsilon of the config is not that of a constraint.
func TestEpsilonOfConstraints(t *testing.T) {
	_, err := ReadConfig(strings.NewReader(`{"optimizer_epsilon": 1, "constraints": ["unit_norm"]}`))
	require.ErrorContains(t, err, "config: optimizer_epsilon: no optimizer here has an epsilon")
}

// What an optimizer does by itself, wherever it is said, nothing around it does again.
func TestNothingTwice(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"keras_strict": true, "clipnorm": 1, "optimizer": {"class": "sgd", "clipnorm": 2}}`,
			"config: optimizer: clipnorm: the optimizer clips by itself"},
		{`{"keras_strict": true, "clipnorm": 1, "optimizer": {"class": "sgd", "clipvalue": 2}}`,
			"config: optimizer: clipnorm: the optimizer clips by itself"},
		{`{"keras_strict": true, "gradient_accumulation_steps": 2, "optimizer": {"class": "sgd", "gradient_accumulation_steps": 3}}`,
			"accumulates by itself, and what it gets is of 2 runs"},
		{`{"keras_strict": true, "accum_grad_multiple_step": 2, "optimizer": {"class": "sgd", "gradient_accumulation_steps": 3}}`,
			"accumulates by itself, and what it gets is of 2 runs"},
		{`{"accum_grad_multiple_step": 2, "optimizer": {"class": "chain", "rules": [{"class": "sgd", "gradient_accumulation_steps": 3}]}}`,
			"accumulates by itself, and what it gets is of 2 runs"},
		{`{"gradient_accumulation_steps": 2, "optimizer": {"class": "sgd", "base/gradient_accumulation_steps": 3}}`,
			"accumulates by itself, and what it gets is of 2 runs"},
	} {
		_, err := ReadConfig(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, c.text)
	}
	accumulates := solvers.WithBase(solvers.NewSGD(), func(b *solvers.Base) { b.GradientAccumulationSteps = 2 })
	clips := solvers.WithBase(solvers.NewSGD(), func(b *solvers.Base) { b.ClipValue = 2 })
	l := newLinear(tensor.Float64, initial{"a", 1.})
	for _, strict := range []bool{false, true} {
		_, err := New(l.loss, l.vars, Config{KerasStrict: strict, GradientAccumulationSteps: 2, Optimizer: accumulates})
		require.ErrorContains(t, err, "accumulates by itself")
		_, err = New(l.loss, l.vars, Config{KerasStrict: strict, ClipNorm: 2, Optimizer: clips})
		require.ErrorContains(t, err, "clipnorm: the optimizer clips by itself")
	}
}

// An optimizer that has to be told of the loss's scale, or of a learning rate, is none for a config.
func TestIncompleteOptimizers(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"optimizer": {"class": "loss_scale", "rule": "sgd"}}`,
			"config: optimizer: it divides the gradients by a scale of the loss"},
		{`{"optimizer": {"class": "sgd", "base/loss_scale_factor": 4}}`,
			"config: optimizer.base/loss_scale_factor: the key does not belong here"},
		{`{"optimizer": {"class": "sgd", "base/overwrite_with_gradient": ["a"]}}`,
			"config: optimizer.base/overwrite_with_gradient: the key does not"},
		{`{"optimizer": {"class": "chain", "rules": [{"class": "adam", "loss_scale_factor": 4}]}}`,
			"config: optimizer: it divides the gradients by a scale of the loss"},
		{`{"optimizer": "cocob", "weight_decay": 0.5}`,
			`config: optimizer: "cocob" has no learning rate, which weight_decay goes by`},
	} {
		_, err := ReadConfig(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, c.text)
	}
	l := newLinear(tensor.Float64, initial{"a", 1.})
	for _, s := range []*solvers.Solver{solvers.WithLossScale(solvers.NewSGD(), func(s *solvers.LossScale) { s.InitialScale = 1 }),
		solvers.WithBase(solvers.NewSGD(), func(b *solvers.Base) { b.LossScaleFactor = 4 })} {
		_, err := New(l.loss, l.vars, Config{Optimizer: s, DynamicLossScale: &DynamicLossScale{}})
		require.ErrorContains(t, err, "write loss_scale_factor or dynamic_loss_scale beside optimizer")
	}
}

// What is overwritten with its gradient is in no norm, whatever the loss's scale makes of it.
func TestOverwrittenIsInNoNorm(t *testing.T) {
	for _, c := range []struct {
		config string
		want   []float64
	}{
		{`"gradient_clip_global_norm": 4`, []float64{100, 8 - 2.4, 8 - 3.2}},
		{`"gradient_clip_global_norm": 4, "loss_scale_factor": 16`, []float64{1600, 8 - 2.4, 8 - 3.2}},
		{`"gradient_clip_global_norm": 4, "global_norm_tag": "x", "updater_opts": [{"match": "[ab]", "tags": "x"}]`, []float64{100, 5, 4}},
		{`"grad_norm_to_clip_to_zero": 6`, []float64{100, 5, 4}},
		{`"global_clipnorm": 4`, []float64{100, 8 - 2.4, 8 - 3.2}},
	} {
		cfg := config(t, `{"learning_rate": 1, "overwrite_with_gradient": "a", `+c.config+`}`)
		require.InDeltaSlice(t, c.want, trainOnce(t, cfg, []float64{8, 8, 8}, []float64{100, 3, 4}), 1e-12, c.config)
	}
	for _, scale := range []float64{0, 16} { // w² and v²
		g := G.NewGraph()
		w, v := input(g, "w", 3), input(g, "v", 4)
		loss := must(G.Add(must(G.Mul(w, w)), must(G.Mul(v, v))))
		one := 1.0
		u := must(New(loss, G.Nodes{w, v}, Config{LearningRate: &one, OverwriteWithGradient: []string{"v"}, MaximizeGradNorm: .5,
			LossScaleFactor: scale, LogGradNorm: true}))
		runs(t, must(u.NewMachine()), 1)
		require.InDelta(t, 3-6+.5*2, floats(w)[0], 1e-12)
		require.InDelta(t, 8*max(1, scale), floats(v)[0], 1e-12)
		record, ok, err := u.Summary()
		require.True(t, ok && err == nil)
		require.InDelta(t, 6, record.Values[0].Value, 1e-12)
	}
	l := newLinear(tensor.Float64, initial{"a", 1.}, initial{"b", 1.})
	_, err := New(l.loss, l.vars, config(t, `{"overwrite_with_gradient": "a", "gradient_clip_global_norm": 1, "global_norm_tag": "x", "updater_opts": [{"match": "a", "tags": "x"}]}`))
	require.ErrorContains(t, err, `no variable with the tag "x" is updated by its gradient`)
}

// Patterns of overwritten variables are as others, and a custom update counts more.
func TestOverwrittenVariables(t *testing.T) {
	g := G.NewGraph()
	w := input(g, "w", 3)
	second := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("w"), G.WithValue(in(tensor.Float64, []float64{1, 2})))
	loss := must(G.Add(must(G.Mul(w, w)), must(G.Sum(must(G.HadamardProd(second, second))))))
	u := must(New(loss, G.Nodes{w, second}, Config{OverwriteWithGradient: []string{"w"}}))
	runs(t, must(u.NewMachine()), 1)
	require.Equal(t, []float64{6, 2, 4}, append(floats(w), elements(second)...))
	require.Empty(t, u.Optimizers())
	_, err := u.OptimizerOf(w)
	require.ErrorContains(t, err, `no optimizer has the variable "w"`)

	for _, text := range []string{`{"overwrite_with_gradient": "*"}`,
		`{"learning_rate": 1, "overwrite_with_gradient": "a", "gradient_clip_global_norm": 9, "global_norm_tag": "x", "updater_opts": [{"match": "*", "tags": "x"}]}`} {
		l := newLinear(tensor.Float64, initial{"a", 1.}, initial{"b", 1.}, initial{"c", 1.})
		u = must(New(l.loss, l.vars, config(t, text), CustomUpdate(l.vars[1], func(old Expr) Expr { return old.Neg() })))
		vm := must(u.NewMachine())
		l.run(t, vm, 2., 3., 0.)
		require.Equal(t, []float64{2, -1}, l.all()[:2])
	}
	for _, name := range []string{"w[0]", "w*", `w\x`, "w?", "[", "a/b[1]/c"} {
		l := newLinear(tensor.Float64, initial{name, 8.}, initial{"w", 8.})
		one := 1.0
		u = must(New(l.loss, l.vars, Config{LearningRate: &one, OverwriteWithGradient: []string{quote.Replace(name)},
			GradientClipGlobalNorm: 1, UseEMA: true}))
		l.run(t, must(u.NewMachine()), 3., 1.)
		require.Equal(t, []float64{3, 7}, l.all(), name)
	}
	// without a loss its penalty does not train it either
	l := newLinear(tensor.Float64, initial{"a", 1.})
	idle := input(l.loss.Graph(), "idle", 5)
	u = must(New(l.loss, append(l.vars, idle), config(t, `{"overwrite_with_gradient": "idle", "updater_opts": [{"match": "idle", "l2": 0.5}]}`)))
	l.run(t, must(u.NewMachine()), 3.)
	require.Equal(t, 5., floats(idle)[0])
	require.Contains(t, u.Table(), "not trained: no loss depends on it")
}

// An option of an optimizer's own map is that option in every spelling.
func TestSpellingsOfArguments(t *testing.T) {
	for text, want := range map[string]float64{
		`"weight_decay": 0.5, "optimizer": {"class": "adamw", "adamw/weight_decay": 0.25}`:                                  8 - 2 - 1,
		`"weight_decay": 0.5, "optimizer": {"class": "adamw", "weight_decay_rate": 0.25}`:                                   8 - 2 - 1,
		`"weight_decay": 0.5, "optimizer": {"class": "lion", "WeightDecay": 0.25}`:                                          8 - 2 - 1,
		`"weight_decay": 0.5, "optimizer": {"class": "sgd", "base/weight-decay": 0.25}`:                                     8 - 2 - 1,
		`"optimizer": {"class": "adamw", "weight_decay_rate": 0.25}, "updater_opts": [{"match": "a", "weight_decay": 0.5}]`: 8 - 4 - 1,
		`"constraints": "unit_norm", "optimizer": {"class": "sgd", "base/constraints": {"class": "box", "max_value": 2}}`:   2,
	} {
		got := trainOnce(t, config(t, `{"learning_rate": 1, `+text+`}`), []float64{8}, []float64{1})
		require.InDelta(t, want, got[0], 1e-6, text)
	}
}

// A scale does not grow beyond all numbers.
func TestDynamicLossScaleStaysFinite(t *testing.T) {
	for _, host := range hosts {
		l := newLinear(tensor.Float64, initial{"w", 8.})
		u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 1, "dynamic_loss_scale":
			{"initial_scale": 1e308, "growth_factor": 1e300, "dynamic_growth_steps": 2, "backoff_factor": 1e-5}}`), host...))
		vm := must(u.NewMachine())
		for _, row := range []struct{ grad, w, scale float64 }{{.5, 7.5, 1e308}, {.5, 7, 1e308}, {4, 7, 1e303}, {4, 3, 1e303}} {
			l.run(t, vm, row.grad)
			require.InEpsilonSlice(t, []float64{row.w, row.scale}, []float64{l.all()[0], must(u.LossScale())}, 1e-12)
		}
	}
}
