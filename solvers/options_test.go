package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The spellings of the original libraries set our fields.
func TestOptionNames(t *testing.T) {
	for _, c := range []struct {
		name, option string
		value        any
		field        string
		want         float64
	}{
		{"addons/rectifiedadam", "min_lr", 1e-3, "min_learning_rate", 1e-3},
		{"adabelief", "min_lr", 1e-3, "min_learning_rate", 1e-3},
		{"addons/yogi", "l1_regularization_strength", .1, "l1", .1},
		{"tf1/ftrl", "l2_regularization_strength", .1, "l2", .1},
		{"keras/ftrl", "l2_shrinkage_regularization_strength", .1, "l2_shrinkage", .1},
		{"keras/muon", "muon_a", 3, "a", 3},
		{"keras/muon", "adam_lr_ratio", .1, "adam_learning_rate_ratio", .1},
		{"tf1/rmsprop", "decay", .5, "rho", .5},
		{"torch/rmsprop", "alpha", .5, "rho", .5},
		{"torch/rmsprop", "weight_decay", .5, "coupleddecay/weight_decay", .5},
		{"torch/adagrad", "lr_decay", .5, "rate_decay", .5},
		{"torch/adam", "betas", []any{.5, .6}, "beta2", .6},
		{"torch/adam", "adam/betas", []float64{.5, .6}, "beta1", .5},
		{"tf1/adagradda", "initial_gradient_squared_accumulator_value", .5, "initial_accumulator_value", .5},
		{"cocob", "alpha", 50, "alpha", 50},
		{"torch/radam", "weight_decay", .1, "weight_decay", .1},
		{"keras2/nadam", "schedule_decay", .1, "momentum_decay", .1},
		{"optax/adam", "b1", .5, "beta1", .5},
		{"optax/sgd", "momentum", .5, "momentum", .5},
		{"optax/rmsprop", "initial_scale", .5, "initial_value", .5},
		{"blocks/adadelta", "decay_rate", .5, "rho", .5},
		{"gorgonia/barzilaiborwein", "clip", .1, "barzilaiborwein/clip", .1},
		{"gorgonia/barzilaiborwein", "regularize/clip", .1, "regularize/clip", .1},
		{"adam", "lr", float32(.5), "learning_rate", .5},
		{"adam", "lr", int64(2), "learning_rate", 2},
	} {
		s, err := FromConfig(c.name, map[string]any{c.option: c.value})
		require.NoError(t, err)
		require.Equal(t, c.want, must(s.Get(c.field)), "%s %s", c.name, c.option)
	}
	s := must(FromConfig("tf1/momentum", map[string]any{"use_nesterov": true}))
	require.True(t, s.rules[1].rule.(*Momentum).Nesterov)
	for _, axis := range []any{0, 0., []any{0.}, []int{0}, []float64{0}} {
		s = must(FromConfig("blocks/variable_clipping", map[string]any{"axis": axis}))
		require.Equal(t, []int{0}, s.rule.(*VariableClipping).Axes)
	}
	for _, list := range []any{"norm", []any{"norm"}, []string{"norm"}} {
		s = must(FromConfig("muon", map[string]any{"exclude_layers": list}))
		require.Equal(t, []string{"norm"}, s.rule.(*Muon).ExcludeLayers)
	}
	for option, value := range map[string]any{"axis": .5, "axes": "x", "threshold": []any{1.}} {
		_, err := FromConfig("blocks/variable_clipping", map[string]any{option: value})
		require.ErrorContains(t, err, "want a")
	}
	for _, bad := range []any{.5, []any{.5}, []any{.5, "x"}, nil} {
		_, err := FromConfig("torch/adam", map[string]any{"betas": bad})
		require.ErrorContains(t, err, "want two numbers")
	}
	for _, name := range []string{"keras/rmsprop", "rmsprop", "keras/adadelta"} { // there it is the decay of the rate
		_, err := FromConfig(name, map[string]any{"decay": 1e-6})
		require.ErrorContains(t, err, "unknown option")
	}
	_, err := FromConfig("torch/adam", map[string]any{"betas": []any{.5, .6}, "b1": .5})
	require.ErrorContains(t, err, "already sets beta1")
	_, err = FromConfig("muon", map[string]any{"exclude_layers": "("})
	require.ErrorContains(t, err, "exclude_layers")
}

type short struct {
	Lr, Decay, Min float64
	Betas          []float64
}

func (*short) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }

// A field whose name is another library's spelling is found by it.
func TestOwnNamesComeFirst(t *testing.T) {
	s := New(&short{})
	for _, name := range []string{"lr", "short/lr", "decay", "min"} {
		require.NoError(t, s.Set(name, 5), name)
		require.Equal(t, 5.0, must(s.Get(name)), name)
	}
	infos := must(walk(&short{}, nil))
	require.NoError(t, setOptions("short", infos, map[string]any{"betas": []any{1., 2., 3.}}, 0))
	require.Equal(t, []float64{1, 2, 3}, infos[0].rule.(*short).Betas)
	require.ErrorContains(t, setOptions("short", infos, map[string]any{"/min": 1.}, 0), "unknown option")
	cocob := NewCOCOB()
	require.NoError(t, cocob.Set("cocob/alpha", 50))
	require.Equal(t, 50.0, must(cocob.Get("alpha")))
}

// Names without letters are none, and whatever names an optimizer is looked at before it is used.
func TestNamesOfOptimizers(t *testing.T) {
	factory := func() Rule { return NewSGD() }
	for _, name := range []string{"", " ", "/", "x/", "/x", "\t", "x/ ", "x/\t/y"} {
		require.ErrorContains(t, Register(name, factory), "is no name", name)
	}
	require.Equal(t, "x/optimizer", fold("x/Optimizer"))
	_, err := Resolve(Rule((*Solver)(nil)))
	require.ErrorContains(t, err, "nil")
	_, err = Resolve(func() string { panic("ouch") })
	require.ErrorContains(t, err, "ouch")
	f, err := Resolve(func() *Solver { return NewAdam() })
	require.NoError(t, err)
	require.IsType(t, &Solver{}, f())
}
