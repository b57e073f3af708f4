package solvers

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// steps runs a rule by name on one parameter in a host, with the same gradient each time, and returns the parameter.
func steps(t *testing.T, name, host string, w, d G.Value, n int) []float64 {
	t.Helper()
	var opts []Option
	if host == "expanded" {
		opts = append(opts, Expanded())
	}
	s, err := FromConfig(name, nil, opts...)
	require.NoError(t, err, name)
	if host == "step" {
		for range n {
			require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w, must(G.CloneValue(d))}}), "%s %v", name, w.Shape())
		}
		return elements(w)
	}
	g := G.NewGraph()
	shape := w.Shape()
	wn := G.NewTensor(g, w.Dtype(), len(shape), G.WithShape(shape...), G.WithName("w"))
	dn := G.NewTensor(g, w.Dtype(), len(shape), G.WithShape(shape...), G.WithName("d"))
	require.NoError(t, G.Let(wn, w))
	require.NoError(t, G.Let(dn, d))
	b := &build{g: g, store: s.store, bound: s.bound, trial: true}
	b, err = s.build(b, []Step{{Param{"w", wn}, graphops.Of(wn), graphops.Of(dn)}})
	require.NoError(t, err, name)
	op, err := graphops.Commit(b.updates, s.commitOptions(b)...)
	require.NoError(t, err, name)
	vm := must(graphops.NewMachine(op))
	for range n {
		require.NoError(t, vm.RunAll(), "%s %v", name, shape)
	}
	return elements(w)
}

// elements are the elements of a value; it also reads 0-d tensors.
func elements(v G.Value) []float64 {
	if d, ok := v.(*tensor.Dense); ok && d.Shape().TotalSize() == 0 {
		return nil
	}
	return floats(v)
}

// Every registered name, on parameters of all kinds: it does something, the same in all hosts.
func TestEveryRuleOnEveryShape(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	shapes := [][]int{nil, {}, {1}, {1, 1}, {3}, {2, 3}, {3, 2}, {0, 3}, {2, 1, 3}, {3, 4, 1}, {1, 9, 6}, {1, 1, 1}, {1, 5, 1}, {5, 6, 1, 5}}
	for _, name := range Names() {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			for _, shape := range shapes {
				mk := func(seed uint64) G.Value {
					n := tensor.Shape(shape).TotalSize()
					x := make([]float64, n)
					copy(x, floats(random(tensor.Float64, seed, max(n, 1))))
					if shape != nil && len(shape) == 0 { // a 0-d tensor
						d := tensor.New(tensor.FromScalar(x[0]))
						if dt == tensor.Float32 {
							d = tensor.New(tensor.FromScalar(float32(x[0])))
						}
						return d
					}
					if n == 0 {
						return tensor.New(tensor.Of(dt), tensor.WithShape(shape...))
					}
					return value(dt, shape, x)
				}
				want := steps(t, name, "step", mk(1), mk(2), 4)
				for _, host := range []string{"fused", "expanded"} {
					require.Zero(t, differing(want, steps(t, name, host, mk(1), mk(2), 4)), "%s %v %v %s", name, dt, shape, host)
				}
			}
		}
	}
	for _, p := range own {
		w := random(tensor.Float32, 1, 100_000)
		before := slices.Clone(floats(w))
		after := steps(t, p.name, "step", w, random(tensor.Float32, 2, 100_000), 2)
		require.NotZero(t, differing(before, after), p.name)
		require.Zero(t, differing(after, steps(t, p.name, "fused", random(tensor.Float32, 1, 100_000), random(tensor.Float32, 2, 100_000), 2)), p.name)
	}
}

// Zero gradients from zero state move nothing and make no NaN, but where that is documented.
func TestEveryRuleOnZeroGradients(t *testing.T) {
	moves := map[string]bool{ // decay, averages of the weights, weights that are made anew from the gradients alone, constraints
		"adafactor": false, "adagrad_da": true, "adamw": true, "conditional_gradient": true, "ftrl": true, "gradient_noise": true, "muon": true,
		"variable_clipping": true, "box": true, "l1_ball": true, "l2_ball": true, "max_norm": true, "min_max_norm": true, "non_negative": true,
		"simplex": true, "unit_norm": true,
	}
	for _, p := range own {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			got := steps(t, p.name, "step", value(dt, []int{2, 2}, []float64{1, -2, 3, .5}), value(dt, []int{2, 2}, make([]float64, 4)), 3)
			for i, x := range got {
				require.False(t, math.IsNaN(x) || math.IsInf(x, 0), "%s %v", p.name, got)
				if !moves[p.name] {
					require.InDelta(t, []float64{1, -2, 3, .5}[i], x, 1e-6, p.name)
				}
			}
		}
	}
}

// NaN, infinities and denormals never fail a step. A rule that looks at each element alone keeps them to their element.
func TestEveryRuleOnExtremes(t *testing.T) {
	together := []string{"adafactor", "barzilai_borwein", "centralize_gradients", "clip_by_average_norm", "clip_by_global_norm", "clip_by_norm",
		"conditional_gradient", "l1_ball", "l2_ball", "lamb", "muon", "normalized_sgd", "novograd", "ranger", "ranger_adabelief", "remove_not_finite",
		"simplex", "step_clipping", "variable_clipping"}
	for _, p := range own {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e-40, 1e-310} {
				w, d := value(dt, []int{1, 2}, []float64{1, 1}), value(dt, []int{1, 2}, []float64{bad, .5})
				got := steps(t, p.name, "step", w, d, 3)
				if !slices.Contains(together, p.name) {
					require.False(t, math.IsNaN(got[1]), "%s %v: %v", p.name, bad, got)
				}
				if math.Abs(bad) < 1 {
					require.False(t, math.IsNaN(got[0]) || math.IsInf(got[0], 0), "%s %v: %v", p.name, bad, got)
				}
			}
		}
	}
	got := steps(t, "remove_not_finite", "step", value(tensor.Float64, []int{2}, []float64{1, 2}), value(tensor.Float64, []int{2}, []float64{math.NaN(), 1}), 1)
	require.Equal(t, []float64{1, 2}, got)
}

// Every option of every rule that has a range is refused out of it, by field and value; every word that is none of the
// choices, too.
func TestEveryOptionHasItsRange(t *testing.T) {
	for _, p := range own {
		for _, info := range New(p.factory()).rules {
			for _, f := range info.fields {
				legal := *f.value
				bad := math.NaN()
				for _, x := range []float64{-1e9, 1e9} {
					if f.check(x) != nil {
						bad = x
					}
				}
				_, err := FromConfig(p.name, map[string]any{f.name: bad})
				require.ErrorContains(t, err, fmt.Sprintf("%s/%s is %v", info.name, f.name, bad), p.name)
				*f.value = legal
			}
		}
	}
	for want, c := range map[string]struct {
		name    string
		options map[string]any
	}{
		`form is "x"`:                            {"nadam", map[string]any{"form": "x"}},
		`activation is "relu"`:                   {"yogi", map[string]any{"activation": "relu"}},
		`ord is "2"`:                             {"conditional_gradient", map[string]any{"ord": "2"}},
		`decay is "none"`:                        {"adabelief", map[string]any{"decay": "none"}},
		"epsilon_inner is -0.5":                  {"adabelief", map[string]any{"epsilon_inner": -.5}},
		"ns_steps is 2.5":                        {"muon", map[string]any{"ns_steps": 2.5}},
		"has no dampening":                       {"momentum", map[string]any{"nesterov": true, "dampening": .1}},
		"adabelief/beta1 is 0":                   {"adabelief", map[string]any{"beta1": 0}},
		"lion/beta1 is 0":                        {"keras/lion", map[string]any{"beta1": 0.0}},
		"adadelta/rho is -1":                     {"blocks/adadelta", map[string]any{"rho": -1}},
		"adadelta/rho is 2":                      {"blocks/adadelta", map[string]any{"rho": 2}},
		"rmsprop/rho is -1":                      {"blocks/rmsprop", map[string]any{"rho": -1}},
		"rmsprop/max_scaling is -1":              {"blocks/rmsprop", map[string]any{"max_scaling": -1}},
		"momentum/momentum is 2":                 {"keras/sgd", map[string]any{"momentum": 2}},
		"ftrl/initial_accumulator_value is -0.1": {"keras/ftrl", map[string]any{"initial_accumulator_value": -.1}},
		"ftrl/learning_rate_power is 0.1":        {"tf1/ftrl", map[string]any{"learning_rate_power": .1}},
		"adagradda/initial_accumulator_value":    {"tf1/adagradda", map[string]any{"initial_accumulator_value": 0}},
		"novograd/weight_decay is -1":            {"addons/novograd", map[string]any{"weight_decay": -1}},
		"cocob/alpha is 0.5":                     {"addons/cocob", map[string]any{"alpha": .5}},
		"coupleddecay/weight_decay is -1":        {"torch/adam", map[string]any{"weight_decay": -1}},
	} {
		_, err := FromConfig(c.name, c.options)
		require.ErrorContains(t, err, want)
	}
	s, err := FromConfig("torch/adam", map[string]any{"weight_decay": .1, "lr": .5})
	require.NoError(t, err)
	require.Equal(t, []float64{.1, .5}, []float64{must(s.Get("weight_decay")), must(s.Get("learning_rate"))})
}

// What was not built in cannot be set afterwards without notice.
func TestSetOfWhatWasNotBuilt(t *testing.T) {
	w := &pair{"w", G.NewF64(1), G.NewF64(1)}
	s := NewRMSprop()
	require.NoError(t, s.Step([]G.ValueGrad{w}))
	require.ErrorContains(t, s.Set("momentum", .5), "built without rmsprop/momentum")
	require.NoError(t, s.Set("momentum", 0))
	s = NewRMSprop()
	require.NoError(t, s.Set("momentum", .5))
	require.NoError(t, s.Step([]G.ValueGrad{w}))
	require.NoError(t, s.Set("momentum", .25))
}
