package solvers_test

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// quadratic is Σw² with w = [1 2 3].
func quadratic() (g *gorgonia.ExprGraph, loss, w *gorgonia.Node) {
	g = gorgonia.NewGraph()
	w = gorgonia.NewVector(g, gorgonia.Float64, gorgonia.WithShape(3), gorgonia.WithName("w"),
		gorgonia.WithValue(tensor.New(tensor.WithBacking([]float64{1, 2, 3}))))
	return g, gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Square(w)))), w
}

// One RunAll is one training step; the loss that is read is that of before the step.
func ExampleSolver_Minimize() {
	g, loss, w := quadratic()
	train, err := solvers.NewAdam(func(a *solvers.Adam) { a.LearningRate = 0.003 }).Minimize(loss, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm := gorgonia.NewTapeMachine(g.SubgraphRoots(train))
	for range 5 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.4f ", loss.Value())
		vm.Reset()
	}
	fmt.Println("steps:", train.Value())
	// Output: 14.0000 13.9640 13.9281 13.8922 13.8564 steps: 5
}

// The drop-in way: gorgonia.Grad, dual values, and Step where Gorgonia's own solver stood.
func ExampleSolver_Step() {
	g, loss, w := quadratic()
	if _, err := gorgonia.Grad(loss, w); err != nil {
		fmt.Println(err)
		return
	}
	vm := gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(w))
	var solver gorgonia.Solver = solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 0.25 })
	for range 2 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
			return
		}
		if err := solver.Step(gorgonia.NodesToValueGrads(gorgonia.Nodes{w})); err != nil {
			fmt.Println(err)
			return
		}
		vm.Reset()
	}
	fmt.Println(w.Value())
	// Output: [0.25   0.5  0.75]
}

// A learning rate that falls during training, without rebuilding anything.
func ExampleSolver_Set() {
	_, loss, w := quadratic()
	solver := solvers.Chain(solvers.NewClipByGlobalNorm(1), solvers.NewSGD())
	train, err := solver.Minimize(loss, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train)
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range 4 {
		if err := solver.Set("learning_rate", 1-float64(step)/4); err != nil {
			fmt.Println(err)
		}
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
	}
	lr, _ := solver.Get("learning_rate")
	fmt.Printf("%v %.3f\n", lr, w.Value())
	fmt.Println(solver.Set("learning_rate", -1))
	// Output:
	// 0.25 [0.332  0.664  0.996]
	// solvers: sgd/learning_rate is -1; it must be in [0, +Inf)
}

// Gradients are prepared in the order in which the chain has the rules; a norm can be that of the gradients before all that.
func ExampleGlobalNorm() {
	_, loss, w := quadratic() // the gradient is [2 4 6], its norm 7.48
	solver := solvers.Chain(
		solvers.NewClipByValue(3),
		solvers.NewClipByGlobalNorm(3.7416573867739413, func(c *solvers.ClipByGlobalNorm) { c.Raw = true }),
		solvers.NewFilterNotFinite(),
		solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 1 }))
	train, err := solver.Minimize(loss, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train)
	if err == nil {
		err = vm.RunAll()
	}
	fmt.Println(w.Value(), err)
	// Output: [  0  0.5  1.5] <nil>
}

// A learning rate that is a function of the step, computed in the graph: warm-up, and then a fall with the root of the step.
func ExampleSolver_Schedule() {
	g, loss, w := quadratic()
	solver := solvers.NewSGD()
	if err := solver.Schedule("learning_rate", schedule.NewNoam(4, 4)); err != nil {
		fmt.Println(err)
		return
	}
	rate, err := solver.HyperNode("learning_rate", g) // to read what a run uses
	if err != nil {
		fmt.Println(err)
		return
	}
	train, err := solver.Minimize(loss, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train, rate)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 6 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%.4f ", rate.Value())
	}
	next, _ := solver.Get("learning_rate")
	fmt.Printf("next %.4f\n%.4f\n", next, w.Value())
	fmt.Println(solver.Set("learning_rate", 1))
	// Output:
	// 0.0625 0.1250 0.1875 0.2500 0.2236 0.2041 next 0.1890
	// [0.0671  0.1342  0.2013]
	// solvers: sgd/learning_rate follows a schedule: remove that first, with Schedule("sgd/learning_rate", nil)
}

// SignSGD is a rule of a user's own: the sign of a moving average of the gradient.
type SignSGD struct {
	LearningRate float64 `range:"[0,inf)"`
	Beta         float64 `range:"[0,1)"`
}

// Apply implements solvers.Rule.
func (*SignSGD) Apply(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
	lr, beta := b.Hyper("learning_rate"), b.Hyper("beta")
	return b.Each(in, func(s solvers.Step) solvers.Expr {
		m := b.Slot(s, "m")
		m1 := m.Set(m.Mul(beta).Add(s.Delta.Mul(graphops.Const(1).Sub(beta))))
		return m1.Sign().Mul(lr)
	})
}

// A rule of your own runs in all hosts, and its fields are hyperparameters.
func ExampleNew() {
	_, loss, w := quadratic()
	solver := solvers.New(&SignSGD{LearningRate: 0.5, Beta: 0.9})
	train, err := solver.Minimize(loss, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := vm.RunAll(); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%v %s %.1f\n", w.Value(), solver.Slot(w, "m").Name(), solver.Slot(w, "m").Value())
	// Output: [0.5  1.5  2.5] w/signsgd/m [0.2  0.4  0.6]
}

// RMSSign is a complete optimizer of a user's own: the sign of the gradient, weighted by how sure it is.
type RMSSign struct {
	solvers.BaseCustomOptimizer
	Beta float64 `range:"[0,1)"`
}

// Apply implements solvers.Rule.
func (o *RMSSign) Apply(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
	beta := b.Hyper("beta")
	return o.Each(b, in, func(s solvers.Step, lr solvers.Expr) solvers.Expr {
		v := b.Slot(s, "v")
		v1 := v.Set(v.Mul(beta).Add(s.Delta.Square().Mul(graphops.Const(1).Sub(beta))))
		return lr.Mul(s.Delta.Sign()).Mul(v1.Sqrt().Tanh())
	})
}

// An optimizer of your own, registered by name and used from options as a config has them.
func ExampleBaseCustomOptimizer() {
	err := solvers.Register("rms_sign", func() solvers.Rule {
		return &RMSSign{solvers.BaseCustomOptimizer{LearningRate: 0.1}, 0.9}
	})
	solver, err2 := solvers.FromConfig("RMSSignOptimizer", map[string]any{"beta": 0.5, "use_locking": false})
	_, loss, w := quadratic()
	train, err3 := solver.Minimize(loss, w)
	vm, err4 := graphops.NewMachine(train)
	fmt.Println(err, err2, err3, err4, vm.RunAll())
	fmt.Printf("%.4f\n", w.Value())
	// Output:
	// <nil> <nil> <nil> <nil> <nil>
	// [0.9112  1.9007  2.9000]
}
