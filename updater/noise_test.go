package updater

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// noisy is a variable whose gradient is a constant, its updater, and a function that makes a run and says how far that moved it.
func noisy(t *testing.T, dt tensor.Dtype, n int, gradient float64, text string, opts ...Option) (*G.Node, *Updater, func() []float64) {
	t.Helper()
	g, v := G.NewGraph(), variable{"w", dt, tensor.Shape{n}, make([]float64, n)}
	w, by := v.input(g, "w"), v.input(g, "gradient")
	let(w, v, v.start)
	for i := range v.start {
		v.start[i] = gradient
	}
	let(by, v, v.start)
	u, err := New(must(G.Sum(must(G.HadamardProd(w, by)))), G.Nodes{w}, config(t, text), opts...)
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	return w, u, func() []float64 {
		before := numbersOf(w)
		require.NoError(t, vm.RunAll())
		moved := numbersOf(w)
		for i := range moved {
			moved[i] = before[i] - moved[i]
		}
		return moved
	}
}

// The noise is normal without what lies beyond two deviations, new in each run, and independent of the gradient.
func TestNoiseMoments(t *testing.T) {
	const n, sigma, gradient = 40000, .25, 3.0
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		_, _, run := noisy(t, dt, n, gradient, fmt.Sprintf(`{"learning_rate": 1, "gradient_noise": %v}`, sigma))
		var last []float64
		for r := range 3 {
			x, mean, square, fourth, product := run(), 0.0, 0.0, 0.0, 0.0
			for i := range x {
				x[i] = (x[i] - gradient) / sigma
				require.LessOrEqual(t, math.Abs(x[i]), 2+1e-4)
				mean, square, fourth = mean+x[i]/n, square+x[i]*x[i]/n, fourth+math.Pow(x[i], 4)/n
				if last != nil {
					product += x[i] * last[i] / n
				}
			}
			// of the standard normal distribution, cut at ±2: variance 1 − 4φ(2)/(2Φ(2)−1), fourth moment 3·variance − 16φ(2)/(2Φ(2)−1)
			cut := 2 * math.Exp(-2) / math.Sqrt(2*math.Pi) / math.Erf(math.Sqrt2)
			require.InDelta(t, 0, mean, .02, "run %d", r)
			require.InDelta(t, 1-2*cut, square, .02)
			require.InDelta(t, 3*(1-2*cut)-8*cut, fourth, .06)
			require.InDelta(t, .8796, math.Sqrt(square), .01)
			require.InDelta(t, 0, product, .02)
			last = x
		}
	}
}

// Noise goes onto accumulated gradients, and not into what is accumulated; a clip then bounds it.
func TestNoiseOfAccumulation(t *testing.T) {
	w, u, run := noisy(t, tensor.Float64, 5, 1, `{"learning_rate": 1, "gradient_noise": 0.1, "accum_grad_multiple_step": 3}`)
	for s := range 9 {
		x := run()
		for i := range x {
			require.Equal(t, float64(s%3+1), numbersOf(u.Slot(w, "sum"))[i])
			if s%3 != 2 {
				require.Zero(t, x[i])
			} else {
				require.InDelta(t, 3, x[i], .2)
				require.NotEqual(t, 3.0, x[i])
			}
		}
	}
	_, _, run = noisy(t, tensor.Float64, 5, 0, `{"learning_rate": 1, "gradient_noise": 1, "gradient_clip": 1e-3}`)
	for _, x := range run() {
		require.Equal(t, 1e-3, math.Abs(x))
	}
}

// The noise of a config is always the same, in all forms of the update, and goes on after its state was loaded.
func TestNoiseResumes(t *testing.T) {
	const text = `{"learning_rate": 0.5, "optimizer": "adam", "gradient_noise": 0.3, "accum_grad_multiple_step": 2, "seed": 5}`
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		file := filepath.Join(t.TempDir(), "state.safetensors")
		w, u, run := noisy(t, dt, 7, 1, text)
		for range 5 {
			run()
		}
		require.NoError(t, u.SaveFile(file))
		for range 4 {
			run()
		}
		for name, opts := range map[string][]Option{"fused": nil, "expanded": {Expanded()}} {
			w2, u2, run := noisy(t, dt, 7, 1, text, opts...)
			require.NoError(t, u2.LoadFile(file))
			for range 4 {
				run()
			}
			require.InDeltaSlice(t, numbersOf(w), numbersOf(w2), 1e-6, name)
			if opts == nil {
				require.Equal(t, numbersOf(w), numbersOf(w2))
			}
		}
		w3, _, run := noisy(t, dt, 7, 1, `{"learning_rate": 0.5, "optimizer": "adam", "gradient_noise": 0.3, "accum_grad_multiple_step": 2, "seed": 6}`)
		for range 9 {
			run()
		}
		require.NotEqual(t, numbersOf(w), numbersOf(w3))
	}
}
