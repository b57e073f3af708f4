package convert

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct{ v, want any }{
		{3, 3.0}, {3.0, 3}, {float32(.5), .5}, {int64(-7), -7.0}, {uint8(9), 9}, {1e15, int64(1e15)},
	} {
		got, ok := Number(reflect.ValueOf(c.v), reflect.TypeOf(c.want))
		require.True(t, ok, "%v", c)
		require.Equal(t, c.want, got.Interface())
	}
	for _, c := range []struct{ v, want any }{
		{3.5, 0}, {1e300, 0}, {math.NaN(), 0}, {math.Inf(1), 0}, {1 << 60, int64(0)}, {"3", 0}, {true, 0.0}, {3, ""}, {-1, uint(0)}, {nil, 0}, {1<<53 + 1, 0.0},
	} {
		_, ok := Number(reflect.ValueOf(c.v), reflect.TypeOf(c.want))
		require.False(t, ok, "%v", c)
	}
}
