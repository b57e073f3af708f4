package graphops

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// Gather looks up rows of a table: the slices along its first axis that indices name, in the shape of indices followed by that
// of a row. The table is float32 or float64 of any rank from 1 on, the indices are int, int32 or int64 of any shape. An index
// out of range fails the run, with an error that names it.
//
// In Gradients the gradient of the table are the rows that were looked up and nothing else (see KeepRows), in gorgonia.Grad a
// whole tensor.
func Gather(table, indices *gorgonia.Node) (*gorgonia.Node, error) {
	dt, err := rowsOfTable(table)
	if err != nil {
		return nil, err
	}
	if err := areIndices(indices); err != nil {
		return nil, err
	}
	if indices.Graph() != table.Graph() {
		return nil, errors.Errorf("graphops: Gather: %s and %s are on different graphs", nodeName(table), nodeName(indices))
	}
	shape := slices.Concat(indices.Shape(), table.Shape()[1:])
	kids := gorgonia.Nodes{table, indices}
	o := &gatherOp{op: newOp("gather", kids, typeOf(dt, shape), shape), dt: dt, table: table.Shape().Clone()}
	if look, _ := readersOf(table); len(look) > 0 {
		o.before = look[0].before
	}
	return apply(o, &o.op, true, kids...)
}

// rowsOfTable refuses a node that has no rows.
func rowsOfTable(table *gorgonia.Node) (tensor.Dtype, error) {
	if table == nil {
		return tensor.Dtype{}, errors.New("graphops: the table is nil")
	}
	dt, err := dtypeOf(table)
	switch {
	case err != nil:
		return dt, err
	case dt != tensor.Float32 && dt != tensor.Float64:
		return dt, errors.Errorf("graphops: the table %s is %v; it must be float32 or float64", nodeName(table), dt)
	case table.IsScalar() || len(table.Shape()) == 0 || table.Shape().TotalSize() == 0:
		return dt, errors.Errorf("graphops: the table %s has shape %v, which has no rows", nodeName(table), table.Shape())
	}
	return dt, nil
}

// areIndices refuses a node that cannot name rows.
func areIndices(indices *gorgonia.Node) error {
	if indices == nil {
		return errors.New("graphops: the indices are nil")
	}
	dt, err := dtypeOf(indices)
	switch {
	case err != nil:
		return err
	case dt != tensor.Int && dt != tensor.Int64 && dt != tensor.Int32:
		return errors.Errorf("graphops: the indices %s are %v; they must be int, int32 or int64", nodeName(indices), dt)
	}
	return nil
}

// gatherOp takes rows out of its first operand.
type gatherOp struct {
	op
	dt     tensor.Dtype
	table  tensor.Shape
	before []func(table gorgonia.Value, rows []int) error
}

func (o *gatherOp) Do(in ...gorgonia.Value) (out gorgonia.Value, err error) {
	defer rescue(&err, o.name)
	at, err := indicesOf(in[1], nil)
	if err != nil {
		return nil, err
	}
	if err := inRange(at, o.table[0]); err != nil {
		return nil, err
	}
	for _, f := range o.before {
		if err := f(in[0], at); err != nil {
			return nil, err
		}
	}
	var b binding
	table, err := b.bind(in[0], o.dt, o.table)
	if err != nil {
		return nil, errors.Wrap(err, "graphops: gather: the table")
	}
	out = o.newValue(o.dt)
	m, err := memoryOf(out)
	if err == nil {
		kernel.Take(m.Array, table, at)
	}
	return out, err
}

func (o *gatherOp) DiffWRT(int) []bool { return []bool{true, false} }

// SymDiff puts the gradients of the rows into a tensor of zeros.
func (o *gatherOp) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	d, err := scatter(in[0], []rowsTerm{{grad, in[1]}})
	return gorgonia.Nodes{d, nil}, err
}

// rowsTerm is a part of a gradient: values for the rows that indices name.
type rowsTerm struct{ values, indices *gorgonia.Node }

func operands(terms []rowsTerm) (kids gorgonia.Nodes) {
	for _, t := range terms {
		kids = append(kids, t.values, t.indices)
	}
	return kids
}

// rowsOp makes Rows of values and indices, several of each: its operands take turns. It copies, as a machine may write over the
// values of its operands once they were read.
type rowsOp struct {
	op
	dt tensor.Dtype
}

// rowsNode makes the node of a gradient of rows of a table.
func rowsNode(table *gorgonia.Node, terms []rowsTerm) (*gorgonia.Node, error) {
	kids := operands(terms)
	o := &rowsOp{newOp(fmt.Sprintf("rows of %v", table.Shape()), kids, table.Type(), table.Shape().Clone()), table.Dtype()}
	return apply(o, &o.op, true, kids...)
}

func (o *rowsOp) Do(in ...gorgonia.Value) (out gorgonia.Value, err error) {
	defer rescue(&err, o.name)
	return o.rows(in)
}

func (o *rowsOp) rows(in []gorgonia.Value) (*Rows, error) {
	r := &Rows{dt: o.dt, shape: o.dims}
	for k := 1; k < len(in); k += 2 {
		at, err := indicesOf(in[k], nil)
		if err != nil {
			return nil, err
		}
		r.Indices = append(r.Indices, at...)
	}
	if len(r.Indices) == 0 {
		return r, nil
	}
	r.Values = tensor.New(tensor.Of(o.dt), tensor.WithShape(slices.Concat(tensor.Shape{len(r.Indices)}, o.dims[1:])...))
	m, err := memoryOf(r.Values)
	if err != nil {
		return nil, err
	}
	done := 0
	for k := 0; k < len(in); k += 2 {
		var b binding
		values, err := b.bind(in[k], o.dt, in[k].Shape())
		if err == nil && done+values.Len > m.Len {
			err = errors.Errorf("more than %d of them for %d rows of shape %v", m.Len, len(r.Indices), o.dims[1:])
		}
		if err != nil {
			return nil, errors.Wrap(err, "graphops: the values of rows")
		}
		kernel.Copy(part(m.Array, done, values.Len), values)
		done += values.Len
	}
	return r, r.inRange()
}

// scatterOp is rowsOp, but the whole tensor.
type scatterOp struct{ rowsOp }

// scatter makes the node of a whole tensor of rows.
func scatter(table *gorgonia.Node, terms []rowsTerm) (*gorgonia.Node, error) {
	kids := operands(terms)
	o := &scatterOp{rowsOp{newOp(fmt.Sprintf("scatter to %v", table.Shape()), kids, table.Type(), table.Shape().Clone()), table.Dtype()}}
	return apply(o, &o.op, true, kids...)
}

func (o *scatterOp) Do(in ...gorgonia.Value) (out gorgonia.Value, err error) {
	defer rescue(&err, o.name)
	r, err := o.rows(in)
	if err != nil {
		return nil, err
	}
	return r.Dense()
}

func (o *rowsOp) DiffWRT(n int) []bool {
	d := make([]bool, n)
	for i := 0; i < n; i += 2 {
		d[i] = true
	}
	return d
}

// SymDiff looks the rows up in the gradient.
func (o *rowsOp) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (ds gorgonia.Nodes, err error) {
	ds = make(gorgonia.Nodes, len(in))
	for i := 0; i < len(in) && err == nil; i += 2 {
		if ds[i], err = Gather(grad, in[i+1]); err == nil {
			ds[i], err = reshape(ds[i], in[i].Shape())
		}
	}
	return ds, err
}

// BeforeGather calls f with the table and the indices before each lookup of rows of a table: of the Gather nodes that there are, and of
// those that are made later. f may write to the rows. That something else on the graph reads the table is an error.
func BeforeGather(table *gorgonia.Node, f func(table gorgonia.Value, rows []int) error) error {
	if err := OnlyGathered(table); err != nil {
		return err
	}
	look, _ := readersOf(table)
	for _, o := range look {
		o.before = append(o.before, f)
	}
	return nil
}

// OnlyGathered reports what on its graph reads a table otherwise than by Gather.
func OnlyGathered(table *gorgonia.Node) error {
	if _, other := readersOf(table); other != nil {
		return errors.Errorf("graphops: %s is read by node %d (%v), which is no Gather, so it would not see what rows have missed; "+
			"use graphops.Gather", nodeName(table), other.ID(), other.Op())
	}
	return nil
}

// readersOf finds the lookups of a table, and a node that reads it otherwise, if there is one.
func readersOf(table *gorgonia.Node) (look []*gatherOp, other *gorgonia.Node) {
	if table.Graph() == nil {
		return nil, nil
	}
	for it := table.Graph().To(table.ID()); it != nil && it.Next(); {
		n := it.Node().(*gorgonia.Node)
		if n.Op() == nil || ofCommit(n.Op()) {
			continue
		}
		if o, ok := n.Op().(*gatherOp); ok {
			look = append(look, o)
		} else if other == nil {
			other = n
		}
	}
	return look, other
}
