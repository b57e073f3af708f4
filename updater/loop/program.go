package loop

import (
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/batch"
)

// program is a model with its machine.
type program struct {
	Model
	*reader
	vm     gorgonia.VM // nil if there is nothing to compute
	shapes map[string]tensor.Shape
}

func newProgram(m Model) (*program, error) {
	if err := check(m.Quantities); err != nil {
		return nil, err
	}
	if err := checkInputs(m.Inputs); err != nil {
		return nil, err
	}
	var nodes gorgonia.Nodes
	for _, q := range m.Quantities {
		nodes = append(nodes, q.Nodes...)
	}
	r, root, err := newReader(nodes)
	if err != nil || root == nil {
		return &program{Model: m, reader: r}, err
	}
	vm, err := graphops.NewEvalMachine(root)
	return &program{Model: m, reader: r, vm: vm}, err
}

func checkInputs(inputs gorgonia.Nodes) error {
	names := map[string]bool{}
	for _, n := range inputs {
		name := nameOf(n)
		switch {
		case name == "":
			return errors.New("loop: inputs must have names, those of their sources")
		case n.Op() != nil:
			return errors.Errorf("loop: %q is computed and cannot be an input", name)
		case names[name]:
			return errors.Errorf("loop: the names of inputs must be unique: there are two %q", name)
		}
		names[name] = true
	}
	return nil
}

// run computes the values for a batch. back gives the inputs what they had before, for others who use the graph.
func (p *program) run(b map[string]any) (back func(), err error) {
	before := make([]gorgonia.Value, len(p.Inputs))
	for i, n := range p.Inputs {
		before[i] = n.Value()
	}
	back = func() {
		for i, n := range p.Inputs {
			if before[i] != nil {
				_ = gorgonia.Let(n, before[i]) // it was there before
			}
		}
	}
	if err = bind(p.Inputs, b); err == nil && p.vm != nil {
		err = p.vm.RunAll()
	}
	if err != nil {
		back()
	}
	return back, err
}

// bind gives all inputs their sources.
func bind(inputs gorgonia.Nodes, b map[string]any) error {
	var names []string
	missing := false
	for _, n := range inputs {
		names = append(names, n.Name())
		_, ok := b[n.Name()]
		missing = missing || !ok
	}
	if missing {
		return errors.Errorf("not all data sources are there: the batch has %s; the inputs are %s",
			strings.Join(slices.Sorted(maps.Keys(b)), ", "), strings.Join(names, ", "))
	}
	for _, n := range inputs {
		if err := batch.Bind(n, b[n.Name()]); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) close() error {
	if p.vm == nil {
		return nil
	}
	return p.vm.Close()
}
