package updater

import (
	"log/slog"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
	"optimop/solvers"
)

// given are the arguments of Keras' base class that an optimizer gets from outside of its own map, by their keys.
type given struct {
	defaults map[string]any // of the Config, for what the map does not have
	settings map[string]any // of the variables, in any case
}

// ofOptimizers are the fields of VarOptions that optimizers get.
var ofOptimizers = []string{"WeightDecay", "UseEMA", "EMAMomentum", "EMAOverwriteFrequency", "Constraints"}

// given collects them for a variable. What concerns all variables together, as accumulation and clips do, is not the optimizer's,
// unless it has to be exactly as in Keras.
func (c Config) given(s VarOptions) given {
	g := given{c.common().arguments(), s.arguments()}
	if len(c.ExcludeFromWeightDecay) > 0 {
		g.defaults["exclude_from_weight_decay"] = c.ExcludeFromWeightDecay
	}
	if !c.KerasStrict {
		return g
	}
	g.defaults["keras_strict"] = true
	for key, v := range s.kerasClips() { // into another map
		if v != 0 {
			g.settings[key] = v
		}
	}
	if n := valueOf(s.GradientAccumulationSteps); n > 1 {
		g.settings["gradient_accumulation_steps"] = n
	}
	return g
}

// common are the Config's own of these arguments, as settings.
func (c Config) common() VarOptions {
	o := VarOptions{WeightDecay: c.WeightDecay, EMAMomentum: c.EMAMomentum}
	if c.UseEMA {
		o.UseEMA = &c.UseEMA
	}
	if c.EMAOverwriteFrequency != 0 {
		o.EMAOverwriteFrequency = &c.EMAOverwriteFrequency
	}
	if len(c.Constraints) > 0 {
		o.Constraints = c.Constraints
	}
	return o
}

// arguments are those that are set, by their keys.
func (o VarOptions) arguments() map[string]any {
	all := map[string]any{}
	put(all, "weight_decay", o.WeightDecay)
	put(all, "use_ema", o.UseEMA)
	put(all, "ema_momentum", o.EMAMomentum)
	put(all, "ema_overwrite_frequency", o.EMAOverwriteFrequency)
	if o.Constraints != nil {
		all["constraints"] = o.Constraints
	}
	return all
}

// warnExclusions tells of expressions that exclude no variable from the weight decay.
func (c Config) warnExclusions(all []*setting) {
	for _, e := range c.ExcludeFromWeightDecay {
		b := solvers.Base{ExcludeFromWeightDecay: []string{e}}
		if !slices.ContainsFunc(all, func(s *setting) bool { return b.Excludes(s.name) }) {
			slog.Warn("updater: exclude_from_weight_decay: the expression is found in no variable's short name, what follows its last /", "expression", e)
		}
	}
}

func put[T any](to map[string]any, key string, v *T) {
	if v != nil {
		to[key] = *v
	}
}

// empty reports whether there is nothing that an optimizer has to know.
func (g given) empty() bool { return len(g.defaults)+len(g.settings) == 0 }

// key tells them apart.
func (g given) key() string { return textOf([]any{g.defaults, g.settings}, identity) }

// besides are options that an optimizer could have, but cannot do by itself.
var besides = map[string]bool{"lossscalefactor": true, "overwritewithgradient": true}

// alone checks that a choice of optimizer does not do by itself what the settings of its variables do, too.
func (c Config) alone(choice any, s VarOptions, at string) error {
	n, clips := max(valueOf(s.AccumGradMultipleStep), valueOf(s.GradientAccumulationSteps)), s.clips(at+": ", true)
	if n < 2 && clips == nil {
		return nil
	}
	own, err := c.optimizer(choice, given{}, at) // without what it gets
	if err != nil {
		return err
	}
	for _, b := range own.Solver.Bases() {
		switch {
		case n > 1 && b.GradientAccumulationSteps > 0:
			return errors.Errorf("%s: gradient_accumulation_steps: the optimizer accumulates by itself, and what it gets is of %d runs", at, n)
		case b.ClipNorm != 0 || b.GlobalClipNorm != 0 || b.ClipValue != 0:
			return clips
		}
	}
	return nil
}

// over completes an optimizer's own map.
func (g given) over(own map[string]any) map[string]any {
	out := maps.Clone(own)
	find := func(key string) string {
		for _, k := range slices.Sorted(maps.Keys(own)) {
			if name := path.Base(spelling.Fold(k)); name == spelling.Fold(key) || name == "weightdecayrate" && key == "weight_decay" {
				return k // also one rule's, "adamw/weight_decay", or that of another library
			}
		}
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(g.defaults)) {
		if find(key) == "" {
			out[key] = g.defaults[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.settings)) {
		delete(out, find(key))
		out[key] = g.settings[key]
	}
	return out
}

// around puts the arguments around a rule that was given in Go.
func (g given) around(r solvers.Rule) (solvers.Rule, error) {
	config := g.over(map[string]any{"class": "base", "rule": r})
	if _, decays := config["weight_decay"]; decays {
		o := &optimizer{Optimizer: Optimizer{Solver: solvers.New(r)}}
		if o.has("weight_decay") != "" {
			return nil, errors.New("weight_decay: the rule that was given has one: set it there")
		}
	}
	return solvers.FromConfigMap(config)
}

// choice completes a choice of optimizer.
func (g given) choice(choice any) (any, error) {
	if g.empty() {
		return choice, nil
	}
	switch x := choice.(type) {
	case nil:
		return g.over(map[string]any{"class": "sgd"}), nil
	case string:
		return g.over(map[string]any{"class": x}), nil
	case map[string]any:
		return g.over(x), nil
	case solvers.Rule:
		return g.around(x)
	}
	return choice, nil // which is refused
}

// kerasClips are the bounds of Keras' clips by their keys.
func (o VarOptions) kerasClips() map[string]float64 {
	return map[string]float64{"clipnorm": valueOf(o.ClipNorm), "global_clipnorm": valueOf(o.GlobalClipNorm), "clipvalue": valueOf(o.ClipValue)}
}

// clips checks that clips go together. own says whether the optimizer clips by itself.
func (o VarOptions) clips(at string, own bool) error {
	set := func(all map[string]float64) (on []string) {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if all[key] != 0 {
				on = append(on, key)
			}
		}
		return on
	}
	keras := set(o.kerasClips())
	returnn := set(map[string]float64{"gradient_clip": valueOf(o.GradientClip), "gradient_clip_norm": valueOf(o.GradientClipNorm),
		"gradient_clip_avg_norm": valueOf(o.GradientClipAvgNorm), "gradient_clip_global_norm": valueOf(o.GradientClipGlobalNorm)})
	switch {
	case len(keras) > 1:
		return errors.Errorf("%s%s: %s is given too; only one of clipnorm, global_clipnorm and clipvalue can be", at, keras[0], keras[1])
	case len(keras) > 0 && len(returnn) > 0:
		return errors.Errorf("%s%s: %s is given too; Keras' clips go by themselves, the gradient_clip… of RETURNN combine", at, keras[0], returnn[0])
	case own && len(keras)+len(returnn) > 0:
		return errors.Errorf("%s%s: the optimizer clips by itself", at, append(keras, returnn...)[0])
	}
	return nil
}

// strict checks that nothing has to come between accumulation and what KerasStrict leaves to the optimizers.
func (c Config) strict(at string, o VarOptions) error {
	if !c.KerasStrict || valueOf(o.GradientAccumulationSteps) < 2 {
		return nil
	}
	for _, st := range stages {
		if _, keras := o.kerasClips()[st.name]; keras {
			continue
		}
		if v, _ := st.of(&setting{VarOptions: o}); v != 0 {
			return errors.Errorf("%s%s: with keras_strict the optimizers accumulate by themselves, and nothing else processes gradients", at, st.name)
		}
	}
	if c.DecoupleConstraints && valueOf(o.L2) != 0 {
		return errors.Errorf("%sl2: with keras_strict the optimizers accumulate by themselves, and the penalty cannot be decoupled", at)
	}
	return nil
}

// checkBase checks the arguments of Keras' base class.
func (c Config) checkBase() error {
	for i, p := range c.ExcludeFromWeightDecay {
		if _, err := regexp.Compile(p); err != nil {
			return errors.Errorf("exclude_from_weight_decay[%d]: %q is no regular expression: %v", i, p, err)
		}
	}
	for i, p := range c.OverwriteWithGradient {
		if _, err := matcher(p); err != nil {
			return errors.Wrapf(err, "overwrite_with_gradient[%d]", i)
		}
	}
	if err := within("loss_scale_factor", &c.LossScaleFactor, 0); err != nil {
		return err
	}
	if c.LossScaleFactor != 0 && c.DynamicLossScale != nil {
		return errors.New("loss_scale_factor: dynamic_loss_scale is given too, which finds the factor by itself")
	}
	if err := c.DynamicLossScale.check(); err != nil {
		return err
	}
	all := append([]VarOptions{c.common()}, c.UpdaterOpts...)
	averages := slices.ContainsFunc(all, func(o VarOptions) bool { return valueOf(o.UseEMA) || mentions(o.Optimizer, "use_ema") }) ||
		mentions(c.Optimizer, "use_ema")
	for i, o := range all {
		at := ""
		if i > 0 {
			at = "updater_opts[" + strconv.Itoa(i-1) + "]."
		}
		if err := o.checkBase(at); err != nil {
			return err
		}
		if !averages && (o.EMAMomentum != nil || valueOf(o.EMAOverwriteFrequency) != 0) {
			return errors.Errorf("%sema_momentum and ema_overwrite_frequency have no effect without use_ema", at)
		}
	}
	return nil
}

// mentions reports whether the map of an optimizer, or of a rule within, has an option, by itself or as one of a rule ("adam/epsilon").
func mentions(choice any, options ...string) bool {
	switch x := choice.(type) {
	case map[string]any:
		for key, v := range x { // any order
			name := path.Base(spelling.Fold(key))
			if slices.ContainsFunc(options, func(o string) bool { return spelling.Fold(o) == name }) || name != "constraints" && mentions(v, options...) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(x, func(v any) bool { return mentions(v, options...) })
	}
	return false
}

func (o VarOptions) checkBase(at string) error {
	if err := within(at+"weight_decay", o.WeightDecay, 0); err != nil {
		return err
	}
	if m := o.EMAMomentum; m != nil && !(*m >= 0 && *m <= 1) {
		return errors.Errorf("%sema_momentum is %v; it must be in [0,1]", at, *m)
	}
	if n := valueOf(o.EMAOverwriteFrequency); n < 0 {
		return errors.Errorf("%sema_overwrite_frequency is %d; it must be 0 or above", at, n)
	}
	for i, rule := range o.Constraints {
		if err := checkConstraint(rule); err != nil {
			return errors.Wrapf(err, "%sconstraints[%d]", at, i)
		}
	}
	return nil
}

func checkConstraint(rule any) error {
	var s *solvers.Solver
	var err error
	switch x := rule.(type) {
	case string:
		s, err = solvers.FromConfigMap(map[string]any{"class": x})
	case map[string]any:
		s, err = solvers.FromConfigMap(x)
	case solvers.Rule:
		s = solvers.New(x)
		err = s.Err()
	default:
		return errors.Errorf("want a name or an object with \"class\", not %s", inJSON(rule))
	}
	if err == nil && s.Optimizes() {
		err = errors.Errorf("%s is an optimizer, not a constraint", called(rule))
	}
	return err
}
