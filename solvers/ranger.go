package solvers

import "github.com/pkg/errors"

// Ranger is rectified Adam with gradient centralisation, under Lookahead (Wright 2019,
// https://github.com/lessw2020/Ranger-Deep-Learning-Optimizer); with Belief it is RangerAdaBelief. ρₜ and r are those of RAdam.
//
//	g ← g − its mean over all axes but the first, with UseGC (see CentralizeGradients)
//	m ← β₁·m + (1−β₁)·g          v ← β₂·v + (1−β₂)·g², with Belief (g−m)² for g²
//	where ρₜ > SMAThreshold: v ← v + ε with Belief, a = r·√(1−β₂ᵗ)/(1−β₁ᵗ), u = m/(√v + ε)
//	else a = 1/(1−β₁ᵗ), u = m
//	step = α·a·(u + λ·w)
//	in every SyncPeriod-th step: slow ← slow + SlowStepSize·(w − slow), and w ← slow (see Lookahead)
//
// Without GCLoc the mean is taken from u + λ·w instead of g. Decay says how the weight decay λ acts: "direction", as above;
// "coupled": g ← g + λ·w first; "rate": w ← (1−α·λ)·w first; "fixed": w ← (1−λ)·w first. The first, unrectified steps are
// momentum steps of the whole learning rate. (The published code then also leaves λ·w, and what GCLoc takes away, in m.)
//
// The mean is that of torch's weights. For weights in x·w, as is usual in Gorgonia, set GCKeepLast, which also leaves biases of shape
// (1, n) as they are.
//
// Slots m and v: zero at the start; slow: the parameter before its own first step; number seen: 0, then 1.
type Ranger struct {
	LearningRate float64 `range:"[0,inf)"` // α, default 0.001
	Beta1        float64 `range:"[0,1)"`   // β₁, default 0.95
	Beta2        float64 `range:"[0,1)"`   // β₂, default 0.999
	Epsilon      float64 `range:"[0,inf)"` // ε, default 1e-5
	WeightDecay  float64 `range:"[0,inf)"` // λ, default 0
	SMAThreshold float64 `range:"[4,inf)"` // default 5
	SyncPeriod   float64 `range:"[1,inf)"` // a whole number, default 6
	SlowStepSize float64 `range:"[0,1]"`   // default 0.5
	Belief       bool    // default false; of NewRangerAdaBelief true
	UseGC        bool    // default true
	GCConvOnly   bool    // ConvOnly of CentralizeGradients, default false
	GCKeepLast   bool    // KeepLast of it, default false
	GCLoc        bool    // default true
	Decay        string  // default "direction"
}

// NewRanger makes a solver of Ranger.
func NewRanger(options ...func(*Ranger)) *Solver {
	return configured(&Ranger{LearningRate: 0.001, Beta1: 0.95, Beta2: 0.999, Epsilon: 1e-5, SMAThreshold: 5, SyncPeriod: 6, SlowStepSize: 0.5,
		UseGC: true, GCLoc: true, Decay: "direction"}, options)
}

// NewRangerAdaBelief makes a solver of Ranger with Belief.
func NewRangerAdaBelief(options ...func(*Ranger)) *Solver {
	return NewRanger(append([]func(*Ranger){func(r *Ranger) { r.Belief = true }}, options...)...)
}

// Validate implements Validator.
func (r *Ranger) Validate() error {
	if err := whole("sync_period", r.SyncPeriod); err != nil {
		return err
	}
	if r.Belief && r.Beta1 == 0 {
		return errors.New("beta1 is 0; with belief it must not be: the belief would always be perfect, and only epsilon left of the divisor")
	}
	return choice("decay", r.Decay, "direction", "coupled", "rate", "fixed")
}

// Apply implements Rule.
func (r *Ranger) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps, wd := b.Hyper("learning_rate"), b.Hyper("beta1"), b.Hyper("beta2"), b.Hyper("epsilon"), b.Hyper("weight_decay")
	alpha, t := b.Hyper("slow_step_size"), b.Count("step")
	length, factor := rectification(b2, t)
	rectified, pull := length.Greater(b.Hyper("sma_threshold")), every(t, b.Hyper("sync_period"))
	rate := lr.Mul(rectified.Select(factor.Mul(correction(b2, t).Sqrt()), one)).Div(correction(b1, t))
	gc := &CentralizeGradients{r.GCConvOnly, r.GCKeepLast}
	return b.eachStep(in, func(s Step) Step {
		g, w, wd := s.Delta, s.Value, b.decayOf(s, wd)
		switch r.Decay {
		case "coupled":
			g = g.Add(w.Mul(wd))
		case "rate":
			s.Value = w.Mul(one.Sub(lr.Mul(wd)))
		case "fixed":
			s.Value = w.Mul(one.Sub(wd))
		}
		if r.UseGC && r.GCLoc {
			g = gc.centralized(g)
		}
		m, v := b.Slot(s, "m"), b.Slot(s, "v")
		m1 := m.Set(average(m.Expr, g, b1))
		v1 := average(v.Expr, g.Square(), b2)
		if r.Belief {
			v1 = average(v.Expr, g.Sub(m1).Square(), b2).Add(rectified.Select(eps, zero))
		}
		u := rectified.Select(m1.Div(v.Set(v1).Sqrt().Add(eps)), m1)
		if r.Decay == "direction" {
			u = u.Add(w.Mul(wd))
		}
		if r.UseGC && !r.GCLoc {
			u = gc.centralized(u)
		}
		s.Delta = rate.Mul(u)
		return b.lookAhead(s, pull, alpha)
	})
}
