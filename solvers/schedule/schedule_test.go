package schedule

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// table has the values that a schedule must give, by step.
type table struct {
	name string
	s    Schedule
	want map[int]float64
}

// from makes a table of a plain Go formula.
func from(name string, s Schedule, want func(step float64) float64) table {
	t := table{name, s, map[int]float64{}}
	for _, step := range []int{0, 1, 2, 3, 5, 9, 10, 11, 19, 20, 99, 100, 3999, 4000, 4001, 123456, 1 << 40} {
		t.want[step] = want(float64(step))
	}
	return t
}

func stairs(d *ExponentialDecay) { d.Staircase = true }
func fromZero(s *Noam)           { s.ZeroBased = true }

var tables = []table{
	from("constant", NewConstant(.25), func(float64) float64 { return .25 }),
	{"constant from a negative number", NewConstant(-2), map[int]float64{0: -2, 7: -2}},

	// RETURNN's numbers, of a base of 1.
	{"interval decay", NewIntervalDecay(1, 3, .5), map[int]float64{0: 1, 1: .5, 2: .25, 3: 1, 4: .5, 5: .25, 6: 1}},
	{"interval decay of 1", NewIntervalDecay(.3, 1, .5), map[int]float64{0: .3, 1: .3, 2: .3, 1000: .3}},
	{"interval decay by 0", NewIntervalDecay(.3, 3, 0), map[int]float64{0: .3, 1: 0, 2: 0, 3: .3, 4: 0}},
	{"interval decay by 1", NewIntervalDecay(.3, 3, 1), map[int]float64{0: .3, 1: .3, 2: .3, 3: .3}},
	{"interval that grows", NewIntervalDecay(.5, 4, 2), map[int]float64{0: .5, 1: 1, 2: 2, 3: 4, 4: .5}},
	{"interval decay, late", NewIntervalDecay(1, 7, .5), map[int]float64{7 << 49: 1, 7<<49 - 1: 1. / 64, 7<<49 + 1: .5}},
	from("interval decay by remainder", NewIntervalDecay(.1, 20, .93), func(s float64) float64 { return .1 * math.Pow(.93, math.Mod(s, 20)) }),

	// Keras' numbers.
	{"exponential decay", NewExponentialDecay(.1, 10, .5), map[int]float64{0: .1, 1: .0933032991537, 5: .0707106781187, 9: .0535886731268,
		10: .05, 11: .0466516495768, 15: .0353553390593, 20: .025, 25: .0176776695297, 100: 9.765625e-5}},
	{"staircase", NewExponentialDecay(.1, 10, .5, stairs), map[int]float64{0: .1, 1: .1, 5: .1, 9: .1, 10: .05, 11: .05, 15: .05,
		20: .025, 25: .025, 100: 9.765625e-5}},
	{"Keras' test", NewExponentialDecay(.05, 10, .96), map[int]float64{5: .05 * math.Sqrt(.96)}},
	{"Keras' staircase test", NewExponentialDecay(.1, 3, .96, stairs), map[int]float64{1: .1, 2: .1, 100: .1 * math.Pow(.96, 33)}},
	{"fraction of steps", NewExponentialDecay(1, 2.5, .5, stairs), map[int]float64{0: 1, 2: 1, 3: .5, 4: .5, 5: .25, 7: .25, 8: .125}},
	{"decay rate 0", NewExponentialDecay(.1, 10, 0, stairs), map[int]float64{0: .1, 9: .1, 10: 0, 100: 0}},
	from("exponential decay by logarithms", NewExponentialDecay(.1, 1e4, .96),
		func(s float64) float64 { return .1 * math.Exp(s/1e4*math.Log(.96)) }),

	from("noam", NewNoam(512, 4000), func(s float64) float64 {
		if n := s + 1; n < 4000 {
			return n / (math.Sqrt(512) * 4000 * math.Sqrt(4000))
		}
		return 1 / math.Sqrt(512*(s+1))
	}),
	from("noam with a factor", NewNoam(256, 100, func(s *Noam) { s.Factor = 2 }), func(s float64) float64 {
		return 2. / 16 * min(1/math.Sqrt(s+1), (s+1)/1000)
	}),
	{"noam, first runs and peak", NewNoam(4, 4), map[int]float64{0: .0625, 1: .125, 2: .1875, 3: .25, 15: .125, 63: .0625}},
	{"noam from 0", NewNoam(4, 4, fromZero), map[int]float64{0: 0, 1: .0625, 3: .1875, 4: .25, 16: .125, 64: .0625}},
	{"noam without warm-up", NewNoam(1, 1), map[int]float64{0: 1, 3: .5, 99: .1}},
}

func TestTables(t *testing.T) {
	for _, c := range tables {
		at, err := Compile(c.s)
		require.NoError(t, err, c.name)
		for step, want := range c.want {
			got := at(step)
			require.InDelta(t, want, got, 1e-11*max(1e-2, math.Abs(want)), "%s at %d", c.name, step)
			require.Equal(t, got, Value(c.s, step), "%s at %d", c.name, step)
		}
	}
}

// A compiled function, the value in a fused update and the value as nodes of a graph are the same bits.
func TestHostsAgree(t *testing.T) {
	all := tables
	for _, file := range goldenFiles {
		for _, r := range readGolden(t, file) {
			s, err := FromConfig(r.Config)
			require.NoError(t, err)
			all = append(all, table{name: r.Name, s: s})
		}
	}
	for _, c := range all {
		g := gorgonia.NewGraph()
		step := gorgonia.NewScalar(g, gorgonia.Int64, gorgonia.WithName("s"), gorgonia.WithValue(int64(0)))
		fused := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("fused"), gorgonia.WithValue(0.0))
		s := graphops.ScalarOf(step)
		value := c.s.At(s)
		node, err := graphops.Expand(s.Less(s).Select(s, value))
		require.NoError(t, err)
		op, err := graphops.Commit([]graphops.Update{{Target: fused, Value: value}, {Target: step, Value: s.Add(one)}})
		require.NoError(t, err)
		vm, err := graphops.NewMachine(op, node)
		require.NoError(t, err)
		at, err := Compile(c.s)
		require.NoError(t, err)
		for i := range 50 {
			require.NoError(t, vm.RunAll())
			for _, n := range []*gorgonia.Node{fused, node} {
				v, err := graphops.ScalarValue(n.Value())
				require.NoError(t, err)
				require.Equal(t, math.Float64bits(at(i)), math.Float64bits(v), "%s, %v at %d", c.name, n, i)
			}
			vm.Reset()
		}
	}
}

func TestCompileAllocatesOnce(t *testing.T) {
	at, err := Compile(NewNoam(512, 4000))
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(10, func() { at(3) }))
}

// pointer is a schedule whose At needs its fields.
type pointer struct{ V float64 }

func (p *pointer) At(Expr) Expr { return graphops.Const(p.V) }

func TestCheckRefuses(t *testing.T) {
	elsewhere := gorgonia.NewScalar(gorgonia.NewGraph(), gorgonia.Float64, gorgonia.WithName("elsewhere"))
	vector := gorgonia.NewVector(gorgonia.NewGraph(), gorgonia.Float64, gorgonia.WithShape(2), gorgonia.WithName("v"))
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		s    Schedule
		want string
	}{
		{nil, "schedule is nil"},
		{(*pointer)(nil), "panicked"},
		{Func(nil), "panicked"},
		{Func(func(Expr) Expr { panic("ouch") }), "ouch"},
		{Func(func(Expr) Expr { return Expr{} }), "zero Expr"},
		{Func(func(Expr) Expr { return graphops.ScalarOf(elsewhere) }), "not on the graph"},
		{Func(func(Expr) Expr { return graphops.Of(vector) }), "shape"},
		{NewConstant(nan), `constant: option "value" is NaN`},
		{NewConstant(-inf), `option "value" is -Inf`},
		{NewIntervalDecay(inf, 3, .5), `option "initial" is +Inf`},
		{NewIntervalDecay(1, 0, .5), `interval_decay: option "interval" is 0; it must be 1 or more`},
		{NewIntervalDecay(1, -3, .5), `option "interval" is -3`},
		{NewIntervalDecay(1, 3, -.5), `option "decay" is -0.5`},
		{NewIntervalDecay(1, 3, nan), `option "decay" is NaN`},
		{NewExponentialDecay(nan, 3, .5), `option "initial" is NaN`},
		{NewExponentialDecay(1, 0, .5), `option "decay_steps" is 0`},
		{NewExponentialDecay(1, inf, .5), `option "decay_steps" is +Inf`},
		{NewExponentialDecay(1, 3, -1), `option "decay_rate" is -1`},
		{NewNoam(0, 3), `option "d_model" is 0`},
		{NewNoam(3, 0), `option "warmup_steps" is 0`},
		{NewNoam(3, 3, func(s *Noam) { s.Factor = inf }), `option "factor" is +Inf`},
	} {
		require.ErrorContains(t, Check(c.s), c.want)
		require.True(t, math.IsNaN(Value(c.s, 0)), c.want)
	}
	require.NoError(t, Check(&pointer{1}))
	require.NoError(t, Check(NewNoam(3, 3, nil)))
}
