package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
)

// What wrappers refuse is refused in the first step at the latest, with the name of the option, and nothing is changed.
func TestWrappersRefuse(t *testing.T) {
	a := &pair{"a", G.NewF64(1), G.NewF64(1)}
	for want, s := range map[string]*Solver{
		"there are no parts":             MultiOptimizer(),
		"the rule is nil":                MultiOptimizer(Part{nil, []string{"a"}}),
		`no parameter is called "x"`:     MultiOptimizer(Part{sgd(1), []string{"a", "x"}}),
		"no step for any parameter":      MultiOptimizer(Part{sgd(1), nil}),
		"sgd/learning_rate is -1":        MultiOptimizer(Part{sgd(-1), []string{"a"}}),
		"nested more than 100 deep":      endlessParts(),
		"lookahead/sync_period is 0":     look(sgd(1), 0, .5),
		"sync_period is 2.5":             look(sgd(1), 2.5, .5),
		"slow_step_size is 1.1":          look(sgd(1), 2, 1.1),
		"ema_momentum is -0.1":           ema1(sgd(1), -.1, 0),
		"ema_momentum is NaN":            ema1(sgd(1), nan, 0),
		"ema_overwrite_frequency is -1":  ema1(sgd(1), .5, -1),
		"ema_overwrite_frequency is 1.5": ema1(sgd(1), .5, 1.5),
		"start_averaging is -1":          swa1(sgd(1), -1, 1),
		"start_averaging is 0.5":         swa1(sgd(1), .5, 1),
		"average_period is 0;":           swa1(sgd(1), 0, 0),
		"average_period is 1.5":          swa1(sgd(1), 0, 1.5),
		"average_decay is 2":             moving(sgd(1), func(o *MovingAverageOptions) { o.AverageDecay = 2 }),
		"num_updates is -0.5":            moving(sgd(1), func(o *MovingAverageOptions) { o.NumUpdates = -.5 }),
		"num_updates is 1.5":             moving(sgd(1), func(o *MovingAverageOptions) { o.NumUpdates = 1.5 }),
		"start_step is 0.5":              moving(sgd(1), func(o *MovingAverageOptions) { o.StartStep = .5 }),
		"ranger/sync_period is 0":        NewRanger(func(r *Ranger) { r.SyncPeriod = 0 }),
		`decay is "x"`:                   NewRanger(func(r *Ranger) { r.Decay = "x" }),
		"only epsilon left":              NewRangerAdaBelief(func(r *Ranger) { r.Beta1 = 0 }),
		"solvers: the rule is nil":       Lookahead(nil),
		"solvers: the solver is nil":     EMA((*Solver)(nil)),
	} {
		require.ErrorContains(t, s.Step([]G.ValueGrad{a}), want)
		require.Equal(t, []float64{1}, floats(a.value), want)
	}
}

func endlessParts() *Solver {
	parts := &multiOptimizer{[]Part{{nil, []string{"a"}}}}
	inner := RuleFunc(func(b *Builder, in []Step) ([]Step, error) { return b.Run(parts.Parts[0].Rule, in) })
	parts.Parts[0].Rule = inner
	return New(parts)
}
