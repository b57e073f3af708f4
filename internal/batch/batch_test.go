package batch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Shapes of what has one, and the names of the types of the rest.
func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		data any
		want string
	}{
		"tensor":     {tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(2, 3)), "(2, 3)"},
		"scalar":     {gorgonia.NewF64(1), "()"},
		"number":     {3, "()"},
		"slices":     {[][]int{{1, 2}, {3, 4}, {5, 6}}, "(3, 2)"},
		"ragged":     {[][]int{{1, 2}, {3}}, "[][]int"},
		"text":       {"abc", "string"},
		"nil":        {nil, "<nil>"},
		"nil tensor": {(*tensor.Dense)(nil), "*tensor.Dense"},
	} {
		t.Run(name, func(t *testing.T) {
			b := map[string]any{"x": test.data, "a": 1}
			require.Equal(t, "a (), x "+test.want, Describe(b))
			_, ok := Shapes(b)["x"]
			require.Equal(t, test.want[0] == '(', ok)
		})
	}
}

// A function that panics, as gorgonia.Must does, fails.
func TestBuild(t *testing.T) {
	_, err := Build(func(map[string]tensor.Shape) (int, error) { panic("no matrix") }, nil)
	require.EqualError(t, err, "the function panicked: no matrix")
	n, err := Build(func(s map[string]tensor.Shape) (int, error) { return len(s), nil }, map[string]tensor.Shape{"x": {2}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// Inputs without elements are refused, as Gorgonia's machines panic on them, where nobody can recover.
func TestNewSourceRefuses(t *testing.T) {
	g := gorgonia.NewGraph()
	rows := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(0, 2), gorgonia.WithName("rows"))
	none := gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(0), gorgonia.WithName("none"))
	for _, n := range []*gorgonia.Node{rows, none} {
		_, err := NewSource(n)
		require.ErrorContains(t, err, "no elements")
	}
	_, err := NewSource(gorgonia.NewScalar(g, tensor.Float64, gorgonia.WithName("scalar")))
	require.NoError(t, err)
}
