package solvers

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Base is what the optimizers of Keras have in common, around any rule: the arguments of their base class, in its order. In each
// run
//
//	g ← g/LossScaleFactor
//	g ← the mean over GradientAccumulationSteps runs; in all of them but the last nothing more is done
//	g ← g clipped by ClipNorm, GlobalClipNorm or ClipValue, as ClipByNorm, ClipByGlobalNorm and ClipByValue do
//	w ← w − w·WeightDecay·α, with the learning rate α of Rule
//	w ← w − step of Rule
//	average ← EMAMomentum·average + (1−EMAMomentum)·w, and in every EMAOverwriteFrequency-th step w ← average, with UseEMA
//	w ← Constraints of w, in order
//
// Runs and steps are counted by the rule itself, so that a run that a rule around it skips (see LossScale) has no part in a mean. A
// parameter without a gradient in the last run of a group keeps what it has accumulated, and nothing happens to its average.
// Averages are of weights before the constraints; see EMA for what to do with them.
//
// A LossScaleFactor goes for all of Rule: those of Bases within are ignored.
//
// With KerasStrict these are as in Keras: in the runs that only accumulate the average is updated, weights are overwritten and
// constraints applied, too; and what a parameter accumulated is lost unless it has a gradient in the last run. The average of a
// parameter without a gradient still stays as it is.
//
// Slots: gradient_accumulator, zero at the start and after each group; average and the number seen, as in EMA; with KerasStrict the
// number group. Counters: iteration, of runs that accumulate, and step, of steps that are averaged.
type Base struct {
	Rule            Rule
	WeightDecay     float64 `range:"[0,inf)"` // default 0
	ClipNorm        float64 `range:"[0,inf)"` // default 0: none
	GlobalClipNorm  float64 `range:"[0,inf)"` // default 0: none
	ClipValue       float64 `range:"[0,inf)"` // default 0: none
	LossScaleFactor float64 `range:"[0,inf)"` // by which the loss was multiplied, see Solver.ScaleLoss; default 0: it was not

	GradientAccumulationSteps int  // 2 or more; default 0: none
	UseEMA                    bool // default false
	EMAOptions

	// ExcludeFromWeightDecay are regular expressions, of which one has to be found in a parameter's short name, what follows
	// its last "/", with or without the number of the second of that name: "bias", "^gamma$". ExcludedVariables are names in the solver. They are exempt from the decay of Rule, too. See
	// Solver.ExcludeFromWeightDecay.
	ExcludeFromWeightDecay, ExcludedVariables []string

	// OverwriteWithGradient are parameters, by name or pattern (see path.Match), whose gradient is their new value; that of accumulated
	// runs is the greatest, at least 0. Nothing else of the above concerns them.
	OverwriteWithGradient []string

	Constraints []Rule // see Constrained
	KerasStrict bool   // default false
}

// WithBase makes a solver of a rule with the arguments of Keras' base class.
//
//	solvers.WithBase(solvers.NewAdam(), func(b *solvers.Base) { b.WeightDecay, b.GlobalClipNorm, b.UseEMA = 0.004, 1, true })
//
// FromConfig makes one where it meets such an option.
func WithBase(rule Rule, options ...func(*Base)) *Solver {
	return configured(newBase(addressable(rule)), options)
}

func newBase(rule Rule) *Base { return &Base{Rule: rule, EMAOptions: EMAOptions{EMAMomentum: 0.99}} }

// Validate implements Validator.
func (r *Base) Validate() error {
	clips := 0
	for _, c := range []float64{r.ClipNorm, r.GlobalClipNorm, r.ClipValue} {
		if c != 0 {
			clips++
		}
	}
	switch n := r.GradientAccumulationSteps; {
	case clips > 1:
		return errors.Errorf("only one of clipnorm, global_clipnorm and clipvalue can be set, not %v, %v and %v",
			r.ClipNorm, r.GlobalClipNorm, r.ClipValue)
	case n < 0 || n == 1:
		return errors.Errorf("gradient_accumulation_steps is %d; it must be 2 or more, or 0 for none", n)
	}
	for _, p := range r.ExcludeFromWeightDecay {
		if _, err := regexp.Compile(p); err != nil {
			return errors.Wrap(err, "exclude_from_weight_decay")
		}
	}
	if r.LossScaleFactor != 0 && len(within[*LossScale](r.Rule)) > 0 {
		return errors.New("loss_scale_factor: the rule within scales the loss by itself")
	}
	if err := checkPatterns("overwrite_with_gradient", r.OverwriteWithGradient); err != nil {
		return err
	}
	for i, c := range r.Constraints {
		if name := optimizerIn(c); name != "" {
			return errors.Errorf("constraints[%d] is no constraint but an optimizer, %s; it must be a Transformation, such as max_norm", i, name)
		}
	}
	return r.EMAOptions.Validate()
}

// within are the rules of a type that a rule is made of.
func within[R Rule](r Rule) (found []R) {
	parts, _ := walk(r, nil) // a mistake in it is reported where a solver is made of it
	for _, p := range parts {
		if of, ok := p.rule.(R); ok {
			found = append(found, of)
		}
	}
	return found
}

// Bases are those that the solver's rule is made of, the outer before the inner.
func (s *Solver) Bases() (all []*Base) {
	if s.Err() != nil {
		return nil
	}
	for _, info := range s.rules {
		if b, ok := info.rule.(*Base); ok {
			all = append(all, b)
		}
	}
	return all
}

// optimizerIn names the first rule that is no Transformation, of those that a rule is made of. Functions may be anything.
func optimizerIn(r Rule) string {
	parts, _ := walk(r, nil)
	for _, p := range parts {
		if _, transforms := p.rule.(Transformation); !transforms && reflect.TypeOf(p.rule).Kind() != reflect.Func {
			return p.name
		}
	}
	return ""
}

// Rules implements Composite. The optimizer comes last: where hyperparameters of one name are looked for, its own counts, not an
// epsilon of a constraint.
func (r *Base) Rules() []Rule { return append(slices.Clone(r.Constraints), r.Rule) }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*Base) Transforms() {}

// Averages implements Averager.
func (*Base) Averages() {}

func (r *Base) overwrites(p Param) bool { return fitsAny(r.OverwriteWithGradient, p.Name) }
func (r *Base) ordinary(p Param) bool   { return !r.overwrites(p) }

// ordinal is what the second parameter of a name has behind it in the solver.
var ordinal = regexp.MustCompile(`#[0-9]+$`)

// Excludes reports whether a parameter, by its name in the solver, has no weight decay. What is no regular expression fits no name.
func (r *Base) Excludes(name string) bool {
	short := name[strings.LastIndexByte(name, '/')+1:]
	own := ordinal.ReplaceAllString(short, "")
	return slices.Contains(r.ExcludedVariables, name) || slices.ContainsFunc(r.ExcludeFromWeightDecay, func(p string) bool {
		e, err := regexp.Compile(p) // each by itself, as flags and quotes would reach into the next
		return err == nil && (e.MatchString(short) || e.MatchString(own))
	})
}
