package schedule

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"optimop/graphops"
)

func TestConfigRoundTrip(t *testing.T) {
	for _, c := range tables {
		data, err := Marshal(c.s)
		require.NoError(t, err, c.name)
		back, err := Unmarshal(data)
		require.NoError(t, err, "%s: %s", c.name, data)
		require.Equal(t, c.s, back)
		config, err := Config(c.s)
		require.NoError(t, err)
		back, err = FromConfig(config)
		require.NoError(t, err)
		require.Equal(t, c.s, back)
	}
	data, err := Marshal(NewExponentialDecay(.1, 1000, .96, stairs))
	require.NoError(t, err)
	require.JSONEq(t, `{"class":"exponential_decay","initial":0.1,"decay_steps":1000,"decay_rate":0.96,"staircase":true,"begin":0,"end":0}`, string(data))
}

func TestSpellings(t *testing.T) {
	for text, want := range map[string]Schedule{
		`{"class": "Constant", "value": 3}`: NewConstant(3),
		`{"class": "ExponentialDecay", "initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5, "staircase": false, "name": "e"}`: NewExponentialDecay(
			.1, 10, .5),
		`{"class": "interval-decay", "Initial": 1, "INTERVAL": 3, "decay": 0.5}`: NewIntervalDecay(1, 3, .5),
		`{"class": "noam", "dModel": 512, "warmup": 4e3}`:                        NewNoam(512, 4000),
		` {"class": "noam", "d_model": 512, "warmup_steps": 4000, "factor": 2}
		`: NewNoam(512, 4000, func(s *Noam) { s.Factor = 2 }),
	} {
		got, err := Unmarshal([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	config := map[string]any{"class": "noam", "d_model": int64(512), "warmup_steps": json.Number("4000"), "factor": float32(.5)}
	got, err := FromConfig(config)
	require.NoError(t, err)
	require.Equal(t, NewNoam(512, 4000, func(s *Noam) { s.Factor = .5 }), got)
	require.Len(t, config, 4)
}

func TestBadConfigs(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "no JSON object"},
		{`[]`, "no JSON object"},
		{`3`, "no JSON object"},
		{`"constant"`, "no JSON object"},
		{`null`, `needs a "class"`},
		{`{}`, `needs a "class"`},
		{`{"value": 3}`, `needs a "class"`},
		{`{"class": 3}`, `needs a "class", the name of a schedule, not 3`},
		{`{"class": null}`, `needs a "class"`},
		{`{"class": ""}`, `no schedule is called ""`},
		{`{"class": "constnat", "value": 3}`, `did you mean "constant"?`},
		{`{"class": "constant"}`, `constant: option "value" is missing`},
		{`{"class": "constant", "value": 3} {}`, "something follows"},
		{`{"class": "constant", "value": 3`, "no JSON object"},
		{`{"class": "constant", "value": "3"}`, `option "value" is "3"; it must be a number`},
		{`{"class": "constant", "value": true}`, `is true; it must be a number`},
		{`{"class": "constant", "value": null}`, `it must be a number`},
		{`{"class": "constant", "value": [3]}`, `it must be a number`},
		{`{"class": "constant", "value": {"class": "constant", "value": 3}}`, `it must be a number`},
		{`{"class": "constant", "value": 1e999}`, "no JSON object"},
		{`{"class": "constant", "value": 3, "vale": 3}`, `option "vale" is unknown (did you mean "value"?)`},
		{`{"class": "constant", "value": 3, "Value": 3}`, `given twice`},
		{`{"class": "constant", "value": 3, "name": 3}`, `option "name" is unknown`},
		{`{"class": "interval_decay", "initial": 1, "interval": 3}`, `option "decay" is missing`},
		{`{"class": "interval_decay", "initial": 1, "decay": 0.5}`, `option "interval" is missing`},
		{`{"class": "interval_decay", "interval": 3, "decay": 0.5}`, `option "initial" is missing`},
		{`{"class": "interval_decay", "initial": 1, "interval": 2.7, "decay": 0.5}`, `option "interval" is 2.7; it must be a whole number`},
		{`{"class": "interval_decay", "initial": 1, "interval": 1e30, "decay": 0.5}`, `it must be a whole number`},
		{`{"class": "interval_decay", "initial": 1, "interval": 0, "decay": 0.5}`, `option "interval" is 0; it must be 1 or more`},
		{`{"class": "interval_decay", "initial": 1, "interval": 3, "decay": -1}`, `option "decay" is -1`},
		{`{"class": "interval_decay", "initial": 1, "interval": 3, "decay": 0.5, "staircase": true}`, `option "staircase" is unknown`},
		{`{"class": "exponential_decay", "initial": 1, "decay_steps": 0, "decay_rate": 0.5}`, `option "decay_steps" is 0`},
		{`{"class": "exponential_decay", "initial": 1, "decay_steps": -5, "decay_rate": 0.5}`, `option "decay_steps" is -5`},
		{`{"class": "exponential_decay", "initial": 1, "decay_steps": 5, "decay_rate": 0.5, "staircase": 1}`, `is 1; it must be true or false`},
		{`{"class": "exponential_decay", "initial": 1, "initial_learning_rate": 1, "decay_steps": 5, "decay_rate": 0.5}`,
			`option "initial_learning_rate" is given twice: "initial" already sets initial`},
		{`{"class": "noam", "d_model": 512}`, `option "warmup_steps" is missing`},
		{`{"class": "noam", "d_model": 0, "warmup": 10}`, `option "d_model" is 0`},
		{`{"class": "noam", "d_model": 512, "warmup": 10, "warmup_steps": 10}`, "given twice"},
	} {
		s, err := Unmarshal([]byte(c.text))
		require.ErrorContains(t, err, c.want, c.text)
		require.Nil(t, s)
	}
	for _, v := range []any{math.NaN(), math.Inf(1), int64(1<<62 + 1), json.Number("x"), uint64(math.MaxUint64)} {
		_, err := FromConfig(map[string]any{"class": "noam", "d_model": v, "warmup": 10})
		require.ErrorContains(t, err, "d_model")
	}
	_, err := FromConfig(map[string]any{"class": "constant", "value": math.NaN()})
	require.ErrorContains(t, err, "finite")
	_, err = FromConfig(nil)
	require.Error(t, err)
}

func TestNoConfig(t *testing.T) {
	_, err := Marshal(Func(func(Expr) Expr { return one }))
	require.ErrorContains(t, err, "schedule.Func has no config")
	_, err = Marshal(NewConstant(math.Inf(1)))
	require.ErrorContains(t, err, "finite")
	_, err = Marshal(nil)
	require.ErrorContains(t, err, "nil")
	_, err = Marshal((*pointer)(nil))
	require.Error(t, err)
}

// sum is a schedule made of others.
type sum struct {
	Parts []Schedule
	Of    Schedule
	Gains []float64
	Label string
}

func (s *sum) At(step Expr) Expr {
	all := s.Of.At(step)
	for i, p := range s.Parts {
		all = all.Add(p.At(step).Mul(number(s.Gains[i])))
	}
	return all
}

func TestRegister(t *testing.T) {
	require.ErrorContains(t, Register(" _", func() Schedule { return &sum{} }), "no name")
	require.ErrorContains(t, Register("sum", nil), "is nil")
	require.ErrorContains(t, Register("sum", func() Schedule { return nil }), "must be a struct")
	require.ErrorContains(t, Register("sum", func() Schedule { return (*sum)(nil) }), "must be a struct")
	require.ErrorContains(t, Register("sum", func() Schedule { return Func(nil) }), "must be a struct")
	require.ErrorContains(t, Register("sum", func() Schedule { panic("ouch") }), "ouch")
	require.ErrorContains(t, Register("Exponential-Decay", func() Schedule { return &sum{} }), `taken by "exponential_decay"`)
	require.ErrorContains(t, Register("fixed", func() Schedule { return Constant{} }), `already called "constant"`)
	require.NoError(t, Register("sum", func() Schedule { return &sum{Label: "none"} }))
	t.Cleanup(func() {
		registry.Lock()
		delete(registry.classes, "sum")
		registry.Unlock()
	})
	require.Equal(t, []string{"constant", "cosine_annealing", "cosine_decay", "cosine_decay_restarts", "cyclic", "exponential_decay",
		"interval_decay", "inverse_time_decay", "linear", "multi_step_decay", "noam", "one_cycle", "piecewise_constant_decay",
		"piecewise_interpolate", "polynomial_decay", "product", "sequential", "step_decay", "sum", "warmup", "warmup_cosine_decay"}, Names())

	s := &sum{[]Schedule{NewConstant(2), NewIntervalDecay(1, 2, .5)}, NewConstant(1), []float64{1, 4}, "x"}
	require.Equal(t, 5., Value(s, 1))
	data, err := Marshal(s)
	require.NoError(t, err)
	back, err := Unmarshal(data)
	require.NoError(t, err)
	require.Equal(t, s, back)
	for text, want := range map[string]string{
		`{"class": "sum", "of": 3}`:                                                  `it must be a schedule`,
		`{"class": "sum", "of": {"class": "constant"}}`:                              `option "of.value" is missing`,
		`{"class": "sum", "parts": [3]}`:                                             `option "parts[0]" is`,
		`{"class": "sum", "parts": 3}`:                                               "it must be a list",
		`{"class": "sum", "gains": [1, "2"]}`:                                        `option "gains[1]" is "2"`,
		`{"class": "sum", "label": 3}`:                                               "it must be a string",
		`{"class": "sum"}`:                                                           "panicked", // its own Of is nil
		`{"class": "sum", "of": {"class": "sum", "of": {"class": "noam"}}}`:          `option "of.of.d_model" is missing`,
		`{"class": "sum", "of": {"class": "constant", "value": 1}, "parts": [null]}`: `option "parts[0]" is`,
	} {
		_, err := Unmarshal([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	loop := map[string]any{"class": "sum"}
	loop["of"] = loop
	_, err = FromConfig(loop)
	require.ErrorContains(t, err, "nested more than")
	_, err = Marshal(&sum{Of: Func(func(Expr) Expr { return graphops.Const(1) })})
	require.ErrorContains(t, err, `option "of": schedule: a schedule.Func has no config`)
}
