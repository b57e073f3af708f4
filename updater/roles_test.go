package updater

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
)

func TestRoles(t *testing.T) {
	g := G.NewGraph()
	var r Roles
	w, b, x := state(g, "w", G.Float64, nil, 0), state(g, "b", G.Float64, nil, 0), sourceNode(g, "x", G.Float64)
	require.False(t, r.Has(w, RoleParameter))
	r.Add(w, RoleParameter)
	r.Add(w, RoleWeight)
	require.Equal(t, []Role{RoleWeight}, r.Of(w))
	r.Add(w, RoleParameter)
	r.Add(w, RoleWeight)
	require.Equal(t, []Role{RoleWeight}, r.Of(w))
	r.Add(w, RoleOutput)
	require.Equal(t, []Role{RoleWeight, RoleOutput}, r.Of(w))
	require.True(t, r.Has(w, RolePersistent))
	require.True(t, r.Has(w, RoleBias, RoleParameter))
	require.False(t, r.Has(w, RoleFilter))
	require.False(t, r.HasAll(w, RoleBias, RoleParameter))
	require.True(t, r.HasAll(w, RoleOutput, RoleParameter))
	require.False(t, r.Has(w))
	require.True(t, r.HasAll(w))
	r.Add(b, RoleBatchNormShift)
	r.Add(x, RoleInput)
	require.Equal(t, G.Nodes{b, w}, r.Filter(G.Nodes{x, b, w}, RoleParameter))
	require.Equal(t, G.Nodes{b}, r.Filter(G.Nodes{x, b, w}, RoleBias))
	require.Equal(t, "ALGORITHM_BUFFER", RoleBuffer.String())
	require.Equal(t, "INPUT", RoleInput.String())
	require.False(t, Role("PARAMETERS").Is("PARAMETER"))
	own := RoleWeight + "/EMBEDDING"
	require.True(t, own.Is(RoleParameter))
	text, err := json.Marshal(RoleWeight)
	require.NoError(t, err)
	var again Role
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, RoleWeight, again)
}

// oneExample is (Σ x·w − y)² of single examples, from w = 0, with the rate 0.001.
func oneExample(t *testing.T, dt tensor.Dtype) (a *GradientDescent, w *G.Node) {
	t.Helper()
	g := G.NewGraph()
	x, y := sourceNode(g, "features", dt, 2), sourceNode(g, "targets", dt)
	w = state(g, "w", dt, []int{2}, 0, 0)
	cost := G.Must(G.Square(G.Must(G.Sub(G.Must(G.Sum(G.Must(G.HadamardProd(x, w)))), y))))
	return descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: scale(.001)}), w
}

// M1 and M2.
func TestModifier(t *testing.T) {
	for _, dt := range bothTypes {
		for name, c := range map[string]struct {
			make func(s *solvers.Solver) (*Modifier, error)
			rate float64
			want [][]float64
		}{
			"of the iteration": {func(s *solvers.Solver) (*Modifier, error) {
				return NewModifier(s, "learning_rate", func(n int) float64 { return 10 / float64(n) })
			}, 10. / 3, [][]float64{{.002, .004}, {58.682, 78.244}, {-38035.018, -45634.196}}},
			"of the old value": {func(s *solvers.Solver) (*Modifier, error) {
				return NewModifier(s, "scale/learning_rate", func(_ int, old float64) float64 { return .2 * old })
			}, 8e-6, [][]float64{{.002, .004}, {.0031736, .0055648}, {.00355389728, .006021156736}}},
		} {
			a, w := oneExample(t, dt)
			m, err := c.make(a.Solver())
			require.NoError(t, err)
			for i, x := range [][]int{{1, 2}, {3, 4}, {5, 6}} {
				require.NoError(t, a.ProcessBatch(map[string]any{"features": x, "targets": x[1] - x[0]}))
				require.NoError(t, m.Apply(i+1))
				closeTo(t, c.want[i], numbers(w.Value()), tolerance(dt, 1e-10), name, i)
			}
			require.InEpsilon(t, c.rate, must(a.Solver().Get("learning_rate")), 1e-12)
		}
	}
	a, _ := oneExample(t, G.Float64)
	_, err := NewModifier(a.Solver(), "momentum", func(int) float64 { return 1 })
	require.ErrorContains(t, err, `no hyperparameter is called "momentum"`)
	var none func(int) float64
	_, err = NewModifier(a.Solver(), "learning_rate", none)
	require.ErrorContains(t, err, "nil")
	for _, f := range []func(int) float64{func(int) float64 { return math.NaN() }, func(int) float64 { panic("oh") }} {
		m, err := NewModifier(a.Solver(), "learning_rate", f)
		require.NoError(t, err)
		require.ErrorContains(t, m.Apply(7), "at iteration 7")
		require.Equal(t, .001, must(a.Solver().Get("learning_rate")))
	}
}
