package textplot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		values []float64
		height int
		axis   Axis
		want   []string
	}{
		{[]float64{1, 0, 1}, 2, Axis{"a", "b", 1}, []string{"         1 |* *", "         0 | *", "           +-^-", "            a b"}},
		{[]float64{3, 3}, 3, Axis{"0.1", "10", -1}, []string{"         3 |", "           |", "         3 |**", "           +--", "            0.1 10"}},
		{[]float64{0, 5e-324}, 2, Axis{"0", "1", -1}, []string{"4.941e-324 | *", "         0 |*", "           +--", "            0 1"}},
	} {
		require.Equal(t, strings.Join(c.want, "\n")+"\n", Text(c.values, c.height, c.axis))
	}
}

func TestColumns(t *testing.T) {
	require.Equal(t, []int{0, 1, 2}, Columns(3, 60))
	require.Equal(t, []int{0, 50, 100}, Columns(101, 3))
	require.NoError(t, CheckSize(2, 1000))
	require.ErrorContains(t, CheckSize(1, 10), "1 by 10")
	require.ErrorContains(t, CheckSize(10, 1001), "10 by 1001")
}
