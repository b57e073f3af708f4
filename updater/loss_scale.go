package updater

import (
	"math"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// DynamicLossScale finds the factor that the loss is multiplied by, see solvers.LossScale. Fields that are 0 have its defaults. The runs
// whose gradients are not finite are skipped, as with SkipNonFiniteSteps, and counted by Updater.Skipped. In files it may also be true.
type DynamicLossScale struct {
	InitialScale       float64 `json:"initial_scale"`        // default 32768
	DynamicGrowthSteps int     `json:"dynamic_growth_steps"` // default 2000
	GrowthFactor       float64 `json:"growth_factor"`        // default 2
	BackoffFactor      float64 `json:"backoff_factor"`       // default 0.5
	MinScale           float64 `json:"min_scale"`            // default 0
}

// rule is the rule with these options. It runs nothing: the updater skips by itself.
func (d *DynamicLossScale) rule() solvers.LossScale {
	r := solvers.DefaultLossScale()
	for _, f := range []struct {
		to *float64
		v  float64
	}{{&r.InitialScale, d.InitialScale}, {&r.GrowthFactor, d.GrowthFactor}, {&r.BackoffFactor, d.BackoffFactor}, {&r.MinScale, d.MinScale}} {
		if f.v != 0 {
			*f.to = f.v
		}
	}
	if d.DynamicGrowthSteps != 0 {
		r.DynamicGrowthSteps = d.DynamicGrowthSteps
	}
	return r
}

func (d *DynamicLossScale) check() error {
	if d == nil {
		return nil
	}
	for _, f := range []struct {
		key      string
		v        float64
		from, to float64
	}{{"initial_scale", d.InitialScale, 0, math.MaxFloat64}, {"growth_factor", d.GrowthFactor, 1, math.MaxFloat64},
		{"backoff_factor", d.BackoffFactor, 0, 1}, {"min_scale", d.MinScale, 0, math.MaxFloat64}} {
		if f.v != 0 && !(f.v >= f.from && f.v <= f.to) {
			return errors.Errorf("dynamic_loss_scale.%s is %v; it must be in [%v,%v], or 0 for the default", f.key, f.v, f.from, f.to)
		}
	}
	if d.DynamicGrowthSteps < 0 {
		return errors.Errorf("dynamic_loss_scale.dynamic_growth_steps is %d; it must be 1 or above, or 0 for the default", d.DynamicGrowthSteps)
	}
	return nil
}

// The states of DynamicLossScale.
const (
	scaleState        = "dynamic_loss_scale/scale"
	scaleCounterState = "dynamic_loss_scale/step_counter"
)

// lossScale makes the factor of the losses, the zero Expr if there is none.
func (b *built) lossScale() error {
	c := b.u.cfg
	if c.LossScaleFactor != 0 {
		b.scale = graphops.Const(c.LossScaleFactor)
	}
	if c.DynamicLossScale == nil {
		return nil
	}
	var nodes [2]*gorgonia.Node
	for i, s := range []struct {
		name string
		fill float64
	}{{scaleState, c.DynamicLossScale.rule().InitialScale}, {scaleCounterState, 0}} {
		st, err := b.u.solver.Store().Slot(s.name, "", tensor.Float64, tensor.ScalarShape(), s.fill)
		if err != nil {
			return err
		}
		if nodes[i], err = st.Node(b.u.graph()); err != nil {
			return err
		}
	}
	b.scale, b.scales = graphops.ScalarOf(nodes[0]), nodes[:]
	return nil
}

// scaled is a loss times the factor.
func (b *built) scaled(loss *gorgonia.Node) (*gorgonia.Node, error) {
	if b.scale == (Expr{}) {
		return loss, nil
	}
	return graphops.Expand(graphops.Of(loss).Mul(b.scale))
}

// unscaled is a gradient of a scaled loss without the factor. What is overwritten with its gradient gets that as it is.
func (b *built) unscaled(v, grad *gorgonia.Node) Expr {
	g := graphops.Of(grad)
	if b.scale == (Expr{}) || b.u.of(v).overwrite {
		return g
	}
	return g.Div(b.scale)
}

// rescale is how the dynamic factor goes on.
func (b *built) rescale(finite Expr) {
	if b.scales == nil {
		return
	}
	rule := b.u.cfg.DynamicLossScale.rule()
	scale, counter := rule.Next(b.scale, graphops.ScalarOf(b.scales[1]), finite)
	b.updates = append(b.updates, graphops.Update{Target: b.scales[0], Value: scale}, graphops.Update{Target: b.scales[1], Value: counter})
}

// LossScale is the factor that the losses of the next run are multiplied by before their gradients are taken: 1 without LossScaleFactor and
// DynamicLossScale.
func (u *Updater) LossScale() (float64, error) {
	switch d := u.cfg.DynamicLossScale; {
	case u.solver == nil:
		return 0, errors.New("updater: make it with New")
	case d != nil:
		st := u.solver.Store().Lookup(scaleState)
		if st == nil { // before the first optim op
			return d.rule().InitialScale, nil
		}
		v, err := st.Value()
		if err != nil {
			return 0, errors.Wrap(err, "updater")
		}
		return graphops.ScalarValue(v)
	case u.cfg.LossScaleFactor != 0:
		return u.cfg.LossScaleFactor, nil
	}
	return 1, nil
}
