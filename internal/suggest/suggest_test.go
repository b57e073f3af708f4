package suggest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFor(t *testing.T) {
	known := []string{"adam", "learning_rate", "momentum"}
	for got, want := range map[string]string{
		"adma":           ` (did you mean "adam"?)`,
		"Learning-Rates": ` (did you mean "learning_rate"?)`,
		"xyzzy":          " (known: adam, learning_rate, momentum)",
		"":               " (known: adam, learning_rate, momentum)",
	} {
		require.Equal(t, want, For(got, known), got)
	}
	require.Empty(t, For("x", nil))
	require.Equal(t, 3, distance("kitten", "sitting"))
}
