package solvers

import (
	"math"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// LossScale trains with a rule on a loss that is multiplied by a number, so that small gradients do not vanish in float32, and finds
// that number by itself (Micikevicius et al. 2018, https://arxiv.org/abs/1710.03740; Keras' LossScaleOptimizer).
//
//	all gradients are finite: g ← g/scale and the step of Rule; after DynamicGrowthSteps such runs scale ← scale·GrowthFactor
//	else: no step, and scale ← max(scale·BackoffFactor, MinScale)
//
// The growth steps are counted anew after each change. The scale stays finite, and no smaller than float32 can be. A run without a
// step writes nothing but scale and counters, nothing of the rule within either. A loss_scale_factor of a Base within is ignored, and
// what its overwrite_with_gradient names is not divided. The loss has to be multiplied by the scale: Solver.ScaleLoss does it.
//
// Numbers scale: InitialScale at the start; step_counter and skipped, of all runs without a step: 0 at the start.
type LossScale struct {
	Rule               Rule
	InitialScale       float64 `range:"(0,inf)"` // default 32768
	DynamicGrowthSteps int     // default 2000
	GrowthFactor       float64 `range:"[1,inf)"` // default 2
	BackoffFactor      float64 `range:"(0,1]"`   // default 0.5
	MinScale           float64 `range:"[0,inf)"` // default 0
}

// WithLossScale makes a solver of a rule with a dynamic scale of the loss. It divides the gradients by the scale whether the loss
// was multiplied by it or not, so give Minimize, or gorgonia.Grad, what ScaleLoss of this solver returns.
func WithLossScale(rule Rule, options ...func(*LossScale)) *Solver {
	return configured(newLossScale(addressable(rule)), options)
}

func newLossScale(rule Rule) *LossScale {
	r := DefaultLossScale()
	r.Rule = rule
	return &r
}

// DefaultLossScale are the defaults, without a rule.
func DefaultLossScale() LossScale {
	return LossScale{InitialScale: 32768, DynamicGrowthSteps: 2000, GrowthFactor: 2, BackoffFactor: 0.5}
}

// Validate implements Validator.
func (r *LossScale) Validate() error {
	if r.DynamicGrowthSteps < 1 {
		return errors.Errorf("dynamic_growth_steps is %d; it must be 1 or more", r.DynamicGrowthSteps)
	}
	if len(within[*LossScale](r.Rule)) > 0 {
		return errors.New("the rule within scales the loss, too")
	}
	return nil
}

// Rules implements Composite.
func (r *LossScale) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*LossScale) Transforms() {}

// scale is the number that the loss was multiplied by.
func (r *LossScale) scale(b *Builder) Slot { return b.Variable("scale", Fill(r.InitialScale)) }

// Apply implements Rule.
func (r *LossScale) Apply(b *Builder, in []Step) ([]Step, error) {
	scale, counter, skipped := r.scale(b), b.Variable("step_counter"), b.Variable("skipped")
	finite := never.Not()
	for _, s := range in {
		finite = finite.And(s.Delta.IsFinite().All())
	}
	nextScale, nextCounter := r.next(scale.Expr, counter.Expr, finite, b.Hyper("growth_factor"), b.Hyper("backoff_factor"), b.Hyper("min_scale"))
	scale.Set(nextScale)
	counter.Set(nextCounter)
	skipped.Set(finite.Select(skipped.Expr, skipped.Add(one)))

	bases := within[*Base](r.Rule)
	divide := func(s Step) Expr {
		for _, base := range bases {
			if base.overwrites(s.Param) {
				return s.Delta
			}
		}
		return s.Delta.Div(scale.Expr)
	}
	unscaled, err := b.Each(in, divide)
	if err != nil {
		return nil, err
	}
	grads, err := b.Each(b.grads, divide)
	if err != nil {
		return nil, err
	}
	return b.When(finite, func() ([]Step, error) {
		return b.unscaledOnce(grads, func() ([]Step, error) { return b.Run(r.Rule, unscaled) })
	})
}

// unscaledOnce runs rules that get gradients without the scale of the loss, and do not divide them again.
func (b *Builder) unscaledOnce(grads []Step, apply func() ([]Step, error)) ([]Step, error) {
	return b.Adjusting("loss_scale_factor", func(Expr) Expr { return one }, func() ([]Step, error) { return b.regarding(grads, apply) })
}

// Next is what scale and step_counter become by a run, of which finite says whether all gradients were, for who keeps them by himself.
func (r *LossScale) Next(scale, counter, finite Expr) (nextScale, nextCounter Expr) {
	return r.next(scale, counter, finite, graphops.Const(r.GrowthFactor), graphops.Const(r.BackoffFactor), graphops.Const(r.MinScale))
}

func (r *LossScale) next(scale, counter, finite, growth, backoff, least Expr) (nextScale, nextCounter Expr) {
	grows := counter.Equal(graphops.Const(float64(r.DynamicGrowthSteps - 1)))
	grown, least := scale.Mul(growth), least.Max(graphops.Const(math.SmallestNonzeroFloat32))
	nextScale = finite.Select(grows.And(grown.IsFinite()).Select(grown, scale), scale.Mul(backoff).Max(least))
	return nextScale, finite.And(grows.Not()).Select(counter.Add(one), zero)
}

// ScaleLoss multiplies a loss by the scale that the solver's rule divides the gradients by: that of a LossScale, which is then read from
// its state in each run, or the LossScaleFactor of a Base. Where there is none it is the loss itself. Call it before Minimize, or
// gorgonia.Grad, of what it returns:
//
//	scaled, err := solver.ScaleLoss(loss)
//	op, err := solver.Minimize(scaled, w0, w1)
//
// The loss is a float scalar. Several scales, of parts that are trained by rules of their own, are an error.
func (s *Solver) ScaleLoss(loss *gorgonia.Node) (*gorgonia.Node, error) {
	info, err := s.scaler()
	if err != nil {
		return nil, err
	}
	e := graphops.Of(loss)
	if err := e.Err(); err != nil {
		return nil, errors.Wrap(err, "solvers: ScaleLoss")
	}
	if !loss.IsScalar() {
		return nil, errors.Errorf("solvers: ScaleLoss: the loss has shape %v, but must be a scalar", loss.Shape())
	}
	if info == nil {
		return loss, nil
	}
	scale, err := s.scaleOn(info, loss.Graph())
	if err != nil {
		return nil, err
	}
	return graphops.Expand(e.Mul(scale))
}

// LossScale is the present scale of the loss, by which ScaleLoss multiplies: 1 where there is none.
func (s *Solver) LossScale() (float64, error) {
	info, err := s.scaler()
	if info == nil || err != nil {
		return 1, err
	}
	if _, ok := info.rule.(*Base); ok {
		factor, err := s.Get(info.name + "/loss_scale_factor")
		if factor == 0 { // none, at present
			factor = 1
		}
		return factor, err
	}
	st := s.store.Lookup(info.name + "/scale")
	if st == nil { // before the first step
		return info.rule.(*LossScale).InitialScale, nil
	}
	v, err := st.Value()
	if err != nil {
		return 0, err
	}
	return graphops.ScalarValue(v)
}

// scaler is the rule that divides gradients by the scale of the loss, or nil.
func (s *Solver) scaler() (found *ruleInfo, err error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	ignored := map[*Base]bool{}
	for _, info := range s.rules {
		switch r := info.rule.(type) {
		case *LossScale:
			for _, b := range within[*Base](r.Rule) {
				ignored[b] = true
			}
		case *Base:
			name := info.name + "/loss_scale_factor"
			none := r.LossScaleFactor == 0 && s.bound[name] == nil && s.scheduled(name) == nil && s.store.Lookup(name) == nil // see Uses
			if ignored[r] || none {
				continue
			}
			for _, b := range within[*Base](r.Rule) {
				ignored[b] = true
			}
		default:
			continue
		}
		if found != nil {
			return nil, errors.Errorf("solvers: %s and %s both have a scale of the loss", found.name, info.name)
		}
		found = info
	}
	return found, nil
}

// scaleOn is the scale as an expression on a graph.
func (s *Solver) scaleOn(info *ruleInfo, g *gorgonia.ExprGraph) (Expr, error) {
	b := &Builder{&build{s: s, g: g, store: s.store, bound: s.bound, read: map[string]bool{}}, info}
	var scale Expr
	if r, ok := info.rule.(*LossScale); ok {
		info.built = true // from now on a change of the initial scale would have no effect
		scale = r.scale(b).Expr
	} else {
		scale = b.lossScaleFactor()
	}
	if b.err != nil {
		return Expr{}, b.err
	}
	return scale, scale.Err()
}
