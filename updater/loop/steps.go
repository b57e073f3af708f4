package loop

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/internal/batch"
	"optimop/updater"
)

// Steps is a machine that trains, as an algorithm: each batch is one run of it.
type Steps struct {
	sources  []*batch.Source
	machine  func(reads ...*gorgonia.Node) (gorgonia.VM, error)
	observed gorgonia.Nodes
	reader   *reader
	vm       gorgonia.VM
	values   map[string]gorgonia.Value // of observed nodes in the last batch
}

var (
	_ updater.TrainingAlgorithm = (*Steps)(nil)
	_ updater.Observer          = (*Steps)(nil)
)

// NewSteps makes an algorithm of inputs, which take the sources of their names, and of what makes a machine: the NewMachine of an
// updater.Updater, or graphops.NewMachine with an optim op of solvers. Sources that are no inputs are ignored.
func NewSteps(inputs gorgonia.Nodes, machine func(reads ...*gorgonia.Node) (gorgonia.VM, error)) (*Steps, error) {
	if machine == nil {
		return nil, errors.New("loop: NewSteps without a machine")
	}
	sources, err := sourcesOf(inputs)
	return &Steps{sources: sources, machine: machine}, err
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
	var vm gorgonia.VM
	if err := safely(func() (err error) {
		vm, err = s.machine(reads...)
		return err
	}); err != nil {
		return err
	}
	if s.vm != nil {
		_ = s.vm.Close() // a machine that is thrown away
	}
	s.reader, s.vm, s.values = r, vm, map[string]gorgonia.Value{}
	return nil
}

// ProcessBatch runs the machine on a batch.
func (s *Steps) ProcessBatch(data map[string]any) error {
	if s.vm == nil {
		return errors.New("loop: Steps were not initialized")
	}
	clear(s.values)
	if err := bind(s.sources, data); err != nil {
		return err
	}
	for _, n := range s.observed {
		if n.Op() == nil { // the update may change it
			if err := s.keep(n, n.Value()); err != nil {
				return err
			}
		}
	}
	if err := s.vm.RunAll(); err != nil {
		clear(s.values)
		return err
	}
	for _, n := range s.observed {
		if n.Op() != nil {
			if err := s.keep(n, s.reader.value(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep copies a value: another machine of the graph may write to the same memory before the next batch.
func (s *Steps) keep(n *gorgonia.Node, v gorgonia.Value) (err error) {
	if v == nil {
		return errors.Errorf("loop: observing %q: it has no value", n.Name())
	}
	s.values[n.Name()], err = gorgonia.CloneValue(v)
	return errors.Wrapf(err, "loop: observing %q", n.Name())
}

// Observed implements updater.Observer.
func (s *Steps) Observed(name string) (gorgonia.Value, error) {
	if v := s.values[name]; v != nil {
		return v, nil
	}
	return nil, errors.Errorf("loop: no batch has a value of %q", name)
}
