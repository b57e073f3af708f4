package loop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/updater"
)

// An updater as an algorithm, with a monitor of the cost and of a parameter, both from before the update.
func TestUpdaterAsAlgorithm(t *testing.T) {
	for _, dt := range dtypes {
		g := G.NewGraph()
		w := G.NewScalar(g, dt, G.WithName("w"), G.WithValue(goNumber(dt, 8)))
		x := G.NewScalar(g, dt, G.WithName("x"))
		cost := named("cost", G.Must(G.Mul(x, G.Must(G.Square(w)))))
		u := must(updater.New(cost, G.Nodes{w}, updater.Config{Optimizer: map[string]any{"class": "sgd"}, LearningRate: new(.25)}))
		steps := must(NewSteps(G.Nodes{x}, u.NewMachine))
		l := &Loop{Algorithm: steps, Data: func(int) Batches { return Slice(map[string]any{"x": 1, "other": "ignored"}, map[string]any{"x": 2.}) },
			Callbacks: []Callback{
				MonitorTraining([]Quantity{Last(cost), Last(w), Last(x)}, Names{}, AfterBatch),
				Modify(must(updater.NewModifier(u.Solver(), "learning_rate", func(_ int, old float64) float64 { return old / 2 }))),
				FinishAfter(AfterEpochs(1)),
			}}
		run(t, l)
		require.Equal(t, []any{64., 32.}, values(l.Log, "cost"))
		require.Equal(t, []any{8., 4.}, values(l.Log, "w"))
		require.Equal(t, []any{1., 2.}, values(l.Log, "x"))
		require.Equal(t, []float64{2}, floats(t, w.Value()))
		require.Equal(t, 2, must(u.GlobalStep()))
		require.NoError(t, steps.Initialize(), "again")
		_, err := steps.Observed("cost")
		require.Error(t, err)
		require.NoError(t, steps.ProcessBatch(map[string]any{"x": 0}))
		require.Equal(t, []float64{0}, floats(t, must(steps.Observed("cost"))))
	}
}

// A batch that fails changes nothing and shows nothing.
func TestStepsErrors(t *testing.T) {
	m := newLinear(t, tensor.Float32, bySteps, .5)
	lonely := G.NewScalar(m.w.Graph(), tensor.Float32, G.WithName("lonely"))
	require.ErrorContains(t, m.ProcessBatch(map[string]any{}), "not initialized")
	require.NoError(t, m.Observe(m.cost, m.cost, m.w))
	require.NoError(t, m.Initialize())
	good := map[string]any{"features": []float32{1, 2}, "targets": 3}
	for err, batch := range map[string]map[string]any{
		`not all data sources are there: the batch has ["features"]; the inputs are ["features" "targets"]`: {"features": []float32{1, 2}},
		`source "features": the data have shape (3), the input has (2)`:                                     {"features": []float32{1, 2, 3}, "targets": 1},
		`source "features": float64 data for a float32 input`:                                               {"features": []float64{1, 2}, "targets": 1},
		`source "features": a float64 tensor for a float32 input`:                                           {"features": dense(tensor.Float64, []int{2}, 1, 2), "targets": 1},
		`source "targets": 1 of type string`:                                                                {"features": []float32{1, 2}, "targets": "1"},
		`source "targets": the data have shape (1), the input has ()`:                                       {"features": []float32{1, 2}, "targets": []int{1}},
	} {
		require.ErrorContains(t, m.ProcessBatch(batch), err)
		require.Equal(t, []float64{0, 0}, floats(t, m.w.Value()))
		_, err := m.Observed("cost")
		require.Error(t, err)
	}
	require.NoError(t, m.ProcessBatch(good))
	require.Equal(t, []float64{3, 6}, floats(t, m.w.Value()))
	require.Equal(t, []float64{9}, floats(t, must(m.Observed("cost"))))
	require.Equal(t, []float64{0, 0}, floats(t, must(m.Observed("W"))))

	require.NoError(t, m.Observe(lonely))
	require.NoError(t, m.Initialize())
	require.ErrorContains(t, m.ProcessBatch(good), `observing "lonely": it has no value`)
	require.Equal(t, []float64{3, 6}, floats(t, m.w.Value()))

	_, err := NewSteps(nil, nil)
	require.Error(t, err)
	_, err = NewSteps(G.Nodes{m.cost}, func(...*G.Node) (G.VM, error) { return nil, nil })
	require.ErrorContains(t, err, "cannot be an input")
	odd := must(NewSteps(nil, func(...*G.Node) (G.VM, error) { panic("oh") }))
	require.EqualError(t, odd.Initialize(), "panic: oh")
	broken := must(NewSteps(nil, func(...*G.Node) (G.VM, error) { return nil, oddError{} }))
	require.ErrorIs(t, (&Loop{Algorithm: broken, Data: ten}).Run(context.Background()), oddError{})
}
