package solvers

import (
	"github.com/pkg/errors"

	"optimop/graphops"
)

// AdaBelief divides by how far the gradient is from its average, instead of by its size (Zhuang et al. 2020,
// https://arxiv.org/abs/2010.07468).
//
//	m ← β₁·m + (1−β₁)·g          s ← β₂·s + (1−β₂)·(g−m)² + ε
//	u = m/(1−β₁ᵗ) / (√(s/(1−β₂ᵗ)) + ε)
//	u = r·u where ρₜ ≥ SMAThreshold, else m/(1−β₁ᵗ), with Rectify (r and ρₜ as in RAdam)
//	step = α·u
//
// ε is added in both places, and every step to s. With AMSGrad, which is not in the paper, s is replaced by its maximum.
// Decay says how the weight decay λ acts: "rate": w ← (1−α·λ)·w first (α before the warm-up; Keras and torch); "fixed":
// w ← (1−λ)·w first; "coupled": g ← g + λ·w; "direction": u ← u + λ·w (TensorFlow). The built-in warm-up is that of RAdam;
// LiteralWarmup is the formula of a port in which the rate grows after the warm-up instead of falling: for comparing only.
//
// The flavours of torch: EpsilonHat adds the outer ε to √s before its correction on rectified steps, which ignore AMSGrad with
// IgnoreMaxWhenRectified; without DegeneratedToSGD a step that is not rectified is none. EpsilonInner ≥ 0 is another ε for s.
//
// A rule of thumb is ε ≈ (ε of Adam)²: 1e-14 or 1e-16 for GANs, transformers and recurrent nets, 1e-8 where SGD does well. On NaN
// raise it. β₁ = 0 is refused: then g−m is 0, only ε is left of s, and a step is about α·g/√ε.
//
// Slots m, s and, with AMSGrad, shat: zero at the start.
type AdaBelief struct {
	LearningRate           float64 `range:"[0,inf)"`                                                                                  // α, default 0.001
	Beta1                  float64 `range:"(0,1)" why:"with 0 the belief is always perfect, and only epsilon is left of the divisor"` // β₁, default 0.9
	Beta2                  float64 `range:"[0,1)"`                                                                                    // β₂, default 0.999
	Epsilon                float64 `range:"[0,inf)"`                                                                                  // ε, default 1e-14
	EpsilonInner           float64 `range:"[-1,inf)"`                                                                                 // ε in s; default -1: Epsilon
	WeightDecay            float64 `range:"[0,inf)"`                                                                                  // λ, default 0
	SMAThreshold           float64 `range:"[4,inf)"`                                                                                  // default 5
	TotalSteps             float64 `range:"[0,inf)"`                                                                                  // default 0: no warm-up
	WarmupProportion       float64 `range:"[0,1]"`                                                                                    // default 0.1
	MinLearningRate        float64 `range:"[0,inf)"`                                                                                  // default 0
	AMSGrad                bool    // default false
	Rectify                bool    // default true
	LiteralWarmup          bool    // default false
	EpsilonHat             bool    // default false
	DegeneratedToSGD       bool    // default true
	IgnoreMaxWhenRectified bool    // default false
	Decay                  string  // "rate", "fixed", "coupled" or "direction"; default "rate"
}

// NewAdaBelief makes a solver of AdaBelief.
func NewAdaBelief(options ...func(*AdaBelief)) *Solver {
	return configured(&AdaBelief{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-14, EpsilonInner: -1, SMAThreshold: 5,
		WarmupProportion: 0.1, Rectify: true, DegeneratedToSGD: true, Decay: "rate"}, options)
}

// Validate implements Validator.
func (r *AdaBelief) Validate() error {
	if r.EpsilonInner < 0 && r.EpsilonInner != -1 {
		return errors.Errorf("epsilon_inner is %v; it must be -1 or at least 0", r.EpsilonInner)
	}
	return choice("decay", r.Decay, "rate", "fixed", "coupled", "direction")
}

// Apply implements Rule.
func (r *AdaBelief) Apply(b *Builder, in []Step) ([]Step, error) {
	rate, wd, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("weight_decay"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon")
	inner := b.Hyper("epsilon_inner")
	inner = inner.Less(zero).Select(eps, inner)
	t := b.Count("step")
	lr := warmUp(rate, t, b.Hyper("total_steps"), b.Hyper("warmup_proportion"), b.Hyper("min_learning_rate"), r.LiteralWarmup)
	c1, c2 := correction(b1, t), correction(b2, t)
	length, factor := rectification(b2, t)
	rectified := length.GreaterEqual(b.Hyper("sma_threshold"))
	return b.eachStep(in, func(s Step) Step {
		g, w, wd := s.Delta, s.Value, b.decayOf(s, wd)
		switch r.Decay {
		case "rate":
			s.Value = w.Mul(one.Sub(rate.Mul(wd)))
		case "fixed":
			s.Value = w.Mul(one.Sub(wd))
		case "coupled":
			g = g.Add(w.Mul(wd))
		}
		m, v := b.Slot(s, "m"), b.Slot(s, "s")
		m1 := m.Set(average(m.Expr, g, b1))
		v1 := v.Set(average(v.Expr, b.ofRows(s, g.Sub(m1).Square()), b2).Add(b.ofRows(s, inner)))
		most := v1
		if r.AMSGrad {
			h := b.Slot(s, "shat")
			most = h.Set(h.Max(v1))
		}
		u := adaptive(m1, most, c1, c2, eps, false)
		if r.Rectify {
			if r.IgnoreMaxWhenRectified {
				most = v1
			}
			u = rectified.Select(factor.Mul(adaptive(m1, most, c1, c2, eps, r.EpsilonHat)), either(r.DegeneratedToSGD, m1.Mul(one.Div(c1)), graphops.Const(0)))
		}
		if r.Decay == "direction" {
			u = u.Add(w.Mul(wd))
		}
		s.Delta = lr.Mul(u)
		return s
	})
}
