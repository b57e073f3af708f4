package schedule

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDraw(t *testing.T) {
	size := func(w, h int) func(*Drawing) { return func(d *Drawing) { d.Width, d.Height = w, h } }
	for _, c := range []struct {
		s     Schedule
		steps int
		size  func(*Drawing)
		want  []string
	}{
		{NewConstant(2), 3, size(9, 2), []string{"         2 |", "         2 |***", "           +---", "            0 2"}},
		{NewConstant(-2), 2, size(2, 2), []string{"        -2 |", "        -2 |**", "           +--", "            0 1"}},
		{NewLinear(0, -1, 4), 5, size(9, 3), []string{
			"         0 |*", "           | **", "        -1 |   **", "           +-----", "            0   4"}},
		{NewLinear(0, 1, 1000), 1001, size(3, 3), []string{
			"         1 |  *", "           | *", "         0 |*", "           +---", "            0 1000"}},
		{NewPiecewiseConstantDecay([]float64{0}, []float64{-1.5e308, 1.5e308}), 2, size(2, 2), []string{
			"  1.5e+308 | *", " -1.5e+308 |*", "           +--", "            0 1"}},
	} {
		var b strings.Builder
		require.NoError(t, Draw(&b, c.s, c.steps, c.size))
		require.Equal(t, strings.Join(c.want, "\n")+"\n", b.String())
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("it is closed") }

func TestDrawRefuses(t *testing.T) {
	var b strings.Builder
	require.ErrorContains(t, Draw(&b, NewConstant(1), 1), "there are 1 steps")
	require.ErrorContains(t, Draw(&b, NewConstant(1), -4), "there are -4 steps")
	require.ErrorContains(t, Draw(&b, nil, 4), "nil")
	require.ErrorContains(t, Draw(&b, NewConstant(math.NaN()), 4), "NaN")
	require.ErrorContains(t, Draw(&b, NewConstant(1), 4, func(d *Drawing) { d.Width = 1 }), "1 by 10")
	require.ErrorContains(t, Draw(&b, NewConstant(1), 4, func(d *Drawing) { d.Height = 1 << 40 }), "60 by")
	require.ErrorContains(t, Draw(&b, Func(func(s Expr) Expr { return one.Div(s) }), 4), "schedule.Func is +Inf at step 0")
	require.Empty(t, b.String())
	require.ErrorContains(t, Draw(closed{}, NewConstant(1), 4), "it is closed")
}
