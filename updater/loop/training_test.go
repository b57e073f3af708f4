package loop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
	"optimop/updater"
)

// A training with dropout that is interrupted in the middle of epochs, by a request, an error and the end of a context, has
// the same weights and monitored values, bit for bit, as one that is not.
func TestInterruptedTrainingIsTheSame(t *testing.T) {
	ways(t, func(t *testing.T, dt tensor.Dtype, way string) {
		data := func(epoch int) Batches {
			e := float64(epoch)
			return rows(dt, 2, [2]float64{1, e}, [2]float64{3, 4}, [2]float64{e, 0}, [2]float64{.5, 2}, [2]float64{1, 1}, [2]float64{0, -e})
		}
		var ends [2][]float64
		var logs [2]*Log
		for i := range 2 {
			a, _, cost, _, weights := newDropped(dt, way)
			l := &Loop{Algorithm: a, Data: data, Callbacks: []Callback{
				MonitorTraining([]Quantity{Mean(cost)}, Names{}),
				MonitorTraining([]Quantity{Last(cost)}, Names{Suffix: "now"}, AfterBatch),
				FinishAfter(AfterEpochs(4)),
			}}
			if i == 1 {
				ctx, cancel := context.WithCancel(context.Background())
				failed := false
				l.Callbacks = append(l.Callbacks,
					FinishAfter(AfterBatches(2)),
					Do(func(Event) error { cancel(); return nil }, AfterBatches(5)),
					Do(func(Event) error {
						if failed {
							return nil
						}
						failed = true
						return oddError{}
					}, AfterBatches(7)))
				require.NoError(t, l.Run(ctx))
				require.ErrorIs(t, l.Run(ctx), context.Canceled)
				require.ErrorIs(t, l.Run(context.Background()), oddError{})
				require.Equal(t, 7, l.Log.Status.IterationsDone)
			}
			run(t, l)
			for _, w := range weights {
				ends[i] = append(ends[i], floats(t, w.Value())...)
			}
			logs[i] = l.Log
		}
		require.Equal(t, ends[0], ends[1])
		require.Equal(t, values(logs[0], "cost_now"), values(logs[1], "cost_now"))
		require.Equal(t, values(logs[0], "cost"), values(logs[1], "cost"))
		require.Len(t, values(logs[0], "cost"), 4)
	})
}

// Batches of several sizes, trained and monitored: the mean over an epoch counts each row once.
func TestShortLastBatch(t *testing.T) {
	for _, dt := range dtypes {
		weights := dense(dt, []int{2}, 1, -1)
		model := func(shapes map[string]tensor.Shape) (w, x, cost *G.Node) {
			g := G.NewGraph()
			w = G.NewVector(g, dt, G.WithShape(2), G.WithName("w"), G.WithValue(weights))
			x = G.NewMatrix(g, dt, G.WithShape(shapes["x"]...), G.WithName("x"))
			return w, x, named("cost", G.Must(G.Mean(G.Must(G.Square(G.Must(G.Mul(x, w)))))))
		}
		a := must(updater.NewBatched(func(shapes map[string]tensor.Shape) (updater.Descent, error) {
			w, _, cost := model(shapes)
			return updater.Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = 0 })}, nil
		}))
		e := NewShapedEvaluator(func(shapes map[string]tensor.Shape) (Model, error) {
			_, x, cost := model(shapes)
			return Model{G.Nodes{x}, []Quantity{Mean(cost)}}, nil
		})
		_, _, cost := model(map[string]tensor.Shape{"x": {1, 2}})
		data := func() Batches { return rows(dt, 2, [2]float64{1, 0}, [2]float64{3, 1}, [2]float64{9, 2}) }
		l := &Loop{Algorithm: a, Data: func(int) Batches { return data() }, Callbacks: []Callback{
			MonitorTraining([]Quantity{Mean(cost), Mean(G.NewVector(cost.Graph(), dt, G.WithShape(2), G.WithName("w")))}, Names{}),
			MonitorData(e, data, Names{Prefix: "valid"}),
			FinishAfter(AfterEpoch),
		}}
		run(t, l)
		want := (1. + 4 + 49) / 3
		require.Equal(t, want, l.Log.Current()["cost"])
		require.Equal(t, []any{want, want}, values(l.Log, "valid_cost"))
		require.Equal(t, []float64{1, -1}, floats(t, l.Log.Current()["w"]))
	}
}

// The nodes that an evaluator adds to a graph are in nobody's way: gradients can be taken, and the whole graph be run.
func TestEvaluatorOnAGraphOfGorgonia(t *testing.T) {
	for _, dt := range dtypes {
		g := G.NewGraph()
		w := G.NewScalar(g, dt, G.WithName("w"), G.WithValue(goNumber(dt, 3)))
		x := G.NewScalar(g, dt, G.WithName("x"), G.WithValue(goNumber(dt, 5)))
		square := named("square", G.Must(G.Square(w)))
		cost := named("cost", G.Must(G.Mul(x, square)))
		e := must(NewEvaluator(Model{G.Nodes{x}, []Quantity{Mean(cost), Last(square)}}))
		grad := must(G.Grad(cost, w))[0]
		vm := G.NewTapeMachine(g, G.BindDualValues(w))
		for range 2 {
			require.Equal(t, Row{"cost": 18., "square": 9.}, must(e.Evaluate(context.Background(), Slice(map[string]any{"x": 2}))))
			require.NoError(t, vm.RunAll())
			require.Equal(t, []float64{30}, floats(t, grad.Value()))
			require.Equal(t, []float64{45}, floats(t, cost.Value()))
			vm.Reset()
		}
		require.NoError(t, vm.Close())
		require.NoError(t, e.Close())
	}
}
