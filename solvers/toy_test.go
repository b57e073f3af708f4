package solvers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers/schedule"
)

// toy is a small model with gradients that depend on the step.
func toy(dt tensor.Dtype) (model []G.ValueGrad, grads func(step int) []G.Value) {
	shapes := [][]int{{3, 2}, {4}, {}, {4}}
	for i, shape := range shapes {
		x := make([]float64, tensor.Shape(shape).TotalSize())
		for k := range x {
			x[k] = float64(i+1) - .7*float64(k)
		}
		model = append(model, &pair{fmt.Sprint("w", i), value(dt, shape, x), nil})
	}
	return model, func(step int) (gs []G.Value) {
		r := rand.New(rand.NewPCG(uint64(step), 7))
		for _, shape := range shapes {
			x := make([]float64, tensor.Shape(shape).TotalSize())
			for k := range x {
				x[k] = r.NormFloat64()
			}
			gs = append(gs, value(dt, shape, x))
		}
		return gs
	}
}

func valuesOf(model []G.ValueGrad) (vs []G.Value) {
	for _, m := range model {
		vs = append(vs, m.Value())
	}
	return vs
}

func pairs(model []G.ValueGrad, grads []G.Value) (ps []Pair) {
	for i, m := range model {
		ps = append(ps, Pair{m, grads[i]})
	}
	return ps
}

// everyName runs a test for each registered name, and for compositions.
func everyName(t *testing.T, f func(t *testing.T, dt tensor.Dtype, make func() *Solver)) {
	all := map[string]func() *Solver{
		"scheduled": func() *Solver {
			s := Chain(NewClipByNorm(1), NewAdamW())
			require.NoError(t, s.Schedule("adamw/learning_rate", schedule.NewNoam(8, 3)))
			return s
		},
		"bound": func() *Solver {
			s := NewSGD()
			require.NoError(t, s.Bind("learning_rate", number(G.NewGraph(), "rate", .25)))
			return s
		},
		"nested": func() *Solver {
			return Chain(Accumulate(2, Chain(Restrict(NewMomentum(), "w1", "w2"), NewLion())), AccumulateMean(1, NewScale()))
		},
		"switched off": func() *Solver { return Chain(NewClipByValue(0), NewSGD(func(s *SGD) { s.LearningRate = 0 })) },
		"base": func() *Solver {
			return WithBase(NewAdam(), all2, func(b *Base) {
				b.GradientAccumulationSteps, b.LossScaleFactor, b.EMAOverwriteFrequency = 2, 4, 2
				b.OverwriteWithGradient, b.ExcludeFromWeightDecay = []string{"w2"}, []string{"w3"}
			})
		},
		"strict base": func() *Solver {
			return WithBase(NewAdam(), all2, func(b *Base) { b.GradientAccumulationSteps, b.KerasStrict = 2, true })
		},
		"loss scale": func() *Solver { return dynamic(WithBase(NewLAMB(), all2), 4, 2) },
		"wrappers":   func() *Solver { return moving(ema1(look(swa1(NewRanger(), 1, 2), 3, .3), .9, 4)) },
		"map":        func() *Solver { return OptimizerMap(look(NewAdam(), 2, .5), Route{"w[12]", WithBase(NewSGD(), all2)}) },
		"parts": func() *Solver {
			return MultiOptimizer(Part{NewAdam(), []string{"w0", "w1"}}, Part{swa1(NewLion(), 0, 1), []string{"w1"}})
		},
		"scheduled base": func() *Solver {
			return follows(WithBase(NewAdam(), func(b *Base) { b.UseEMA = true }), map[string]schedule.Schedule{"weight_decay": schedule.NewLinear(0, .5, 4),
				"clipnorm": schedule.NewConstant(.5), "ema_momentum": schedule.NewConstant(.5)})
		},
	}
	made := slices.Sorted(maps.Keys(all))
	for _, name := range Names() {
		all[name] = func() *Solver { return must(FromConfig(name, nil)) }
	}
	for _, name := range made {
		t.Run(name, func(t *testing.T) { f(t, tensor.Float64, all[name]) })
	}
	for i, name := range Names() {
		t.Run(name, func(t *testing.T) { f(t, []tensor.Dtype{tensor.Float32, tensor.Float64}[i%2], all[name]) })
	}
}
