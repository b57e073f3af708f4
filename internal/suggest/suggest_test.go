package suggest

import (
	"slices"
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
	require.Equal(t, ` (did you mean "gorgonia/vanilla"?)`, For("vanila", []string{"adam", "gorgonia/vanilla"}))
	require.Equal(t, ` (did you mean "torch/adam"?)`, For("tocrh/adam", []string{"adam", "torch/adam"}))
	require.Contains(t, For("xyzzy", slices.Repeat([]string{"momentum"}, most+5)), "momentum and 5 more)")
	require.Empty(t, For("x", nil))
	require.Equal(t, 3, distance("kitten", "sitting"))
}
