package updater

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"optimop/solvers"
)

// What Keras has as arguments of one optimizer gives the same beside it in a config.
func TestKerasArguments(t *testing.T) {
	for _, options := range []string{
		`"weight_decay": 0.05`,
		`"weight_decay": 0.05, "exclude_from_weight_decay": ["bias"]`,
		`"use_ema": true`,
		`"use_ema": true, "ema_momentum": 0.5, "ema_overwrite_frequency": 2`,
		`"clipnorm": 0.5`, `"global_clipnorm": 0.5`, `"clipvalue": 0.25`,
		`"gradient_accumulation_steps": 3`,
		`"gradient_accumulation_steps": 2, "global_clipnorm": 0.5, "use_ema": true, "ema_momentum": 0.5`,
		`"constraints": ["non_negative", {"class": "box", "max_value": 0.75}]`,
		`"constraints": "unit_norm", "weight_decay": 0.05`,
		`"loss_scale_factor": 1024, "clipvalue": 0.25`,
		`"keras_strict": true, "gradient_accumulation_steps": 2, "clipvalue": 0.25, "use_ema": true, "ema_momentum": 0.5, "constraints": ["non_negative"]`,
		`"keras_strict": true, "gradient_accumulation_steps": 3, "use_ema": true, "ema_momentum": 0.5, "ema_overwrite_frequency": 2, "weight_decay": 0.05`,
	} {
		for _, dt := range floatTypes {
			for i, host := range hosts {
				for _, class := range []string{"adam", "adamw", "keras/rmsprop"} {
					run := func(config string) (got []float64) {
						rng := rand.New(rand.NewSource(1))
						l := newLinear(dt, initial{"kernel", []float64{1, -2, .5}}, initial{"bias", 4.}, initial{"far", []float64{-1, 1}})
						u, err := New(l.loss, l.vars, roundTrip(t, config), host...)
						require.NoError(t, err, config)
						vm, err := u.NewMachine()
						require.NoError(t, err, config)
						for range 7 {
							draw := rng.NormFloat64
							l.run(t, vm, []float64{draw(), draw(), draw()}, draw(), []float64{draw(), draw()})
							for _, v := range l.vars {
								got = append(got, elements(v)...)
								if avg := u.Slot(v, "average"); avg != nil {
									got = append(got, elements(avg)...)
								}
							}
						}
						return got
					}
					within := strings.TrimPrefix(options, `"loss_scale_factor": 1024, `) // a power of two changes nothing
					want := run(fmt.Sprintf(`{"optimizer": {"class": %q, %s}}`, class, within))
					got := run(fmt.Sprintf(`{"optimizer": %q, %s}`, class, options))
					require.Equal(t, want, got, "%s %v %s host %d", class, dt, options, i)
				}
			}
		}
	}
}

// roundTrip reads a config, writes it, and reads that.
func roundTrip(t *testing.T, text string) Config {
	t.Helper()
	c, err := ReadConfig(strings.NewReader(text))
	require.NoError(t, err, text)
	again, err := json.Marshal(c)
	require.NoError(t, err)
	d, err := ReadConfig(strings.NewReader(string(again)))
	require.NoError(t, err, string(again))
	require.Equal(t, c, d)
	return d
}

// all are the elements of all variables.
func (l *linear) all() (got []float64) {
	for _, v := range l.vars {
		got = append(got, elements(v)...)
	}
	return got
}

// One bound of the global norm is that of all optimizers; a bound of its own makes a norm of its own.
func TestKerasGlobalNorm(t *testing.T) {
	for _, c := range []struct {
		config string
		want   []float64
	}{
		{`{"learning_rate": 1, "global_clipnorm": 1, "updater_opts": [{"match": "b", "optimizer": "adagrad"}, {"match": "c", "learning_rate_multiplier": 2}]}`,
			[]float64{-.6, math.NaN(), 0}},
		{`{"learning_rate": 1, "global_clipnorm": 1, "updater_opts": [{"match": "b", "global_clipnorm": 2}]}`, []float64{-1, -2, 0}},
		{`{"learning_rate": 1, "global_clipnorm": 1, "updater_opts": [{"match": "b", "global_clipnorm": 0}]}`, []float64{-1, -4, 0}},
		{`{"learning_rate": 1, "global_clipnorm": 1, "updater_opts": [{"match": "b", "global_clipnorm": 0, "gradient_clip": 3}]}`, []float64{-1, -3, 0}},
		{`{"optimizer": {"class": "sgd", "global_clipnorm": 1}, "learning_rate": 1, "updater_opts": [{"match": "b", "optimizer": {"clipnorm": 3}}]}`, []float64{-1, -3, 0}},
	} {
		l := newLinear(tensor.Float64, initial{"a", 0.}, initial{"b", 0.}, initial{"c", 0.})
		u, err := New(l.loss, l.vars, roundTrip(t, c.config))
		require.NoError(t, err)
		vm, err := u.NewMachine()
		require.NoError(t, err)
		l.run(t, vm, 3., 4., 0.)
		for i, x := range l.all() {
			if !math.IsNaN(c.want[i]) { // Adagrad's step does not depend on the size
				require.InDelta(t, c.want[i], x, 1e-15, c.config)
			}
		}
	}
}

// Settings of variables count more than the optimizer's own options, and these more than the config's.
func TestKerasPrecedence(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"a", 8.}, initial{"b", 8.}, initial{"c/bias", 8.}, initial{"d", 8.})
	u, err := New(l.loss, l.vars, roundTrip(t, `{"learning_rate": 1, "weight_decay": 0.5, "use_ema": true, "exclude_from_weight_decay": ["bias"], "updater_opts": [
		{"match": "b", "optimizer": {"weight_decay": 0.25, "use_ema": false}}, {"match": "d", "optimizer": {"weight_decay": 0.25}, "weight_decay": 0.125}]}`))
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	l.run(t, vm, 0., 0., 0., 0.)
	require.Equal(t, []float64{4, 6, 8, 7}, l.all())
	require.NotNil(t, u.Slot(l.vars[0], "average"))
	require.Nil(t, u.Slot(l.vars[1], "average"))
	require.Contains(t, u.Table(), `{"class":"sgd","exclude_from_weight_decay":["bias"],"use_ema":true,"weight_decay":0.125}`)

	// Table tells what decays, and the log which expression excludes nothing.
	text := logged(t, slog.LevelWarn)
	u, err = New(l.loss, l.vars, roundTrip(t, `{"optimizer": "adamw", "exclude_from_weight_decay": ["^bias$", "c/bias", "^d"], "use_ema": true}`))
	require.NoError(t, err)
	for name, want := range map[string]string{"a": "×1", "b": "×1", "c/bias": "×0", "d": "×0"} {
		require.Regexp(t, `(?m)^`+name+` .* ×1 +0 +`+want+` +1$`, u.Table())
	}
	require.Equal(t, 1, strings.Count(text.String(), "exclude_from_weight_decay"))
	require.Contains(t, text.String(), "expression=c/bias")

	// The epsilon of a constraint is not the optimizer's.
	u, err = New(l.loss, l.vars, roundTrip(t, `{"optimizer": "adam", "optimizer_epsilon": 0.5, "constraints": ["unit_norm"]}`))
	require.NoError(t, err)
	for name, want := range map[string]float64{"adam/epsilon": .5, "unit_norm/epsilon": 1e-7} {
		got, err := u.Solver().Get(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// A rule that is given in Go gets the arguments, too.
func TestKerasArgumentsOfRules(t *testing.T) {
	half, tenth := .5, .1
	l := newLinear(tensor.Float64, initial{"a", 8.}, initial{"b", 8.})
	chain := solvers.Chain(solvers.NewClipByValue(1), solvers.NewSGD())
	u, err := New(l.loss, l.vars, Config{Optimizer: chain, LearningRate: &half, WeightDecay: &tenth, UseEMA: true,
		Constraints: []any{solvers.NewBox(0, 3), "non_negative"}, UpdaterOpts: []VarOptions{{Match: "b", Constraints: []any{}}}})
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	l.run(t, vm, 7., 7.)
	require.Equal(t, []float64{3, 8*.95 - .5}, l.all())

	_, err = New(l.loss, l.vars, Config{Optimizer: solvers.NewAdamW(), WeightDecay: &tenth})
	require.ErrorContains(t, err, "weight_decay: the rule that was given has one")
	_, err = New(l.loss, l.vars, Config{Optimizer: solvers.WithBase(solvers.NewSGD(), func(b *solvers.Base) { b.ClipNorm = 1 }), GradientClip: 1})
	require.ErrorContains(t, err, "gradient_clip: the optimizer clips by itself")
}

// The row of Keras with an overwritten variable beside one with all arguments.
func TestOverwriteWithGradient(t *testing.T) {
	const config = `{"learning_rate": 1, "loss_scale_factor": 4, "use_ema": true, "weight_decay": 0.5, "clipnorm": 0.1, "overwrite_with_gradient": ["scale*"]`
	for _, host := range hosts {
		l := newLinear(tensor.Float64, initial{"scale", 1.}, initial{"b", 1.})
		u, err := New(l.loss, l.vars, roundTrip(t, config+`, "summary_interval": 1}`), host...)
		require.NoError(t, err)
		vm, err := u.NewMachine()
		require.NoError(t, err)
		l.run(t, vm, 2., 2.) // of the scaled loss 8 and 8
		require.Equal(t, []float64{8, .4}, l.all())
		require.Nil(t, u.Slot(l.vars[0], "average"))
		require.NotNil(t, u.Slot(l.vars[1], "average"))
		require.Contains(t, u.Table(), "overwritten with its gradient")
		record, ok, err := u.Summary()
		require.True(t, ok && err == nil)
		require.Contains(t, fmt.Sprint(record.Values), "{grad_norm/b 2}")

		// of accumulated runs the greatest, at least 0
		l = newLinear(tensor.Float64, initial{"scale", 1.}, initial{"b", 1.})
		u, err = New(l.loss, l.vars, roundTrip(t, `{"learning_rate": 1, "overwrite_with_gradient": ["scale"], "gradient_accumulation_steps": 2, "gradient_noise": 1e-300}`), host...)
		require.NoError(t, err)
		vm, err = u.NewMachine()
		require.NoError(t, err)
		for i, x := range []float64{-3, -1, 5, 2} {
			l.run(t, vm, x, 1.)
			require.Equal(t, [][]float64{{1, 1}, {0, 0}, {0, 0}, {5, -1}}[i], l.all())
		}
		require.Contains(t, u.Table(), "greatest of 2")
	}
	l := newLinear(tensor.Float64, initial{"a", 1.})
	_, err := New(l.loss, l.vars, roundTrip(t, `{"overwrite_with_gradient": ["b"]}`))
	require.ErrorContains(t, err, `overwrite_with_gradient[0]: "b" fits none of the variables`)
	all, err := New(l.loss, l.vars, roundTrip(t, `{"overwrite_with_gradient": ["*"]}`))
	require.NoError(t, err)
	vm, err := all.NewMachine()
	require.NoError(t, err)
	l.run(t, vm, 3.)
	require.Equal(t, []float64{3}, l.all())
	step, err := all.GlobalStep()
	require.NoError(t, err)
	require.Equal(t, 1, step)
}

// Keras' own numbers of averages under accumulation, and ours.
func TestKerasStrict(t *testing.T) {
	const config = `{"learning_rate": 1, "gradient_accumulation_steps": 2, "use_ema": true, "ema_momentum": 0.9`
	for more, want := range map[string][][2]float64{
		`, "keras_strict": true}`:                               {{10, 10}, {9, 9}, {9, 9}, {8, 8.9}, {8, 8.81}, {7, 8.629}, {7, 8.4661}, {6, 8.21949}},
		`, "keras_strict": true, "ema_overwrite_frequency": 2}`: {{10, 10}, {9, 9}, {9, 9}, {8.9, 8.9}, {8.9, 8.9}, {7.9, 8.8}, {8.71, 8.71}, {8.61, 8.61}, {8.61, 8.61}, {7.61, 8.51}},
		`}`: {{10, 0}, {9, 9}, {9, 9}, {8, 8.9}, {8, 8.9}, {7, 8.71}},
	} {
		for _, host := range hosts {
			l := newLinear(tensor.Float64, initial{"w", 10.})
			u, err := New(l.loss, l.vars, roundTrip(t, config+more), host...)
			require.NoError(t, err)
			require.Contains(t, u.Table(), "mean of 2")
			vm, err := u.NewMachine()
			require.NoError(t, err)
			for i, row := range want {
				l.run(t, vm, 1.)
				near(t, precision{1e-12, 0}, row[:], append(l.all(), elements(u.Slot(l.vars[0], "average"))...), more, i)
			}
		}
	}
}

// Arguments in an optimizer's own map can follow schedules.
func TestKerasArgumentsFollowSchedules(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", 8.})
	u, err := New(l.loss, l.vars, config(t, `{"learning_rate": 1, "optimizer": {"class": "sgd",
		"weight_decay": {"class": "piecewise_constant_decay", "boundaries": [0], "values": [0.5, 0]},
		"clipnorm": {"class": "piecewise_constant_decay", "boundaries": [0, 1], "values": [1, 2, 3]}}}`))
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	for _, want := range []float64{3, 1, -2} {
		l.run(t, vm, 9.)
		require.Equal(t, []float64{want}, l.all())
	}
}

func TestKerasArgumentsRefuse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"clipnorm": 1, "clipvalue": 1}`, "config: clipnorm: clipvalue is given too; only one of"},
		{`{"updater_opts": [{"match": "w", "global_clipnorm": 1, "clipnorm": 2}]}`, "config: updater_opts[0].clipnorm: global_clipnorm is given too"},
		{`{"clipnorm": 1, "gradient_clip": 1}`, "config: clipnorm: gradient_clip is given too; Keras' clips go by themselves"},
		{`{"clipnorm": 1, "updater_opts": [{"match": "w", "gradient_clip_avg_norm": 1}]}`, "config: updater_opts[0].clipnorm: gradient_clip_avg_norm is given too"},
		{`{"optimizer": {"class": "adam", "clipnorm": 1}, "gradient_clip": 1}`, "config: optimizer: gradient_clip: the optimizer clips by itself"},
		{`{"optimizer": {"class": "adam", "clipnorm": 1}, "clipvalue": 1}`, "config: optimizer: clipvalue: the optimizer clips by itself"},
		{`{"optimizer": {"class": "adam", "clipnorm": 1, "clipvalue": 1}}`, "only one of clipnorm, global_clipnorm and clipvalue"},
		{`{"keras_strict": true, "clipvalue": 1, "gradient_clip_norm": 1}`, "config: clipvalue: gradient_clip_norm is given too"},
		{`{"clipnorm": -1}`, "config: clipnorm is -1; it must be finite and 0 or above"},
		{`{"gradient_accumulation_steps": 1}`, "config: gradient_accumulation_steps is 1; it must be 0 (off), or 2 or above"},
		{`{"gradient_accumulation_steps": 2, "optimizer": {"class": "adam", "gradient_accumulation_steps": 2}}`, "the optimizer accumulates by itself"},
		{`{"weight_decay": -1}`, "config: weight_decay is -1"},
		{`{"weight_decay": {"class": "constant", "value": 1}}`, "config: weight_decay: want a number"},
		{`{"exclude_from_weight_decay": ["("]}`, `config: exclude_from_weight_decay[0]: "(" is no regular expression`},
		{`{"use_ema": true, "ema_momentum": 1.5}`, "config: ema_momentum is 1.5; it must be in [0,1]"},
		{`{"use_ema": true, "updater_opts": [{"match": "w", "ema_momentum": -1}]}`, "config: updater_opts[0].ema_momentum is -1"},
		{`{"ema_momentum": 0.5}`, "ema_momentum and ema_overwrite_frequency have no effect without use_ema"},
		{`{"use_ema": true, "ema_overwrite_frequency": -1}`, "config: ema_overwrite_frequency is -1"},
		{`{"use_ema": true, "ema_overwrite_frequency": 1.5}`, "config: ema_overwrite_frequency: want a whole number"},
		{`{"constraints": ["nonnegativ"]}`, `config: constraints[0]: solvers: no optimizer is called "nonnegativ" (did you mean "non_negative"?)`},
		{`{"constraints": [{"class": "box", "min": 1}]}`, "config: constraints[0]: "},
		{`{"updater_opts": [{"match": "w", "constraints": ["non_negative", "adam"]}]}`, `config: updater_opts[0].constraints[1]: "adam" is an optimizer`},
		{`{"constraints": [3]}`, `config: constraints[0]: want a name or an object with "class", not 3`},
		{`{"loss_scale_factor": -2}`, "config: loss_scale_factor is -2"},
		{`{"loss_scale_factor": 2, "dynamic_loss_scale": true}`, "config: loss_scale_factor: dynamic_loss_scale is given too"},
		{`{"dynamic_loss_scale": {"initial_scal": 2}}`, `config: dynamic_loss_scale.initial_scal: unknown key (did you mean "initial_scale"?)`},
		{`{"dynamic_loss_scale": {"growth_factor": 0.5}}`, "config: dynamic_loss_scale.growth_factor is 0.5"},
		{`{"dynamic_loss_scale": {"dynamic_growth_steps": -1}}`, "config: dynamic_loss_scale.dynamic_growth_steps is -1"},
		{`{"dynamic_loss_scale": 3}`, "config: dynamic_loss_scale: want an object, not 3"},
		{`{"optimizer": {"class": "adam", "loss_scale_factor": 2}}`, "config: optimizer.loss_scale_factor: the key does not belong here; write it beside optimizer"},
		{`{"optimizer": {"class": "adam", "overwrite_with_gradient": ["w"]}}`, "config: optimizer.overwrite_with_gradient: the key does not belong here"},
		{`{"overwrite_with_gradient": ["["]}`, "config: overwrite_with_gradient[0]: "},
		{`{"keras_strict": true, "gradient_accumulation_steps": 2, "gradient_noise": 1}`, "config: gradient_noise: with keras_strict the optimizers accumulate by themselves"},
		{`{"keras_strict": true, "gradient_accumulation_steps": 2, "decouple_constraints": true, "updater_opts": [{"match": "w", "l2": 1}]}`, "config: updater_opts[0].l2: with keras_strict"},
		{`{"clipnrm": 1}`, `config: clipnrm: unknown key (did you mean "clipnorm"?)`},
		{`{"use_emma": true}`, `config: use_emma: unknown key (did you mean "use_ema"?)`},
	} {
		_, err := ReadConfig(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, c.text)
	}
	nan := math.NaN()
	for want, c := range map[string]Config{
		"weight_decay is NaN":               {WeightDecay: &nan},
		"ema_momentum is NaN":               {UseEMA: true, EMAMomentum: &nan},
		"clipvalue is NaN":                  {ClipValue: nan},
		"loss_scale_factor is NaN":          {LossScaleFactor: nan},
		"dynamic_loss_scale.min_scale":      {DynamicLossScale: &DynamicLossScale{MinScale: nan}},
		"constraints[0]: want a name":       {Constraints: []any{nil}},
		"constraints[0]: solvers: maxnorm/": {Constraints: []any{solvers.NewMaxNorm(-1)}},
	} {
		l := newLinear(tensor.Float64, initial{"w", 8.})
		_, err := New(l.loss, l.vars, c)
		require.ErrorContains(t, err, want)
	}
}

// A rule around another one in a config has the arguments, too, and the rule within its own options.
func TestKerasArgumentsOfWrappers(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"a", 8.}, initial{"b", 8.})
	u, err := New(l.loss, l.vars, roundTrip(t, `{"learning_rate": 0.5, "weight_decay": 0.5, "use_ema": true, "optimizer_epsilon": 1, "updater_opts": [{"match": "b", "constraints": ["unit_norm"]}],
		"optimizer": {"class": "lookahead", "sync_period": 2, "rule": {"class": "adam", "epsilon": 0.25}}}`))
	require.NoError(t, err)
	for _, o := range u.Optimizers() {
		for name, want := range map[string]float64{"adam/epsilon": .25, "base/weight_decay": .5} {
			got, err := o.Solver.Get(name)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	vm, err := u.NewMachine()
	require.NoError(t, err)
	for range 2 {
		l.run(t, vm, 0., 0.)
	}
	require.InDeltaSlice(t, []float64{8 * (1 + .75*.75) / 2, 1}, l.all(), 1e-6) // half way from the start, of which the average knows nothing
	require.NotNil(t, u.Slot(l.vars[0], "average"))
}
