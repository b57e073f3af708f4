package solvers

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"optimop/solvers/schedule"
)

// kerasRows are optimizers as Keras really serialized them.
func kerasRows(t *testing.T) (rows []struct {
	Name  string
	Keras map[string]any
}) {
	var file struct {
		Rows []struct {
			Name  string
			Keras map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(must(os.ReadFile("../testdata/golden/configs/keras.json")), &file))
	require.NotEmpty(t, file.Rows)
	return file.Rows
}

// asJSON is a config as JSON has it, without the names of objects and what Keras does not look at.
func asJSON(t *testing.T, config map[string]any) (out map[string]any) {
	require.NoError(t, json.Unmarshal(must(json.Marshal(config)), &out))
	strip(out)
	return out
}

func strip(v any) {
	if m, ok := v.(map[string]any); ok {
		delete(m, "name")
		delete(m, "relative_step")
		for _, e := range m {
			strip(e)
		}
	}
}

// What Keras wrote is read, each option means ours of that name, and is written as Keras wrote it.
func TestKerasConfigs(t *testing.T) {
	classes := map[string]bool{}
	for _, row := range kerasRows(t) {
		t.Run(row.Name, func(t *testing.T) {
			before := string(must(json.Marshal(row.Keras)))
			s, err := FromKerasConfig(row.Keras)
			require.NoError(t, err)
			require.Equal(t, before, string(must(json.Marshal(row.Keras))), "the config was changed")
			config := row.Keras["config"].(map[string]any)
			for key, v := range config {
				if x, ok := v.(float64); ok && !strings.Contains("ema_overwrite_frequency gradient_accumulation_steps dynamic_growth_steps", key) {
					if got, err := s.Get(key); err == nil {
						require.Equal(t, x, got, key)
					} else {
						require.Equal(t, "ema_momentum", key, "%v", err)
						require.False(t, config["use_ema"].(bool))
					}
				}
			}
			back, err := s.KerasConfig()
			require.NoError(t, err)
			require.Equal(t, asJSON(t, row.Keras), asJSON(t, back))
			ours := again(t, s)
			require.Equal(t, back, must(ours.KerasConfig()))
			var text map[string]any
			require.NoError(t, json.Unmarshal(must(json.Marshal(back)), &text))
			require.Equal(t, must(s.Config()), must(must(FromKerasConfig(text)).Config()))
			classes[row.Keras["class_name"].(string)] = true

			row.Keras["class_name"] = strings.ToUpper(row.Keras["class_name"].(string)) // any case
			require.Equal(t, must(s.Config()), must(must(FromKerasConfig(row.Keras)).Config()))
		})
	}
	for _, c := range kerasClasses {
		require.True(t, classes[c.name] || c.custom, c.name)
	}
}

// Defaults are Keras' own, also where the config does not name them.
func TestKerasDefaults(t *testing.T) {
	for _, row := range kerasRows(t) {
		if row.Name != strings.ToLower(row.Keras["class_name"].(string)) || row.Keras["config"].(map[string]any)["inner_optimizer"] != nil ||
			row.Keras["config"].(map[string]any)["optimizer_map"] != nil {
			continue
		}
		s := must(FromKerasConfig(map[string]any{"class_name": row.Name}))
		require.Equal(t, asJSON(t, row.Keras), asJSON(t, must(s.KerasConfig())))
	}
}

// AdaBelief is a custom class of Keras', a nested schedule is one of its own options' place, and Set is what is written.
func TestKerasAdaBelief(t *testing.T) {
	s := must(FromKerasConfig(map[string]any{"module": "lib.model.optimizers", "class_name": "AdaBelief", "registered_name": "AdaBelief", "config": map[string]any{
		"learning_rate": map[string]any{"module": "keras.optimizers.schedules", "class_name": "ExponentialDecay", "registered_name": nil,
			"config": map[string]any{"initial_learning_rate": .1, "decay_steps": 10, "decay_rate": .5, "staircase": true, "name": "ExponentialDecay"}},
		"beta_1": .5, "rectify": false, "total_steps": 100, "min_learning_rate": .25, "weight_decay": .125, "gradient_accumulation_steps": 2}}))
	require.Equal(t, .1, must(s.Get("learning_rate")))
	require.NoError(t, s.Set("beta1", .25))
	config := must(s.KerasConfig())
	require.Equal(t, []any{nil, "AdaBelief", "AdaBelief"}, []any{config["module"], config["class_name"], config["registered_name"]})
	of := config["config"].(map[string]any)
	require.Equal(t, json.Number("0.25"), of["beta_1"])
	require.Equal(t, int64(100), of["total_steps"])
	require.Equal(t, 2, of["gradient_accumulation_steps"])
	require.Equal(t, `{"class_name":"ExponentialDecay","config":{"decay_rate":0.5,"decay_steps":10,"initial_learning_rate":0.1,"name":"ExponentialDecay",`+
		`"staircase":true},"module":"keras.optimizers.schedules","registered_name":null}`, string(must(json.Marshal(of["learning_rate"]))))
	require.Equal(t, must(s.Config()), must(must(FromKerasConfig(config)).Config()))
}

// A class of one's own is found by its registered name, as by custom objects.
func TestKerasCustomClass(t *testing.T) {
	register(t, "test/secretive", func() Rule { return &secretive{Rate: 1} })
	for _, config := range []map[string]any{
		{"class_name": "Secretive", "registered_name": "package>test/secretive", "config": map[string]any{"rate": 2, "name": "x", "clipnorm": 3}},
		{"class_name": "test/Secretive", "registered_name": nil, "config": map[string]any{"rate": 2.0, "weight_decay": nil, "clipnorm": 3}},
	} {
		s, err := FromKerasConfig(config)
		require.NoError(t, err)
		require.Equal(t, 2.0, must(s.Get("rate")))
		require.Equal(t, 3.0, must(s.Get("base/clip_norm")))
		back := must(s.KerasConfig())
		require.Equal(t, "test/secretive", back["registered_name"])
		require.Equal(t, must(s.Config()), must(must(FromKerasConfig(back)).Config()))
	}
}

func TestBadKerasConfigs(t *testing.T) {
	adam := func(key string, v any) map[string]any {
		return map[string]any{"class_name": "Adam", "config": map[string]any{key: v}}
	}
	loop := map[string]any{"class_name": "LossScaleOptimizer", "config": map[string]any{}}
	loop["config"].(map[string]any)["inner_optimizer"] = loop
	for want, config := range map[string]map[string]any{
		"class_name is null":             {},
		"an object has no":               {"class_name": "Adam", "learning_rate": 1},
		`is called "Adamm"`:              {"class_name": "Adamm"},
		"the config is \"adam\"":         {"class_name": "Adam", "config": "adam"},
		"unknown option":                 adam("foo", 1),
		`"decay": unknown option`:        adam("decay", .5),
		"only one of clipnorm":           {"class_name": "Adam", "config": map[string]any{"clipnorm": 0.0, "clipvalue": 1}},
		"is 1; it must be 2":             adam("gradient_accumulation_steps", 1),
		"want an int, not 2.5":           adam("gradient_accumulation_steps", 2.5),
		"ema_momentum is 2":              adam("ema_momentum", 2),
		"want a float64, not null":       adam("epsilon", nil),
		"learning_rate: class_name is n": adam("learning_rate", map[string]any{}),
		"no schedule is called":          adam("learning_rate", map[string]any{"class_name": "X"}),
		"functions and other objects":    adam("learning_rate", map[string]any{"module": "builtins", "class_name": "function", "config": "f", "registered_name": "function"}),
		"weight_decay must be a number":  {"class_name": "adamw", "config": map[string]any{"weight_decay": nil}},
		"option of inner_optimizer":      {"class_name": "LossScaleOptimizer", "config": map[string]any{"clipnorm": 1}},
		"dynamic is false":               {"class_name": "LossScaleOptimizer", "config": map[string]any{"dynamic": false}},
		"want an object, {":              {"class_name": "LossScaleOptimizer"},
		"nested more than":               loop,
		"must be an OptimizerMap":        {"class_name": "MultiOptimizer", "config": map[string]any{"optimizer_map": adam("lr", 1)}},
		"default_optimizer: want an obj": {"class_name": "MultiOptimizer", "config": map[string]any{"optimizer_map": map[string]any{"class_name": "OptimizerMap"}}},
	} {
		_, err := FromKerasConfig(config)
		require.ErrorContains(t, err, want)
	}
	_, err := FromKerasConfig(nil)
	require.Error(t, err)
	_, err = FromKerasConfig(adam("decay", nil))
	require.NoError(t, err)
}

// What Keras has not is refused rather than changed.
func TestNoKerasConfig(t *testing.T) {
	other, momentum := NewMomentum(), New(&Momentum{LearningRate: 1, RateInside: true})
	require.NoError(t, momentum.Schedule("momentum", schedule.NewConstant(.5)))
	rate := must(FromConfig("keras/adam", nil))
	require.NoError(t, rate.Schedule("lr", schedule.NewNoam(8, 20)))
	late := must(FromConfig("keras/adam", nil))
	require.NoError(t, late.Schedule("lr", schedule.NewExponentialDecay(.1, 10, .5, func(d *schedule.ExponentialDecay) { d.Begin = 3 })))
	for want, s := range map[string]*Solver{
		"SGD is there with rate_inside = true only, not false": other,
		"Adam is there with epsilon_hat = true only":           NewAdam(),
		"Keras has no radam":                                   NewRAdam(),
		"Keras has no chain":                                   Chain(NewClipByNorm(1), NewSGD()),
		"only learning rates do":                               momentum,
		"Keras has no schedule noam":                           rate,
		"ExponentialDecay has no begin":                        late,
		"no options of Keras' optimizers":                      WithBase(NewSGD(), func(b *Base) { b.Constraints = []Rule{NewNonNegative()} }),
		"stand in those of another":                            WithBase(WithBase(NewSGD())),
		"decays the weights twice":                             WithBase(must(FromConfig("keras/adamw", nil)), func(b *Base) { b.WeightDecay = 1 }),
		"nor a lowest scale":                                   WithLossScale(NewSGD(), func(l *LossScale) { l.MinScale = 1 }),
		"no option of the base class but":                      WithBase(OptimizerMap(NewSGD()), func(b *Base) { b.ClipNorm = 1 }),
		"without a scale of the loss":                          OptimizerMap(WithLossScale(must(FromConfig("keras/sgd", nil)))),
		"a function that chooses":                              OptimizerBy(func(Param) int { return 0 }, NewSGD()),
		"solver is nil":                                        nil,
	} {
		_, err := s.KerasConfig()
		require.ErrorContains(t, err, want)
	}
}

// Any JSON is read or refused, and what is written of it can be read again.
func FuzzKerasConfig(f *testing.F) {
	f.Add([]byte(`{"class_name": "Adam", "config": {"learning_rate": {"class_name": "CosineDecay", "config": {"initial_learning_rate": 1, "decay_steps": 5}}, "clipnorm": 1}}`))
	f.Add([]byte(`{"class_name": "LossScaleOptimizer", "config": {"inner_optimizer": {"class_name": "Muon", "config": {"rms_rate": null}}}}`))
	f.Add([]byte(`{"class_name": "MultiOptimizer", "config": {"optimizer_map": {"class_name": "OptimizerMap", "config": {"default_optimizer": {"class_name": "sgd"}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var config map[string]any
		if json.Unmarshal(text, &config) != nil {
			return
		}
		s, err := FromKerasConfig(config)
		if err != nil {
			return
		}
		if config, err = s.KerasConfig(); err == nil {
			require.Equal(t, must(s.KerasConfig()), must(must(FromKerasConfig(config)).KerasConfig()))
		}
	})
}
