package solvers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/solvers/schedule"
)

type dict = map[string]any

// Every mistake in the options of an optimizer, of its base class included, is an error that names the option and says what is
// legal or near; within other rules it also says which of them is meant.
func TestBadOptions(t *testing.T) {
	for want, o := range map[string]dict{
		"only one of clipnorm, global_clipnorm and clipvalue can be given":                         {"clipnorm": 1, "clipvalue": 1},
		"only one of clipnorm, global_clipnorm and clipvalue":                                      {"global_clipnorm": 0, "clip_norm": 0},
		"gradient_accumulation_steps is 1; it must be 2 or more, or 0 for none":                    {"gradient_accumulation_steps": 1},
		`"gradient_accumulation_steps": want an int, not "2"`:                                      {"gradient_accumulation_steps": "2"},
		`"gradient_accumulation_steps": want an int, not 2.5`:                                      {"gradient_accumulation_steps": 2.5},
		"ema_momentum is 1.5; it must be in [0, 1]":                                                {"ema_momentum": 1.5},
		"ema_momentum is -0.5; it must be in [0, 1]":                                               {"EMA-Momentum": -.5, "use_ema": true},
		"ema_momentum is NaN; it must be in [0, 1]":                                                {"ema_momentum": math.NaN()},
		`"ema_momentum": base/ema_momentum is NaN`:                                                 {"ema_momentum": "nan"},
		"ema_overwrite_frequency is 1.5; it must be a whole number":                                {"ema_overwrite_frequency": 1.5},
		"ema_overwrite_frequency is +Inf; it must be in [0, +Inf)":                                 {"ema_overwrite_frequency": math.Inf(1)},
		"clip_norm is NaN; it must be in [0, +Inf)":                                                {"clipnorm": "nan"},
		"clip_value is +Inf; it must be in [0, +Inf)":                                              {"clipvalue": math.Inf(1)},
		"global_clip_norm is -1; it must be in [0, +Inf)":                                          {"global_clipnorm": -1},
		"weight_decay is -1; it must be in [0, +Inf)":                                              {"weight_decay": -1},
		"loss_scale_factor is -Inf; it must be in [0, +Inf)":                                       {"loss_scale_factor": "-inf"},
		`"use_ema": want a bool, not "yes"`:                                                        {"use_ema": "yes"},
		`"exclude_from_weight_decay": element 0: want a string, not 3`:                             {"exclude_from_weight_decay": 3},
		"exclude_from_weight_decay: error parsing regexp: missing closing ): `(`":                  {"exclude_from_weight_decay": []any{"bias", "("}},
		`overwrite_with_gradient: "[" is no pattern: syntax error`:                                 {"overwrite_with_gradient": "["},
		`"constraints": element 1: no optimizer is called "max_nrom" (did you mean "max_norm"?)`:   {"constraints": []any{"unit_norm", "max_nrom"}},
		`"constraints": element 0: no optimizer is called "boxx" (did you mean "box"?)`:            {"constraints": dict{"class": "boxx"}},
		`"constraints": element 0: max_norm: option "max_value": maxnorm/max_value is -1; it must`: {"constraints": dict{"class": "max_norm", "max_value": -1}},
		`"constraints": element 0: box: min_value is 2, which is above max_value 1`:                {"constraints": dict{"class": "box", "min_value": 2}},
		`"constraints": element 0: want a rule, {"class": …}, not 3`:                               {"constraints": []any{3}},
		"constraints[1] is no constraint but an optimizer, sgd; it must be a Transformation":       {"constraints": []any{"unit_norm", "sgd"}},

		`"learning_rate": want a float64, not "x"`:                             {"learning_rate": "x"},
		`"learning_rate": want a float64, not null`:                            {"learning_rate": nil},
		`"lr": want a float64, not true`:                                       {"lr": true},
		`"learning_rate": want a float64, not a list`:                          {"learning_rate": []any{1}},
		`"learning_rate": want a float64, not an object: a schedule stands`:    {"learning_rate": dict{"class": "noam"}},
		"learning_rate is NaN; it must be in [0, +Inf)":                        {"learning_rate": math.NaN()},
		"learning_rate is +Inf; it must be in [0, +Inf)":                       {"learning_rate": "inf"},
		`"epsilon": want a float64, not null`:                                  {"epsilon": nil},
		`"lr": "learning_rate" already sets learning_rate`:                     {"learning_rate": 1, "lr": 1},
		`"ema_momentum": "emaMomentum" already sets ema_momentum`:              {"ema_momentum": .5, "emaMomentum": .5},
		`"beta3": unknown option (did you mean "beta1"?)`:                      {"beta3": .5},
		`"cliponrm": unknown option (did you mean "clipnorm"?)`:                {"cliponrm": 1},
		`"use_emma": unknown option (did you mean "use_ema"?)`:                 {"use_emma": true},
		`"weight_decays": unknown option (did you mean "weight_decay"?)`:       {"weight_decays": 1},
		`"constraint": unknown option (did you mean "constraints"?)`:           {"constraint": "box"},
		`"base/clip_nrom": unknown option (did you mean "clipnorm"?)`:          {"base/clip_nrom": 1},
		`"adam/use_ema": unknown option (did you mean "use_ema"?)`:             {"adam/use_ema": true},
		`"xyzzy": unknown option (known: learning_rate, beta1, beta2, epsilon`: {"xyzzy": 1},
		`gradient_accumulation_steps, use_ema, ema_momentum, ema_overwrite_fr`: {"zzz": 1},
	} {
		_, err := FromConfig("adam", o)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "solvers: adam: ")
		inner := dict{"class": "adam"}
		for key, v := range o {
			inner[key] = v
		}
		_, err = FromConfigMap(dict{"class": "chain", "rules": []any{"clip_by_norm",
			dict{"class": "lookahead", "rule": dict{"class": "optimizer_map", "fallback": "sgd",
				"routes": []any{dict{"pattern": "x", "rule": dict{"class": "ema", "rule": inner}}}}}}})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `solvers: chain: option "rules": element 1: lookahead: option "rule": optimizer_map: option "routes": `+
			`element 0: option "rule": ema: option "rule": adam: `)
	}
	null := dict{}
	for _, key := range kerasBase {
		null[key] = nil
	}
	for _, o := range []dict{nil, {}, null} {
		s, err := FromConfig("adam", o)
		require.NoError(t, err)
		require.Equal(t, must(NewAdam().Config()), must(s.Config()))
	}
}

// The same for rules that hold others, and for schedules.
func TestBadHolders(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"class": "lookahead"}`, `solvers: lookahead: option "rule": the rule is nil; it must be a name or {"class": …}`},
		{`{"class": "ema", "rule": null}`, `solvers: ema: option "rule": the rule is nil`},
		{`{"class": "optimizer_map"}`, `solvers: optimizer_map: option "fallback": the rule is nil`},
		{`{"class": "lookahead", "rule": "adamm"}`, `solvers: lookahead: option "rule": no optimizer is called "adamm" (did you mean "adam"?)`},
		{`{"class": "lookahead", "rule": "sgd", "sync_period": 0}`, `option "sync_period": lookahead/sync_period is 0; it must be in [1, +Inf)`},
		{`{"class": "lookahead", "rule": "sgd", "sync_period": 2.5}`, `solvers: lookahead: sync_period is 2.5; it must be a whole number`},
		{`{"class": "accumulate", "rule": "sgd", "clipnorm": 1}`, `option "clipnorm": unknown option (known: `},
		{`{"class": "base", "rule": "sgd", "clipnorm": 1, "clipvalue": 2}`, `base: only one of clipnorm, global_clipnorm and clipvalue can be set, not 1, 0 and 2`},
		{`{"class": "base", "rule": "sgd", "use_emma": true}`, `solvers: base: option "use_emma": unknown option (did you mean "use_ema"?)`},
		{`{"class": "multi_optimizer", "parts": [{"rule": "sgd"}, {"rule": "adamm"}]}`,
			`multi_optimizer: option "parts": element 1: option "rule": no optimizer is called "adamm"`},
		{`{"class": "multi_optimizer", "parts": [{"param": "w"}]}`, `option "parts": element 0: option "param": unknown option (did you mean "params"?)`},
		{`{"class": "optimizer_map", "fallback": "sgd", "routes": [{"pattern": "(", "rule": "sgd"}]}`,
			`solvers: optimizer_map: the pattern "(": error parsing regexp`},
		{`{"class": "loss_scale", "rule": "sgd", "initial_scale": 0}`, `option "initial_scale": lossscale/initial_scale is 0; it must be in (0, +Inf)`},
		{`{"class": "loss_scale", "rule": "sgd", "dynamic_growth_steps": 0}`, `loss_scale: dynamic_growth_steps is 0; it must be 1 or more`},
		{`{"class": "clip_by_norm", "clipvalue": 1}`, `clip_by_norm: option "clipvalue": unknown option (known: max_norm)`},
	} {
		_, err := Unmarshal([]byte(c.text))
		require.ErrorContains(t, err, c.want)
	}
	for _, c := range []struct{ name, schedule, want string }{
		{"weight_decay", `{"class": "noaam"}`, `schedule "weight_decay": schedule: no schedule is called "noaam" (did you mean "noam"?)`},
		{"lr", `{"class": "piecewise_constant_decay", "boundaries": [2, 1], "values": [1, 2, 3]}`,
			`schedule "lr": schedule: piecewise_constant_decay: option "boundaries" is [2 1]; it must be a list of finite numbers that increase`},
		{"lr", `{"class": "multi_step_decay", "initial": 1, "milestones": [1, 1]}`, `option "milestones" is [1 1]; it must be a list of finite numbers that increase`},
		{"lr", `{"class": "piecewise_constant_decay", "boundaries": [1, 2], "values": [1, 2]}`,
			`option "values" is a list of 2; it must be longer by 1 than boundaries, a list of 2`},
		{"lr", `{"class": "constant", "vale": 1}`, `option "vale" is unknown (did you mean "value"?)`},
		{"lr", `{"class": "constant", "value": null}`, `option "value" is null; it must be a number`},
		{"lrr", `{"class": "constant", "value": 1}`, `schedule "lrr": solvers: no hyperparameter is called "lrr"`},
		{"clipnrom", `{"class": "constant", "value": 1}`, `no hyperparameter is called "clipnrom" (did you mean "base/clip_norm"?)`},
		{"ema_momentum", `{"class": "constant", "value": 2}`, `the schedule at step 0: solvers: base/ema_momentum is 2; it must be in [0, 1]`},
		{"lr", `0.5`, `the schedule of lr is 0.5; it must be {"class": …}`},
	} {
		_, err := Unmarshal([]byte(`{"class": "base", "rule": "sgd", "schedules": {"` + c.name + `": ` + c.schedule + `}}`))
		require.ErrorContains(t, err, c.want)
	}
}

// What comes too late, or is not legal for the solver as it is, says so, and changes nothing.
func TestBadCalls(t *testing.T) {
	s := WithBase(NewSGD(), func(b *Base) { b.WeightDecay, b.ClipNorm = .5, 1 })
	require.NoError(t, s.Build([]G.ValueGrad{&pair{"w", G.NewF64(1), nil}}))
	before := must(s.Config())
	for want, err := range map[string]error{
		"ExcludeFromWeightDecay must come before the first Step or Minimize":                   s.ExcludeFromWeightDecay([]string{"bias"}),
		"only one of clipnorm, global_clipnorm and clipvalue":                                  s.Set("clipvalue", 1),
		"built without base/ema_overwrite_frequency":                                           s.Set("ema_overwrite_frequency", 2),
		"base/weight_decay is NaN; it must be in [0, +Inf)":                                    s.Set("weight_decay", math.NaN()),
		`no hyperparameter is called "use_ema"`:                                                s.Set("use_ema", 1),
		`no hyperparameter is called "leerning_rate" (did you mean "sgd/learning_rate"?)`:      s.Set("leerning_rate", 1),
		`sgd/learning_rate: schedule: constant: option "value" is NaN; it must be a finite nu`: s.Schedule("lr", schedule.NewConstant(math.NaN())),
		"is [2 1]; it must be a list of finite numbers that increase":                          s.Schedule("lr", schedule.NewMultiStepDecay(1, []float64{2, 1})),
		"the schedule at step 0: solvers: sgd/learning_rate is -1":                             s.Schedule("lr", schedule.NewConstant(-1)),
	} {
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, before, must(s.Config()))
}
