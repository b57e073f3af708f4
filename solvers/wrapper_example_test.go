package solvers_test

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// Evaluation with the averages of the weights, in the place of the weights.
func ExampleSolver_UseAverages() {
	_, loss, w := quadratic()
	solver := solvers.EMA(solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 0.25 }),
		func(e *solvers.EMAOptions) { e.EMAMomentum = 0.5 })
	eval, err := graphops.NewEvalMachine(loss)
	if err != nil {
		fmt.Println(err)
		return
	}
	op, err := solver.Minimize(loss, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	train, err := graphops.NewMachine(op)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if err := train.RunAll(); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("weights: ", w.Value().Data())
	restore, err := solver.UseAverages(w)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := eval.RunAll(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("averages:", w.Value().Data(), "loss:", loss.Value())
	fmt.Println("training:", train.RunAll() != nil, "that it fails")
	if err := restore(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("weights: ", w.Value().Data())
	// Output:
	// weights:  [0.125 0.25 0.375]
	// averages: [0.25 0.5 0.75] loss: 0.875
	// training: true that it fails
	// weights:  [0.125 0.25 0.375]
}

// Ranger, and what it is made of.
func ExampleNewRanger() {
	parts := solvers.Lookahead(solvers.Chain(
		solvers.NewCentralizeGradients(),
		solvers.NewRAdam(func(r *solvers.RAdam) { r.Beta1, r.Epsilon, r.EpsilonHat = 0.95, 1e-5, true }),
	))
	for _, solver := range []*solvers.Solver{solvers.NewRanger(), parts} {
		_, loss, w := quadratic()
		op, err := solver.Minimize(loss, w)
		if err != nil {
			fmt.Println(err)
			return
		}
		vm, err := graphops.NewMachine(op)
		if err != nil {
			fmt.Println(err)
			return
		}
		for range 12 {
			if err := vm.RunAll(); err != nil {
				fmt.Println(err)
				return
			}
		}
		fmt.Printf("%.5f\n", w.Value().Data())
	}
	// Output:
	// [0.99486 1.98987 2.98488]
	// [0.99486 1.98987 2.98488]
}

// A rule of its own for some parameters, by name.
func ExampleOptimizerMap() {
	g := gorgonia.NewGraph()
	number := func(name string) *gorgonia.Node {
		return gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName(name), gorgonia.WithValue(1.0))
	}
	embedding, w := number("embedding/table"), number("dense/w")
	loss := gorgonia.Must(gorgonia.Add(embedding, w))
	solver := solvers.OptimizerMap(solvers.NewSGD(), solvers.Route{
		Pattern: "embedding/.*",
		Rule:    solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 0.5 }),
	})
	op, err := solver.Minimize(loss, embedding, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(op)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := vm.RunAll(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(embedding.Value(), w.Value())
	// Output: 0.5 0.99
}
