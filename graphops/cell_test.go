package graphops

import (
	"slices"
	"unsafe"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// buffer is memory that values share.
type buffer struct {
	f32 []float32
	f64 []float64
	i64 []int64
}

func (b *buffer) clone() *buffer {
	return &buffer{slices.Clone(b.f32), slices.Clone(b.f64), slices.Clone(b.i64)}
}

func (b *buffer) get(i int) float64 {
	switch {
	case b.f32 != nil:
		return float64(b.f32[i])
	case b.i64 != nil:
		return float64(b.i64[i])
	}
	return b.f64[i]
}

func (b *buffer) set(i int, x float64) {
	switch {
	case b.f32 != nil:
		b.f32[i] = float32(x)
	case b.i64 != nil:
		b.i64[i] = int64(x)
	default:
		b.f64[i] = x
	}
}

func (b *buffer) all() (x []float64) {
	for i := range len(b.f32) + len(b.f64) + len(b.i64) {
		x = append(x, b.get(i))
	}
	return x
}

// cell is a node with a value.
type cell struct {
	node  *G.Node
	shape tensor.Shape
	value G.Value
	*buffer
	at []int // where the elements lie, in reading order
}

func (c *cell) elements() (x []float64) {
	for _, i := range c.at {
		x = append(x, c.get(i))
	}
	return x
}

// scalarCell gives a scalar node the value x.
func scalarCell(n *G.Node, boxed bool, x float64) *cell {
	c := &cell{node: n, shape: tensor.ScalarShape(), at: []int{0}}
	switch n.Dtype() {
	case tensor.Float32:
		c.value = G.NewF32(float32(x))
		c.buffer = &buffer{f32: unsafe.Slice((*float32)(c.value.(*G.F32)), 1)}
	case tensor.Int64:
		c.value = G.NewI64(int64(x))
		c.buffer = &buffer{i64: unsafe.Slice((*int64)(c.value.(*G.I64)), 1)}
	default:
		c.value = G.NewF64(x)
		c.buffer = &buffer{f64: unsafe.Slice((*float64)(c.value.(*G.F64)), 1)}
	}
	if boxed && n.Dtype() == tensor.Float64 {
		c.value = tensor.New(tensor.WithShape(), tensor.WithBacking(c.f64))
	}
	return c
}

// newBuffer makes a tensor with memory of its own.
func newBuffer(dt tensor.Dtype, shape ...int) (*buffer, *tensor.Dense) {
	d := tensor.New(tensor.Of(dt), tensor.WithShape(shape...))
	switch {
	case tensor.Shape(shape).TotalSize() == 0:
		return &buffer{}, d
	case dt == tensor.Float32:
		return &buffer{f32: d.Float32s()}, d
	}
	return &buffer{f64: d.Float64s()}, d
}

// newCell gives a node a value that lies in memory row by row, by columns, or in a part of a larger tensor.
func newCell(n *G.Node, layout int) *cell {
	shape, dt := n.Shape().Clone(), n.Dtype()
	if shape.IsScalar() {
		return scalarCell(n, layout == 1, 0)
	}
	c := &cell{node: n, shape: shape}
	total, rank := shape.TotalSize(), len(shape)
	// Gorgonia's slices drop axes of length 1.
	if total == 0 || slices.Contains(shape, 1) {
		layout = 0
	}
	outer := shape.Clone()
	switch {
	case layout == 1 && rank > 1:
		slices.Reverse(outer)
	case layout == 2:
		for i := range outer {
			outer[i] += 2 + i
		}
	case layout == 3:
		outer = append(outer, 3)
	default:
		layout = 0
	}
	b, d := newBuffer(dt, outer...)
	c.buffer = b
	steps := make([]int, len(outer))
	for i, step := len(outer)-1, 1; i >= 0; i-- {
		steps[i], step = step, step*outer[i]
	}
	begin := 0
	switch layout {
	case 0:
	case 1:
		slices.Reverse(steps)
		if err := d.T(); err != nil {
			panic(err)
		}
	case 2:
		cut := make([]tensor.Slice, rank)
		for i := range cut {
			cut[i] = G.S(1, 1+shape[i])
			begin += steps[i]
		}
		d = must(d.Slice(cut...)).(*tensor.Dense)
	case 3:
		cut := append(make([]tensor.Slice, rank), G.S(1))
		d, begin = must(d.Slice(cut...)).(*tensor.Dense), 1
	}
	c.value = d
	for i := range total {
		at := begin
		for k := rank - 1; k >= 0; k-- {
			at += i % shape[k] * steps[k]
			i /= shape[k]
		}
		c.at = append(c.at, at)
	}
	return c
}

// shared gives a node of the same shape a value in the memory of c: the same one, or where that lies row by row the transposed
// matrix, or a vector that begins later.
func (c *cell) shared(n *G.Node, k int) *cell {
	d := &cell{n, c.shape, c.value, c.buffer, c.at}
	rank, total := len(c.shape), len(c.at)
	var backing any = c.f64
	if c.f32 != nil {
		backing = c.f32
	}
	switch {
	case total < 2 || k == 0:
	case rank == 2 && c.shape[0] == c.shape[1] && len(c.all()) == total && c.at[1] == 1:
		t := tensor.New(tensor.WithShape(c.shape...), tensor.WithBacking(backing))
		if err := t.T(); err != nil {
			panic(err)
		}
		d.value, d.at = t, make([]int, total)
		for i := range total {
			d.at[i] = i%c.shape[0]*c.shape[0] + i/c.shape[0]
		}
	case rank == 1 && c.at[1] == c.at[0]+1 && len(c.all()) >= total+k:
		t := tensor.New(tensor.WithShape(len(c.all())), tensor.WithBacking(backing))
		d.value, d.at = must(t.Slice(G.S(k, k+total))), make([]int, total)
		for i := range total {
			d.at[i] = k + i
		}
	}
	return d
}

// overlaps reports whether the ranges of two values' memory overlap.
func (c *cell) overlaps(d *cell) bool {
	return c.buffer == d.buffer && len(c.at) > 0 && slices.Min(c.at) <= slices.Max(d.at) && slices.Min(d.at) <= slices.Max(c.at)
}

// row gives the node of a cell a copy of its value, row by row.
func (c *cell) row() *cell {
	d := newCell(c.node, 0)
	for i, x := range c.elements() {
		d.set(d.at[i], x)
	}
	return d
}
