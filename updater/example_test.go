package updater_test

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"

	"optimop/updater"
)

// A config file, one optim op, and a machine that trains.
func ExampleNew() {
	cfg, err := updater.ReadConfig(strings.NewReader(`{
		"optimizer": {"class": "momentum", "momentum": 0.5},
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
	vm, err := u.NewMachine()
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if err := vm.RunAll(); err != nil {
			fmt.Println(err)
		}
		fmt.Println("loss", loss.Value(), "w", w.Value(), "momentum", u.Slot(w, "momentum").Value())
	}
	// Output:
	// loss 64 w 4 momentum 16
	// loss 16 w 0 momentum 16
	// loss 0 w -2 momentum 8
}
