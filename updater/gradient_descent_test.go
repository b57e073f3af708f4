package updater

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// square is W = [[1,2],[3,4]] with its cost ΣW².
func square(dt tensor.Dtype) (w, cost *G.Node) {
	w = state(G.NewGraph(), "W", dt, []int{2, 2}, 1, 2, 3, 4)
	cost = G.Must(G.Sum(G.Must(G.Square(w))))
	G.WithName("cost")(cost)
	return w, cost
}

// descent makes the algorithm and initializes it.
func descent(t *testing.T, d Descent) *GradientDescent {
	t.Helper()
	a, err := NewGradientDescent(d)
	require.NoError(t, err)
	require.NoError(t, a.Initialize())
	return a
}

var moved = []float64{-.5, -1, -1.5, -2} // the first step from W at the rate 0.75

// A4, A15, A16, and the norms.
func TestGradientDescent(t *testing.T) {
	for _, dt := range bothTypes {
		w, cost := square(dt)
		a, err := NewGradientDescent(Descent{Cost: cost, Parameters: G.Nodes{w}, AlgorithmOptions: AlgorithmOptions{Profile: true}})
		require.NoError(t, err)
		require.NoError(t, a.Solver().Set("learning_rate", .75))
		require.NoError(t, a.Observe(cost, a.TotalGradientNorm(), a.TotalStepNorm(), w))
		require.NoError(t, a.Initialize())
		require.ErrorContains(t, a.ProcessBatch(map[string]any{"example_id": "test"}), "example_id")
		require.Equal(t, []float64{1, 2, 3, 4}, numbers(w.Value()))
		require.NoError(t, a.ProcessBatch(nil))
		require.Equal(t, moved, numbers(w.Value()))
		for name, want := range map[string]float64{"cost": 30, "total_gradient_norm": 10.954451150103322, "total_step_norm": 8.215838362577491} {
			v, err := a.Observed(name)
			require.NoError(t, err)
			require.InDelta(t, want, numbers(v)[0], 1e-12)
		}
		require.Equal(t, []float64{1, 2, 3, 4}, numbers(must(a.Observed("W"))))
		rows := a.Profile()
		require.NotEmpty(t, rows)
		for _, r := range rows {
			require.Equal(t, 1, r.Calls, r.Op)
		}
	}
}
