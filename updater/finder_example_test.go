package updater_test

import (
	"fmt"
	"os"

	"gorgonia.org/gorgonia"

	"optimop/solvers/schedule"
	"optimop/updater"
)

// Gradient descent on w² diverges above a learning rate of 1.
func ExampleUpdater_FindLearningRate() {
	g := gorgonia.NewGraph()
	w := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("w"), gorgonia.WithValue(8.0))
	loss := gorgonia.Must(gorgonia.Square(w))
	u, err := updater.New(loss, gorgonia.Nodes{w}, updater.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	vm, err := u.NewMachine()
	if err != nil {
		fmt.Println(err)
		return
	}
	step := func() (float64, error) { // one batch
		defer vm.Reset()
		err := vm.RunAll()
		return loss.Value().Data().(float64), err
	}
	found, err := u.FindLearningRate(step, func(o *updater.RangeTestOptions) {
		o.Min, o.Max, o.Steps, o.Smoothing = 1e-4, 30, 25, 0
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("smoothed loss")
	if err := found.Draw(os.Stdout, func(d *schedule.Drawing) { d.Height = 4 }); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("lowest at %.3g, diverged at %.3g, suggested: %.3g\n", found.Minimum, found.Diverged, found.Suggestion)
	fmt.Println("w is", w.Value(), "as before")
	// Output:
	// smoothed loss
	//         64 |***********
	//            |           ***
	//            |              **
	//   0.007273 |                ****
	//            +-------------^------
	//             0.0001          2.17
	// lowest at 1.28, diverged at 3.67, suggested: 0.128
	// w is 8 as before
}
