package loop

import (
	"maps"
	"slices"

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
	sources []*batch.Source
	before  []gorgonia.Value // of the inputs, before an evaluation; nil outside of one
	vm      gorgonia.VM      // nil if there is nothing to compute
	others  []string         // names of inputs that are none of Inputs: weights
	shapes  map[string]tensor.Shape
}

func newProgram(m Model) (*program, error) {
	if err := check(m.Quantities); err != nil {
		return nil, err
	}
	sources, err := sourcesOf(m.Inputs)
	if err != nil {
		return nil, err
	}
	var nodes gorgonia.Nodes
	for _, q := range m.Quantities {
		nodes = append(nodes, q.Nodes...)
	}
	r, root, err := newReader(append(nodes, m.Inputs...))
	if err != nil {
		return nil, err
	}
	p := &program{Model: m, reader: r, sources: sources}
	for _, n := range graphops.Inputs(nodes...) {
		if !slices.Contains(m.Inputs, n) {
			p.others = append(p.others, n.Name())
		}
	}
	if root != nil {
		p.vm, err = graphops.NewEvalMachine(root)
	}
	return p, err
}

// sourcesOf makes sources of inputs, which need names.
func sourcesOf(inputs gorgonia.Nodes) (sources []*batch.Source, err error) {
	names := map[string]bool{}
	for _, n := range inputs {
		name := nameOf(n)
		switch {
		case name == "":
			return nil, errors.New("loop: inputs must have names, those of their sources")
		case n.Op() != nil:
			return nil, errors.Errorf("loop: %q is computed and cannot be an input", name)
		case names[name]:
			return nil, errors.Errorf("loop: the names of inputs must be unique: there are two %q", name)
		}
		names[name] = true
		s, err := batch.NewSource(n)
		if err != nil {
			return nil, errors.Wrapf(err, "loop: input %q", name)
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// bind gives all inputs their sources of a batch; none if one does not fit.
func bind(sources []*batch.Source, b map[string]any) error {
	var names []string
	missing := false
	for _, s := range sources {
		names = append(names, s.Name)
		_, ok := b[s.Name]
		missing = missing || !ok
	}
	if missing {
		return errors.Errorf("not all data sources are there: the batch has %q; the inputs are %q", slices.Sorted(maps.Keys(b)), names)
	}
	for _, s := range sources {
		if err := s.Accept(b[s.Name]); err != nil {
			return errors.WithMessagef(err, "source %q", s.Name)
		}
	}
	for _, s := range sources {
		if err := s.Bind(); err != nil {
			return errors.WithMessagef(err, "source %q", s.Name)
		}
	}
	return nil
}

// run computes the values for a batch. Until leave, the inputs have its data.
func (p *program) run(b map[string]any) error {
	for _, name := range p.others {
		_, isSource := b[name]
		if isSource && !slices.ContainsFunc(p.sources, func(s *batch.Source) bool { return s.Name == name }) {
			return errors.Errorf("the batch has a source %q, and the quantities depend on an input of that name, whose value they would take "+
				"instead: it belongs into Inputs", name)
		}
	}
	if p.before == nil {
		p.before = []gorgonia.Value{}
		for _, n := range p.Inputs {
			p.before = append(p.before, n.Value())
		}
	}
	if err := bind(p.sources, b); err != nil || p.vm == nil {
		return err
	}
	return p.vm.RunAll()
}

// leave gives the inputs back what they had before, for others who use the graph.
func (p *program) leave() {
	for i, v := range p.before {
		if v == nil {
			unbind(p.Inputs[i])
		} else {
			_ = gorgonia.Let(p.Inputs[i], v) // it was there before
		}
	}
	p.before = nil
}

// unbind takes an input's value away, as an algorithm tells by it what is an input of batches and what a parameter. Gorgonia
// can do it for whole graphs only, and gives the memory of tensors away: so it gets a graph of the node alone, and other memory.
func unbind(n *gorgonia.Node) {
	if n.Value() == nil {
		return
	}
	if !n.Shape().IsScalar() {
		_ = gorgonia.Let(n, tensor.New(tensor.Of(n.Dtype()), tensor.WithShape(n.Shape()...))) // it fits
	}
	n.Graph().ExactSubgraphRoots(n).UnbindAll()
}

func (p *program) close() error {
	p.leave()
	if p.vm == nil {
		return nil
	}
	return p.vm.Close()
}
