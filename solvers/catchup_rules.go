package solvers

import (
	"github.com/pkg/errors"

	"optimop/graphops"
)

// missed finds what a parameter's rows miss in a step of a rule: how it is added up, the scalars of the step, and the full names
// of the slots.
func (b *Builder) missed(r Rule, s Step) (m misses, told []Expr, slots []string, err error) {
	parts, err := walk(r, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	last := parts[len(parts)-1].rule
	coupled := zero
	if len(parts) > 1 {
		if _, ok := parts[0].rule.(*CoupledDecay); !ok || len(parts) > 2 {
			return nil, nil, nil, errNotMissed(parts[0].rule)
		}
		coupled = b.decayOf(s, b.HyperOf(parts[0].rule, "weight_decay"))
	}
	h := func(name string) Expr { return b.HyperOf(last, name) }
	m = &linearMisses{}
	switch o := last.(type) {
	case *SGD:
		told = decayed(one.Sub(h("learning_rate").Mul(coupled)))
	case *Momentum:
		if b.ruleOf(last).Uses("dampening") {
			return nil, nil, nil, errors.New("solvers.RowsCatchUp: momentum with dampening has no closed form here; use solvers.RowsDense")
		}
		m, told = &linearMisses{momentum: true}, o.missed(h, coupled)
	case *SGDW:
		lambda, mu := b.decayOf(s, h("weight_decay")), h("momentum")
		ofV := mu
		if o.Nesterov {
			ofV = mu.Mul(mu)
		}
		m, told = &linearMisses{momentum: true}, []Expr{one.Sub(lambda), ofV.Neg(), zero, mu}
	case *Adam, *AdamW, *AdaBelief:
		if len(parts) > 1 {
			return nil, nil, nil, errNotMissed(parts[0].rule)
		}
		m, told, err = b.missedMoments(last, s, h)
	default:
		err = errNotMissed(last)
	}
	for _, slot := range m.slots() {
		slots = append(slots, s.Param.Name+"/"+b.ruleOf(last).full(slot))
	}
	return m, told, slots, err
}

func errNotMissed(r Rule) error {
	return errors.Errorf("solvers.RowsCatchUp: what rows miss is known for SGD, Momentum and SGDW, SGD and Momentum after a "+
		"CoupledDecay, and Adam, AdamW and AdaBelief without AMSGrad, not for a %T there; put clips before WithRows, or use "+
		"solvers.RowsDense", r)
}

// ruleOf is the builder of a rule within.
func (b *Builder) ruleOf(r Rule) *Builder {
	for _, info := range b.s.rules {
		if sameRule(info.rule, r) {
			return &Builder{b.build, info}
		}
	}
	return b
}

// decayed are the scalars of a step w ← d·w.
func decayed(d Expr) []Expr { return []Expr{d, zero, zero, one} }

// missed are the scalars of (w, v) ← (a·w + b·v, c·w + d·v), for g = λ·w.
func (r *Momentum) missed(h func(string) Expr, lambda Expr) []Expr {
	lr, mu := h("learning_rate"), h("momentum")
	fresh, scale := lambda, lr // v ← μ·v + fresh·w
	if r.RateInside {
		fresh, scale = lr.Mul(lambda), one
	}
	ofW, ofV := fresh, mu // of the new v
	if r.Nesterov {
		ofW, ofV = fresh.Add(mu.Mul(fresh)), mu.Mul(mu)
	}
	return []Expr{one.Sub(scale.Mul(ofW)), scale.Mul(ofV).Neg(), fresh, mu}
}

// missedMoments are the scalars of w ← d·w − a·m/(g·√v + ε) − p·m, after m ← β₁·m and v ← β₂·v, of AdaBelief
// v ← β₂·v + (1−β₂)·m² + inner.
func (b *Builder) missedMoments(r Rule, s Step, h func(string) Expr) (misses, []Expr, error) {
	lr, b1, b2, eps := h("learning_rate"), h("beta1"), h("beta2"), h("epsilon")
	t := b.ruleOf(r).Count("step")
	c1, c2 := correction(b1, t), correction(b2, t)
	d, a, g := one, lr.Div(c1), one.Div(c2.Sqrt())
	hat := func(of *Adam) error {
		if of.AMSGrad {
			return errNotMissed(r)
		}
		if of.EpsilonHat {
			a, g = lr.Mul(c2.Sqrt()).Div(c1), one
		}
		return nil
	}
	switch r := r.(type) {
	case *Adam:
		return &adamMisses{}, []Expr{d, a, g, eps, b1, b2}, hat(r)
	case *AdamW:
		wd := h("weight_decay")
		if !r.RateIndependent {
			wd = lr.Mul(wd)
		}
		err := hat(&r.Adam)
		return &adamMisses{}, []Expr{one.Sub(b.decayOf(s, wd)), a, g, eps, b1, b2}, err
	}
	o := r.(*AdaBelief)
	wd := b.decayOf(s, h("weight_decay"))
	if o.AMSGrad || o.EpsilonHat || o.Decay != "rate" && o.Decay != "fixed" {
		return &adamMisses{}, nil, errors.Wrap(errNotMissed(r),
			"AdaBelief with ams_grad, epsilon_hat, or a decay that is neither \"rate\" nor \"fixed\"")
	}
	if d = one.Sub(wd); o.Decay == "rate" {
		d = one.Sub(lr.Mul(wd))
	}
	inner := h("epsilon_inner")
	inner = inner.Less(zero).Select(eps, inner)
	lr = warmUp(lr, t, h("total_steps"), h("warmup_proportion"), h("min_learning_rate"), o.LiteralWarmup)
	a, p := lr.Div(c1), zero
	if o.Rectify {
		length, factor := rectification(b2, t)
		rectified := length.GreaterEqual(h("sma_threshold"))
		p = either(o.DegeneratedToSGD, rectified.Select(zero, a), graphops.Const(0))
		a = rectified.Select(factor.Mul(a), zero)
	}
	return &beliefMisses{}, []Expr{d, a, g, eps, b1, b2, inner, p}, nil
}
