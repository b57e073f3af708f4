package solvers

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// sorted is the projection onto the simplex as in the paper.
func sorted(x []float64, r float64) []float64 {
	u := slices.Clone(x)
	slices.Sort(u)
	slices.Reverse(u)
	sum, tau := 0., 0.
	for i, v := range u {
		sum += v
		if t := (sum - r) / float64(i+1); v > t {
			tau = t
		}
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = max(v-tau, 0)
	}
	return out
}

func sortedL1(x []float64, r float64) []float64 {
	size, sum := make([]float64, len(x)), 0.
	for i, v := range x {
		size[i] = math.Abs(v)
		sum += size[i]
	}
	if sum <= r {
		return x
	}
	out := sorted(size, r)
	for i, v := range x {
		out[i] = math.Copysign(out[i], v)
	}
	return out
}

// project lets a rule change a vector in a step of zeros.
func project(t *testing.T, r Rule, dt tensor.Dtype, x []float64) []float64 {
	w := value(dt, []int{len(x)}, x)
	require.NoError(t, New(r).Step([]G.ValueGrad{&pair{"w", w, value(dt, []int{len(x)}, make([]float64, len(x)))}}))
	return floats(w)
}

// The projections find by iteration what sorting finds.
func TestProjections(t *testing.T) {
	chain := make([]float64, 60) // Newton from the mean would drop one element in each iteration
	steep := make([]float64, 50)
	for i := range chain {
		chain[i] = -math.Pow(1.3, float64(i))
	}
	for i := range steep {
		steep[i] = -1 + math.Pow(2, -float64(i))
	}
	for name, x := range map[string][]float64{
		"one":    {-3},
		"equal":  {2, 2, 2, 2},
		"inside": {.25, .25, .5, 0},
		"far":    {1e6, 1e6 + .25, 1e6 - .5, -1e6},
		"small":  {1e-9, -1e-9, 3e-9},
		"random": random(tensor.Float64, 1, 1000).Float64s(),
		"many":   random(tensor.Float64, 2, 20000).Float64s(),
		"chain":  chain,
		"steep":  steep,
		"growing": slices.Collect(func(yield func(float64) bool) {
			for i := range 3000 {
				if !yield(float64(i) * 1e-3) {
					return
				}
			}
		}),
	} {
		for _, radius := range []float64{1e-3, 1, 7.5} {
			for _, c := range []struct {
				rule Rule
				want func([]float64, float64) []float64
			}{{NewSimplex(radius), sorted}, {NewL1Ball(radius), sortedL1}} {
				want, got := c.want(x, radius), project(t, c.rule, tensor.Float64, x)
				size := 0.
				for i := range want {
					require.InDelta(t, want[i], got[i], 1e-10*max(1, math.Abs(x[i])), "%s, radius %v, element %d", name, radius, i)
					size += math.Abs(got[i])
				}
				require.LessOrEqual(t, size, radius*(1+1e-12), "%s, radius %v", name, radius)
				if name == "far" {
					continue // not exact in float32
				}
				size = 0
				for i, v := range project(t, c.rule, tensor.Float32, x) {
					require.InDelta(t, want[i], v, 1e-5*max(1, math.Abs(x[i])), "%s, radius %v, element %d, float32", name, radius, i)
					size += math.Abs(v)
				}
				require.LessOrEqual(t, size, radius*(1+1e-5), "%s, radius %v, float32", name, radius)
			}
		}
	}
	for _, r := range []Rule{NewSimplex(1), NewL1Ball(1)} {
		for _, v := range project(t, r, tensor.Float64, []float64{1, math.NaN(), 3}) {
			require.True(t, math.IsNaN(v))
		}
	}
}
