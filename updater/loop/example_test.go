package loop_test

import (
	"context"
	"fmt"
	"os"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
	"optimop/updater"
	"optimop/updater/loop"
)

// fit is a linear model for batches of so many rows, over weights that all its graphs share: the mean of (x·w − y)².
func fit(weights *tensor.Dense, rows int) (w *gorgonia.Node, inputs gorgonia.Nodes, cost *gorgonia.Node) {
	g := gorgonia.NewGraph()
	w = gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(2), gorgonia.WithName("w"), gorgonia.WithValue(weights))
	x := gorgonia.NewMatrix(g, gorgonia.Float64, gorgonia.WithShape(rows, 2), gorgonia.WithName("x"))
	y := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(rows), gorgonia.WithName("y"))
	errors := gorgonia.Must(gorgonia.Sub(gorgonia.Must(gorgonia.Mul(x, w)), y))
	cost = gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.Square(errors))))
	gorgonia.WithName("cost")(cost)
	return w, gorgonia.Nodes{x, y}, cost
}

// A training that is monitored, is evaluated after every epoch on other data, whose last batch is short, and ends when
// that no longer helps, with the best weights.
func Example() {
	weights := tensor.New(tensor.WithBacking([]float64{0, 0}))
	w, _, cost := fit(weights, 2)
	algorithm, err := updater.NewGradientDescent(updater.Descent{
		Cost: cost, Parameters: gorgonia.Nodes{w},
		StepRule: solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = 0.25 }),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	evaluator := loop.NewShapedEvaluator(func(shapes map[string]tensor.Shape) (loop.Model, error) {
		_, inputs, cost := fit(weights, shapes["x"][0])
		return loop.Model{Inputs: inputs, Quantities: []loop.Quantity{loop.Mean(cost)}}, nil
	})
	train := func(epoch int) loop.Batches {
		return loop.Slice(
			map[string]any{"x": [][]float64{{1, 0}, {0, 1}}, "y": []float64{1, 2.5}},
			map[string]any{"x": [][]float64{{1, 1}, {1, -1}}, "y": []float64{3.5, -1}},
		)
	}
	valid := func() loop.Batches {
		return loop.Slice(
			map[string]any{"x": [][]float64{{1, 2}, {2, 1}}, "y": []float64{5, 4}},
			map[string]any{"x": [][]float64{{0, 3}}, "y": []float64{6.5}},
		)
	}
	var best []float64
	save := func(loop.Event) error {
		best = append([]float64{}, weights.Float64s()...)
		return nil
	}
	l := &loop.Loop{
		Algorithm: algorithm,
		Data:      train,
		Callbacks: []loop.Callback{
			loop.MonitorTraining([]loop.Quantity{loop.Mean(cost)}, loop.Names{Prefix: "train"}),
			loop.MonitorData(evaluator, valid, loop.Names{Prefix: "valid"}),
			loop.EarlyStopping(loop.Best{Record: "valid_cost", Notification: "best", Save: save}, loop.Patience{Epochs: 2, Record: "patience"}),
			loop.Print(os.Stdout, loop.BeforeFirstEpoch{}, loop.AfterEpoch),
			loop.FinishAfter(loop.AfterEpochs(100)),
		},
	}
	if err := l.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("best weights: %.4f\n", best)
	// Output:
	// epoch 0, iteration 0: valid_cost 27.75
	// epoch 1, iteration 2: best true, patience 2, train_cost 3.63281, valid_cost 2.60156
	// epoch 2, iteration 4: best true, patience 2, train_cost 0.543091, valid_cost 0.109009
	// epoch 3, iteration 6: patience 1, train_cost 0.10457, valid_cost 0.149973
	// epoch 4, iteration 8: patience 0, train_cost 0.0413928, training_finish_requested true, valid_cost 0.302538
	// best weights: [1.0312 1.9766]
}
