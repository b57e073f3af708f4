package solvers

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// The scenarios of Keras' base class that are no tables of parameters. Some of Keras have no counterpart, by design:
//
//   - An average is updated in the steps of its parameter. Where Keras applies gradients to a part of the variables it averages the
//     others, too, which makes a copy of those that have not been trained yet (2 for b in "build [a=1, b=2], apply to a twice"), also
//     with KerasStrict: a rule gets no values of parameters that have no step.
//   - An evaluation gets the averages by Solver.UseAverages, which does not put the weights into the averages meanwhile.
//   - Gradients are dense; those of gorgonia.ByIndices have zeros in the rows that were not read.
//   - Variables that are overwritten with their gradient are no attribute of a variable, but an option (OverwriteWithGradient), so that
//     AddOptimizerVariables makes variables for any.
//   - A learning rate is no function without arguments: Bind makes it a node, Schedule a function of the step.

// counted are states that are numbers.
func counted(t *testing.T, s *Solver, names ...string) (out []float64) {
	t.Helper()
	for _, name := range names {
		out = append(out, remembered(t, s, name)[0])
	}
	return out
}

// Raw runs, which schedules see, and steps, which corrections of bias see.
func TestContractCounters(t *testing.T) {
	f := constant([]float64{1, 2, 3, 4}, []float64{1, 1, 1, 1})
	everyHost(t, f, func() *Solver { return NewAdam() }, 2, func(what string, _ float64, s *Solver, step int, _ []G.Value) {
		require.Equal(t, []float64{float64(step), float64(step)}, counted(t, s, "global_step", "adam/step"), what)
	})
	thrice := func() *Solver { return WithBase(NewAdam(), func(b *Base) { b.GradientAccumulationSteps = 3 }) }
	everyHost(t, f, thrice, 7, func(what string, _ float64, s *Solver, step int, _ []G.Value) {
		raw := float64(step)
		require.Equal(t, []float64{raw, raw, math.Floor(raw / 3)}, counted(t, s, "global_step", "base/iteration", "adam/step"), what)
		require.Equal(t, math.Mod(raw, 3), remembered(t, s, "w0/base/gradient_accumulator")[3], what)
	})
	only := func() *Solver { // overwritten parameters count, too, but have no part in a step
		return WithBase(NewAdam(), func(b *Base) {
			b.OverwriteWithGradient, b.UseEMA, b.GradientAccumulationSteps = []string{"w*"}, true, 2
		})
	}
	everyHost(t, f, only, 3, func(what string, _ float64, s *Solver, step int, _ []G.Value) {
		require.Equal(t, []float64{float64(step), float64(step)}, counted(t, s, "global_step", "base/iteration"), what)
		for _, none := range []string{"adam/step", "w0/base/average", "w0/adam/m"} {
			require.Nil(t, s.Store().Lookup(none), "%s: %s", what, none)
		}
	})
}

// What is accumulated: gradients without the scale of the loss, of parameters that are overwritten the greatest one.
func TestContractAccumulators(t *testing.T) {
	scaled := func() *Solver {
		return WithBase(sgd(1), func(b *Base) { b.LossScaleFactor, b.GradientAccumulationSteps = 4, 2 })
	}
	everyHost(t, numbers(0, 8, 16, 4), scaled, 3, func(what string, _ float64, s *Solver, step int, params []G.Value) {
		require.Equal(t, []float64{2, 0, 1}[step-1], remembered(t, s, "w0/base/gradient_accumulator")[0], what)
		require.Equal(t, []float64{0, -3, -3}[step-1], floats(params[0])[0], what)
	})
	f := gradients([][]float64{{5, 5}, {1, 2}}, [][]float64{{1, 1}, {1, 1}}, [][]float64{{2, 2}, {2, 2}}, [][]float64{{1, 1}, {1, 1}})
	overwritten := func() *Solver {
		return WithBase(sgd(1), func(b *Base) { b.OverwriteWithGradient, b.GradientAccumulationSteps = []string{"w0"}, 2 })
	}
	w := [][]float64{{5, 5, 1, 2}, {2, 2, -.5, .5}, {2, 2, -.5, .5}}
	everyHost(t, f, overwritten, 3, func(what string, _ float64, s *Solver, step int, params []G.Value) {
		acc := []float64{1, 0, 1}[step-1]
		require.Equal(t, w[step-1], floats(params...), what)
		require.Equal(t, []float64{acc, acc}, remembered(t, s, "w0/base/gradient_accumulator"), what)
		require.Equal(t, []float64{acc, acc}, remembered(t, s, "w1/base/gradient_accumulator"), what)
		require.Equal(t, float64(step), remembered(t, s, "base/iteration")[0], what)
	})
	for _, strict := range []bool{false, true} { // the mean is over all runs of the group, whatever had a gradient in them
		s := New(WithBase(sgd(1), func(b *Base) { b.GradientAccumulationSteps, b.KerasStrict = 2, strict }), SkipMissing())
		a, c := &pair{"a", G.NewF64(0), nil}, &pair{"c", G.NewF64(0), nil}
		for _, g := range []float64{0, 3} {
			if a.grad = nil; g != 0 {
				a.grad = G.NewF64(g)
			}
			c.grad = G.NewF64(1)
			require.NoError(t, s.Step([]G.ValueGrad{a, c}))
		}
		require.Equal(t, []float64{-1.5, -1}, floats(a.value, c.value))
	}
}

// Clips of what is zero and of what is not finite, and of the gradients of every optimizer.
func TestContractClips(t *testing.T) {
	for _, c := range []struct {
		option  string
		g, want [][]float64
	}{
		{"clipnorm", [][]float64{{inf, 1, -1}, {3, 4}}, [][]float64{{nan, 0, 0}, {.6, .8}}},
		{"clipnorm", [][]float64{{nan, 1}, {3, 4}}, [][]float64{{nan, nan}, {.6, .8}}},
		{"clipnorm", [][]float64{{0, 0}}, [][]float64{{0, 0}}},
		{"global_clipnorm", [][]float64{{inf, 1}, {3}}, [][]float64{{nan, nan}, {nan}}},
		{"global_clipnorm", [][]float64{{1, nan}, {3}}, [][]float64{{nan, nan}, {nan}}},
		{"global_clipnorm", [][]float64{{0, 0}, {0}}, [][]float64{{0, 0}, {0}}},
		{"clipvalue", [][]float64{{nan, inf, -inf, .5}}, [][]float64{{nan, 1, -1, .5}}},
	} {
		var wg [][]float64
		for _, g := range c.g {
			wg = append(wg, make([]float64, len(g)), g)
		}
		clipped := func() *Solver { return must(FromConfig("scale", map[string]any{"lr": -1, c.option: 1})) }
		everyHost(t, constant(wg...), clipped, 1, func(what string, tol float64, _ *Solver, _ int, params []G.Value) {
			for i, want := range c.want {
				for k, x := range floats(params[i]) {
					if math.IsNaN(want[k]) {
						require.True(t, math.IsNaN(x), "%s: %s %v", what, c.option, x)
					} else {
						require.InDelta(t, want[k], x, tol, "%s: %s", what, c.option)
					}
				}
			}
		})
	}
	rules := map[string]func() Rule{"clipnorm": func() Rule { return NewClipByNorm(1) }, "global_clipnorm": func() Rule { return NewClipByGlobalNorm(1) },
		"clipvalue": func() Rule { return NewClipByValue(1) }}
	for _, name := range Optimizers() {
		for option, rule := range rules {
			var got [2][]float64
			for i, s := range []*Solver{must(FromConfig(name, map[string]any{option: 1})), Chain(rule(), must(FromConfig(name, nil)))} {
				w := vec("w", []float64{1, -1}, nil)
				for range 2 {
					w.grad = tensor.New(tensor.WithBacking([]float64{100, 100}))
					require.NoError(t, s.Step([]G.ValueGrad{w}))
				}
				got[i] = floats(w.value)
			}
			require.Zero(t, differing(got[1], got[0]), "%s, %s", name, option)
		}
	}
}

// The average of Adam's weights is that of the trajectory without it, until it overwrites them.
func TestContractAverages(t *testing.T) {
	f := constant([]float64{3, 4, 5, 6}, []float64{1, 1, 1, 1})
	plain := map[string][]float64{}
	everyHost(t, f, func() *Solver { return New(kerasAdam(1)) }, 2, func(what string, _ float64, _ *Solver, _ int, params []G.Value) {
		plain[what] = floats(params...)
	})
	for _, overwrite := range []float64{0, 2} {
		averaged := func() *Solver {
			return WithBase(kerasAdam(1), func(b *Base) { b.UseEMA, b.EMAMomentum, b.EMAOverwriteFrequency = true, .9, overwrite })
		}
		var first []float64
		everyHost(t, f, averaged, 2, func(what string, tol float64, s *Solver, step int, params []G.Value) {
			want := plain[what]
			if step == 1 {
				first = want
			}
			mean := make([]float64, len(want))
			for i := range mean {
				mean[i] = .9*first[i] + .1*want[i]
			}
			require.InDeltaSlice(t, mean, averagesOf(t, s, 1), 10*tol, what)
			if step == 2 && overwrite == 2 {
				want = mean
			}
			require.InDeltaSlice(t, want, floats(params...), 10*tol, what)
			if step == 2 {
				require.NoError(t, s.AssignAverages(&pair{"w0", params[0], nil}))
				require.InDeltaSlice(t, mean, floats(params...), 10*tol, what)
			}
		})
	}
}

// Averages are found within a scale of the loss and within an OptimizerMap, and what has none stays as it is.
func TestContractSwap(t *testing.T) {
	averaging := func() Rule { return WithBase(sgd(1), func(b *Base) { b.UseEMA = true }) }
	for name, s := range map[string]*Solver{
		"loss scale": dynamic(OptimizerMap(sgd(1), Route{"w", averaging()}), 1, 2000),
		"map":        OptimizerMap(sgd(1), Route{"w", averaging()}),
		"base":       WithBase(OptimizerMap(sgd(1), Route{"w", averaging()}), func(b *Base) { b.ClipNorm = 100 }),
	} {
		w, other := vec("w", []float64{3, 3}, []float64{1, 1}), vec("other", []float64{5}, []float64{1})
		require.NoError(t, s.Step([]G.ValueGrad{w, other}))
		for _, st := range s.Store().States() {
			if st.Param() == "w" && len(floats(must(st.Value()))) == 2 {
				require.NoError(t, st.Assign(tensor.New(tensor.WithBacking([]float64{9, 9}))))
			}
		}
		require.NoError(t, s.WithAverages(func() error {
			require.Equal(t, []float64{9, 9, 4}, floats(w.value, other.value), name)
			return nil
		}, other, w), name)
		require.Equal(t, []float64{2, 2, 4}, floats(w.value, other.value), name)
		require.NoError(t, s.AssignAverages(w, other), name)
		require.Equal(t, []float64{9, 9, 4}, floats(w.value, other.value), name)
	}
	_, err := WithBase(sgd(1)).UseAverages(vec("w", []float64{1}, nil))
	require.ErrorContains(t, err, "none of the parameters has an average")
}

// A scale of the loss around several optimizers goes for all of them, and theirs count for nothing.
func TestContractLossScaleOfAMap(t *testing.T) {
	own := func(lr, factor float64) Rule { return WithBase(sgd(lr), func(b *Base) { b.LossScaleFactor = factor }) }
	multi := func() *Solver {
		return OptimizerMap(own(0, 2), Route{"a", own(.1, 3)}, Route{"b", own(.1, 4)}, Route{"c", own(.1, 8)})
	}
	five := func() *Solver { return WithBase(multi(), func(b *Base) { b.LossScaleFactor = 5 }) }
	_, err := multi().LossScale()
	require.ErrorContains(t, err, "both have a scale of the loss")
	for _, c := range []struct {
		s                   func() *Solver
		scale, scaled, want float64
	}{{five, 5, 10, 1.8}, {func() *Solver { return dynamic(five(), 10, 2000) }, 10, 20, 1.9}} {
		require.Equal(t, c.scale, must(c.s().LossScale()))
		g := G.NewGraph()
		loss := must(c.s().ScaleLoss(number(g, "loss", 2)))
		vm := G.NewTapeMachine(g)
		require.NoError(t, vm.RunAll())
		require.Equal(t, c.scaled, floats(loss.Value())[0])
		f := scalars(2, "a", "b", "c", "d")
		f.Problem.Gradients = [][][]float64{{{10}, {10}, {10}, {10}}}
		everyHost(t, f, c.s, 1, func(what string, tol float64, _ *Solver, _ int, params []G.Value) {
			require.InDeltaSlice(t, []float64{c.want, c.want + 1, c.want + 2, 5}, floats(params...), tol, fmt.Sprint(what, " ", c.scale))
		})
	}
}

// The gradient of a look-up of rows is zero in the others: training is that of the same gradient, given in full.
func TestContractLookups(t *testing.T) {
	pairs := []float64{0, 10, 2, 8, 4, 6, 0, 1} // pairs of a row and its gradient; of one row twice
	for _, name := range Optimizers() {
		if len(within[*rows](must(FromConfig(name, nil)))) > 0 { // another mode: see TestRowsGolden
			continue
		}
		var got [2][]float64
		for i := range got {
			g := G.NewGraph()
			w := G.NewTensor(g, G.Float64, 3, G.WithShape(5, 3, 2), G.WithName("w"), G.WithInit(G.Ones()))
			read, d := w, tensor.New(tensor.WithShape(5, 3, 2), tensor.Of(tensor.Float64))
			if i == 1 {
				ix := G.NewTensor(g, G.Int, 1, G.WithShape(4), G.WithName("rows"), G.WithValue(tensor.New(tensor.WithBacking([]int{0, 2, 4, 0}))))
				read, d = must(G.ByIndices(w, ix, 0)), tensor.New(tensor.WithShape(4, 3, 2), tensor.Of(tensor.Float64))
			}
			for k := 0; k < len(pairs); k += 2 {
				at := int(pairs[k])
				if i == 1 {
					at = k / 2
				}
				for j := range 6 {
					d.Float64s()[6*at+j] += pairs[k+1]
				}
			}
			dn := G.NewTensor(g, G.Float64, 3, G.WithShape(d.Shape()...), G.WithName("d"), G.WithValue(d))
			loss := must(G.Sum(must(G.HadamardProd(read, dn))))
			s := must(FromConfig(name, nil))
			switch s.rules[0].rule.(type) {
			case *NormalizedSGD, *NeuralOptimizer1, *GradVarianceScaled: // RETURNN's, which do not add up rows that are named twice
				s = WithRows(s, RowsDense)
			}
			vm := must(graphops.NewMachine(must(s.Minimize(loss, w))))
			for range 3 {
				require.NoError(t, vm.RunAll(), name)
			}
			got[i] = floats(w.Value())
		}
		require.Zero(t, differing(got[0], got[1]), name)
	}
}
