package updater

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/solvers"
	"optimop/solvers/schedule"
)

// badJSON are texts and what their errors say, mostly the path of the key.
var badJSON = []struct{ text, want string }{
	// the form of the text
	{``, "want an object, not an empty document"},
	{`{"optimizer"`, "unexpected end"},
	{`null`, "want an object"},
	{`3`, "want an object"},
	{`"adam"`, "want an object"},
	{`[]`, "want an object"},
	{strings.Repeat("[", 1<<20), "exceeded max depth"},
	{strings.Repeat(" ", 1<<20) + `{}`, "longer than 1048576 bytes"},
	{`{"optimizer": ` + strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5001), "optimizer"},
	{`{"optimizer": "adam"} x`, "after top-level value"},
	{`{"optimizer": "adam"}{}`, "after top-level value"},
	{`{"learning_rate": 1, "learning_rate": 2}`, "config: learning_rate: the key is written twice"},
	{`{"optimizer": {"class": "adam", "beta1": 1, "beta1": 2}}`, "config: optimizer.beta1: the key is written twice"},
	{`{"updater_opts": [{"match": "w"}, {"match": "w", "match": "b"}]}`, "config: updater_opts[1].match: the key is written twice"},

	// keys
	{`{"optimiser": "adam"}`, `config: optimiser: unknown key (did you mean "optimizer"?)`},
	{`{"Gradient_Clip": 1}`, `config: Gradient_Clip: unknown key (did you mean "gradient_clip"?)`},
	{`{"` + strings.Repeat("k", 1<<19) + `": 1}`, `unknown key`},
	{`{"updater_opts": [{"match": "w", "gradient_clp": 1}]}`, `config: updater_opts[0].gradient_clp: unknown key (did you mean "gradient_clip"?)`},
	{`{"adam": true}`, `config: adam: the flag is not understood; write "optimizer": {"class": "adam"}`},
	{`{"nadam": true}`, `write "optimizer": {"class": "nadam"}`},
	{`{"adadelta": true}`, `write "optimizer": {"class": "adadelta"}`},
	{`{"adagrad": true}`, `write "optimizer": {"class": "adagrad"}`},
	{`{"rmsprop": 0.9}`, `write "optimizer": {"class": "rmsprop"}`},
	{`{"use_horovod": true}`, "config: use_horovod: training on several machines"},
	{`{"horovod_scale_lr": true}`, "config: horovod_scale_lr: training on several machines"},
	{`{"horovod_avg_grad": true}`, "config: horovod_avg_grad: training on several machines"},
	{`{"horovod_reduce_type": "grad"}`, "config: horovod_reduce_type: training on several machines"},
	{`{"extra_updates": {"w": "x"}}`, "config: extra_updates: functions have no form in a file; use the option updater.ExtraUpdate"},
	{`{"reg_l2": 1}`, "config: reg_l2: write l2 in updater_opts"},

	// types
	{`{"learning_rate": "x"}`, `config: learning_rate: want a number, not "x"`},
	{`{"learning_rate": [1]}`, "config: learning_rate: want a number, not [1]"},
	{`{"gradient_clip": true}`, "config: gradient_clip: want a number, not true"},
	{`{"gradient_clip_norm": {"class": "constant", "value": 1}}`, "config: gradient_clip_norm: want a number"},
	{`{"accum_grad_multiple_step": 1.5}`, "config: accum_grad_multiple_step: want a whole number, not 1.5"},
	{`{"gradient_nan_inf_filter": "yes"}`, `config: gradient_nan_inf_filter: want true or false, not "yes"`},
	{`{"debug_add_check_numerics_ops": 2}`, "config: debug_add_check_numerics_ops: want true or false, not 2"},
	{`{"log_grad_norm": 3}`, "config: log_grad_norm: want true or false, not 3"},
	{`{"updater_opts": {"match": "w"}}`, "config: updater_opts: want a list"},
	{`{"updater_opts": [3]}`, "config: updater_opts[0]: want an object, not 3"},
	{`{"updater_opts": [null]}`, "config: updater_opts[0]: want an object, not null"},
	{`{"updater_opts": [{"match": 3}]}`, "config: updater_opts[0].match: want a string, not 3"},
	{`{"updater_opts": [{"match": "w", "tags": ["a", 3]}]}`, "config: updater_opts[0].tags[1]: want a string, not 3"},

	// numbers
	{`{"gradient_clip": -1}`, "config: gradient_clip is -1"},
	{`{"gradient_clip_norm": -0.5}`, "config: gradient_clip_norm is -0.5"},
	{`{"gradient_clip_avg_norm": -1}`, "config: gradient_clip_avg_norm is -1"},
	{`{"gradient_clip_global_norm": -1}`, "config: gradient_clip_global_norm is -1"},
	{`{"grad_norm_to_clip_to_zero": -1}`, "config: grad_norm_to_clip_to_zero is -1"},
	{`{"gradient_noise": -1e-9}`, "config: gradient_noise is -1e-09"},
	{`{"updater_opts": [{"match": "w"}, {"match": "w", "gradient_clip": -1}]}`, "config: updater_opts[1].gradient_clip is -1"},
	{`{"updater_opts": [{"match": "w", "l2": -1}]}`, "config: updater_opts[0].l2 is -1"},
	{`{"updater_opts": [{"match": "w", "weight_decay_multiplier": -1}]}`, "config: updater_opts[0].weight_decay_multiplier is -1"},
	{`{"maximize_grad_norm": 1e999}`, "config: maximize_grad_norm: json: cannot unmarshal number 1e999"},
	{`{"accum_grad_multiple_step": 1e30}`, "config: accum_grad_multiple_step: want a whole number, not 1e+30"},
	{`{"accum_grad_multiple_step": -2}`, "config: accum_grad_multiple_step is -2"},
	{`{"gradient_accumulation_steps": 1}`, "config: gradient_accumulation_steps is 1; it must be 0 (off), or 2 or above"},
	{`{"updater_opts": [{"match": "w", "gradient_accumulation_steps": 1}]}`, "config: updater_opts[0].gradient_accumulation_steps is 1"},
	{`{"accum_grad_multiple_step": 2, "gradient_accumulation_steps": 2}`, "config: gradient_accumulation_steps: accum_grad_multiple_step is given too"},
	{`{"accum_grad_multiple_step": 2, "updater_opts": [{"match": "w", "gradient_accumulation_steps": 2}]}`,
		"config: updater_opts[0].gradient_accumulation_steps: accum_grad_multiple_step is given too"},
	{`{"gradient_accumulation_steps": 2, "updater_opts": [{"match": "b"}, {"match": "w", "accum_grad_multiple_step": 2}]}`,
		"config: updater_opts[1].gradient_accumulation_steps: accum_grad_multiple_step is given too"},
	{`{"seed": -1}`, "config: seed is -1"},
	{`{"seed": 0.5}`, "config: seed: want a whole number, not 0.5"},
	{`{"seed": 9007199254740993}`, "config: seed is 9007199254740992; it must be 0 or above, and below 2⁵³"},
	{`{"summary_interval": -1}`, "config: summary_interval is -1"},
	{`{"reset_updater_vars_mod_step": -1}`, "config: reset_updater_vars_mod_step is -1"},
	{`{"max_skipped_steps": 3}`, "config: max_skipped_steps: it has no effect without skip_non_finite_steps"},
	{`{"decouple_constraints_factor": 0.025}`, "config: decouple_constraints_factor: it has no effect without decouple_constraints"},

	// patterns and tags
	{`{"updater_opts": [{"gradient_clip": 1}]}`, "config: updater_opts[0].match: missing"},
	{`{"updater_opts": [{"match": "w"}, {"match": "/(/"}]}`, `config: updater_opts[1].match: "/(/" is no regular expression`},
	{`{"updater_opts": [{"match": "[a"}]}`, `config: updater_opts[0].match: "[a" is no pattern`},
	{`{"updater_opts": [{"match": "w", "tags": ["a", ""]}]}`, "config: updater_opts[0].tags[1]: the tag is empty"},
	{`{"global_norm_tag": "a", "gradient_clip_global_norm": 1}`, `config: global_norm_tag: no updater_opts gives the tag "a" to a variable`},
	{`{"gradient_clip_global_norm_tag": "a", "updater_opts": [{"match": "w", "tags": "b", "gradient_clip_global_norm": 1}]}`,
		`config: gradient_clip_global_norm_tag: no updater_opts gives the tag "a"`},
	{`{"updater_opts": [{"match": "w", "tags": "a", "global_norm_tag": "b"}]}`, `config: updater_opts[0].global_norm_tag: no updater_opts gives the tag "b"`},
	{`{"global_norm_tag": "a", "updater_opts": [{"match": "w", "tags": "a"}]}`,
		"config: global_norm_tag: it has no effect without gradient_clip_global_norm or grad_norm_to_clip_to_zero"},
	{`{"grad_norm_to_clip_to_zero": 1, "updater_opts": [{"match": "w", "tags": "a", "gradient_clip_global_norm_tag": "a"}]}`,
		"config: updater_opts[0].gradient_clip_global_norm_tag: it has no effect without gradient_clip_global_norm"},

	// optimizers
	{`{"optimizer": 3}`, "config: optimizer: want a name or an object"},
	{`{"optimizer": ["adam"]}`, "config: optimizer: want a name or an object"},
	{`{"optimizer": "adma"}`, `config: optimizer: solvers: no optimizer is called "adma" (did you mean "adam"?)`},
	{`{"optimizer": {"class": "adma"}}`, `did you mean "adam"?`},
	{`{"optimizer": {"beta1": 0.5}}`, "config: optimizer.class: missing"},
	{`{"optimizer": {"class": 5}}`, "config: optimizer.class: want a name"},
	{`{"optimizer": {"class": null}}`, "config: optimizer.class: want a name"},
	{`{"optimizer": "adam", "preset": "kears"}`, `config: preset: "kears" is none of`},
	{`{"optimizer": "clip_by_global_norm"}`, `config: optimizer: "clip_by_global_norm" is no optimizer by itself`},
	{`{"optimizer": {"class": "returnn/gradient_clip"}}`, `config: optimizer: "returnn/gradient_clip" is no optimizer by itself`},
	{`{"optimizer": {"class": "adam", "beta3": 0.5}}`, `config: optimizer.beta3: unknown option (did you mean "beta1"?)`},
	{`{"optimizer": {"class": "adam", "beta1optimizer": 0.5}}`, "config: optimizer.beta1optimizer: unknown option"},
	{`{"optimizer": {"class": "adam", "beta1": "a"}}`, `config: optimizer.beta1: want a float64, not "a"`},
	{`{"optimizer": {"class": "adam", "beta1": null}}`, "config: optimizer.beta1: want a float64"},
	{`{"optimizer": {"class": "adam", "beta1": 1e999}}`, "config: optimizer: json: cannot unmarshal number 1e999"},
	{`{"optimizer": {"class": "adam", "beta1": 1.5}}`, "config: optimizer.beta1: adam/beta1 is 1.5"},
	{`{"optimizer": {"class": "keras/adam", "beta_2": -1}}`, "config: optimizer.beta_2: adam/beta2 is -1"},
	{`{"optimizer": {"class": "adam", "beta1": 0.5, "beta_1": 0.5}}`, `config: optimizer.beta_1: "beta1" already sets beta1`},
	{`{"optimizer": {"class": "adam", "betas": [0.5, 2]}}`, "config: optimizer.betas: adam/beta2 is 2"},
	{`{"optimizer": {"class": "momentum", "nesterov": 1}}`, "config: optimizer.nesterov: want a bool"},
	{`{"optimizer": {"class": "adabelief", "beta1": 0}}`, "config: optimizer.beta1: adabelief/beta1 is 0"},
	{`{"optimizer": {"class": "adam", "learning_rate_multiplier": -1}}`, "config: optimizer.learning_rate_multiplier is -1"},
	{`{"optimizer": {"class": "adam", "learning_rate": 0.5}}`, "config: optimizer.learning_rate: the learning rate does not belong here; write learning_rate beside"},
	{`{"optimizer": {"class": "adam", "LearningRate": 5}}`, "config: optimizer.LearningRate: the learning rate does not belong here"},
	{`{"optimizer": {"class": "adam", "adam/lr": 5}}`, "config: optimizer.adam/lr: the learning rate does not belong here"},
	{`{"optimizer": {"class": "torch/adam", "adam/lr": 5}, "learning_rate": 1}`, "config: optimizer.adam/lr: the learning rate does not belong here"},
	{`{"updater_opts": [{"match": "w", "optimizer": {"class": "adam", "lr": 1}}]}`, "config: updater_opts[0].optimizer.lr: the learning rate does not belong here"},
	{`{"updater_opts": [{"match": "w", "learning_rate": 1}]}`, "config: updater_opts[0].learning_rate: the learning rate does not belong here; write learning_rate_multiplier"},
	{`{"updater_opts": [{"match": "w", "optimizer": "adma"}]}`, "config: updater_opts[0].optimizer: solvers: no optimizer"},
	{`{"optimizer": "adam", "updater_opts": [{"match": "w"}, {"match": "w", "optimizer": {"beta1": 1.5}}]}`,
		"config: updater_opts[1].optimizer.beta1: adam/beta1 is 1.5"},
	{`{"learning_rate": -1}`, "config: learning_rate: solvers: sgd/learning_rate is -1"},
	{`{"optimizer": "cocob", "learning_rate": 1}`, `config: learning_rate: "cocob" has no hyperparameter of that name`},
	{`{"optimizer": "cocob", "dynamic_learning_rate": {"interval": 2, "decay": 0.5}}`, `config: dynamic_learning_rate: "cocob" has no learning rate`},
	{`{"optimizer_epsilon": 1e-8}`, "config: optimizer_epsilon: no optimizer here has an epsilon"},
	{`{"optimizer": "adam", "optimizer_epsilon": -1}`, "config: optimizer_epsilon is -1"},
	{`{"optimizer": "adam", "momentum": 0.9}`, "config: momentum: no optimizer here has a momentum"},
	{`{"optimizer": "momentum", "momentum": 1.9}`, "config: momentum: solvers: momentum/momentum is 1.9"},

	// schedules
	{`{"dynamic_learning_rate": 3}`, "config: dynamic_learning_rate: want a schedule"},
	{`{"dynamic_learning_rate": {"interval": 3}}`, "config: dynamic_learning_rate.decay is missing"},
	{`{"dynamic_learning_rate": {"interval": 3, "decay": 0.5, "deacy": 1}}`, `config: dynamic_learning_rate.deacy is unknown (did you mean "decay"?)`},
	{`{"dynamic_learning_rate": {"interval": 3, "decay": 0.5, "initial": 1}}`, `config: dynamic_learning_rate: initial: the key needs "class"`},
	{`{"dynamic_learning_rate": {"interval": 0, "decay": 0.5}}`, "config: dynamic_learning_rate.interval is 0; it must be 1 or more"},
	{`{"learning_rate": {"class": "noam", "d_model": 3, "warmup_step": 2}}`, `config: learning_rate.warmup_step is unknown (did you mean "warmup_steps"?)`},
	{`{"learning_rate": {"class": "noam", "d_model": "3", "warmup_steps": 2}}`, `config: learning_rate.d_model is "3"; it must be a whole number`},
	{`{"learning_rate": {"class": "naom"}}`, `config: learning_rate: schedule: no schedule is called "naom" (did you mean "noam"?)`},
	{`{"learning_rate": {"class": 3}}`, `config: learning_rate: schedule: the config needs a "class"`},
	{`{"learning_rate": {"class": "constant", "value": -3}}`, "config: learning_rate: solvers: sgd/learning_rate is -3"},
	{`{"optimizer": {"class": "adam", "beta1": {"class": "constant"}}}`, "config: optimizer.beta1.value is missing"},
	{`{"optimizer": {"class": "adam", "beta1": {"class": "constant", "value": 2}}}`, "config: optimizer.beta1: adam/beta1 is 2"},
	{`{"optimizer": {"class": "adam", "beta3": {"class": "constant", "value": 0}}}`, `config: optimizer.beta3: unknown option (did you mean "beta1"?)`},
	{`{"optimizer": {"class": "adam", "beta1": 0.5, "beta_1": {"class": "constant", "value": 0.5}}}`, `config: optimizer.beta_1: "beta1" already sets beta1`},
	{`{"optimizer": {"class": "momentum", "nesterov": {"class": "constant", "value": 1}}}`, "config: optimizer.nesterov: want a bool"},
}

var badYAML = []struct{ text, want string }{
	{"# only a comment\n", "want an object"},
	{"---\n", "want an object"},
	{"- a\n- b\n", "want an object"},
	{"optimizer: [adam\n", "bad YAML"},
	{"optimizer: adam\n...\nx", "bad YAML"},
	{"optimizer:\n\tclass: adam\n", "bad YAML"},
	{"---\noptimizer: adam\n---\noptimizer: sgd\n", "want one document, not 2"},
	{"learning_rate: 1\n'learning_rate': 2\n", `mapping key "learning_rate" already defined`},
	{"optimizer:\n  class: adam\n  beta1: 0.5\n  beta1: 0.5\n", `mapping key "beta1" already defined`},
	{"optimizer: {class: adam, class: sgd}\n", `mapping key "class" already defined`},
	{"optimizer: &a adam\n", "config: optimizer: anchors and aliases are not understood"},
	{"updater_opts:\n- match: w\n- match: *a\n", "config: updater_opts[1].match: anchors and aliases are not understood"},
	{"optimizer:\n  <<: {class: adam}\n", "anchors and aliases are not understood"},
	{"learning_rate: .inf\n", "config: learning_rate: the number must be finite"},
	{"updater_opts:\n- match: w\n  gradient_clip: .nan\n", "config: updater_opts[0].gradient_clip: the number must be finite"},
	{"learning_rate: 1e999\n", "config: learning_rate: want a number"},
	{"seed: 18446744073709551615\n", "config: seed: want a whole number"},
	{"learning_rate: 2021-01-01\n", "config: learning_rate: want a number"},
	{"gradient_nan_inf_filter: yes\n", `config: gradient_nan_inf_filter: want true or false, not "yes"`},
	{"optimizer: !!binary aGk=\n", "config: optimizer: want a name or an object"},
	{"1: 2\n", "config: 1: unknown key"},
	{"optimizer: adam\r\nlearning_rate: -1\r\n", "config: learning_rate: solvers: adam/learning_rate is -1"},
	{"optimizer:\n  class: adam\n  beta1: \"0.5\"\n", `config: optimizer.beta1: want a float64, not "0.5"`},
	{"updater_opts:\n- match: '*'\n  gradient_clip: -1\n", "config: updater_opts[0].gradient_clip is -1"},
	{"a: " + strings.Repeat("x", 32<<10), "the YAML text is longer than 32768 bytes"},
	{strings.Repeat("- ", 12000), "bad YAML: exceeded max depth"},
	{strings.Repeat("a: {", 2000), "bad YAML"},
	{"optimizer: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "config: optimizer: want a name or an object"},
}

func TestReadConfigRefuses(t *testing.T) {
	for _, c := range append(badJSON, badYAML...) {
		got, err := ReadConfig(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, "%.200s", c.text)
		require.Equal(t, Config{}, got)
	}
	_, err := ReadConfig(nil)
	require.Error(t, err)
	c := config(t, `{"optimizer": null, "learning_rate": null}`)
	require.Equal(t, Config{}, c)
	require.Equal(t, Config{LearningRate: new(0.0)}, config(t, `{"learning_rate": 0}`))
}

// What depends on the variables, or comes from Go.
func TestNewRefusesConfigs(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	var nodes int
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{config(t, `{"updater_opts": [{"match": "w"}, {"match": "x/*"}]}`), `config: updater_opts[1].match: "x/*" fits none of the variables ["w" "b"]`},
		{config(t, `{"updater_opts": [{"match": "/^B$/"}]}`), `config: updater_opts[0].match: "/^B$/" fits none`},
		{Config{UpdaterOpts: []VarOptions{{Vars: G.Nodes{nil}}}}, "config: updater_opts[0].match"},
		{config(t, `{"updater_opts": [{"match": "w", "accum_grad_multiple_step": 2}, {"match": "*", "gradient_accumulation_steps": 2}]}`),
			`config: the settings of "w": gradient_accumulation_steps: accum_grad_multiple_step is given too`},
		{Config{GradientClip: nan}, "config: gradient_clip is NaN"},
		{Config{GradientClipGlobalNorm: inf}, "config: gradient_clip_global_norm is +Inf"},
		{Config{GradientNoise: nan}, "config: gradient_noise is NaN"},
		{Config{MaximizeGradNorm: -inf}, "config: maximize_grad_norm is -Inf"},
		{Config{Momentum: nan, Optimizer: "momentum"}, "config: momentum is NaN"},
		{Config{OptimizerEpsilon: &inf, Optimizer: "adam"}, "config: optimizer_epsilon is +Inf"},
		{Config{LearningRate: &inf}, "config: learning_rate"},
		{Config{Seed: 1 << 53}, "config: seed is 9007199254740992"},
		{Config{UpdaterOpts: []VarOptions{{Match: "w", L2: &nan}}}, "config: updater_opts[0].l2 is NaN"},
		{Config{UpdaterOpts: []VarOptions{{Match: "w", LearningRateMultiplier: &inf}}}, "config: updater_opts[0].learning_rate_multiplier is +Inf"},
		{Config{Optimizer: map[string]any{"class": "adam", "beta1": nan}}, "config: optimizer.beta1: adam/beta1 is NaN"},
		{Config{Optimizer: map[string]any{"class": "adam", "learning_rate_multiplier": nan}}, "config: optimizer.learning_rate_multiplier: want a number"},
		{Config{LearningRate: new(.1), LearningRateSchedule: schedule.NewConstant(.1)}, "config: learning_rate: there is a number and a schedule"},
		{Config{LearningRateSchedule: schedule.NewConstant(nan)}, "config: learning_rate.value is NaN"},
		{Config{DynamicLearningRate: schedule.Func(nil)}, "config: dynamic_learning_rate"},
		{Config{Optimizer: solvers.NewSGD(), LearningRateSchedule: schedule.NewConstant(-1)}, "config: the schedule at step 0: solvers: sgd/learning_rate is -1"},
		{config(t, `{"decouple_constraints": true, "decouple_constraints_factor": 1, "optimizer": "cocob"}`), "config: decouple_constraints_factor: no optimizer"},
		{config(t, `{"decouple_constraints": true, "decouple_constraints_factor": 1, "learning_rate": 0}`), "config: decouple_constraints_factor: the first"},
	} {
		g, loss, w, b := model()
		nodes = len(g.AllNodes())
		_, err := New(loss, G.Nodes{w, b}, c.cfg)
		require.ErrorContains(t, err, c.want)
		require.Len(t, g.AllNodes(), nodes)
	}
}

// A tag is read where any of the settings that concern a variable has a norm that goes by it.
func TestTagsOfSeveralSettings(t *testing.T) {
	c := config(t, `{"updater_opts": [{"match": "w", "tags": "a", "gradient_clip_global_norm": 1}, {"match": "w", "global_norm_tag": "a"}]}`)
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, c))
	require.NoError(t, must(u.NewMachine()).RunAll())
	norm := math.Hypot(2, 8)
	require.InDeltaSlice(t, []float64{1 - .01*2/norm, -1 + .01*8/norm}, floats(w), 1e-12)
}

func FuzzReadConfig(f *testing.F) {
	for _, c := range append(badJSON, badYAML...) {
		if len(c.text) < 200 {
			f.Add(c.text)
		}
	}
	f.Add(`{"optimizer": {"class": "adam", "beta1": 0.5}, "learning_rate": 1e-3}`)
	f.Add("optimizer:\n  class: adam\n  beta1: {class: exponential_decay, initial: 0.9, decay_steps: 3, decay_rate: 0.5}\nlearning_rate:\n  class: noam\n" +
		"  d_model: 4\n  warmup_steps: 3\nupdater_opts:\n- match: '*'\n  tags: [a, b]\n  gradient_clip_global_norm: 1\n  global_norm_tag: a\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			t.Skip("longer texts are in the table")
		}
		c, err := ReadConfig(strings.NewReader(text))
		if err != nil {
			require.Equal(t, Config{}, c)
			return
		}
		_, loss, w, b := model()
		u, err := New(loss, G.Nodes{w, b}, c)
		if err != nil { // what a config by itself does not tell
			require.Regexp(t, "fits none|settings of|decouple_constraints_factor", err.Error())
			return
		}
		require.NotEmpty(t, fmt.Sprint(u.Table()))
	})
}
