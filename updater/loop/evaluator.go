package loop

import (
	"context"
	"maps"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/internal/batch"
)

// Model is what an Evaluator computes, for batches of certain shapes.
type Model struct {
	Inputs     gorgonia.Nodes // inputs of the graph that take the sources of their names
	Quantities []Quantity
}

// Evaluator computes quantities over data sets without training: it has machines of its own, in which dropout and batch normalisation
// are in evaluation mode. Weights, random states and the mode of other machines stay as they are, also on a graph that is
// trained; there, make the evaluator before the optim op. An Evaluator is for one goroutine at a time.
type Evaluator struct {
	// Examples counts the examples of a batch, by which means are weighted; nil stands for the function Examples.
	Examples func(batch map[string]any) (float64, error)

	build    func(shapes map[string]tensor.Shape) (Model, error)
	programs []*program // the last used one is at the end
}

// maxPrograms bounds how many graphs an Evaluator keeps.
const maxPrograms = 16

// NewEvaluator makes an evaluator of a graph, whose batches all have the shapes of its inputs.
func NewEvaluator(m Model) (*Evaluator, error) {
	p, err := newProgram(m)
	if err != nil {
		return nil, err
	}
	return &Evaluator{programs: []*program{p}}, nil
}

// NewShapedEvaluator makes an evaluator for batches of several shapes, such as a short last one: build makes a graph for a batch of the
// given shapes, over the same weights, with the same quantities. The graphs of the 16 combinations of shapes that were used last are kept.
func NewShapedEvaluator(build func(shapes map[string]tensor.Shape) (Model, error)) *Evaluator {
	return &Evaluator{build: build}
}

// Evaluate makes a pass over data and returns the quantities by their names. A batch without a source for every input, and data
// without batches, are errors, and so are data for another input that the quantities depend on, and a panic of the data or an Aggregator;
// further sources are ignored. If there are no inputs, the data are not looked at, and may be nil.
func (e *Evaluator) Evaluate(ctx context.Context, data Batches) (row Row, err error) {
	err = safely(func() error {
		row, err = e.evaluate(ctx, data)
		return err
	})
	return row, err
}

func (e *Evaluator) evaluate(ctx context.Context, data Batches) (Row, error) {
	var sums *aggregation
	if e.build == nil && len(e.programs) == 0 {
		return nil, errors.New("loop: the evaluator has no model")
	}
	if e.build == nil && len(e.programs[0].Inputs) == 0 {
		data = Slice(map[string]any{})
	}
	if data == nil {
		return nil, errors.New("loop: evaluating needs data")
	}
	defer func() {
		for _, p := range e.programs {
			p.leave()
		}
	}()
	n := 0
	for b, err := range data {
		n++
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = e.add(&sums, b)
		}
		if err != nil {
			return nil, errors.WithMessagef(err, "loop: evaluating batch %d of %s", n, batch.Describe(b))
		}
	}
	if sums == nil {
		return nil, errors.New("loop: evaluating: the data have no batches")
	}
	return sums.results()
}

func (e *Evaluator) add(sums **aggregation, b map[string]any) error {
	p, err := e.program(b)
	if err != nil {
		return err
	}
	if *sums == nil {
		*sums = newAggregation(p.Quantities)
	} else if !sameNames((*sums).of, p.Quantities) {
		return errors.New("the model of these shapes has other quantities")
	}
	examples, err := count(e.Examples, b)
	if err != nil {
		return err
	}
	if err := p.run(b); err != nil {
		return err
	}
	return (*sums).add(examples, func(quantity, node int) (gorgonia.Value, error) {
		return p.value(p.Quantities[quantity].Nodes[node]), nil
	})
}

func sameNames(a, b []Quantity) bool {
	return slices.EqualFunc(a, b, func(x, y Quantity) bool { return x.Name == y.Name && len(x.Nodes) == len(y.Nodes) })
}

// program finds or makes that for a batch.
func (e *Evaluator) program(b map[string]any) (*program, error) {
	if e.build == nil {
		return e.programs[0], nil
	}
	shapes := batch.Shapes(b)
	i := slices.IndexFunc(e.programs, func(p *program) bool { return maps.EqualFunc(p.shapes, shapes, slices.Equal) })
	var p *program
	if i >= 0 {
		p = e.programs[i]
		e.programs = slices.Delete(e.programs, i, i+1)
	} else {
		m, err := batch.Build(e.build, shapes)
		if err != nil {
			return nil, errors.WithMessage(err, "building the model")
		}
		if p, err = newProgram(m); err != nil {
			return nil, err
		}
		p.shapes = shapes
	}
	if e.programs = append(e.programs, p); len(e.programs) > maxPrograms {
		old := e.programs[0]
		e.programs = slices.Delete(e.programs, 0, 1)
		return p, old.close()
	}
	return p, nil
}

// Close closes the machines.
func (e *Evaluator) Close() (err error) {
	for _, p := range e.programs {
		if failed := p.close(); err == nil {
			err = failed
		}
	}
	return err
}
