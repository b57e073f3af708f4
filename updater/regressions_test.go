package updater

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/solvers"
	"optimop/solvers/schedule"
)

// YAML's numbers with an exponent and no point are numbers, but not in quotes.
func TestYAMLExponents(t *testing.T) {
	for _, text := range []string{"1e-8", "1e-08", "1E-8", "+1e-8", "1.0e-8", "0.00000001"} {
		c := config(t, "optimizer: {class: adam, epsilon: "+text+"} # comment\noptimizer_epsilon: "+text+"\n")
		require.Equal(t, 1e-8, *c.OptimizerEpsilon)
		require.Equal(t, 1e-8, c.Optimizer.(map[string]any)["epsilon"])
	}
	require.Equal(t, int64(2000), config(t, "seed: 2e3").Seed)
	require.Equal(t, []string{"1e3"}, config(t, `updater_opts: [{match: w, tags: ["1e3"]}]`).UpdaterOpts[0].Tags)
	for text, want := range map[string]string{
		`optimizer_epsilon: "1e-8"`:                  `optimizer_epsilon: want a number, not "1e-8"`,
		"optimizer_epsilon: 1e999":                   `optimizer_epsilon: want a number, not "1e999"`,
		"optimizer_epsilon: -1e-3":                   "optimizer_epsilon is -0.001",
		"seed: 1e-3":                                 "seed: want a whole number",
		"updater_opts: [{match: w, tags: [a, 1e3]}]": "updater_opts[0].tags[1]: want a string",
	} {
		_, err := ReadConfig(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
}

// scalars are variables of value 1, and losses of some of them, with these gradients.
func scalars(gradients map[string]float64, names ...string) (vs G.Nodes, loss func(names ...string) *G.Node) {
	g := G.NewGraph()
	for _, name := range names {
		vs = append(vs, G.NewScalar(g, G.Float64, G.WithName(name), G.WithValue(1.0)))
	}
	return vs, func(names ...string) (sum *G.Node) {
		for _, name := range names {
			by := G.NewScalar(g, G.Float64, G.WithName("gradient of "+name), G.WithValue(gradients[name]))
			term := must(G.Mul(by, vs[slices.IndexFunc(vs, func(v *G.Node) bool { return v.Name() == name })]))
			if sum != nil {
				term = must(G.Add(sum, term))
			}
			sum = term
		}
		return sum
	}
}

// trained are the values of variables after some runs.
func trained(t *testing.T, u *Updater, vars G.Nodes, runs int) (all []float64) {
	t.Helper()
	vm, err := u.NewMachine()
	require.NoError(t, err)
	for range runs {
		require.NoError(t, vm.RunAll())
	}
	for _, v := range vars {
		all = append(all, floats(v)...)
	}
	return all
}

// A tag's norm is of the variables of all losses.
func TestTagAcrossLosses(t *testing.T) {
	vars, loss := scalars(map[string]float64{"a": 3, "b": 4}, "a", "b")
	u, err := New(loss("a"), vars[:1], config(t, `{"learning_rate": 1, "updater_opts": [
		{"match": "/[ab]/", "tags": "t"}, {"match": "a", "gradient_clip_global_norm": 1, "global_norm_tag": "t"}]}`))
	require.NoError(t, err)
	require.NoError(t, u.AddLoss(loss("b"), vars[1]))
	require.InDeltaSlice(t, []float64{1 - 3.0/5, 1 - 4}, trained(t, u, vars, 1), 1e-15)
}

// Names are no patterns where their norm is taken.
func TestTagOfNamesLikePatterns(t *testing.T) {
	for _, name := range []string{"w?", "w*", "w[0-9]", `w\1`, "w[", "*"} {
		vars, loss := scalars(map[string]float64{name: 3, "w1": 4}, name, "w1")
		c := config(t, `{"learning_rate": 1, "gradient_clip_global_norm": 1, "global_norm_tag": "t", "updater_opts": [{"match": "/./", "tags": "t"}]}`)
		c.UpdaterOpts[0].Match, c.UpdaterOpts[0].Vars = "", vars[:1]
		u, err := New(loss(name, "w1"), vars, c)
		require.NoError(t, err, name)
		require.InDeltaSlice(t, []float64{1 - 3.0/3, 1 - 4.0/3}, trained(t, u, vars, 1), 1e-15, name)
	}
}

// An empty tag for clips means all variables, where no tag means that of the norms.
func TestEmptyClipTag(t *testing.T) {
	for tag, want := range map[string]float64{``: 1 - 3.0/4, `, "gradient_clip_global_norm_tag": ""`: 1 - 3.0/5} {
		vars, loss := scalars(map[string]float64{"a": 3, "b": 4}, "a", "b")
		u, err := New(loss("a", "b"), vars, config(t, `{"learning_rate": 1, "global_norm_tag": "t", "updater_opts": [
			{"match": "b", "tags": "t"}, {"match": "a", "gradient_clip_global_norm": 1`+tag+`}]}`))
		require.NoError(t, err)
		require.InDelta(t, want, trained(t, u, vars, 1)[0], 1e-15, tag)
	}
}

// No optimizer is the same as "sgd", also where a preset has one, and for options beside the config's class.
func TestAbsentOptimizerOfPreset(t *testing.T) {
	for _, text := range []string{`{"preset": "torch"}`, `{"preset": "torch", "optimizer": "sgd"}`,
		`{"preset": "torch", "updater_opts": [{"match": "a", "optimizer": "sgd"}]}`,
		`{"preset": "torch", "updater_opts": [{"match": "a", "optimizer": {"learning_rate_multiplier": 1}}]}`} {
		vars, loss := scalars(map[string]float64{"a": 1, "b": 1}, "a", "b")
		u, err := New(loss("a", "b"), vars, config(t, text))
		require.NoError(t, err)
		require.InDeltaSlice(t, []float64{.999, .999}, trained(t, u, vars, 1), 1e-15, text)
	}
}

// The learning rate is that of an optimizer in use, and has a node, even if the first variable has no gradient.
func TestRateOfOptimizerInUse(t *testing.T) {
	vars, loss := scalars(map[string]float64{"b": 1}, "a", "b")
	u, err := New(loss("b"), vars, config(t, `{"learning_rate": {"class": "exponential_decay", "initial": 0.2, "decay_steps": 1, "decay_rate": 0.5},
		"updater_opts": [{"match": "b", "learning_rate_multiplier": 3}]}`))
	require.NoError(t, err)
	rate, err := u.LearningRateNode()
	require.NoError(t, err)
	vm, err := u.NewMachine(rate)
	require.NoError(t, err)
	for _, want := range []float64{.2, .1} {
		require.InDelta(t, want, must(u.LearningRate()), 1e-15)
		require.NoError(t, vm.RunAll())
		require.InDelta(t, want, floats(rate)[0], 1e-15)
	}
	require.InDelta(t, 1-.6-.3, floats(vars[1])[0], 1e-15)
}

// The decoupled decay is relative to the first learning rate of a schedule, and follows it in all groups.
func TestDecayFactorOfSchedule(t *testing.T) {
	vars, loss := scalars(map[string]float64{"a": 0, "b": 0}, "a", "b")
	u, err := New(loss("a", "b"), vars, config(t, `{"learning_rate": {"class": "exponential_decay", "initial": 0.2, "decay_steps": 1, "decay_rate": 0.5},
		"dynamic_learning_rate": {"interval": 2, "decay": 0.1}, "decouple_constraints": true, "decouple_constraints_factor": 0.5,
		"updater_opts": [{"match": "*", "l2": 0.1}, {"match": "b", "accum_grad_multiple_step": 2}]}`))
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{(1 - .1) * (1 - .1*.05), 1 - .1*.05}, trained(t, u, vars, 2), 1e-15)
}

// A rule that is given in Go follows a schedule in all groups of variables.
func TestScheduleOfSharedRule(t *testing.T) {
	for _, b := range []VarOptions{{Match: "b", LearningRateMultiplier: new(2.0)}, {Match: "b", AccumGradMultipleStep: new(2)}} {
		vars, loss := scalars(map[string]float64{"a": 1, "b": 1}, "a", "b")
		u, err := New(loss("a", "b"), vars, Config{Optimizer: solvers.NewSGD(), LearningRateSchedule: schedule.NewExponentialDecay(.2, 1, .5),
			UpdaterOpts: []VarOptions{b}})
		require.NoError(t, err)
		want := []float64{1 - .2 - .1, 1 - .4 - .2}
		if b.AccumGradMultipleStep != nil {
			want[1] = 1 - .1*2
		}
		require.InDeltaSlice(t, want, trained(t, u, vars, 2), 1e-15)
	}
}

// An option with a schedule follows it where a penalty alone gives the variable its gradient, too.
func TestScheduleOfPenalizedVariable(t *testing.T) {
	vars, loss := scalars(map[string]float64{"a": 1}, "a", "b")
	u, err := New(loss("a"), vars, config(t, `{"learning_rate": 1, "updater_opts": [{"match": "b", "l2": 0.25,
		"optimizer": {"class": "momentum", "momentum": {"class": "exponential_decay", "initial": 1, "decay_steps": 1, "decay_rate": 0.5}}}]}`))
	require.NoError(t, err)
	require.InDelta(t, 1-.5-(.5*.5+.25), trained(t, u, vars, 2)[1], 1e-15)
}
