package solvers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// mixed are parameters of both dtypes, some of them scalars, one without elements.
var mixed = []form{
	{dt: tensor.Float32, shape: tensor.Shape{3, 2}}, {dt: tensor.Float64, shape: tensor.Shape{4}},
	{dt: tensor.Float32, shape: tensor.ScalarShape()}, {dt: tensor.Float64, shape: tensor.Shape{0, 3}},
	{dt: tensor.Float32, shape: tensor.Shape{1, 1}}, {dt: tensor.Float64, shape: tensor.ScalarShape()},
}

func mixedValues(seed int) (vs []G.Value) {
	for i, f := range mixed {
		if n := f.shape.TotalSize(); n > 0 {
			vs = append(vs, value(f.dt, f.shape, floats(random(tensor.Float64, uint64(seed+i), n))))
		} else {
			vs = append(vs, tensor.New(tensor.Of(f.dt), tensor.WithShape(f.shape...)))
		}
	}
	return vs
}

// trainMixed trains the mixed parameters in a host; in one of the steps one element of a gradient is something else.
func trainMixed(t *testing.T, s *Solver, host string, bad float64) (out []float64) {
	const steps = 6
	grads := func(step int) []G.Value {
		g := mixedValues(100 + 10*step)
		if step == 2 {
			g[1].(*tensor.Dense).Float64s()[2] += bad
		}
		return g
	}
	params, g := mixedValues(1), G.NewGraph()
	if host == "step" {
		for step := range steps {
			var ps []Pair
			for i, d := range grads(step) {
				ps = append(ps, Pair{&pair{fmt.Sprint("w", i), params[i], nil}, d})
			}
			require.NoError(t, s.ApplyGradients(ps))
		}
	} else {
		if host == "expanded" {
			Expanded()(s)
		}
		var vars, inputs G.Nodes
		var given []Gradient
		for i, f := range mixed {
			w := G.NewTensor(g, f.dt, len(f.shape), G.WithShape(f.shape...), G.WithName(fmt.Sprint("w", i)))
			d := G.NewTensor(g, f.dt, len(f.shape), G.WithShape(f.shape...), G.WithName(fmt.Sprint("d", i)))
			require.NoError(t, G.Let(w, params[i]))
			vars, inputs, given = append(vars, w), append(inputs, d), append(given, Gradient{Raw: graphops.Of(d)})
		}
		updates, opts, err := s.Compose(vars, given)
		require.NoError(t, err)
		vm := must(graphops.NewMachine(must(graphops.Commit(updates, opts...))))
		for step := range steps {
			for i, d := range grads(step) {
				require.NoError(t, G.Let(inputs[i], d))
			}
			require.NoError(t, vm.RunAll())
			vm.Reset()
		}
		params = values(vars)
	}
	for _, p := range params {
		out = append(out, elements(p)...)
	}
	return out
}

// Wrappers and the arguments of the base class work on models of mixed dtypes, with scalars and with parameters without elements, the
// same in all hosts, also where a gradient is not finite.
func TestWrappersOnMixedModels(t *testing.T) {
	for name, solver := range map[string]func() *Solver{
		"base": func() *Solver {
			return WithBase(NewAdam(), all2, func(b *Base) {
				b.ClipNorm, b.GlobalClipNorm, b.GradientAccumulationSteps, b.LossScaleFactor, b.EMAOverwriteFrequency = 0, 1, 2, 4, 2
			})
		},
		"strict base": func() *Solver {
			return WithBase(NewAdam(), all2, func(b *Base) { b.KerasStrict, b.GradientAccumulationSteps, b.EMAOverwriteFrequency = true, 2, 2 })
		},
		"overwritten": func() *Solver {
			return WithBase(NewAdam(), all2, func(b *Base) { b.OverwriteWithGradient, b.GradientAccumulationSteps = []string{"w[123]"}, 2 })
		},
		"loss scale": func() *Solver {
			return dynamic(Chain(clipGlobal(1, true), WithBase(NewLAMB(), func(b *Base) { b.ClipValue = .5 })), 4, 2)
		},
		"wrappers": func() *Solver { return moving(ema1(look(swa1(NewAdam(), 1, 2), 3, .3), .9, 4)) },
		"map":      func() *Solver { return OptimizerMap(look(NewAdam(), 2, .5), Route{"w[12]", WithBase(NewSGD(), all2)}) },
		"parts": func() *Solver {
			return MultiOptimizer(Part{NewAdam(), []string{"w0", "w1"}}, Part{ema1(NewLion(), .5, 0), []string{"w1", "w2", "w3", "w4"}})
		},
	} {
		start := trainMixed(t, sgd(0), "step", 0)
		for _, bad := range []float64{0, nan, inf} {
			want := trainMixed(t, solver(), "step", bad)
			require.NotZero(t, differing(start, want), name)
			for _, host := range allHosts[1:] {
				require.Zero(t, differing(want, trainMixed(t, solver(), host, bad)), "%s, %s, %v", name, host, bad)
			}
		}
	}
}
