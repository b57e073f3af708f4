package solvers

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// The numbers of the first two steps, as a program in another language found them: Philox by the paper, and the quantiles of its
// library.
func TestGradientNoiseNumbers(t *testing.T) {
	first := []float64{-0.6708808121398708, 0.5577824498375924, -1.1598393625816086, -1.4375254154221055}
	second := []float64{-0.682146968074426, 1.8097177439080647, -0.17093615844563848}
	of7 := []float64{1.5951665352231332, 0.42476172521810895, -0.7160597746595715}
	zeros := []float64{0, 0, 0}
	requireTransformed(t, func() Rule { return NewGradientNoise(1) }, [][]float64{first}, param("w", make([]float64, 4)))
	requireTransformed(t, func() Rule { return NewGradientNoise(1) }, [][]float64{second}, param("w", zeros, zeros))
	seeded := func() Rule { return NewGradientNoise(1, func(n *GradientNoise) { n.Seed = 7 }) }
	requireTransformed(t, seeded, [][]float64{of7}, param("w", zeros))
	requireTransformed(t, func() Rule { return NewGradientNoise(1) }, [][]float64{{first[0]}}, param("w", []float64{0}))
	requireTransformed(t, func() Rule { return NewGradientNoise(.5) }, [][]float64{{3 + first[0]/2, first[1] / 2, first[2]/2 - 1}},
		param("w", []float64{3, 0, -1}))
	requireTransformed(t, func() Rule { return NewGradientNoise(0) }, [][]float64{{3, 0, nan}}, param("w", []float64{3, 0, nan}))
}

// noisy is what some steps add to gradients of zero, in one list for each step.
func noisy(t *testing.T, s *Solver, dt tensor.Dtype, steps int, shape []int, names ...string) (out [][]float64) {
	t.Helper()
	for range steps {
		var model []G.ValueGrad
		for _, name := range names {
			zeros := func() G.Value { return value(dt, shape, make([]float64, tensor.Shape(shape).TotalSize())) }
			model = append(model, &pair{name, zeros(), zeros()})
		}
		require.NoError(t, s.Step(model))
		var all []float64
		for _, m := range model {
			all = append(all, floats(m.Value())...)
		}
		out = append(out, all)
	}
	return out
}

// The moments of many numbers.
func TestGradientNoiseMoments(t *testing.T) {
	const n, sigma = 100_000, .3
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, xs := range noisy(t, Chain(NewGradientNoise(sigma), shown), dt, 3, []int{n / 10, 10}, "w") {
			var mean, square float64
			for _, x := range xs {
				require.LessOrEqual(t, math.Abs(x), 2*sigma*(1+1e-7))
				mean, square = mean+x/n, square+x*x/n
			}
			require.InDelta(t, 0, mean, 4*sigma/math.Sqrt(n))
			require.InEpsilon(t, .8796*sigma, math.Sqrt(square), .01)
		}
	}
}

// Parameters, and two rules of one solver, have numbers of their own, whatever the order of the parameters.
func TestGradientNoiseStreams(t *testing.T) {
	fresh := func() *Solver { return Chain(NewGradientNoise(1), shown) }
	both := noisy(t, fresh(), tensor.Float64, 2, []int{5}, "a", "b")
	turned := noisy(t, fresh(), tensor.Float64, 2, []int{5}, "b", "a")
	alone := noisy(t, fresh(), tensor.Float64, 2, []int{5}, "b")
	for i, all := range both {
		require.Equal(t, all, slices.Concat(turned[i][5:], turned[i][:5]))
		require.Equal(t, all[5:], alone[i])
		require.NotEqual(t, all[0], all[5])
	}
	twice := noisy(t, Chain(NewGradientNoise(1), NewGradientNoise(1), shown), tensor.Float64, 2, []int{5}, "b")
	for i, all := range twice {
		for k, x := range all {
			require.NotEqual(t, alone[i][k], x-alone[i][k])
		}
	}
}

// With a copy of the global step the numbers go on; they are new in each step, and of another seed others.
func TestGradientNoiseResumes(t *testing.T) {
	fresh := func() *Solver { return Chain(NewGradientNoise(1), shown) }
	want := noisy(t, fresh(), tensor.Float32, 4, []int{5}, "w")
	for i := range want {
		require.NotContains(t, want[:i], want[i])
	}
	s := fresh()
	counter := must(s.Store().Counter("global_step"))
	require.NoError(t, counter.Set(2))
	require.Equal(t, want[2:], noisy(t, s, tensor.Float32, 2, []int{5}, "w"))
	require.Equal(t, 4.0, must(graphops.ScalarValue(must(counter.Value()))))
	require.NoError(t, s.Reset())
	require.Equal(t, want[:1], noisy(t, s, tensor.Float32, 1, []int{5}, "w"))
	require.NoError(t, s.Reset())
	require.NoError(t, s.Set("gradientnoise/seed", 1))
	require.NotEqual(t, want[:1], noisy(t, s, tensor.Float32, 1, []int{5}, "w"))
	require.ErrorContains(t, s.Set("gradientnoise/seed", .5), "whole number")
	require.ErrorContains(t, NewGradientNoise(-1).Err(), "standard_deviation is -1")
	require.Equal(t, .25, must(must(FromConfig("returnn/gradient_noise", map[string]any{"stddev": .25})).Get("standard_deviation")))
}

// dropoutModel is the loss of a model with a dropout, and its weights.
func dropoutModel(seed int64) (store *graphops.Store, loss *G.Node, w *G.Node) {
	g := G.NewGraph()
	store = graphops.NewStore()
	w = vector(g, "w", 1, 2, 3, 4, 5, 6, 7, 8)
	y := must(graphops.Dropout(must(G.Square(w)), .5, must(graphops.NewGenerator(store, "dropout", seed))))
	return store, must(G.Sum(y)), w
}

// Minimize makes every run another one, and once only.
func TestMinimizeDropout(t *testing.T) {
	train := func(seed int64, skip float64, steps int, opts ...Option) (weights [][]float64) {
		store, loss, w := dropoutModel(seed)
		require.NoError(t, store.Lookup("dropout/run").Set(skip))
		s := New(&SGD{LearningRate: .01}, opts...)
		op := must(s.Minimize(loss, w))
		vm := must(graphops.NewMachine(op, loss))
		for range steps {
			require.NoError(t, vm.RunAll())
			weights = append(weights, floats(w.Value()))
		}
		require.Equal(t, skip+float64(steps), must(graphops.ScalarValue(must(store.Lookup("dropout/run").Value()))))
		require.Nil(t, s.Store().Lookup("dropout/run"))
		return weights
	}
	store, loss, w := dropoutModel(1)
	vm := must(graphops.NewMachine(must(Accumulate(2, NewSGD()).Minimize(loss, w))))
	for range 3 {
		require.NoError(t, vm.RunAll())
	}
	require.Equal(t, 3.0, must(graphops.ScalarValue(must(store.Lookup("dropout/run").Value()))), "runs that only accumulate count")

	want := train(1, 0, 4)
	require.Equal(t, want, train(1, 0, 4, Expanded()))
	require.NotEqual(t, want, train(2, 0, 4))
	moved := func(before, after []float64) (which []bool) {
		for i := range before {
			which = append(which, before[i] != after[i])
		}
		return which
	}
	start := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	masks := [][]bool{moved(start, want[0]), moved(want[0], want[1]), moved(want[1], want[2]), moved(want[2], want[3])}
	for i := range masks {
		require.NotContains(t, masks[:i], masks[i])
		require.Equal(t, masks[i], moved(start, train(1, float64(i), 1)[0]), "a run of the same state")
	}
}
