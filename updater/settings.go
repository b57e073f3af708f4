package updater

import (
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/solvers"
	"optimop/solvers/schedule"
)

// check looks at everything that does not depend on the variables.
func (c Config) check() error {
	base := c.base()
	if err := base.check(""); err != nil {
		return err
	}
	for i, o := range c.UpdaterOpts {
		at := "updater_opts[" + strconv.Itoa(i) + "]."
		if err := o.check(at); err != nil {
			return err
		}
		if err := c.together(at, base.with(o)); err != nil {
			return err
		}
	}
	if err := c.together("", base); err != nil {
		return err
	}
	for _, f := range []func() error{c.checkNumbers, c.checkTags, c.checkBase, c.checkOptimizers} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkNumbers() error {
	for i, s := range []schedule.Schedule{c.LearningRateSchedule, c.DynamicLearningRate} {
		if s == nil {
			continue
		}
		if err := schedule.Check(s); err != nil {
			return placed(err, []string{"learning_rate", "dynamic_learning_rate"}[i])
		}
	}
	for _, n := range []struct {
		key string
		v   int64
	}{
		{"summary_interval", int64(c.SummaryInterval)}, {"max_skipped_steps", int64(c.MaxSkippedSteps)},
		{"reset_updater_vars_mod_step", int64(c.ResetUpdaterVarsModStep)}, {"seed", c.Seed},
	} {
		if n.v < 0 || n.v >= 1<<53 { // 2⁵³+1 reads as 2⁵³
			return errors.Errorf("%s is %d; it must be 0 or above, and below 2⁵³", n.key, n.v)
		}
	}
	if err := within("momentum", &c.Momentum, 0); err != nil {
		return err
	}
	if err := within("optimizer_epsilon", c.OptimizerEpsilon, 0); err != nil {
		return err
	}
	if err := within("decouple_constraints_factor", c.DecoupleConstraintsFactor, 0); err != nil {
		return err
	}
	switch {
	case c.LearningRate != nil && c.LearningRateSchedule != nil:
		return errors.New("learning_rate: there is a number and a schedule; for their product use dynamic_learning_rate")
	case c.DecoupleConstraintsFactor != nil && !c.DecoupleConstraints:
		return errors.New("decouple_constraints_factor: it has no effect without decouple_constraints")
	case c.MaxSkippedSteps > 0 && !c.skips():
		return errors.New("max_skipped_steps: it has no effect without skip_non_finite_steps or dynamic_loss_scale")
	}
	return nil
}

// checkTags refuses tags that nobody has, and those that nothing goes by.
func (c Config) checkTags() error {
	var have []string
	for _, o := range c.UpdaterOpts {
		have = append(have, o.Tags...)
	}
	clips, zeroes := c.GradientClipGlobalNorm != 0, c.GradNormToClipToZero != 0 // anywhere, as several settings can concern a variable
	for _, o := range c.UpdaterOpts {
		clips, zeroes = clips || valueOf(o.GradientClipGlobalNorm) != 0, zeroes || valueOf(o.GradNormToClipToZero) != 0
	}
	for i, o := range append([]VarOptions{{GlobalNormTag: &c.GlobalNormTag, GradientClipGlobalNormTag: &c.GradientClipGlobalNormTag}}, c.UpdaterOpts...) {
		at := ""
		if i > 0 {
			at = "updater_opts[" + strconv.Itoa(i-1) + "]."
		}
		for _, t := range []struct {
			key, without string
			tag          *string
			read         bool
		}{
			{"global_norm_tag", "gradient_clip_global_norm or grad_norm_to_clip_to_zero", o.GlobalNormTag, clips || zeroes},
			{"gradient_clip_global_norm_tag", "gradient_clip_global_norm", o.GradientClipGlobalNormTag, clips},
		} {
			switch {
			case t.tag == nil || *t.tag == "":
			case !slices.Contains(have, *t.tag):
				return errors.Errorf("%s%s: no updater_opts gives the tag %q to a variable", at, t.key, *t.tag)
			case !t.read:
				return errors.Errorf("%s%s: it has no effect without %s", at, t.key, t.without)
			}
		}
	}
	return nil
}

// within checks a number that may be absent.
func within(key string, v *float64, from float64) error {
	if v == nil || *v >= from && !math.IsInf(*v, 0) {
		return nil
	}
	return errors.Errorf("%s is %v; it must be finite and %v or above", key, *v, from)
}

// check looks at the settings of some variables by themselves; at begins the keys.
func (o VarOptions) check(at string) error {
	if at != "" && o.Match == "" && len(o.Vars) == 0 {
		return errors.Errorf("%smatch: missing; it says which variables are meant, such as \"*/bias\" or \"/^decoder/\"", at)
	}
	if _, err := matcher(o.Match); err != nil {
		return errors.Wrapf(err, "%smatch", at)
	}
	if i := slices.Index(o.Tags, ""); i >= 0 {
		return errors.Errorf("%stags[%d]: the tag is empty", at, i)
	}
	for _, n := range []struct {
		key  string
		v    *float64
		from float64
	}{
		{"l2", o.L2, 0}, {"learning_rate_multiplier", o.LearningRateMultiplier, 0}, {"weight_decay_multiplier", o.WeightDecayMultiplier, 0},
		{"gradient_noise", o.GradientNoise, 0}, {"gradient_clip", o.GradientClip, 0}, {"gradient_clip_norm", o.GradientClipNorm, 0},
		{"gradient_clip_avg_norm", o.GradientClipAvgNorm, 0}, {"gradient_clip_global_norm", o.GradientClipGlobalNorm, 0},
		{"clipnorm", o.ClipNorm, 0}, {"global_clipnorm", o.GlobalClipNorm, 0}, {"clipvalue", o.ClipValue, 0},
		{"grad_norm_to_clip_to_zero", o.GradNormToClipToZero, 0}, {"maximize_grad_norm", o.MaximizeGradNorm, -math.MaxFloat64},
	} {
		if err := within(at+n.key, n.v, n.from); err != nil {
			return err
		}
	}
	return o.accumulation(at)
}

// together checks what has to go together in the settings of a variable.
func (c Config) together(at string, o VarOptions) error {
	if err := o.accumulation(at); err != nil {
		return err
	}
	if err := o.clips(at, false); err != nil {
		return err
	}
	return c.strict(at, o)
}

// accumulation checks what accumulates.
func (o VarOptions) accumulation(at string) error {
	sum, mean := valueOf(o.AccumGradMultipleStep), valueOf(o.GradientAccumulationSteps)
	switch {
	case sum < 0:
		return errors.Errorf("%saccum_grad_multiple_step is %d; it must be 0 or above", at, sum)
	case mean < 0 || mean == 1:
		return errors.Errorf("%sgradient_accumulation_steps is %d; it must be 0 (off), or 2 or above", at, mean)
	case sum > 0 && mean > 0:
		return errors.Errorf("%sgradient_accumulation_steps: accum_grad_multiple_step is given too; the one takes the mean, the other the sum", at)
	}
	return nil
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// base are the settings of a variable that no VarOptions concern. Each field that Config has too is set, but for the
// tag of clips if it is that of GlobalNormTag, and for what optimizers get, see given.
func (c Config) base() (o VarOptions) {
	one := 1.0
	o.L2, o.LearningRateMultiplier, o.WeightDecayMultiplier = new(float64), &one, &one
	to, from := reflect.ValueOf(&o).Elem(), reflect.ValueOf(c)
	for i := range to.NumField() {
		name := to.Type().Field(i).Name
		f := from.FieldByName(name)
		switch at := to.Field(i); {
		case !f.IsValid() || slices.Contains(ofOptimizers, name):
		case at.Kind() == reflect.Pointer:
			at.Set(reflect.New(f.Type()))
			at.Elem().Set(f)
		default:
			at.Set(f)
		}
	}
	if c.GradientClipGlobalNormTag == "" { // that of GlobalNormTag
		o.GradientClipGlobalNormTag = nil
	}
	return o
}

// with puts other settings over these, where they have any; tags add up.
func (o VarOptions) with(other VarOptions) VarOptions {
	tags := slices.Concat(o.Tags, other.Tags)
	to, from := reflect.ValueOf(&o).Elem(), reflect.ValueOf(other)
	for i := range to.NumField() {
		if f := from.Field(i); !f.IsZero() {
			to.Field(i).Set(f)
		}
	}
	slices.Sort(tags)
	o.Tags = slices.Compact(tags)
	return o
}

// matcher makes a function of a pattern.
func matcher(pattern string) (func(name string) bool, error) {
	if len(pattern) > 1 && strings.HasPrefix(pattern, "/") && strings.HasSuffix(pattern, "/") {
		re, err := regexp.Compile(pattern[1 : len(pattern)-1])
		if err != nil {
			return nil, errors.Errorf("%q is no regular expression: %v", pattern, err)
		}
		return re.MatchString, nil
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, errors.Errorf("%q is no pattern: %v", pattern, err)
	}
	return func(name string) bool {
		ok, _ := path.Match(pattern, name)
		return ok || name == pattern
	}, nil
}

// setting is how one variable is trained.
type setting struct {
	VarOptions
	node    *gorgonia.Node
	name    string   // in the solver
	matched []string // the patterns, in order
	opt     *optimizer
	idle    bool // no loss depends on it

	custom    bool // see CustomUpdate
	overwrite bool // see Config.OverwriteWithGradient
	strict    bool // see Config.KerasStrict
}

// settle finds the settings of variables, of which the solver's names are given.
func (c Config) settle(vars gorgonia.Nodes, names []string) ([]*setting, error) {
	all := make([]*setting, len(vars))
	base := c.base()
	for i := range vars {
		all[i] = &setting{VarOptions: base, node: vars[i], name: names[i]}
	}
	for k, o := range c.UpdaterOpts {
		fits, err := matcher(o.Match)
		if err != nil {
			return nil, err
		}
		hit := false
		var known []string
		for i, v := range vars {
			name := all[i].own()
			known = append(known, name)
			byName := o.Match != "" && fits(name)
			if !byName && !o.means(v) {
				continue
			}
			hit = true
			what := o.Match
			if !byName {
				what = "(itself)"
			}
			all[i].VarOptions, all[i].matched = all[i].with(o), append(all[i].matched, what)
		}
		if !hit {
			return nil, errors.Errorf("updater_opts[%d].match: %q fits none of the variables %q", k, o.Match, known)
		}
	}
	for i, s := range all {
		if err := c.together("", s.VarOptions); err != nil {
			return nil, errors.Wrapf(err, "the settings of %q", names[i])
		}
		s.strict = c.KerasStrict
	}
	return all, c.overwrite(all)
}

// overwrite marks the variables of OverwriteWithGradient.
func (c Config) overwrite(all []*setting) error {
	for i, p := range c.OverwriteWithGradient {
		fits, err := matcher(p)
		if err != nil {
			return err
		}
		hit := false
		for _, s := range all {
			if fits(s.own()) {
				s.overwrite, hit = true, true
			}
		}
		if !hit {
			return errors.Errorf("overwrite_with_gradient[%d]: %q fits none of the variables", i, p)
		}
	}
	return nil
}

// means reports whether a variable is among Vars, or on another graph is one of the same name.
func (o VarOptions) means(v *gorgonia.Node) bool {
	return slices.ContainsFunc(o.Vars, func(w *gorgonia.Node) bool {
		return w == v || w != nil && w.Graph() != v.Graph() && !v.Graph().ByName("").Contains(v) && w.Name() == v.Name()
	})
}

// own is the name that patterns are for, also of the second variable of that name.
func (s *setting) own() string {
	if own := s.node.Name(); strings.HasPrefix(s.name, own+"#") {
		return own
	}
	return s.name
}

// ordinary reports whether an optimizer updates the variable.
func (s *setting) ordinary() bool { return !s.custom && !s.overwrite }

// steps is how many runs make an update of the variable, and whether of the mean.
func (s *setting) steps() group {
	n := *s.GradientAccumulationSteps
	switch {
	case s.overwrite:
		return group{n: max(1, n, *s.AccumGradMultipleStep), overwrite: true}
	case n > 1 && !s.strict: // else the optimizer does it
		return group{n: n, mean: true}
	}
	return group{n: max(1, *s.AccumGradMultipleStep)}
}

// group are the variables that are updated in the same runs.
type group struct {
	n         int
	mean      bool
	overwrite bool // by the greatest gradient
}

// clipTag is the tag of the global norm that the clip goes by.
func (s *setting) clipTag() string {
	if t := s.GradientClipGlobalNormTag; t != nil {
		return *t
	}
	return *s.GlobalNormTag
}

// quote makes a name the pattern (see path.Match) that fits it alone.
var quote = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// over names the variables whose gradients the norm for a tag is of; nil means all.
func over(all []*setting, tag string) (names []string, err error) {
	if tag == "" && !slices.ContainsFunc(all, func(s *setting) bool { return s.overwrite }) {
		return nil, nil
	}
	for _, s := range all {
		if s.ordinary() && (tag == "" || slices.Contains(s.Tags, tag)) {
			names = append(names, quote.Replace(s.name))
		}
	}
	if names == nil {
		return nil, errors.Errorf("no variable with the tag %q is updated by its gradient", tag)
	}
	return names, nil
}

// checkPreset refuses a preset that no optimizer's name begins with.
func checkPreset(preset string) error {
	var known []string
	for _, name := range solvers.Names() {
		if family, _, ok := strings.Cut(name, "/"); ok && !slices.Contains(known, family) {
			known = append(known, family)
		}
	}
	if preset == "" || slices.Contains(known, preset) {
		return nil
	}
	return errors.Errorf("preset: %q is none of %q", preset, known)
}
