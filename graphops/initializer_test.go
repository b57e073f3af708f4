package graphops

import (
	"math"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestInitializers(t *testing.T) {
	for _, c := range []struct {
		first          Initializer
		low, high      float64
		mean, variance float64
	}{
		{Initializer{}, 0, 0, 0, 0},
		{Initializer{Name: "Zeros", Value: 3}, 0, 0, 0, 0},
		{Initializer{Name: "ones"}, 1, 1, 1, 0},
		{Initializer{Name: "constant", Value: -.5}, -.5, -.5, -.5, 0},
		{Initializer{Name: "RandomUniform", Low: -1, High: 3}, -1, 3, 1, 16. / 12},
		{Initializer{Name: "random_normal", Mean: 2, StandardDeviation: .5}, -1, 5, 2, .25},
		{Initializer{Name: "truncated_normal", Mean: 2, StandardDeviation: .5}, 1, 3, 2, .25 * .8796 * .8796},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			const n = 20001
			s := NewStore()
			st, err := s.Variable("x", "", dt, tensor.Shape{n}, c.first)
			require.NoError(t, err)
			x := valueFloats(must(st.Value()))
			mean, variance := 0., 0.
			for _, v := range x {
				require.True(t, v >= c.low && v <= c.high, v)
				mean += v / n
			}
			for _, v := range x {
				variance += (v - mean) * (v - mean) / n
			}
			require.InDelta(t, c.mean, mean, .03*max(1e-9, math.Sqrt(c.variance)), c.first.Name)
			require.InDelta(t, c.variance, variance, .03*max(1e-9, c.variance), c.first.Name)
			require.NoError(t, st.AssignAdd(must(st.Value())))
			require.NoError(t, s.Reset())
			require.Equal(t, x, valueFloats(must(st.Value())))
			require.Same(t, st, must(s.Variable("x", "", dt, tensor.Shape{n}, Initializer{Name: "ones"})), "made already")
		}
	}
}

// Another seed or name gives other numbers; the dtype only rounds them, and a scalar is the first element.
func TestRandomInitializers(t *testing.T) {
	numbers := func(name string, dt tensor.Dtype, seed float64, shape ...int) []float64 {
		st, err := NewStore().Variable(name, "", dt, shape, Initializer{Name: "normal", StandardDeviation: 1, Seed: seed})
		require.NoError(t, err)
		return valueFloats(must(st.Value()))
	}
	x := numbers("x", tensor.Float64, 1, 3)
	require.Equal(t, x, numbers("x", tensor.Float64, 1, 3))
	require.Equal(t, x[:1], numbers("x", tensor.Float64, 1))
	require.InDeltaSlice(t, x, numbers("x", tensor.Float32, 1, 3), 1e-7)
	require.NotEqual(t, x, numbers("y", tensor.Float64, 1, 3))
	require.NotEqual(t, x, numbers("x", tensor.Float64, 2, 3))
}

func TestBadInitializers(t *testing.T) {
	for want, first := range map[string]Initializer{
		`did you mean "ones"`: {Name: "one"},
		"is not finite":       {Name: "normal", Mean: math.NaN()},
		"is below low":        {Name: "uniform", Low: 1},
		"deviation is -1":     {Name: "normal", StandardDeviation: -1},
	} {
		s := NewStore()
		_, err := s.Variable("x", "", tensor.Float64, tensor.Shape{2}, first)
		require.ErrorContains(t, err, want)
		require.Empty(t, s.States())
	}
}

func TestAssign(t *testing.T) {
	s := NewStore()
	m := must(s.Variable("m", "w", tensor.Float32, tensor.Shape{2}, Initializer{Name: "ones"}))
	v := must(s.Slot("v", "", tensor.Float64, nil, 2))
	c := must(s.Counter("c"))
	rate := .5
	h := must(s.Hyper("lr", &rate, func(v float64) error {
		if v > 1 {
			return errors.New("too much")
		}
		return nil
	}))
	f32 := func(x ...float32) G.Value { return tensor.New(tensor.WithBacking(x)) }
	require.NoError(t, m.AssignAdd(f32(.5, -1)))
	require.NoError(t, m.AssignSub(f32(.25, 1)))
	require.Equal(t, []float64{1.25, -1}, valueFloats(must(m.Value())))
	view := must(tensor.New(tensor.WithBacking([]float32{1, 2, 3, 4}), tensor.WithShape(2, 2)).Slice(nil, tensor.S(1)))
	require.NoError(t, m.Assign(view))
	require.Equal(t, []float64{2, 4}, valueFloats(must(m.Value())))
	require.NoError(t, v.AssignSub(G.NewF64(.5)))
	require.NoError(t, c.AssignAdd(G.NewI64(3)))
	require.NoError(t, c.AssignSub(G.NewI64(1)))
	require.NoError(t, h.AssignAdd(G.NewF64(.25)))
	require.Equal(t, []float64{1.5, 2, .75}, append(append(valueFloats(must(v.Value())), must(ScalarValue(must(c.Value())))), rate))

	for want, err := range map[string]error{
		"shape (2), not float64 of shape ()": m.Assign(G.NewF64(1)),
		"shape (2), not float32 of shape (3": m.AssignAdd(f32(1, 2, 3)),
		`"m": no value`:                      m.Assign(nil),
		`"v": no value`:                      v.AssignSub(nil),
		`"c" cannot be -1`:                   c.AssignSub(G.NewI64(3)),
		"too much":                           h.AssignAdd(G.NewF64(.5)),
	} {
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, []float64{2, 4}, valueFloats(must(m.Value())))
	require.Equal(t, .75, rate)
	require.Equal(t, 2., must(ScalarValue(must(c.Value()))))
}
