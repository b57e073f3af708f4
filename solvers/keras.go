package solvers

import (
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/convert"
	"optimop/internal/spelling"
	"optimop/solvers/schedule"
)

// The parts of an object as Keras serializes it.
const (
	kerasName     = "class_name"
	kerasConfig   = "config"
	kerasRegister = "registered_name"
	kerasModule   = "module"
)

// kerasClass is an optimizer of Keras.
type kerasClass struct {
	name   string
	preset string   // of the family keras
	own    []string // its options beside learning_rate and those of the base class
	custom bool     // no part of Keras
}

var kerasClasses = []kerasClass{
	{"SGD", "sgd", []string{"momentum", "nesterov"}, false},
	{"RMSprop", "rmsprop", []string{"rho", "momentum", "epsilon", "centered"}, false},
	{"Adam", "adam", []string{"beta_1", "beta_2", "epsilon", "amsgrad"}, false},
	{"AdamW", "adamw", []string{"beta_1", "beta_2", "epsilon", "amsgrad"}, false},
	{"Adagrad", "adagrad", []string{"initial_accumulator_value", "epsilon"}, false},
	{"Adadelta", "adadelta", []string{"rho", "epsilon"}, false},
	{"Adamax", "adamax", []string{"beta_1", "beta_2", "epsilon"}, false},
	{"Adafactor", "adafactor", []string{"beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold"}, false},
	{"Nadam", "nadam", []string{"beta_1", "beta_2", "epsilon"}, false},
	{"Ftrl", "ftrl", []string{"learning_rate_power", "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength",
		"l2_shrinkage_regularization_strength", "beta"}, false},
	{"Lion", "lion", []string{"beta_1", "beta_2"}, false},
	{"Lamb", "lamb", []string{"beta_1", "beta_2", "epsilon"}, false},
	{"Muon", "muon", []string{"adam_beta_1", "adam_beta_2", "epsilon", "exclude_layers", "muon_a", "muon_b", "muon_c", "adam_lr_ratio",
		"momentum", "ns_steps", "nesterov", "exclude_embeddings", "adam_weight_decay", "rms_rate"}, false},
	{"ScheduleFreeAdamW", "schedulefreeadamw", []string{"beta_1", "beta_2", "epsilon", "warmup_steps"}, false},
	{"AdaBelief", "adabelief", []string{"beta_1", "beta_2", "epsilon", "amsgrad", "rectify", "sma_threshold", "total_steps", "warmup_proportion",
		"min_learning_rate"}, true},
}

// kerasBase are the options of Keras' base class beside name and learning_rate.
var kerasBase = []string{"weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum", "ema_overwrite_frequency",
	"loss_scale_factor", "gradient_accumulation_steps"}

// FromKerasConfig makes a solver of an optimizer as Keras 3 serializes it (keras.optimizers.serialize, or the optimizer in the
// config.json of a .keras file), of any of Keras' classes, and of AdaBelief:
//
//	{"module": "keras.optimizers", "class_name": "Adam", "config": {"learning_rate": 0.001, …}, "registered_name": null}
//
// The options that the config does not have are Keras' defaults. A learning rate may be a schedule, of Keras' or any other
// class that package schedule knows. The names of classes are found in any case. A class that Keras has not is a registered
// name, that of registered_name with or without its package, or class_name: Register takes the place of custom objects. The
// optimizer's name is of no use here.
//
// Errors: an unknown class or option, a value that Keras would refuse or could not mean, and functions. The config stays as it
// is.
func FromKerasConfig(config map[string]any, opts ...Option) (*Solver, error) {
	k := &kerasReader{}
	r, err := k.read(config, 0)
	if err != nil {
		return nil, errors.Wrap(err, "solvers: Keras config")
	}
	s := New(r, opts...)
	if s.err != nil {
		return nil, s.err
	}
	for _, h := range k.schedules {
		names, err := s.RuleNames(h.rule)
		if err == nil {
			err = s.Schedule(names[0]+"/learning_rate", h.sch)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// kerasReader makes rules of configs, and keeps what is not theirs.
type kerasReader struct {
	schedules []rated
}

// rated is a rule with the schedule of its learning rate.
type rated struct {
	rule Rule
	sch  schedule.Schedule
}

// read makes a rule.
func (k *kerasReader) read(v any, depth int) (Rule, error) {
	class, options, object, err := kerasObject(v)
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, errors.Errorf("optimizers are nested more than %d deep", maxDepth)
	}
	switch spelling.Fold(class) {
	case "lossscaleoptimizer":
		return k.lossScale(options, depth)
	case "multioptimizer":
		return k.multi(options, depth)
	}
	name := ""
	for _, c := range kerasClasses {
		if fold(c.name) == fold(class) {
			name, class = "keras/"+c.preset, c.name
		}
	}
	if name == "" {
		if name, err = customClass(class, object[kerasRegister]); err != nil {
			return nil, err
		}
	}
	r, err := k.optimizer(class, name, options, depth)
	return r, errors.Wrap(err, class)
}

// kerasObject takes a serialized object apart; the options are a copy.
func kerasObject(v any) (class string, options, object map[string]any, err error) {
	object, ok := v.(map[string]any)
	if !ok {
		return "", nil, nil, errors.Errorf(`want an object, {"class_name": …, "config": …}, not %s`, convert.Show(v))
	}
	for _, key := range sortedKeys(object) {
		if !slices.Contains([]string{kerasName, kerasConfig, kerasRegister, kerasModule, "build_config", "compile_config"}, key) {
			return "", nil, nil, errors.Errorf("an object has no %q", key)
		}
	}
	if class, ok = object[kerasName].(string); !ok {
		return "", nil, nil, errors.Errorf("class_name is %s", convert.Show(object[kerasName]))
	}
	switch c := object[kerasConfig].(type) {
	case nil:
		options = map[string]any{}
	case map[string]any:
		options = maps.Clone(c)
	default:
		return "", nil, nil, errors.Errorf("%s: the config is %s; functions and other objects without options cannot be read", class, convert.Show(c))
	}
	return class, options, object, nil
}

// customClass finds the registered name of a class that is not Keras'.
func customClass(class string, registered any) (string, error) {
	var err error
	full, _ := registered.(string)
	_, short, _ := strings.Cut(full, ">")
	for _, name := range []string{full, short, class} {
		if name == "" {
			continue
		}
		if _, err = Lookup(name); err == nil {
			return name, nil
		}
	}
	if err == nil {
		err = errors.New("class_name is empty")
	}
	return "", err
}

// optimizer makes a rule of a registered name, with a Base where its options need one.
func (k *kerasReader) optimizer(class, name string, options map[string]any, depth int) (Rule, error) {
	var sch schedule.Schedule
	if rate, ok := options["learning_rate"].(map[string]any); ok {
		kind, of, _, err := kerasObject(rate)
		if err == nil {
			of[keyClass] = kind
			sch, err = schedule.FromConfig(of)
		}
		if err != nil {
			return nil, errors.Wrap(err, "learning_rate")
		}
		delete(options, "learning_rate")
	}
	if _, ok := options["relative_step"].(bool); ok && class == "Adafactor" { // Keras does not look at it
		delete(options, "relative_step")
	}
	if options["decay"] == nil {
		delete(options, "decay")
	}
	if wd, ok := options["weight_decay"]; ok && wd == nil && class == "AdamW" {
		return nil, errors.New("weight_decay must be a number")
	}
	for key, v := range options {
		switch {
		case v != nil:
		case slices.Contains([]string{"weight_decay", "adam_weight_decay", "rms_rate"}, key):
			options[key] = 0.0
		case key == "name" || slices.Contains(kerasBase, key):
			delete(options, key)
		}
	}
	options[keyClass] = name
	r, err := ruleFromMap(options, depth)
	if err != nil || sch == nil {
		return r, err
	}
	parts, err := walk(r, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Backward(parts) {
		if slices.ContainsFunc(p.fields, func(f field) bool { return f.name == "learning_rate" }) {
			k.schedules = append(k.schedules, rated{p.rule, sch})
			return r, nil
		}
	}
	return nil, errors.New("there is a schedule, but no learning_rate")
}

// lossScale makes a LossScale. Older configs have the options of the base class, which mean nothing there.
func (k *kerasReader) lossScale(options map[string]any, depth int) (Rule, error) {
	const class = "LossScaleOptimizer"
	for _, key := range kerasBase {
		switch v := options[key]; {
		case v != nil && v != false && key != "ema_momentum":
			return nil, errors.Errorf("%s: %s is %s: that is an option of inner_optimizer", class, key, convert.Show(v))
		default:
			delete(options, key)
		}
	}
	if dynamic, ok := options["dynamic"]; ok && dynamic != true {
		return nil, errors.Errorf("%s: dynamic is %s: use loss_scale_factor of the optimizer instead", class, convert.Show(dynamic))
	}
	delete(options, "dynamic")
	delete(options, "name")
	inner, err := k.read(options["inner_optimizer"], depth+1)
	if err != nil {
		return nil, errors.Wrap(err, class)
	}
	delete(options, "inner_optimizer")
	options["rule"], options[keyClass] = inner, "loss_scale"
	r, err := ruleFromMap(options, depth)
	return r, errors.Wrap(err, class)
}

// multi makes an OptimizerMap, in a Base that has the loss_scale_factor, which goes for all.
func (k *kerasReader) multi(options map[string]any, depth int) (Rule, error) {
	class, routes, _, err := kerasObject(options["optimizer_map"])
	if err != nil || class != "OptimizerMap" {
		return nil, errors.Errorf("MultiOptimizer: optimizer_map must be an OptimizerMap, not a function or something else")
	}
	part := func(v any) (Rule, error) {
		if class, of, object, err := kerasObject(v); err == nil && class != "" {
			object = maps.Clone(object)
			delete(of, "loss_scale_factor")
			object[kerasConfig] = of
			v = object
		}
		return k.read(v, depth+1)
	}
	m := &optimizerMap{}
	if m.Fallback, err = part(routes["default_optimizer"]); err != nil {
		return nil, errors.Wrap(err, "default_optimizer")
	}
	of, ok := routes["optimizer_map"].(map[string]any)
	if !ok && routes["optimizer_map"] != nil {
		return nil, errors.Errorf("MultiOptimizer: optimizer_map is %s", convert.Show(routes["optimizer_map"]))
	}
	for _, pattern := range sortedKeys(of) {
		r, err := part(of[pattern])
		if err != nil {
			return nil, errors.Wrap(err, pattern)
		}
		m.Routes = append(m.Routes, Route{pattern, r})
	}
	if options["loss_scale_factor"] == nil {
		return m, nil
	}
	return ruleFromMap(map[string]any{keyClass: "base", "rule": Rule(m), "loss_scale_factor": options["loss_scale_factor"]}, depth)
}
