package updater_test

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/updater"
)

// Evaluation with the averages that a config lets the optimizer keep.
func ExampleUpdater_WithAverages() {
	cfg, err := updater.ReadConfig(strings.NewReader(`{
		"optimizer": {"class": "sgd", "use_ema": true, "ema_momentum": 0.5},
		"learning_rate": 0.25
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	g := gorgonia.NewGraph()
	w := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("w"), gorgonia.WithValue(8.0))
	loss := gorgonia.Must(gorgonia.Square(w))
	u, err := updater.New(loss, gorgonia.Nodes{w}, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	eval, err := graphops.NewEvalMachine(loss)
	if err != nil {
		fmt.Println(err)
		return
	}
	train, err := u.NewMachine()
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
	fmt.Println("weight: ", w.Value())
	err = u.WithAverages(func() error {
		err := eval.RunAll()
		fmt.Println("average:", w.Value(), "loss:", loss.Value())
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println("weight: ", w.Value())
	// Output:
	// weight:  1
	// average: 2 loss: 4
	// weight:  1
}
