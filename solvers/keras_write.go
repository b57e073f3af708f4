package solvers

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
	"optimop/solvers/schedule"
)

// KerasConfig is the solver as Keras 3 serializes an optimizer, for keras.optimizers.deserialize; see FromKerasConfig. There
// are such configs of the registered names of the family keras, also in a Base, in an OptimizerMap (Keras' MultiOptimizer) and
// in a LossScale, with Keras' schedules of the learning rate; and of rules of your own that are registered, whose class Python
// then has to know. Numbers are json.Number: as JSON, a float64 of 1 is 1.0, which Keras does not take for an integer.
//
// Errors: what Keras has not, or has with other numbers, such as an Adam without EpsilonHat (see the registered names of
// keras/), constraints and exclusions, which Keras keeps elsewhere, and all that Config refuses. A KerasStrict is left out:
// Keras always is.
func (s *Solver) KerasConfig() (map[string]any, error) {
	if err := s.settle(); err != nil {
		return nil, err
	}
	k := &kerasWriter{s: s}
	config, err := k.write(s.rule, nil)
	if err != nil {
		return nil, errors.Wrap(err, "solvers: Keras config")
	}
	for _, h := range s.schedule {
		if !slices.Contains(k.scheduled, h) {
			return nil, errors.Errorf("solvers: Keras config: %s follows a schedule; in Keras only learning rates do", h.name)
		}
	}
	return config, nil
}

// kerasWriter makes configs of the rules of a solver.
type kerasWriter struct {
	s         *Solver
	scheduled []*scheduled // that are written
}

// object is an object as Keras has it.
func object(class string, config map[string]any) map[string]any {
	config["name"] = spelling.Snake(class)
	return map[string]any{kerasModule: "keras.optimizers", kerasName: class, kerasConfig: config, kerasRegister: nil}
}

// write is the config of a rule with the options of the base class around it, if there are any.
func (k *kerasWriter) write(r Rule, base *Base) (map[string]any, error) {
	for s, ok := r.(*Solver); ok; s, ok = r.(*Solver) {
		r = s.rule
	}
	switch r := r.(type) {
	case *Base:
		return k.base(r, base)
	case *optimizerMap:
		return k.multi(r, base)
	case *LossScale:
		return k.lossScale(r, base)
	case *SGD:
		return k.optimizer(&Momentum{LearningRate: r.LearningRate, RateInside: true}, r, base)
	}
	return k.optimizer(r, r, base)
}

func (k *kerasWriter) base(r, outer *Base) (map[string]any, error) {
	plain := *r
	plain.ExcludeFromWeightDecay, plain.ExcludedVariables, plain.OverwriteWithGradient, plain.Constraints = nil, nil, nil, nil
	plain.KerasStrict = r.KerasStrict
	if !reflect.DeepEqual(&plain, r) {
		return nil, errors.New("exclusions, overwrite_with_gradient and constraints are no options of Keras' optimizers")
	}
	if outer != nil {
		return nil, errors.New("the options of the base class stand in those of another")
	}
	return k.write(r.Rule, r)
}

func (k *kerasWriter) multi(m *optimizerMap, base *Base) (map[string]any, error) {
	var factor any
	if base != nil {
		only := newBase(base.Rule)
		if only.LossScaleFactor = base.LossScaleFactor; !reflect.DeepEqual(only, base) {
			return nil, errors.New("MultiOptimizer has no option of the base class but loss_scale_factor")
		}
		factor = orNull(base.LossScaleFactor)
	}
	if m.by {
		return nil, errors.New("a function that chooses rules has no config")
	}
	part := func(r Rule) (map[string]any, error) {
		of, err := k.write(r, nil)
		if err != nil {
			return nil, err
		}
		config := of[kerasConfig].(map[string]any)
		if own, ok := config["loss_scale_factor"]; !ok || own != nil || of[kerasName] == "MultiOptimizer" {
			return nil, errors.New("a MultiOptimizer has optimizers without a scale of the loss only")
		}
		config["loss_scale_factor"] = factor
		return of, nil
	}
	rest, err := part(m.Fallback)
	if err != nil {
		return nil, err
	}
	routes := map[string]any{}
	for _, route := range m.Routes {
		if routes[route.Pattern], err = part(route.Rule); err != nil {
			return nil, errors.Wrap(err, route.Pattern)
		}
	}
	of := object("OptimizerMap", map[string]any{"default_optimizer": rest, "optimizer_map": routes})
	delete(of[kerasConfig].(map[string]any), "name")
	return object("MultiOptimizer", map[string]any{"optimizer_map": of, "loss_scale_factor": factor}), nil
}

func (k *kerasWriter) lossScale(r *LossScale, base *Base) (map[string]any, error) {
	only := newLossScale(r.Rule)
	only.InitialScale, only.DynamicGrowthSteps = r.InitialScale, r.DynamicGrowthSteps
	if !reflect.DeepEqual(only, r) || base != nil {
		return nil, errors.New("LossScaleOptimizer has neither other factors than 2 and 0.5, nor a lowest scale, " +
			"nor options of the base class around it")
	}
	inner, err := k.write(r.Rule, nil)
	if err != nil {
		return nil, err
	}
	scale, err := kerasNumber(r.InitialScale)
	config := map[string]any{"inner_optimizer": inner, "initial_scale": scale, "dynamic_growth_steps": r.DynamicGrowthSteps}
	return object("LossScaleOptimizer", config), err
}

// optimizer is the config of a rule that is not made of others, of which the solver's own is known.
func (k *kerasWriter) optimizer(r, known Rule, base *Base) (map[string]any, error) {
	config, err := kerasBaseConfig(base)
	if err != nil {
		return nil, err
	}
	var why error
	for _, c := range kerasClasses {
		fresh, _, err := newRule("keras/" + c.preset)
		if err != nil || reflect.TypeOf(fresh) != reflect.TypeOf(r) {
			continue
		}
		if why = c.fill(config, r, fresh, base); why != nil {
			continue
		}
		of := object(c.name, config)
		if c.custom {
			of[kerasModule], of[kerasRegister] = nil, c.name
		}
		return of, k.rate(known, config)
	}
	if why != nil {
		return nil, why
	}
	name, _, err := classOf(r)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(append(slices.Clone(holders), own...), func(p preset) bool { return p.name == name }) {
		return nil, errors.Errorf("Keras has no %s", name)
	}
	options, err := encodeRule(r, 0)
	if err != nil {
		return nil, err
	}
	delete(options, keyClass)
	for key, v := range options {
		if x, ok := v.(float64); ok {
			if options[key], err = kerasNumber(x); err != nil {
				return nil, errors.Wrap(err, key)
			}
		}
		config[key] = options[key]
	}
	of := object(name, config)
	of[kerasModule], of[kerasRegister] = nil, name
	return of, k.rate(known, config)
}

// rate puts the schedule of the learning rate in its place.
func (k *kerasWriter) rate(r Rule, config map[string]any) error {
	for _, info := range k.s.rules {
		h := k.s.scheduled(info.name + "/learning_rate")
		if h == nil || !sameRule(info.rule, addressable(r)) {
			continue
		}
		var err error
		if config["learning_rate"], err = kerasSchedule(h.sch); err != nil {
			return err
		}
		k.scheduled = append(k.scheduled, h)
	}
	return nil
}

// fill puts the options of the class into a config. The other fields of the rule must be those of the preset.
func (c *kerasClass) fill(config map[string]any, r, fresh Rule, base *Base) error {
	infos, err := walk(r, nil)
	if err != nil {
		return err
	}
	fields, err := optionsOf(infos)
	if err != nil {
		return err
	}
	written := map[string]bool{}
	for _, key := range append([]string{"learning_rate", "weight_decay"}, c.own...) {
		f := findOption(fields, c.preset, spelling.Fold(key))
		if f == nil { // weight_decay, which most rules leave to the base class
			continue
		}
		if key == "weight_decay" && base != nil && base.WeightDecay != 0 {
			return errors.Errorf("%s decays the weights twice: by its own weight_decay, and by that of the base class", c.name)
		}
		written[f.name] = true
		if config[key], err = kerasValue(c, key, f.at); err != nil {
			return errors.Wrapf(err, "%s: %s", c.name, key)
		}
	}
	if c.name == "Adafactor" {
		config["relative_step"] = true
	}
	if infos, err = walk(fresh, nil); err != nil {
		return err
	}
	theirs, err := optionsOf(infos)
	if err != nil {
		return err
	}
	for i, f := range fields {
		if !written[f.name] && !reflect.DeepEqual(f.at.Interface(), theirs[i].at.Interface()) {
			return errors.Errorf("%s is there with %s = %v only, not %v", c.name, f.known, theirs[i].at, f.at)
		}
	}
	return nil
}

// kerasValue is the value of an option as Keras has it.
func kerasValue(c *kerasClass, key string, v reflect.Value) (any, error) {
	x := 0.0
	if v.CanFloat() {
		x = v.Float()
	}
	switch {
	case slices.Contains([]string{"ns_steps", "warmup_steps", "total_steps"}, key) && x == math.Trunc(x):
		return int64(x), nil
	case x == 0 && (key == "rms_rate" || key == "weight_decay" && c.name != "AdamW"):
		return nil, nil
	case v.CanFloat():
		return kerasNumber(x)
	case v.Kind() == reflect.Slice && v.IsNil():
		return []any{}, nil
	}
	return encode(v, 0)
}

// kerasNumber writes a float64 so that Python takes it for one.
func kerasNumber(x float64) (any, error) {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil, errors.Errorf("%v is no number of JSON", x)
	}
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return json.Number(s), nil
}

// orNull is a number for which 0 means none, which is null in Keras.
func orNull(x float64) any {
	if x == 0 {
		return nil
	}
	n, _ := kerasNumber(x) // a legal option is finite
	return n
}

// kerasBaseConfig are the options of the base class.
func kerasBaseConfig(b *Base) (map[string]any, error) {
	if b == nil {
		b = newBase(nil)
	}
	momentum, err := kerasNumber(b.EMAMomentum)
	config := map[string]any{"weight_decay": orNull(b.WeightDecay), "clipnorm": orNull(b.ClipNorm), "global_clipnorm": orNull(b.GlobalClipNorm),
		"clipvalue": orNull(b.ClipValue), "use_ema": b.UseEMA, "ema_momentum": momentum, "ema_overwrite_frequency": nil,
		"loss_scale_factor": orNull(b.LossScaleFactor), "gradient_accumulation_steps": nil}
	if b.EMAOverwriteFrequency != 0 {
		config["ema_overwrite_frequency"] = int64(b.EMAOverwriteFrequency)
	}
	if b.GradientAccumulationSteps != 0 {
		config["gradient_accumulation_steps"] = b.GradientAccumulationSteps
	}
	return config, err
}

// kerasSchedules are the schedules of Keras: their names, the names that Keras gives to their objects, and their options, with
// ours where it has another name.
var kerasSchedules = []struct {
	name, title string
	options     map[string]string
}{
	{"ExponentialDecay", "ExponentialDecay", map[string]string{initialRate: "initial", "decay_steps": "", "decay_rate": "", "staircase": ""}},
	{"PiecewiseConstantDecay", "PiecewiseConstant", map[string]string{"boundaries": "", "values": ""}},
	{"PolynomialDecay", "PolynomialDecay", map[string]string{initialRate: "initial", "decay_steps": "", "end_learning_rate": "end",
		"power": "", "cycle": ""}},
	{"InverseTimeDecay", "InverseTimeDecay", map[string]string{initialRate: "initial", "decay_steps": "", "decay_rate": "", "staircase": ""}},
	{"CosineDecay", "CosineDecay", map[string]string{initialRate: "initial", "decay_steps": "", "alpha": "", "warmup_target": "",
		"warmup_steps": ""}},
	{"CosineDecayRestarts", "SGDRDecay", map[string]string{initialRate: "initial", "first_decay_steps": "", "t_mul": "", "m_mul": "", "alpha": ""}},
}

const initialRate = "initial_learning_rate"

// kerasSchedule is a schedule as Keras serializes it.
func kerasSchedule(s schedule.Schedule) (map[string]any, error) {
	config, err := schedule.Config(s)
	if err != nil {
		return nil, err
	}
	for _, k := range kerasSchedules {
		if spelling.Fold(k.name) != spelling.Fold(config[keyClass].(string)) {
			continue
		}
		of := map[string]any{"name": k.title}
		for theirs, ours := range k.options {
			ours = cmp.Or(ours, theirs)
			if n, ok := config[ours].(float64); ok && strings.HasSuffix(theirs, "_steps") && n == math.Trunc(n) {
				of[theirs] = int64(n)
			} else if of[theirs], err = kerasOption(config[ours]); err != nil {
				return nil, errors.Wrapf(err, "%s: %s", k.name, theirs)
			}
			delete(config, ours)
		}
		if of["warmup_target"] == json.Number("0.0") { // it is no warm-up here
			of["warmup_target"] = nil
		}
		for _, left := range sortedKeys(config) { // those that Keras has not must do nothing
			if v := config[left]; left != keyClass && v != 0.0 && v != 0 && v != false && !(left == "exponent" && v == 1.0) {
				return nil, errors.Errorf("Keras' %s has no %s", k.name, left)
			}
		}
		return map[string]any{kerasModule: "keras.optimizers.schedules", kerasName: k.name, kerasConfig: of, kerasRegister: nil}, nil
	}
	return nil, errors.Errorf("Keras has no schedule %s", config[keyClass])
}

// kerasOption is an option of a schedule.
func kerasOption(v any) (any, error) {
	switch x := v.(type) {
	case float64:
		return kerasNumber(x)
	case []any:
		list := make([]any, len(x))
		for i := range x {
			var err error
			if list[i], err = kerasOption(x[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return v, nil
}
