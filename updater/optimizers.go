package updater

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/convert"
	"optimop/internal/spelling"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// optimizer is what updates the variables with one choice of optimizer and multipliers, in the same runs.
type optimizer struct {
	Optimizer
	choice      any
	rate, decay float64 // multipliers
	schedules   []scheduled
	started     bool // has the learning rate
}

// Optimizer is one of an updater's optimizers.
type Optimizer struct {
	Key    string          // what was chosen, as JSON where it has that form
	Solver *solvers.Solver // the rule with its hyperparameters; the state is in Updater.Solver
}

// scheduled is an option that follows a schedule.
type scheduled struct {
	name string
	at   schedule.Schedule
}

// optimizer makes what was chosen. path is its key, for errors.
func (c Config) optimizer(choice any, outer given, path string) (*optimizer, error) {
	o := &optimizer{rate: 1, decay: 1}
	o.Key = fmt.Sprintf("%T", choice)
	original := choice
	choice, err := outer.choice(choice)
	if err != nil {
		return nil, err
	}
	if k, ok := choiceOf(choice, typeOf).(string); ok {
		o.Key = k
	}
	given := map[string]any{}
	switch x := choice.(type) {
	case nil:
		o.Solver, err = c.named("sgd", nil, path)
	case string:
		o.Solver, err = c.named(x, nil, path)
	case map[string]any:
		given = x
		err = o.read(c, x, path)
	case solvers.Rule:
		if s, ok := x.(*solvers.Solver); ok {
			err = s.Err()
		}
		if err == nil {
			o.Solver = solvers.New(x)
			err = o.Solver.Err()
		}
	default:
		return nil, errors.Errorf("%s: want a name or an object with \"class\", not %T", path, choice)
	}
	if err != nil {
		return nil, err
	}
	if !o.Solver.Optimizes() {
		return nil, errors.Errorf("%s: %s is no optimizer by itself: it only transforms the gradients of one; chain them in Go, "+
			"as in solvers.Chain(solvers.NewClipByGlobalNorm(1), solvers.NewSGD())", path, called(original))
	}
	if err := o.complete(path, called(original)); err != nil {
		return nil, err
	}
	if _, isRule := choice.(solvers.Rule); isRule {
		return o, nil
	}
	return o, o.inject(c, given)
}

// complete checks that an optimizer needs nothing of the updater but gradients.
func (o *optimizer) complete(path, name string) error {
	rules, err := o.Solver.RuleNames(o.Solver)
	if err != nil {
		return err
	}
	scales := slices.ContainsFunc(rules, func(r string) bool { kind, _, _ := strings.Cut(r, "#"); return kind == "lossscale" })
	for _, b := range o.Solver.Bases() {
		scales = scales || b.LossScaleFactor != 0
		if b.WeightDecay != 0 && o.has("learning_rate") == "" {
			return errors.Errorf("%s: %s has no learning rate, which weight_decay goes by", path, name)
		}
	}
	if scales {
		return errors.Errorf("%s: it divides the gradients by a scale of the loss, by which nothing multiplies that: write loss_scale_factor or "+
			"dynamic_loss_scale beside optimizer", path)
	}
	return nil
}

// called is how an error names a choice.
func called(choice any) string {
	switch o := choice.(type) {
	case string:
		return strconv.Quote(o)
	case map[string]any:
		return fmt.Sprintf("%q", o["class"])
	}
	return "what was given"
}

// named makes an optimizer by its name, in the family of the preset first.
func (c Config) named(class string, options map[string]any, path string) (*solvers.Solver, error) {
	if c.Preset != "" && !strings.Contains(class, "/") {
		if _, err := solvers.Lookup(c.Preset + "/" + class); err == nil {
			class = c.Preset + "/" + class
		}
	}
	s, err := solvers.FromConfig(class, options)
	var bad *solvers.OptionError
	if errors.As(err, &bad) {
		return nil, errors.Errorf("%s.%s: %s", path, bad.Option, bad.Problem)
	}
	return s, errors.Wrap(err, path)
}

// holders are the options that are other rules.
var holders = []string{"constraints", "rule", "rules", "fallback", "routes", "parts"}

// read makes an optimizer of a map.
func (o *optimizer) read(c Config, given map[string]any, at string) error {
	options := maps.Clone(given)
	class, has := options["class"]
	delete(options, "class")
	rate := "" // of one of several rules
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if key == "learning_rate_multiplier" {
			v, ok := convert.Number(reflect.ValueOf(options[key]), reflect.TypeFor[float64]())
			if !ok {
				return errors.Errorf("%s.%s: want a number, not %s", at, key, inJSON(options[key]))
			}
			o.rate = v.Float()
			if err := within(at+"."+key, &o.rate, 0); err != nil {
				return err
			}
			delete(options, key)
			continue
		}
		rule, field := path.Split(spelling.Fold(key))
		switch {
		case besides[field]:
			return errors.Errorf("%s.%s: the key does not belong here; write it beside optimizer", at, key)
		case field != "learningrate" && field != "lr":
		case rule == "":
			return errors.Errorf("%s.%s: %s", at, key, misplaced)
		default:
			rate = key
		}
		if object, ok := options[key].(map[string]any); ok && !slices.Contains(holders, field) {
			s, err := readSchedule(object)
			if err != nil {
				return placed(err, at+"."+key)
			}
			o.schedules = append(o.schedules, scheduled{key, s})
			options[key] = schedule.Value(s, 0) // must be legal, and no other key may set the option
		}
	}
	var err error
	name, isName := class.(string)
	switch {
	case !has:
		return errors.Errorf("%s.class: missing; it names the optimizer: one of %v", at, solvers.Optimizers())
	case isName:
		if o.Solver, err = c.named(name, options, at); err != nil {
			return err
		}
	case len(options) > 0:
		return errors.Errorf("%s.class: want a name, not %T: options are those of a name", at, class)
	default:
		factory, err := solvers.Resolve(class)
		if err != nil {
			return errors.Errorf("%s.class: want a name, not %#v", at, class)
		}
		if o.Solver = solvers.New(factory()); o.Solver.Err() != nil {
			return errors.Wrapf(o.Solver.Err(), "%s.class", at)
		}
	}
	for _, s := range o.schedules {
		if _, err := o.Solver.Get(s.name); err != nil {
			return errors.Wrapf(err, "%s.%s", at, s.name)
		}
	}
	if _, err := o.Solver.Get("learning_rate"); rate != "" && err == nil { // there is but one
		return errors.Errorf("%s.%s: %s", at, rate, misplaced)
	}
	return nil
}

// inject sets epsilon and momentum, where the optimizer has them and its map does not.
func (o *optimizer) inject(c Config, given map[string]any) error {
	for _, x := range c.injected() {
		names := []string{x.name}
		if x.name == "epsilon" {
			names = append(names, "eps")
		}
		name := o.has(x.name)
		if name == "" || mentions(given, names...) {
			continue
		}
		if err := o.Solver.Set(name, x.v); err != nil {
			return errors.Wrap(err, x.key)
		}
	}
	return nil
}

// injected are the options that the config gives to all optimizers.
func (c Config) injected() (all []injection) {
	if c.OptimizerEpsilon != nil {
		all = append(all, injection{"optimizer_epsilon", "epsilon", *c.OptimizerEpsilon})
	}
	if c.Momentum != 0 {
		all = append(all, injection{"momentum", "momentum", c.Momentum})
	}
	return all
}

type injection struct {
	key, name string
	v         float64
}

// has is the full name of the last hyperparameter of a name, that of the optimizer itself; "" if there is none. Constraints do not count.
func (o *optimizer) has(name string) (full string) {
	rules, err := o.Solver.RuleNames(o.Solver)
	if err != nil {
		return ""
	}
	var constraints []string
	for _, b := range o.Solver.Bases() {
		for _, c := range b.Constraints {
			names, _ := o.Solver.RuleNames(c) // which it knows
			constraints = append(constraints, names...)
		}
	}
	for _, r := range rules {
		if slices.Contains(constraints, r) {
			continue
		}
		if _, err := o.Solver.Get(r + "/" + name); err == nil {
			full = r + "/" + name
		}
	}
	return full
}

// checkOptimizers makes every optimizer once.
func (c Config) checkOptimizers() error {
	if err := checkPreset(c.Preset); err != nil {
		return err
	}
	var made []*optimizer
	rate := c.LearningRate
	if s := c.LearningRateSchedule; s != nil {
		rate = new(schedule.Value(s, 0))
	}
	for i := -1; i < len(c.UpdaterOpts); i++ {
		choice, at, settings := c.Optimizer, "optimizer", c.base()
		if i >= 0 {
			settings = settings.with(c.UpdaterOpts[i])
			choice, at = c.UpdaterOpts[i].Optimizer, fmt.Sprintf("updater_opts[%d].optimizer", i)
			if isDefault(choice) {
				continue
			}
		}
		choice, err := c.completed(choice, at)
		if err != nil {
			return err
		}
		if err := c.alone(choice, settings, at); err != nil {
			return err
		}
		o, err := c.optimizer(choice, c.given(settings), at)
		if err != nil {
			return err
		}
		if _, given := choice.(solvers.Rule); !given && rate != nil && o.has("learning_rate") != "" {
			if err := o.Solver.Set(o.has("learning_rate"), *rate); err != nil {
				return errors.Wrap(err, "learning_rate")
			}
		}
		made = append(made, o)
	}
	hasRate := func(o *optimizer) bool { return o.has("learning_rate") != "" }
	if rate != nil && !slices.ContainsFunc(made, hasRate) {
		return errors.Errorf("learning_rate: %s has no hyperparameter of that name", called(c.Optimizer))
	}
	if c.DynamicLearningRate != nil && !slices.ContainsFunc(made, hasRate) {
		return errors.Errorf("dynamic_learning_rate: %s has no learning rate", called(c.Optimizer))
	}
	for _, x := range c.injected() {
		if !slices.ContainsFunc(made, func(o *optimizer) bool { return o.has(x.name) != "" }) {
			return errors.Errorf("%s: no optimizer here has %s %s; write \"optimizer\": {\"class\": …}, such as \"momentum\" or \"rmsprop\"",
				x.key, map[bool]string{true: "an", false: "a"}[x.name == "epsilon"], x.name)
		}
	}
	return nil
}

// completed gives a map without "class" the class of the Config's optimizer.
func (c Config) completed(choice any, at string) (any, error) {
	if isDefault(choice) {
		return c.Optimizer, nil
	}
	o, isMap := choice.(map[string]any)
	if _, has := o["class"]; !isMap || has || at == "optimizer" {
		return choice, nil
	}
	o = maps.Clone(o)
	switch base := c.Optimizer.(type) {
	case nil:
		o["class"] = "sgd"
	case string:
		o["class"] = base
	case map[string]any:
		o["class"] = base["class"]
	default:
		return nil, errors.Errorf("%s.class: missing, and the config's own optimizer is a %T, which has no class", at, base)
	}
	return o, nil
}
