package graphops_test

import (
	"errors"
	"fmt"
	"math"

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

// A run whose gradient is not finite is refused: the weight and the counter stay.
func ExampleRefuse() {
	g := gorgonia.NewGraph()
	w, grad, steps := scalar(g, "w", 1), scalar(g, "grad", 0.25), scalar(g, "steps", 0)
	op, err := graphops.Commit([]graphops.Update{
		{Target: w, Value: graphops.Of(w).Sub(graphops.Of(grad))},
		{Target: steps, Value: graphops.Of(steps).Add(graphops.Const(1))},
	}, graphops.Refuse(graphops.ScalarOf(grad).IsFinite().Not(), func(float64) error {
		return errors.New("the gradient is not finite")
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(op)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(vm.RunAll(), w.Value(), steps.Value())
	if err := gorgonia.Let(grad, math.Inf(1)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(vm.RunAll() != nil, w.Value(), steps.Value())
	// Output:
	// <nil> 0.75 1
	// true 0.75 1
}

// A slot is set back at the start of every second run.
func ExampleBefore() {
	g, store := gorgonia.NewGraph(), graphops.NewStore()
	sum, err := store.Slot("sum", "", gorgonia.Float64, nil, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := sum.Node(g)
	if err != nil {
		fmt.Println(err)
		return
	}
	runs := 0
	op, err := graphops.Commit([]graphops.Update{{Target: n, Value: graphops.Of(n).Add(graphops.Const(1))}},
		graphops.From(store), graphops.Before(func() error {
			runs++
			if runs%2 == 1 {
				return sum.Set(0)
			}
			return nil
		}))
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
		fmt.Print(n.Value(), " ")
	}
	// Output: 1 2 1 2
}

// The checks name where the first number that is not finite came up.
func ExampleCheckNumerics() {
	g := gorgonia.NewGraph()
	x := scalar(g, "x", 0)
	y, err := gorgonia.Log(x)
	if err != nil {
		fmt.Println(err)
		return
	}
	checks, err := graphops.CheckNumerics(gorgonia.Nodes{y})
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewEvalMachine(checks...)
	if err != nil {
		fmt.Println(err)
		return
	}
	var e graphops.NotFiniteError
	if errors.As(vm.RunAll(), &e) {
		fmt.Println(e.Node.Op(), e.Value)
	}
	// Output: ln -Inf
}

// The gradient of the norm of a gradient: for ½x⁴ the gradient is 2x³, and that of its norm 6x².
func ExampleGradients_norm() {
	g := gorgonia.NewGraph()
	x := scalar(g, "x", 3)
	loss, err := graphops.Expand(graphops.Of(x).Square().Square().Mul(graphops.Const(0.5)))
	if err != nil {
		fmt.Println(err)
		return
	}
	grads, err := graphops.Gradients(loss, gorgonia.Nodes{x})
	if err != nil {
		fmt.Println(err)
		return
	}
	norm, err := graphops.Expand(graphops.Of(grads[0]).SumSquares().Sqrt())
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := graphops.Gradients(norm, gorgonia.Nodes{x})
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewEvalMachine(norm, second[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := vm.RunAll(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(norm.Value(), second[0].Value())
	// Output: 54 54
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
