package exchange_test

import (
	"bytes"
	"fmt"

	"gorgonia.org/gorgonia"

	"optimop/solvers"
	"optimop/solvers/exchange"
)

// The state of torch's Adam, to another solver and back.
func ExampleWriteTorch() {
	g := gorgonia.NewGraph()
	w := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("w"), gorgonia.WithValue(1.0))
	var made [2]*solvers.Solver
	for i := range made {
		s, err := solvers.FromConfig("torch/adam", map[string]any{"lr": 0.1})
		if err == nil {
			err = s.Build([]gorgonia.ValueGrad{w})
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		made[i] = s
	}
	if err := made[0].ApplyGradients([]solvers.Pair{{Param: w, Grad: gorgonia.NewF64(2)}}); err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := exchange.WriteTorch(&file, made[0], "w"); err != nil {
		fmt.Println(err)
		return
	}
	err := exchange.ReadTorch(&file, made[1])
	fmt.Printf("%.4f %v\n", made[1].Slot(w, "m").Value(), err)
	// Output: 0.2000 <nil>
}
