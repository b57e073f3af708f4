package graphops_test

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

func scalar(g *gorgonia.ExprGraph, name string, v float64) *gorgonia.Node {
	return gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName(name), gorgonia.WithValue(v))
}

// All new values are computed from the old ones, then written.
func ExampleCommit() {
	g := gorgonia.NewGraph()
	a, b, steps := scalar(g, "a", 1), scalar(g, "b", 2), scalar(g, "steps", 0)
	op, err := graphops.Commit([]graphops.Update{
		{Target: a, Value: graphops.Of(b)},
		{Target: b, Value: graphops.Of(a)},
		{Target: steps, Value: graphops.Of(steps).Add(graphops.Const(1))},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(op)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
		fmt.Println(a.Value(), b.Value(), steps.Value())
	}
	// Output:
	// 2 1 1
	// 1 2 2
	// 2 1 3
}

// An average that is updated in every second run only, while the counter counts all.
func ExampleWhen() {
	g := gorgonia.NewGraph()
	x, mean, n := scalar(g, "x", 10), scalar(g, "mean", 0), scalar(g, "n", 0)
	half := graphops.ScalarOf(n).Mul(graphops.Const(0.5))
	even := half.Floor().Equal(half)
	op, err := graphops.Commit([]graphops.Update{
		{Target: n, Value: graphops.Of(n).Add(graphops.Const(1))},
		{Target: mean, Value: graphops.Of(mean).Add(graphops.Of(x)).Mul(graphops.Const(0.5))},
	}, graphops.When(even, mean))
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(op)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
		fmt.Print(mean.Value(), " ")
	}
	// Output: 5 5 7.5 7.5
}

// An expression as ordinary nodes, and its derivative.
func ExampleExpand() {
	g := gorgonia.NewGraph()
	x := scalar(g, "x", 3)
	y, err := graphops.Expand(graphops.Of(x).Square().Add(graphops.Of(x).Exp().Log()))
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := graphops.Gradients(y, gorgonia.Nodes{x})
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewEvalMachine(y, d[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := vm.RunAll(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(y.Value(), d[0].Value())
	// Output: 12 7
}

// The mask is new in each training run, and there is none in evaluation.
func ExampleDropout() {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(6), gorgonia.WithName("x"), gorgonia.WithInit(gorgonia.Ones()))
	store := graphops.NewStore()
	gen, err := graphops.NewGenerator(store, "dropout", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	y, err := graphops.Dropout(x, 0.5, gen)
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := gen.Update(g)
	if err != nil {
		fmt.Println(err)
		return
	}
	op, err := graphops.Commit([]graphops.Update{next}, graphops.After(y), graphops.From(store))
	if err != nil {
		fmt.Println(err)
		return
	}
	train, err := graphops.NewMachine(op, y)
	if err != nil {
		fmt.Println(err)
		return
	}
	eval, err := graphops.NewEvalMachine(y)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, vm := range []gorgonia.VM{train, train, eval} {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
		fmt.Println(y.Value())
	}
	// Output:
	// [0  2  0  2  0  2]
	// [0  2  2  0  2  0]
	// [1  1  1  1  1  1]
}
