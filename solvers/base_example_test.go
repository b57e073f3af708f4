package solvers_test

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// two is the loss 0·kernel + 0·bias: only the decay moves them.
func two() (loss *gorgonia.Node, vars gorgonia.Nodes) {
	g := gorgonia.NewGraph()
	kernel := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("dense/kernel"), gorgonia.WithValue(2.0))
	bias := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("dense/bias"), gorgonia.WithValue(2.0))
	nothing := gorgonia.NewConstant(0.0)
	return gorgonia.Must(gorgonia.Mul(gorgonia.Must(gorgonia.Add(kernel, bias)), nothing)), gorgonia.Nodes{kernel, bias}
}

// Biases have no weight decay.
func ExampleSolver_ExcludeFromWeightDecay() {
	solver := solvers.WithBase(solvers.NewSGD(), func(b *solvers.Base) { b.WeightDecay = 10 })
	if err := solver.ExcludeFromWeightDecay([]string{"bias"}); err != nil {
		fmt.Println(err)
	}
	loss, vars := two()
	train, err := solver.Minimize(loss, vars...)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
		vm.Reset()
	}
	fmt.Printf("%.3f %.3f\n", vars[0].Value(), vars[1].Value())
	// Output:
	// 1.620 2.000
}

// The weight decay follows a schedule of its own.
func ExampleSolver_Schedule_weightDecay() {
	solver := solvers.WithBase(solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 0.5 }))
	if err := solver.Schedule("weight_decay", schedule.NewLinear(1, 0, 2)); err != nil {
		fmt.Println(err)
		return
	}
	loss, vars := two()
	train, err := solver.Minimize(loss, vars...)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		decay, err := solver.Get("weight_decay") // of the next run
		if err == nil {
			err = vm.RunAll()
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("decay", decay, "kernel", vars[0].Value())
	}
	// Output:
	// decay 1 kernel 1
	// decay 0.5 kernel 0.75
	// decay 0 kernel 0.75
}

// The arguments of Keras' base class, around any optimizer: here the mean of two gradients, clipped to a norm of 5, is one step.
func ExampleWithBase() {
	_, loss, w := quadratic()
	solver := solvers.WithBase(solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 0.1 }), func(b *solvers.Base) {
		b.GradientAccumulationSteps, b.ClipNorm = 2, 5
	})
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
	for range 4 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.3f\n", w.Value())
	}
	// Output:
	// [1.000  2.000  3.000]
	// [0.866  1.733  2.599]
	// [0.866  1.733  2.599]
	// [0.733  1.465  2.198]
}

// A scale of the loss that float32 cannot bear comes down by itself.
func ExampleSolver_ScaleLoss() {
	g := gorgonia.NewGraph()
	w := gorgonia.NewScalar(g, gorgonia.Float32, gorgonia.WithName("w"), gorgonia.WithValue(float32(8)))
	loss := gorgonia.Must(gorgonia.Square(w))
	solver := solvers.WithLossScale(solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 0.25 }),
		func(l *solvers.LossScale) { l.InitialScale = 1 << 125 })
	scaled, err := solver.ScaleLoss(loss)
	if err != nil {
		fmt.Println(err)
		return
	}
	train, err := solver.Minimize(scaled, w)
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := graphops.NewMachine(train, loss)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
		scale, err := solver.LossScale()
		fmt.Println("loss", loss.Value(), "w", w.Value(), "next scale", scale, err)
		vm.Reset()
	}
	// Output:
	// loss 64 w 8 next scale 2.1267647932558654e+37 <nil>
	// loss 64 w 8 next scale 1.0633823966279327e+37 <nil>
	// loss 64 w 4 next scale 1.0633823966279327e+37 <nil>
	// loss 16 w 2 next scale 1.0633823966279327e+37 <nil>
}
