package solvers

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers/schedule"
)

// Keras' clips, in its numbers, around any optimizer.
func TestBaseClips(t *testing.T) {
	for _, c := range []struct {
		option string
		limit  float64
		g      [][]float64
		want   []float64
	}{
		{"clipnorm", 1, [][]float64{{100, 100}}, []float64{.70710678, .70710678}},
		{"clipnorm", 2, [][]float64{{3, 4}, {.1, .1}}, []float64{1.2, 1.6, .1, .1}},
		{"clipnorm", 2, [][]float64{{0, 0}}, []float64{0, 0}},
		{"global_clipnorm", 1, [][]float64{{3, 0}, {0, 4}}, []float64{.6, 0, 0, .8}},
		{"global_clipnorm", 1, [][]float64{{50, 100}}, []float64{.4472136, .8944272}},
		{"clipvalue", 1, [][]float64{{.3, -4}}, []float64{.3, -1}},
		{"clipvalue", 1, [][]float64{{math.Inf(1), math.Inf(-1)}}, []float64{1, -1}},
	} {
		var wg [][]float64
		for _, g := range c.g {
			wg = append(wg, []float64{0, 0}, g)
		}
		for _, got := range hosts(t, constant(wg...), func(o ...Option) *Solver {
			return must(FromConfig("scale", map[string]any{"lr": -1, c.option: c.limit}, o...))
		}, 1) {
			require.InDeltaSlice(t, c.want, got[0], 1e-7, "%s %v", c.option, c.limit)
		}
	}
}

// The options are every optimizer's.
func TestBaseOptions(t *testing.T) {
	options := map[string]any{"clipnorm": .5, "use_ema": true, "ema_momentum": .9, "ema_overwrite_frequency": 3, "loss_scale_factor": 8,
		"gradient_accumulation_steps": 2, "clipvalue": nil, "keras_strict": true, "constraints": []any{map[string]any{"class": "max_norm", "max_value": 3}}}
	for _, name := range Optimizers() {
		s := must(FromConfig(name, options))
		b := s.rule.(*Base)
		require.Equal(t, []any{.5, .9, 3., 8., 2, true, true}, []any{b.ClipNorm, b.EMAMomentum, b.EMAOverwriteFrequency, b.LossScaleFactor,
			b.GradientAccumulationSteps, b.UseEMA, b.KerasStrict}, name)
		require.Equal(t, 3., b.Constraints[0].(*MaxNorm).MaxValue, name)
		back := must(FromConfigMap(must(s.Config())))
		require.Equal(t, must(s.Config()), must(back.Config()), name)
	}
	none := map[string]any{"clipnorm": nil, "weight_decay": nil, "use_ema": false, "ema_momentum": .99, "global_clipnorm": nil, "clipvalue": nil,
		"ema_overwrite_frequency": nil, "loss_scale_factor": nil, "gradient_accumulation_steps": nil}
	require.IsType(t, &Adam{}, must(FromConfig("keras/adam", none)).rule)
	require.Equal(t, .5, must(FromConfig("keras/adamw", map[string]any{"weight_decay": .5})).rule.(*AdamW).WeightDecay)
	both := must(FromConfig("keras/adamw", map[string]any{"weight_decay": .5, "base/weight_decay": .25}))
	require.Equal(t, []float64{.5, .25}, []float64{must(both.Get("adamw/weight_decay")), must(both.Get("base/weight_decay"))})
	m := must(FromConfigMap(map[string]any{"class": "accumulate", "n": 2, "rule": map[string]any{"class": "sgd", "weight_decay": .5}}))
	require.Equal(t, .5, must(m.Get("base/weight_decay")))
	l := must(FromConfigMap(map[string]any{"class": "loss_scale", "initial_scale": 4, "rule": "adam"}))
	require.Equal(t, 4., must(l.LossScale()))
	require.Equal(t, must(l.Config()), must(must(FromConfigMap(must(l.Config()))).Config()))
}

func TestBaseRefuses(t *testing.T) {
	for want, option := range map[string]map[string]any{
		"only one of clipnorm, global_clipnorm and clipvalue can be given": {"clipnorm": 0, "clipvalue": 0},
		"base/clip_norm is -1": {"clipnorm": -1},
		"gradient_accumulation_steps is 1; it must be 2 or more":    {"gradient_accumulation_steps": 1},
		"gradient_accumulation_steps is -1":                         {"gradient_accumulation_steps": -1},
		"want an int":                                               {"gradient_accumulation_steps": 2.5},
		"base/ema_momentum is 1.5; it must be in [0, 1]":            {"ema_momentum": 1.5},
		"ema_momentum is -0.1":                                      {"use_ema": true, "ema_momentum": -.1},
		"base/ema_overwrite_frequency is -1":                        {"ema_overwrite_frequency": -1},
		"ema_overwrite_frequency is 1.5; it must be a whole number": {"ema_overwrite_frequency": 1.5},
		"want a bool": {"use_ema": 1},
		"exclude_from_weight_decay: error parsing regexp": {"exclude_from_weight_decay": "("},
		`overwrite_with_gradient: "[" is no pattern`:      {"overwrite_with_gradient": "["},
		"no optimizer is called":                          {"constraints": []any{"max_norms"}},
		"min_value is 2, which is above max_value 1":      {"constraints": []any{map[string]any{"class": "box", "min_value": 2}}},
		`names: "[" is no pattern`:                        {"constraints": []any{map[string]any{"class": "box", "names": "["}}},
		`unknown option`:                                  {"rule": "sgd"},
		"base/weight_decay is -1":                         {"weight_decay": -1},
		"base/loss_scale_factor is -2":                    {"loss_scale_factor": -2},
	} {
		_, err := FromConfig("adam", option)
		require.ErrorContains(t, err, want)
	}
	w := func() []G.ValueGrad { return []G.ValueGrad{&pair{"w", G.NewF64(1), G.NewF64(1)}} }
	for want, s := range map[string]*Solver{
		"only one of clipnorm": WithBase(NewAdam(), func(b *Base) { b.ClipNorm, b.GlobalClipNorm = 1, 1 }),
		"the rule is nil":      WithBase(nil),
		"no rule within has a hyperparameter learning_rate":     WithBase(NewCOCOB(), func(b *Base) { b.WeightDecay = .1 }),
		`overwrite_with_gradient: no parameter is called "v"`:   WithBase(NewAdam(), func(b *Base) { b.OverwriteWithGradient = []string{"v"} }),
		`names: no parameter is called "v*"`:                    New(Chain(NewAdam(), NewBox(0, 1, func(b *Box) { b.Names = []string{"v*"} }))),
		"the rule within scales the loss by itself":             WithBase(WithLossScale(NewAdam()), func(b *Base) { b.LossScaleFactor = 2 }),
		"lossscale: the rule within scales the loss, too":       WithLossScale(WithBase(WithLossScale(NewAdam()))),
		"dynamic_growth_steps is 0":                             WithLossScale(NewAdam(), func(l *LossScale) { l.DynamicGrowthSteps = 0 }),
		"lossscale/initial_scale is 0; it must be in (0, +Inf)": WithLossScale(NewAdam(), func(l *LossScale) { l.InitialScale = 0 }),
		"there is no axis 1 in shape (1)":                       New(Chain(NewAdam(), NewUnitNorm(func(u *UnitNorm) { u.Axes = []int{1} }))),
	} {
		model := w()
		if want == "there is no axis 1 in shape (1)" {
			model = []G.ValueGrad{&pair{"w", value(tensor.Float64, []int{1}, []float64{1}), value(tensor.Float64, []int{1}, []float64{1})}}
		}
		require.ErrorContains(t, s.Step(model), want)
		require.Equal(t, []float64{1}, floats(model[0].Value()), fmt.Sprint("unchanged: ", want))
	}
	s := WithBase(NewAdam(), func(b *Base) { b.ClipNorm = 1 })
	require.ErrorContains(t, s.Set("clipvalue", 1), "only one of clipnorm")
	require.ErrorContains(t, s.Schedule("clipvalue", schedule.NewConstant(1)), "only one of clipnorm")
	require.NoError(t, s.Set("clipnorm", 2))
}
