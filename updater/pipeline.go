package updater

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// Expr is the type of the expressions that custom and extra updates are written in.
type Expr = graphops.Expr

var one = graphops.Const(1)

// pipeline is the rule of an updater: it processes the gradient of each variable by its settings and hands it to its optimizer.
// The rules that it runs are made once and kept, so that they have the same names and state in all that is built.
type pipeline struct {
	cfg        Config
	by         map[string]*setting // by parameter
	all        []*setting
	optimizers []*optimizer
	chosen     map[choiceKey]*optimizer
	stages     map[stageKey]solvers.Rule
	groups     map[group]solvers.Rule
	decay      *constraints
	rate       *float64               // the last that was set, for all optimizers
	first      float64                // learning rate, for the decoupled decay; 0: not yet known
	scheduled  map[string]bool        // hyperparameters that follow the config's schedules
	seen       map[*gorgonia.Node]fed // in the last Apply
	suspects   []string               // what SkipNonFiniteSteps looks at
}

// fed is what became of a gradient.
type fed struct{ gradient, processed Expr }

type stageKey struct {
	stage string
	v     float64
	tag   string
	group group
}

func newPipeline(c Config) *pipeline {
	p := &pipeline{cfg: c, rate: c.LearningRate, by: map[string]*setting{}, chosen: map[choiceKey]*optimizer{}, stages: map[stageKey]solvers.Rule{}, groups: map[group]solvers.Rule{},
		scheduled: map[string]bool{}}
	if c.DecoupleConstraintsFactor != nil {
		p.decay = &constraints{LearningRate: 1}
	}
	return p
}

// assign gives variables their settings and optimizers.
func (p *pipeline) assign(all []*setting) error {
	for _, s := range all {
		choice, err := p.cfg.completed(s.Optimizer, "updater_opts: optimizer")
		if err != nil {
			return err
		}
		if err := p.cfg.alone(choice, s.VarOptions, "optimizer"); err != nil {
			return errors.Wrapf(err, "the settings of %q", s.name)
		}
		g := p.cfg.given(s.VarOptions)
		if s.opt, err = p.choose(choice, g, *s.LearningRateMultiplier, *s.WeightDecayMultiplier, s.steps()); err != nil {
			return err
		}
	}
	p.all = all
	for _, s := range all {
		p.by[s.name] = s
	}
	return nil
}

// choose finds the optimizer of a choice, or makes it.
func (p *pipeline) choose(choice any, given given, rate, decay float64, g group) (*optimizer, error) {
	key := choiceKey{choiceOf(choice, identity), given.key(), rate, decay, g}
	if o := p.chosen[key]; o != nil {
		return o, nil
	}
	o, err := p.cfg.optimizer(choice, given, "optimizer")
	if err != nil {
		return nil, err
	}
	o.choice, o.rate, o.decay = key.choice, o.rate*rate, o.decay*decay
	p.chosen[key] = o
	p.optimizers = append(p.optimizers, o)
	return o, nil
}

// Apply implements solvers.Rule.
func (p *pipeline) Apply(b *solvers.Builder, in []solvers.Step) (out []solvers.Step, err error) {
	p.seen = map[*gorgonia.Node]fed{}
	out = in
	for _, g := range distinct(in, func(s solvers.Step) group { return p.by[s.Param.Name].steps() }) {
		r := p.groups[g]
		if r == nil {
			r = &process{p, g}
			switch {
			case g.overwrite:
				r = p.overwriting(g.n)
			case g.mean:
				r = solvers.AccumulateMean(g.n, r)
			case g.n > 1:
				r = solvers.Accumulate(g.n, r)
			}
			p.groups[g] = r
		}
		out, err = b.Partly(out, func(q solvers.Param) bool { return p.by[q.Name].steps() == g }, func(some []solvers.Step) ([]solvers.Step, error) {
			if base, ok := r.(*solvers.Base); ok {
				base.OverwriteWithGradient = nil
				for _, s := range some {
					base.OverwriteWithGradient = append(base.OverwriteWithGradient, quote.Replace(s.Param.Name))
				}
				p.see(some, some)
			}
			return b.Run(r, some)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// PassesRows implements solvers.RowPasser.
func (p *pipeline) PassesRows() bool { return true }

// overwriting is the rule for the variables of OverwriteWithGradient.
func (p *pipeline) overwriting(n int) solvers.Rule {
	r := &solvers.Base{Rule: nothing{}, KerasStrict: p.cfg.KerasStrict}
	if n > 1 {
		r.GradientAccumulationSteps = n
	}
	return r
}

// nothing is the rule for no variables.
type nothing struct{}

// Apply implements solvers.Rule.
func (nothing) Apply(_ *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) { return in, nil }

// see remembers what became of gradients.
func (p *pipeline) see(in, out []solvers.Step) {
	for i, s := range in {
		p.seen[s.Param.Node] = fed{s.Delta, out[i].Delta}
	}
}

// distinct are the values of a function of steps, in the order of their first appearance.
func distinct[K comparable](in []solvers.Step, of func(solvers.Step) K) (all []K) {
	for _, s := range in {
		if k := of(s); !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

// process is what happens to the gradients of a group, once they are accumulated.
type process struct {
	p     *pipeline
	group group
}

// stage is one kind of processing: how a setting says what it does, and the rule that does it.
type stage struct {
	name string
	of   func(*setting) (v float64, tag string)
	rule func(p *pipeline, v float64, tag string) solvers.Rule
}

// stages are in the order in which they are applied, which is RETURNN's.
var stages = []stage{
	{"gradient_noise", plain(func(s *setting) *float64 { return s.GradientNoise }), func(p *pipeline, v float64, _ string) solvers.Rule {
		return &solvers.GradientNoise{StandardDeviation: v, Seed: float64(p.cfg.Seed)}
	}},
	{"gradient_clip", plain(func(s *setting) *float64 { return s.GradientClip }), func(_ *pipeline, v float64, _ string) solvers.Rule {
		return &solvers.ClipByValue{MaxValue: v}
	}},
	{"gradient_clip_norm", plain(func(s *setting) *float64 { return s.GradientClipNorm }), func(_ *pipeline, v float64, _ string) solvers.Rule {
		return &solvers.ClipByNorm{MaxNorm: v}
	}},
	{"gradient_clip_avg_norm", plain(func(s *setting) *float64 { return s.GradientClipAvgNorm }), func(_ *pipeline, v float64, _ string) solvers.Rule {
		return &solvers.ClipByAverageNorm{MaxNorm: v}
	}},
	{"gradient_clip_global_norm", func(s *setting) (float64, string) { return *s.GradientClipGlobalNorm, s.clipTag() },
		func(_ *pipeline, v float64, _ string) solvers.Rule {
			return &solvers.ClipByGlobalNorm{MaxNorm: v, GlobalNorm: solvers.GlobalNorm{Raw: true}}
		}},
	{"clipnorm", keras(func(s *setting) *float64 { return s.ClipNorm }), func(_ *pipeline, v float64, _ string) solvers.Rule {
		return &solvers.ClipByNorm{MaxNorm: v}
	}},
	{"global_clipnorm", keras(func(s *setting) *float64 { return s.GlobalClipNorm }), func(_ *pipeline, v float64, _ string) solvers.Rule {
		return &solvers.ClipByGlobalNorm{MaxNorm: v}
	}},
	{"clipvalue", keras(func(s *setting) *float64 { return s.ClipValue }), func(_ *pipeline, v float64, _ string) solvers.Rule {
		return &solvers.ClipByValue{MaxValue: v}
	}},
	{"gradient_nan_inf_filter", func(s *setting) (float64, string) { return float64(map[bool]int{true: 1}[*s.GradientNanInfFilter]), "" },
		func(*pipeline, float64, string) solvers.Rule { return &solvers.FilterNotFinite{} }},
	{"grad_norm_to_clip_to_zero", func(s *setting) (float64, string) { return *s.GradNormToClipToZero, *s.GlobalNormTag },
		func(_ *pipeline, v float64, _ string) solvers.Rule {
			return &solvers.ZeroByGlobalNorm{MaxNorm: v, GlobalNorm: solvers.GlobalNorm{Raw: true}}
		}},
}

func plain(of func(*setting) *float64) func(*setting) (float64, string) {
	return func(s *setting) (float64, string) { return *of(s), "" }
}

// keras is a clip of Keras, which with KerasStrict the optimizers do.
func keras(of func(*setting) *float64) func(*setting) (float64, string) {
	return func(s *setting) (float64, string) {
		if s.strict {
			return 0, ""
		}
		return *of(s), ""
	}
}

// Apply implements solvers.Rule.
func (r *process) Apply(b *solvers.Builder, in []solvers.Step) (out []solvers.Step, err error) {
	p := r.p
	out = in
	for _, st := range stages {
		key := func(name string) stageKey {
			v, tag := st.of(p.by[name])
			if v == 0 {
				tag = ""
			}
			return stageKey{st.name, v, tag, r.group}
		}
		for _, k := range distinct(out, func(s solvers.Step) stageKey { return key(s.Param.Name) }) {
			if k.v == 0 {
				continue
			}
			rule := p.stages[k]
			if rule == nil {
				rule = st.rule(p, k.v, k.tag)
				p.stages[k] = rule
			}
			switch g := rule.(type) { // who has the tag may have changed
			case *solvers.ClipByGlobalNorm:
				g.Over, err = over(p.all, k.tag)
			case *solvers.ZeroByGlobalNorm:
				g.Over, err = over(p.all, k.tag)
			}
			if err != nil {
				return nil, err
			}
			out, err = b.Partly(out, func(q solvers.Param) bool { return key(q.Name) == k }, func(some []solvers.Step) ([]solvers.Step, error) {
				return b.Run(rule, some)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	p.see(in, out)
	return r.optimize(b, out)
}

// PassesRows implements solvers.RowPasser. The decoupled penalties concern all rows.
func (r *process) PassesRows() bool { return !r.p.cfg.DecoupleConstraints }

// optimize hands the processed gradients to the optimizers.
func (r *process) optimize(b *solvers.Builder, in []solvers.Step) (out []solvers.Step, err error) {
	p := r.p
	out = in
	if p.cfg.DecoupleConstraints {
		if out, err = p.constrain(b, out); err != nil {
			return nil, err
		}
	}
	for _, o := range distinct(out, func(s solvers.Step) *optimizer { return p.by[s.Param.Name].opt }) {
		out, err = b.Partly(out, func(q solvers.Param) bool { return p.by[q.Name].opt == o }, func(some []solvers.Step) ([]solvers.Step, error) {
			return p.adjusted(b, o, func() ([]solvers.Step, error) { return b.Run(o.Solver, some) })
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// adjusted lets rules see the learning rate and the weight decay of an optimizer's variables.
func (p *pipeline) adjusted(b *solvers.Builder, o *optimizer, apply func() ([]solvers.Step, error)) ([]solvers.Step, error) {
	if o.decay != 1 {
		inner := apply
		apply = func() ([]solvers.Step, error) { return b.Adjusting("weight_decay", times(o.decay), inner) }
	}
	if o.rate != 1 {
		inner := apply
		apply = func() ([]solvers.Step, error) { return b.Adjusting("learning_rate", times(o.rate), inner) }
	}
	return p.dynamic(b, apply)
}

// dynamic multiplies the learning rate that rules see by the dynamic factor.
func (p *pipeline) dynamic(b *solvers.Builder, apply func() ([]solvers.Step, error)) ([]solvers.Step, error) {
	if p.cfg.DynamicLearningRate == nil {
		return apply()
	}
	return b.Adjusting("learning_rate", func(rate Expr) Expr { return rate.Mul(p.cfg.DynamicLearningRate.At(b.GlobalStep())) }, apply)
}

func times(by float64) func(Expr) Expr {
	return func(e Expr) Expr { return e.Mul(graphops.Const(by)) }
}

// constrain applies the decoupled L2 penalties.
func (p *pipeline) constrain(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
	has := func(q solvers.Param) bool { return p.by[q.Name].l2() != 0 }
	return b.Partly(in, has, func(some []solvers.Step) ([]solvers.Step, error) {
		if p.decay != nil {
			p.decay.p = p
			return b.Run(p.decay, some)
		}
		return p.shrink(b, some, one)
	})
}

// shrink is w ← w − f·2·L2·w.
func (p *pipeline) shrink(b *solvers.Builder, in []solvers.Step, f Expr) ([]solvers.Step, error) {
	return b.EachValue(in, func(s solvers.Step) Expr {
		return s.Value.Mul(one.Sub(f.Mul(graphops.Const(2 * p.by[s.Param.Name].l2()))))
	})
}

// l2 is the penalty's factor.
func (s *setting) l2() float64 { return *s.L2 * *s.WeightDecayMultiplier }

// constraints is the decoupled penalty that goes with the learning rate: w ← w − (α/α₀)·factor·2·L2·w.
type constraints struct {
	LearningRate float64 `range:"[0,inf)"` // α
	p            *pipeline
}

// Transforms implements solvers.Transformation.
func (*constraints) Transforms() {}

// Apply implements solvers.Rule.
func (r *constraints) Apply(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
	var rate Expr
	if s := r.p.cfg.LearningRateSchedule; s != nil {
		rate = s.At(b.GlobalStep())
	} else {
		rate = b.Hyper(learningRate)
	}
	if s := r.p.cfg.DynamicLearningRate; s != nil {
		rate = rate.Mul(s.At(b.GlobalStep()))
	}
	return r.p.shrink(b, in, rate.Div(graphops.Const(r.p.first)).Mul(graphops.Const(*r.p.cfg.DecoupleConstraintsFactor)))
}
