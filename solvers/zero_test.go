package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

func d64(x ...float64) *tensor.Dense { return tensor.New(tensor.WithBacking(x)) }

// A gradient that is the memory of something that must stay, whatever the rule does with it, is not set to zero.
func TestGradientsThatAreSomethingElseAreKept(t *testing.T) {
	first := RuleFunc(func(_ *Builder, in []Step) ([]Step, error) { return in[:1], nil })
	t.Run("parameter without an update", func(t *testing.T) {
		for _, shared := range []bool{false, true} { // also where gradients share memory with each other
			a, b, other := d64(1, 2), d64(5, 6), d64(9, 9)
			model := []G.ValueGrad{&pair{"a", a, b}, &pair{"b", b, other}}
			if shared {
				model = append(model, &pair{"c", d64(1, 1), other})
			}
			require.NoError(t, New(first).Step(model))
			require.Equal(t, []float64{-4, -4}, a.Float64s())
			require.Equal(t, []float64{5, 6}, b.Float64s())
			require.Equal(t, []float64{0, 0}, other.Float64s())
		}
	})
	t.Run("parameter without a gradient", func(t *testing.T) {
		a, b := d64(1, 2), d64(5, 6)
		require.NoError(t, New(NewScale(func(s *Scale) { s.LearningRate = 1 }), SkipMissing()).Step([]G.ValueGrad{&pair{"a", a, b}, &pair{"b", b, nil}}))
		require.Equal(t, []float64{-4, -4}, a.Float64s())
		require.Equal(t, []float64{5, 6}, b.Float64s())
	})
	t.Run("slot", func(t *testing.T) {
		s, w := NewMomentum(), d64(1, 2)
		require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w, d64(1, 1)}}))
		slot, err := s.Store().Lookup("w/momentum/momentum").Value()
		require.NoError(t, err)
		require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w, slot}}))
		require.Equal(t, []float64{1.9, 1.9}, slot.(*tensor.Dense).Float64s())
	})
	t.Run("bound hyperparameter", func(t *testing.T) {
		g := G.NewGraph()
		rate := G.NewScalar(g, G.Float64, G.WithName("rate"), G.WithValue(0.5))
		s := NewSGD()
		require.NoError(t, s.Bind("learning_rate", rate))
		w := G.NewF64(1)
		require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w, rate.Value()}}))
		require.Equal(t, 0.75, float64(*w))
		require.Equal(t, 0.5, rate.Value().Data())
	})
}

// A gradient that cannot be set to zero is found before anything is written, also if the rule does not read it.
func TestUnreadGradientIsCheckedFirst(t *testing.T) {
	half := RuleFunc(func(_ *Builder, in []Step) ([]Step, error) {
		for i := range in {
			in[i].Delta = in[i].Value.Mul(graphops.Const(.5))
		}
		return in, nil
	})
	g, a, b := d64(1, 2), d64(1, 2), d64(4, 5)
	s := New(half)
	require.NoError(t, s.Step([]G.ValueGrad{&pair{"a", a, g}, &pair{"b", b, g}}))
	masked := d64(1, 2)
	masked.ResetMask(true)
	require.ErrorContains(t, s.Step([]G.ValueGrad{&pair{"a", a, g}, &pair{"b", b, masked}}), "masked")
	require.Equal(t, []float64{.5, 1}, a.Float64s())
	require.Equal(t, []float64{2, 2.5}, b.Float64s())
}
