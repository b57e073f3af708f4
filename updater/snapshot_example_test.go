package updater_test

import (
	"fmt"
	"os"

	"gorgonia.org/gorgonia"

	"optimop/updater"
)

// square makes w² with an updater, at some w.
func square(at float64) (*updater.Updater, gorgonia.VM, *gorgonia.Node, error) {
	w := gorgonia.NewScalar(gorgonia.NewGraph(), gorgonia.Float64, gorgonia.WithName("w"), gorgonia.WithValue(at))
	u, err := updater.New(gorgonia.Must(gorgonia.Square(w)), gorgonia.Nodes{w}, updater.Config{Optimizer: "momentum"})
	if err != nil {
		return nil, nil, nil, err
	}
	vm, err := u.NewMachine()
	return u, vm, w, err
}

// A training that is saved, and goes on elsewhere.
func ExampleCheckpoints() {
	folder, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	checkpoints := updater.Checkpoints{Folder: folder, Keep: 2}

	u, vm, w, err := square(1)
	for range 3 {
		if err == nil {
			err = vm.RunAll()
		}
		var s *updater.Snapshot
		if err == nil {
			s, err = u.Snapshot()
		}
		if err == nil {
			s.Position.Batch = s.GlobalStep()
			_, err = checkpoints.Save(s)
		}
	}
	if err == nil {
		err = vm.RunAll()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("one run:  ", w.Value())

	u, vm, w, err = square(7)
	var path string
	if err == nil {
		path, err = checkpoints.Last()
	}
	if err == nil {
		err = u.LoadFile(path)
	}
	if err == nil {
		err = vm.RunAll()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	all, err := checkpoints.List()
	fmt.Println("two runs: ", w.Value(), len(all), err)
	// Output:
	// one run:   0.8244985600000001
	// two runs:  0.8244985600000001 2 <nil>
}
