package updater_test

import (
	"fmt"
	"log"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/updater"
)

// vector is a float64 vector with a value, a parameter.
func vector(g *gorgonia.ExprGraph, name string, x ...float64) *gorgonia.Node {
	return gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(len(x)), gorgonia.WithName(name),
		gorgonia.WithValue(tensor.New(tensor.WithBacking(x))))
}

// A cost, parameters and a step rule; the batches come by name.
func ExampleNewGradientDescent() {
	g := gorgonia.NewGraph()
	w := vector(g, "w", 0, 0)
	x := gorgonia.NewMatrix(g, gorgonia.Float64, gorgonia.WithShape(2, 2), gorgonia.WithName("features")) // no value: a source
	y := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(2), gorgonia.WithName("targets"))
	miss := gorgonia.Must(gorgonia.Sub(gorgonia.Must(gorgonia.Mul(x, w)), y))
	cost := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Square(miss))))
	gorgonia.WithName("cost")(cost)

	algorithm, err := updater.NewGradientDescent(updater.Descent{
		Cost: cost, Parameters: gorgonia.Nodes{w},
		StepRule: solvers.Chain(solvers.NewStepClipping(10), solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = 0.25 })),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := algorithm.Observe(cost, algorithm.TotalGradientNorm()); err != nil {
		log.Fatal(err)
	}
	if err := algorithm.Initialize(); err != nil {
		log.Fatal(err)
	}
	for range 3 {
		batch := map[string]any{"features": [][]int{{1, 0}, {0, 1}}, "targets": []float64{3, 4}}
		if err := algorithm.ProcessBatch(batch); err != nil {
			log.Fatal(err)
		}
		before, _ := algorithm.Observed("cost")
		norm, _ := algorithm.Observed("total_gradient_norm")
		fmt.Println("cost", before, "gradient", norm, "then w", w.Value())
	}
	// Output:
	// cost 25 gradient 10 then w [1.5    2]
	// cost 6.25 gradient 5 then w [2.25     3]
	// cost 1.5625 gradient 2.5 then w [2.625    3.5]
}

// Gradients that no cost has: competitive learning, which moves the winner towards the example.
func ExampleNewGradientDescent_gradients() {
	g := gorgonia.NewGraph()
	near, far := vector(g, "near", 0, 0), vector(g, "far", 10, 10)
	x := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(2), gorgonia.WithName("x"))

	away := func(w *gorgonia.Node) graphops.Expr { return graphops.Of(w).Sub(graphops.Of(x)) }
	wins := away(near).Norm().Less(away(far).Norm())
	algorithm, err := updater.NewGradientDescent(updater.Descent{
		Gradients: []updater.ParameterGradient{
			{Parameter: near, Gradient: wins.Select(away(near), graphops.Const(0))},
			{Parameter: far, Gradient: wins.Select(graphops.Const(0), away(far))},
		},
		StepRule: solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = 0.5 }),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := algorithm.Initialize(); err != nil {
		log.Fatal(err)
	}
	for _, example := range [][]float64{{2, 4}, {8, 6}, {3, 3}} {
		if err := algorithm.ProcessBatch(map[string]any{"x": example}); err != nil {
			log.Fatal(err)
		}
		fmt.Println(near.Value(), far.Value())
	}
	// Output:
	// [1  2] [10  10]
	// [1  2] [9  8]
	// [  2  2.5] [9  8]
}

// The gradient of a hidden value is known from elsewhere, and replaces that of the cost from there on.
func ExampleNewGradientDescent_knownGrads() {
	g := gorgonia.NewGraph()
	w := vector(g, "w", 1, 2)
	hidden := gorgonia.Must(gorgonia.Square(w))
	cost := gorgonia.Must(gorgonia.Sum(hidden)) // its gradient at hidden is 1
	synthetic := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(2), gorgonia.WithName("synthetic"))

	algorithm, err := updater.NewGradientDescent(updater.Descent{
		Cost: cost, Parameters: gorgonia.Nodes{w},
		KnownGrads: []updater.KnownGrad{{Of: hidden, Grad: synthetic}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := algorithm.Initialize(); err != nil {
		log.Fatal(err)
	}
	if err := algorithm.ProcessBatch(map[string]any{"synthetic": []float64{0.25, -0.5}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Value()) // w − 2·w·synthetic
	// Output:
	// [0.5    4]
}

// Running statistics are updates like any other, of what the batch was before its step.
func ExampleUpdatesAlgorithm_AddUpdates() {
	g := gorgonia.NewGraph()
	w, mean := vector(g, "w", 1, 1), vector(g, "mean", 0, 0)
	x := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(2), gorgonia.WithName("x"))
	hidden := gorgonia.Must(gorgonia.HadamardProd(w, x))
	cost := gorgonia.Must(gorgonia.Sum(hidden))

	algorithm, err := updater.NewGradientDescent(updater.Descent{Cost: cost, Parameters: gorgonia.Nodes{w}})
	if err != nil {
		log.Fatal(err)
	}
	old, now := graphops.Of(mean), graphops.Of(hidden)
	algorithm.AddUpdates(graphops.Update{Target: mean, Value: old.Add(now.Sub(old).Mul(graphops.Const(0.5)))})
	if err := algorithm.Initialize(); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if err := algorithm.ProcessBatch(map[string]any{"x": []int{1, 2}}); err != nil {
			log.Fatal(err)
		}
		fmt.Println("mean", mean.Value(), "w", w.Value())
	}
	// Output:
	// mean [0.5    1] w [ 0  -1]
	// mean [0.25  -0.5] w [-1  -3]
}

// Batches of any length: one model for each, over the same parameters.
func ExampleNewBatched() {
	build := func(shapes map[string]tensor.Shape) (updater.Descent, error) {
		g := gorgonia.NewGraph()
		x := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(shapes["x"]...), gorgonia.WithName("x"))
		w := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("w"), gorgonia.WithValue(1.0))
		cost, err := gorgonia.Mean(gorgonia.Must(gorgonia.Mul(x, w)))
		return updater.Descent{Cost: cost, Parameters: gorgonia.Nodes{w}}, err
	}
	algorithm, err := updater.NewBatched(build)
	if err != nil {
		log.Fatal(err)
	}
	if err := algorithm.Initialize(); err != nil {
		log.Fatal(err)
	}
	for _, x := range [][]float64{{1, 2, 3}, {4, 6}, {0, 1, 2}} {
		if err := algorithm.ProcessBatch(map[string]any{"x": x}); err != nil {
			log.Fatal(err)
		}
		fmt.Println(algorithm.Value("w"))
	}
	// Output:
	// -1
	// -6
	// -7
}
