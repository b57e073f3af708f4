package solvers_test

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// A step changes the rows that it reads, and no others.
func ExampleWithRows() {
	g := gorgonia.NewGraph()
	table := gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithName("table"), gorgonia.WithShape(4, 2), gorgonia.WithInit(gorgonia.Ones()))
	words := gorgonia.NewVector(g, tensor.Int, gorgonia.WithName("words"), gorgonia.WithShape(3),
		gorgonia.WithValue(tensor.New(tensor.WithBacking([]int{2, 0, 2}))))
	rows, err := graphops.Gather(table, words)
	if err != nil {
		fmt.Println(err)
		return
	}
	loss := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Square(rows))))
	solver := solvers.WithRows(solvers.NewAdam(func(a *solvers.Adam) { a.LearningRate = 0.25 }), solvers.RowsLazy)
	train, err := solver.Minimize(loss, table)
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
		return
	}
	fmt.Printf("%.2f\n", table.Value().Data())
	// Output: [0.75 0.75 1.00 1.00 0.75 0.75 1.00 1.00]
}

// The gradient of a table that is computed elsewhere: row 1 twice.
func ExampleSolver_Step_rows() {
	grad, err := graphops.NewRows(tensor.Float64, tensor.Shape{3, 2}, []int{1, 1},
		tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{1, 2, 3, 4})))
	if err != nil {
		fmt.Println(err)
		return
	}
	table := &parameter{"table", tensor.New(tensor.WithShape(3, 2), tensor.Of(tensor.Float64)), grad}
	solver := solvers.NewSGD(func(s *solvers.SGD) { s.LearningRate = 1 })
	if err := solver.Step([]gorgonia.ValueGrad{table}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.value.Data())
	// Output: [0 0 -4 -6 0 0]
}

// parameter is a ValueGrad.
type parameter struct {
	name        string
	value, grad gorgonia.Value
}

func (p *parameter) Name() string                  { return p.name }
func (p *parameter) Value() gorgonia.Value         { return p.value }
func (p *parameter) Grad() (gorgonia.Value, error) { return p.grad, nil }
