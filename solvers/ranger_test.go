package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Without a decay Ranger is made of parts that stand alone.
func TestRangerIsComposed(t *testing.T) {
	f := constant([]float64{1, 2}, []float64{.3, -.2}, []float64{3, 4, 5, 6, 7, 8}, []float64{.05, .1, .7, -.3, .2, .1})
	f.Problem.Params[1].Shape = []int{2, 3}
	parts := func() *Solver {
		radam := NewRAdam(func(r *RAdam) { r.Beta1, r.Epsilon, r.EpsilonHat = .95, 1e-5, true })
		return Lookahead(Chain(NewCentralizeGradients(), radam))
	}
	want := map[string][]float64{}
	everyHost(t, f, parts, 25, func(what string, _ float64, _ *Solver, _ int, params []G.Value) { want[what] = floats(params...) })
	everyHost(t, f, func() *Solver { return NewRanger() }, 25, func(what string, tol float64, _ *Solver, _ int, params []G.Value) {
		require.InDeltaSlice(t, want[what], floats(params...), tol, what)
	})
}

// What gradients become, by shape.
func TestCentralizeGradients(t *testing.T) {
	last := func(c *CentralizeGradients) { c.KeepLast = true }
	conv := func(c *CentralizeGradients) { c.ConvOnly = true }
	for name, c := range map[string]struct {
		options func(*CentralizeGradients)
		shape   []int
		g, want []float64
	}{
		"vector":          {nil, []int{4}, []float64{1, 2, 3, 6}, []float64{1, 2, 3, 6}},
		"matrix":          {nil, []int{2, 2}, []float64{1, 2, 3, 6}, []float64{-.5, .5, -1.5, 1.5}},
		"keep last":       {last, []int{2, 2}, []float64{1, 2, 3, 6}, []float64{-1, -2, 1, 2}},
		"conv only":       {conv, []int{2, 1, 2}, []float64{1, 2, 3, 6}, []float64{1, 2, 3, 6}},
		"conv":            {conv, []int{2, 1, 1, 2}, []float64{1, 2, 3, 6}, []float64{-.5, .5, -1.5, 1.5}},
		"row":             {nil, []int{1, 4}, []float64{1, 2, 3, 6}, []float64{-2, -1, 0, 3}},
		"column":          {nil, []int{4, 1}, []float64{1, 2, 3, 6}, []float64{1, 2, 3, 6}},
		"row, keep last":  {last, []int{1, 4}, []float64{1, 2, 3, 6}, []float64{1, 2, 3, 6}},
		"rank 3":          {nil, []int{2, 2, 1}, []float64{1, 2, 3, 6}, []float64{-.5, .5, -1.5, 1.5}},
		"nothing at all":  {nil, []int{0, 3}, nil, nil},
		"one element":     {nil, []int{1, 1}, []float64{5}, []float64{5}},
		"keep last, cube": {last, []int{1, 2, 2}, []float64{1, 2, 3, 6}, []float64{-1, -2, 1, 2}},
	} {
		if c.g == nil {
			w := tensor.New(tensor.Of(tensor.Float64), tensor.WithShape(c.shape...))
			require.NoError(t, Chain(NewCentralizeGradients(c.options), sgd(1)).Step([]G.ValueGrad{&pair{"w", w, w.Clone().(*tensor.Dense)}}), name)
			continue
		}
		f := constant(make([]float64, len(c.g)), c.g)
		f.Problem.Params[0].Shape = c.shape
		everyHost(t, f, func() *Solver { return Chain(NewCentralizeGradients(c.options), sgd(1)) }, 1,
			func(what string, tol float64, _ *Solver, _ int, params []G.Value) {
				for i, x := range floats(params[0]) {
					require.InDelta(t, -c.want[i], x, tol, "%s: %s", name, what)
				}
			})
	}
}

// The options by their names in the published code.
func TestRangerByName(t *testing.T) {
	options := map[string]any{"lr": .01, "alpha": .25, "k": 4, "N_sma_threshhold": 4.5, "betas": []any{.9, .99}, "eps": 1e-6, "weight_decay": .1,
		"use_gc": false, "gc_conv_only": true, "gc_loc": false}
	for _, name := range []string{"ranger", "RangerAdaBelief"} {
		s, err := FromConfig(name, options)
		require.NoError(t, err)
		want := Ranger{.01, .9, .99, 1e-6, .1, 4.5, 4, .25, name != "ranger", false, true, false, false, "direction"}
		require.Equal(t, &want, s.rule)
	}
	_, err := FromConfig("radam", map[string]any{"k": 5})
	require.ErrorContains(t, err, "unknown option")
}
