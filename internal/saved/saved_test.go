package saved

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func TestCopy(t *testing.T) {
	matrix := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6}))
	require.NoError(t, matrix.T())
	for _, c := range []struct {
		v    gorgonia.Value
		data any
	}{
		{matrix, []float32{1, 4, 2, 5, 3, 6}},
		{gorgonia.NewF64(2), []float64{2}},
		{gorgonia.NewF32(2), []float32{2}},
		{gorgonia.NewI64(2), []int64{2}},
	} {
		s, err := FromValue("x", c.v)
		require.NoError(t, err)
		require.Equal(t, c.data, s.Data)
		back, err := Copy(c.v)
		require.NoError(t, err)
		require.Equal(t, c.v.Shape(), back.Shape())
		again, err := FromValue("x", back)
		require.NoError(t, err)
		require.Equal(t, s, again)
	}
	_, err := Copy(gorgonia.NewB(true))
	require.ErrorContains(t, err, "the value: it is bool")
	_, err = FromValue("x", tensor.New(tensor.WithShape(2), tensor.WithBacking([]int{1, 2})))
	require.ErrorContains(t, err, "x: it is int")
}
