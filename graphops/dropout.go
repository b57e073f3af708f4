package graphops

import (
	"fmt"
	"sync"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// dropout is inverted dropout, and its own derivative: it is linear, with the same mask in one run. The mask is not stored but
// drawn anew from the state, which only the commit changes, at the end of a run. Operands are x, the seed and the run.
type dropout struct {
	op
	gen      *Generator
	id       int // among those of the generator on the graph, from 1
	stream   uint64
	rate     float64
	dt       tensor.Dtype
	training bool

	mu    sync.Mutex // machines share the operation
	bound [3]binding
}

// Dropout sets each element of x to zero with probability rate, in [0, 1), and divides the others by 1 − rate, so that the mean
// stays (Srivastava et al. 2014, in the inverted form). x is float32 or float64 of any shape; the result is like x. A zero is a
// zero whatever the element was, also NaN.
//
// The gradient goes through the elements that are kept, also divided by 1 − rate. (Gorgonia's own Dropout divides it by rate.)
//
// Every call with a generator gives a mask of its own on its graph; the same calls on another graph give the same. The masks of a run are determined by the generator's state, and are new
// in each run of a commit that has the generator's Update; Minimize of package solvers adds it. Dropout is the identity in
// evaluation mode: in machines of NewEvalMachine, and in tape machines with gorgonia.EvalMode.
func Dropout(x *gorgonia.Node, rate float64, gen *Generator) (*gorgonia.Node, error) {
	switch {
	case gen == nil:
		return nil, errors.New("graphops: Dropout: the generator is nil")
	case x == nil || x.Graph() == nil:
		return nil, errors.New("graphops: Dropout: the node is nil, or on no graph")
	case !(rate >= 0 && rate < 1):
		return nil, errors.Errorf("graphops: Dropout: the rate is %v; it must be in [0, 1)", rate)
	}
	if err := Of(x).Err(); err != nil {
		return nil, errors.Wrap(err, "Dropout")
	}
	seed, err := gen.from.Node(x.Graph())
	if err != nil {
		return nil, err
	}
	run, err := gen.run.Node(x.Graph())
	if err != nil {
		return nil, err
	}
	return newDropout(gen, nextMask(x.Graph(), gen), rate, x, seed, run)
}

// nextMask numbers the masks of a generator on a graph from 1. A model thus has the same masks on each graph that it is built on,
// whichever graphs were built before: a training does not depend on how many graphs it keeps, and goes on when it is loaded.
func nextMask(g *gorgonia.ExprGraph, gen *Generator) (id int) {
	for _, n := range g.AllNodes() {
		if o, ok := n.Op().(*dropout); ok && o.gen == gen {
			id = max(id, o.id)
		}
	}
	return id + 1
}

func newDropout(gen *Generator, id int, rate float64, x, seed, run *gorgonia.Node) (*gorgonia.Node, error) {
	name := fmt.Sprintf("dropout %s#%d", gen.name, id)
	o := &dropout{gen: gen, id: id, stream: kernel.Stream(name), rate: rate, dt: x.Dtype(), training: true}
	o.op = newOp(fmt.Sprintf("%s %v", name, rate), gorgonia.Nodes{x, seed, run}, x.Type(), x.Shape())
	return apply(o, &o.op, true, x, seed, run)
}

// SetTraining is called by every machine that is built over the operation.
func (o *dropout) SetTraining(t bool) error {
	o.training = t
	return nil
}

func (o *dropout) DiffWRT(int) []bool { return []bool{true, false, false} }

// SymDiff applies the same mask to the gradient.
func (o *dropout) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	d, err := newDropout(o.gen, o.id, o.rate, grad, in[1], in[2])
	return gorgonia.Nodes{d, nil, nil}, err
}

// DoDiff adds the gradient of x where a LispMachine collects it.
func (o *dropout) DoDiff(_ gorgonia.ExecutionContext, in gorgonia.Nodes, out *gorgonia.Node) (err error) {
	defer rescue(&err, o.name)
	grad, err := out.Grad()
	if err != nil {
		return err
	}
	d, err := o.Do(grad, in[1].Value(), in[2].Value())
	if err != nil {
		return err
	}
	sum, err := in[0].Grad()
	if err != nil {
		return err
	}
	var to, from binding
	x, err := to.bind(sum, o.dt, o.dims)
	if err != nil {
		return errors.Wrapf(err, "graphops: %s: gradient", o.name)
	}
	y, err := from.bind(d, o.dt, o.dims)
	if err != nil {
		return err
	}
	if o.dt == tensor.Float32 {
		add(kernel.Elements[float32](x), kernel.Elements[float32](y))
	} else {
		add(kernel.Elements[float64](x), kernel.Elements[float64](y))
	}
	to.flush()
	return nil
}

func add[T float32 | float64](dst, src []T) {
	for i, x := range src {
		dst[i] += x
	}
}

// Do makes a new value.
func (o *dropout) Do(in ...gorgonia.Value) (out gorgonia.Value, err error) {
	defer o.rescue(&err, in)
	o.mu.Lock()
	defer o.mu.Unlock()
	var at [3]kernel.Array
	for i, v := range in {
		dt, shape := []tensor.Dtype{o.dt, tensor.Float64, tensor.Int64}[i], tensor.ScalarShape()
		if i == 0 {
			shape = o.dims
		}
		if at[i], err = o.bound[i].bind(v, dt, shape); err != nil {
			return nil, o.wrong(err, i)
		}
	}
	out = o.newValue(o.dt)
	to, err := memoryOf(out)
	if err != nil {
		return nil, err
	}
	if !o.training {
		kernel.Copy(to.Array, at[0])
		return out, nil
	}
	random := kernel.NewRandom(at[1].Scalar(), o.stream, at[2].Scalar())
	if o.dt == tensor.Float32 {
		drop(&random, o.rate, kernel.Elements[float32](to.Array), kernel.Elements[float32](at[0]))
	} else {
		drop(&random, o.rate, kernel.Elements[float64](to.Array), kernel.Elements[float64](at[0]))
	}
	return out, nil
}

// drop writes the elements of src that are kept to dst, which is zero. Four elements share the bits of a place.
func drop[T float32 | float64](random *kernel.Random, rate float64, dst, src []T) {
	limit, keep := rate*(1<<32), T(1-rate)
	var bits [4]uint32
	for i, x := range src {
		if i%4 == 0 {
			bits[0], bits[1], bits[2], bits[3] = random.Words(i / 4)
		}
		if float64(bits[i%4]) >= limit {
			dst[i] = x / keep
		}
	}
}
