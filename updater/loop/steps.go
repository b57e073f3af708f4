package loop

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/updater"
)

// Steps is a machine that trains, as an algorithm: each batch is one run of it.
type Steps struct {
	inputs   gorgonia.Nodes
	machine  func(reads ...*gorgonia.Node) (gorgonia.VM, error)
	observed gorgonia.Nodes
	reader   *reader
	vm       gorgonia.VM
	before   map[*gorgonia.Node]gorgonia.Value // of observed inputs, which the update may change
	ran      bool
}

var (
	_ updater.TrainingAlgorithm = (*Steps)(nil)
	_ updater.Observer          = (*Steps)(nil)
)

// NewSteps makes an algorithm of inputs, which take the sources of their names, and of what makes a machine: the NewMachine of an
// updater.Updater, or graphops.NewMachine with an optim op of solvers. Sources that are no inputs are ignored. Data are not copied.
func NewSteps(inputs gorgonia.Nodes, machine func(reads ...*gorgonia.Node) (gorgonia.VM, error)) (*Steps, error) {
	if machine == nil {
		return nil, errors.New("loop: NewSteps without a machine")
	}
	return &Steps{inputs: inputs, machine: machine}, checkInputs(inputs)
}

// Observe implements updater.Observer.
func (s *Steps) Observe(nodes ...*gorgonia.Node) error {
	for _, n := range nodes {
		name := nameOf(n)
		if name == "" {
			return errors.New("loop: observed nodes must have names")
		}
		for _, o := range s.observed {
			if o != n && o.Name() == name {
				return errors.Errorf("loop: the names of observed nodes must be unique: there are two %q", name)
			}
		}
		if !s.observed.Contains(n) {
			s.observed = append(s.observed, n)
		}
	}
	return nil
}

// Initialize makes the machine.
func (s *Steps) Initialize() error {
	r, root, err := newReader(s.observed)
	if err != nil {
		return err
	}
	var reads gorgonia.Nodes
	if root != nil {
		reads = append(reads, root)
	}
	vm, err := s.machine(reads...)
	if err != nil {
		return err
	}
	if s.vm != nil {
		_ = s.vm.Close() // a machine that is thrown away
	}
	s.reader, s.vm, s.before, s.ran = r, vm, map[*gorgonia.Node]gorgonia.Value{}, false
	return nil
}

// ProcessBatch runs the machine on a batch.
func (s *Steps) ProcessBatch(batch map[string]any) (err error) {
	if s.vm == nil {
		return errors.New("loop: Steps were not initialized")
	}
	if err := bind(s.inputs, batch); err != nil {
		return err
	}
	s.ran = false
	for _, n := range s.observed {
		if n.Op() != nil || s.inputs.Contains(n) {
			continue
		}
		if s.before[n], err = gorgonia.CloneValue(n.Value()); err != nil {
			return errors.Wrapf(err, "loop: observing %q", n.Name())
		}
	}
	if err := s.vm.RunAll(); err != nil {
		return err
	}
	s.ran = true
	return nil
}

// Observed implements updater.Observer.
func (s *Steps) Observed(name string) (gorgonia.Value, error) {
	if !s.ran {
		return nil, errors.New("loop: there is no batch to observe")
	}
	for _, n := range s.observed {
		if n.Name() != name {
			continue
		}
		if v := s.before[n]; v != nil {
			return v, nil
		}
		return s.reader.value(n), nil
	}
	return nil, errors.Errorf("loop: %q is not observed", name)
}
