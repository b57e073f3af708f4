package updater_test

import (
	"fmt"
	"log"

	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/updater"
)

// train is what the README shows.
func train(cost, w, b, x, seen *gorgonia.Node, batches []map[string]any) error {
	algorithm, err := updater.NewGradientDescent(updater.Descent{
		Cost: cost, Parameters: gorgonia.Nodes{w, b}, // or Gradients, made by hand
		StepRule: solvers.Chain(solvers.NewStepClipping(10), solvers.NewAdam()),
		Updates:  []graphops.Update{{Target: seen, Value: graphops.Of(seen).Add(graphops.Of(x).Sum())}}, // any state ← any expression
	})
	if err != nil {
		return err
	}
	if err := algorithm.Observe(cost, algorithm.TotalGradientNorm()); err != nil { // any nodes
		return err
	}
	if err := algorithm.Initialize(); err != nil { // compiles; inputs without a value are the sources of the batches
		return err
	}
	for _, batch := range batches { // map[string]any{"x": []float64{1, 2}, "y": 3}
		if err := algorithm.ProcessBatch(batch); err != nil {
			return err // and nothing has changed
		}
		loss, err := algorithm.Observed("cost") // of before the step
		if err != nil {
			return err
		}
		fmt.Printf("cost %.4f\n", loss.Data())
	}
	fmt.Println("seen", seen.Value(), "inputs", algorithm.Inputs())
	return nil
}

func ExampleGradientDescent() {
	g := gorgonia.NewGraph()
	w, b := vector(g, "w", 1, -1), gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("b"), gorgonia.WithValue(0.0))
	seen := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("seen"), gorgonia.WithValue(0.0))
	x := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(2), gorgonia.WithName("x"))
	y := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("y"))
	sum := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(w, x))))
	cost := gorgonia.Must(gorgonia.Square(gorgonia.Must(gorgonia.Sub(gorgonia.Must(gorgonia.Add(sum, b)), y))))
	gorgonia.WithName("cost")(cost)
	batches := []map[string]any{{"x": []float64{1, 2}, "y": 3}, {"x": []float64{3, 1}, "y": 4}}
	if err := train(cost, w, b, x, seen, batches); err != nil {
		log.Fatal(err)
	}
	// Output:
	// cost 16.0000
	// cost 3.9800
	// seen 7 inputs [x, y]
}
