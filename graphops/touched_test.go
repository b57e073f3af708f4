package graphops

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// rowsCase is a table with a gradient of rows and a slot, as inputs of a graph.
type rowsCase struct {
	table, grad, slot *G.Node
	touch             *Touched
	plan              *Plan
}

func newRowsCase(dt tensor.Dtype, rows, width int) *rowsCase {
	g := G.NewGraph()
	node := func(name string) *G.Node {
		return G.NewTensor(g, dt, 2, G.WithShape(rows, width), G.WithName(name))
	}
	c := &rowsCase{table: node("table"), grad: node("gradient"), slot: node("slot")}
	c.touch = must(Touch(c.grad))
	return c
}

func (c *rowsCase) run(values map[*G.Node]G.Value) error {
	var all []G.Value
	for _, n := range c.plan.Leaves() {
		all = append(all, values[n])
	}
	return c.plan.Run(all)
}

func TestRowsUpdateTouchesOnlyRows(t *testing.T) {
	for _, dt := range dtypes {
		c := newRowsCase(dt, 4, 2)
		g := c.touch.Merge(c.touch.Values())
		m := c.touch.Rows(Of(c.slot)).Mul(Const(.5)).Add(g)
		c.plan = must(Compile([]Update{{c.slot, m}, {c.table, c.touch.Rows(Of(c.table)).Sub(m)}}))
		table, slot := dense(dt, []int{4, 2}, 1, 2, 3, 4, 5, 6, 7, 8), dense(dt, []int{4, 2}, 2, 2, 2, 2, 2, 2, 2, 2)
		grad := must(NewRows(dt, tensor.Shape{4, 2}, []int{3, 1, 3}, dense(dt, []int{3, 2}, 1, 2, 3, 4, 5, 6)))
		values := map[*G.Node]G.Value{c.table: table, c.slot: slot, c.grad: grad}
		require.NoError(t, c.run(values))
		require.Equal(t, []float64{2, 2, 4, 5, 2, 2, 7, 9}, valueFloats(slot))
		require.Equal(t, []float64{1, 2, -1, -1, 5, 6, 0, -1}, valueFloats(table))

		values[c.grad] = must(NewRows(dt, tensor.Shape{4, 2}, nil, nil)) // none
		require.NoError(t, c.run(values))
		require.Equal(t, []float64{1, 2, -1, -1, 5, 6, 0, -1}, valueFloats(table))
		require.Equal(t, []float64{2, 2, 4, 5, 2, 2, 7, 9}, valueFloats(slot))
		values[c.grad] = must(NewRows(dt, tensor.Shape{4, 2}, []int{0}, dense(dt, []int{1, 2}, 1, 1)))
		require.NoError(t, c.run(values))
		require.Equal(t, []float64{-1, 0, -1, -1, 5, 6, 0, -1}, valueFloats(table))
	}
}

// Norms are of the values as they are; what is made whole is what the gradient means.
func TestFormsOfRows(t *testing.T) {
	for _, dt := range dtypes {
		c := newRowsCase(dt, 3, 2)
		v := c.touch.Values()
		n := G.NewScalar(c.table.Graph(), G.Float64, G.WithName("norm"))
		where := G.NewTensor(c.table.Graph(), dt, 2, G.WithShape(3, 2), G.WithName("mask"))
		over := G.NewTensor(c.table.Graph(), dt, 2, G.WithShape(3, 2), G.WithName("overlay"))
		at := c.touch.At(Of(c.table).Mul(Const(10)))
		c.plan = must(Compile([]Update{
			{n, v.SumSquares()},
			{c.slot, c.touch.Whole(v.Min(Const(4)))},
			{where, c.touch.Mask().Select(Const(1), Of(c.table).Mul(Const(0)))},
			{over, c.touch.Overlay(c.table, c.touch.Merge(v.Mul(at)))},
		}))
		norm := G.NewF64(0)
		make3 := func() *tensor.Dense { return dense(dt, []int{3, 2}) }
		table, slot, mask, overlay := dense(dt, []int{3, 2}, 1, 2, 3, 4, 5, 6), make3(), make3(), make3()
		for range 2 {
			require.NoError(t, c.run(map[*G.Node]G.Value{n: norm, where: mask, over: overlay, c.table: table, c.slot: slot,
				c.grad: must(NewRows(dt, tensor.Shape{3, 2}, []int{2, 2}, dense(dt, []int{2, 2}, 1, 2, 3, 5)))}))
			require.EqualValues(t, 1+4+9+25, norm.Data())
			require.Equal(t, []float64{0, 0, 0, 0, 4, 6}, valueFloats(slot))
			require.Equal(t, []float64{0, 0, 0, 0, 1, 1}, valueFloats(mask))
			require.Equal(t, []float64{1, 2, 3, 4, 1*50 + 3*50, 2*60 + 5*60}, valueFloats(overlay))
		}
	}
}

// A gradient of rows that is read as a tensor is one.
func TestRowsAsTensor(t *testing.T) {
	for _, dt := range dtypes {
		c := newRowsCase(dt, 3, 1)
		c.plan = must(Compile([]Update{{c.table, Of(c.table).Sub(Of(c.grad))}}))
		table := dense(dt, []int{3, 1}, 1, 2, 3)
		for range 2 {
			require.NoError(t, c.run(map[*G.Node]G.Value{c.table: table,
				c.grad: must(NewRows(dt, tensor.Shape{3, 1}, []int{2, 2}, dense(dt, []int{2, 1}, 1, 2)))}))
		}
		require.Equal(t, []float64{1, 2, -3}, valueFloats(table))
	}
}

func TestFormsDoNotMix(t *testing.T) {
	c := newRowsCase(G.Float64, 3, 2)
	v, other := c.touch.Values(), newRowsCase(G.Float64, 3, 2)
	vector := G.NewVector(c.table.Graph(), G.Float64, G.WithShape(3), G.WithName("vector"))
	for name, e := range map[string]struct {
		e    Expr
		want string
	}{
		"values and whole":   {v.Add(Of(c.table)), "add of values of rows and a whole tensor: they do not mix"},
		"values and rows":    {v.Add(c.touch.Merge(v)), "they do not mix"},
		"of two gradients":   {v.Add(other.touch.Values()), "they do not mix"},
		"merge whole":        {c.touch.Merge(Of(c.table)), "a whole tensor, float64 of shape (3, 2), cannot be used for the rows"},
		"merge of another":   {c.touch.Merge(other.touch.Values()), "cannot be used for the rows"},
		"rows of rows":       {c.touch.Rows(v), "values of rows, float64"},
		"rows of a vector":   {c.touch.Rows(Of(vector)), "cannot be used for the rows"},
		"whole of whole":     {c.touch.Whole(Of(c.table)), "cannot be used for the rows"},
		"overlay of whole":   {c.touch.Overlay(c.table, Of(c.table)), "cannot be used for the rows"},
		"a sum along":        {v.SumAlong(1), "needs a whole tensor, not some rows of one"},
		"random numbers":     {v.TruncatedNormal(Const(1), Const(1), "s"), "needs a whole tensor, not some rows of one"},
		"the zero Expr":      {c.touch.Rows(Expr{}), "the zero Expr"},
		"the zero Expr, too": {c.touch.Merge(Expr{}), "the zero Expr"},
	} {
		require.ErrorContains(t, e.e.Err(), e.want, name)
	}
	_, err := Compile([]Update{{c.table, v}})
	require.ErrorContains(t, err, `the new value of "table" are values of rows, which may name a row twice; Merge them`)
	_, err = Expand(v)
	require.ErrorContains(t, err, "expressions over rows cannot be expanded")
	_, err = Touch(G.NewScalar(c.table.Graph(), G.Float64, G.WithName("s")))
	require.ErrorContains(t, err, `"s" is a scalar, which has no rows`)
	_, err = Touch(nil)
	require.Error(t, err)
}

func TestBadRows(t *testing.T) {
	shape := tensor.Shape{3, 2}
	two := dense(G.Float64, []int{2, 2}, 1, 2, 3, 4)
	for name, c := range map[string]struct {
		rows func() (*Rows, error)
		want string
	}{
		"wrong width":       {func() (*Rows, error) { return NewRows(G.Float64, shape, []int{0, 1}, dense(G.Float64, []int{2, 3})) }, "the values of rows have shape (2, 3)"},
		"too few":           {func() (*Rows, error) { return NewRows(G.Float64, shape, []int{0, 1, 2}, two) }, "the values of rows have shape (2, 2)"},
		"another dtype":     {func() (*Rows, error) { return NewRows(G.Float32, shape, []int{0, 1}, two) }, "the values of rows are float64, not float32"},
		"values alone":      {func() (*Rows, error) { return NewRows(G.Float64, shape, nil, two) }, "or values and no indices"},
		"indices alone":     {func() (*Rows, error) { return NewRows(G.Float64, shape, []int{0}, nil) }, "there are 1 indices and no values"},
		"an integer tensor": {func() (*Rows, error) { return NewRows(tensor.Int, shape, nil, nil) }, "must be float32 or float64, not int"},
		"a scalar":          {func() (*Rows, error) { return NewRows(G.Float64, tensor.ScalarShape(), nil, nil) }, "has no rows"},
		"a transposed value": {func() (*Rows, error) {
			v := two.Clone().(*tensor.Dense)
			err := v.T()
			must(0, err)
			return NewRows(G.Float64, shape, []int{0, 1}, v)
		}, "one after the other"},
	} {
		_, err := c.rows()
		require.ErrorContains(t, err, c.want, name)
	}
	c := newRowsCase(G.Float64, 3, 2)
	c.plan = must(Compile([]Update{{c.table, c.touch.Rows(Of(c.table)).Sub(c.touch.Merge(c.touch.Values()))}}))
	table := dense(G.Float64, []int{3, 2}, 1, 2, 3, 4, 5, 6)
	late := must(NewRows(G.Float64, shape, []int{0, 1}, two.Clone().(*tensor.Dense)))
	late.Indices = []int{0, 5}
	for name, bad := range map[string]struct {
		grad G.Value
		want string
	}{
		"changed afterwards": {late, "index 5, element 1 of the indices, is out of range: there are 3 rows"},
		"a tensor":           {table.Clone().(*tensor.Dense), "it must be a *graphops.Rows"},
		"another shape":      {must(NewRows(G.Float64, tensor.Shape{4, 2}, nil, nil)), "its value has shape (4, 2), not (3, 2)"},
		"another dtype":      {must(NewRows(G.Float32, shape, nil, nil)), "its value is float32, not float64"},
		"nil":                {(*Rows)(nil), "no value is bound"},
	} {
		require.ErrorContains(t, c.run(map[*G.Node]G.Value{c.table: table, c.grad: bad.grad}), bad.want, name)
		require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, valueFloats(table))
	}
	require.NoError(t, c.run(map[*G.Node]G.Value{c.table: table, c.grad: must(NewRows(G.Float64, shape, []int{0, 1}, two))}))
	require.Equal(t, []float64{0, 0, 0, 0, 5, 6}, valueFloats(table))
}

func TestRowsTargetsMustNotShareMemory(t *testing.T) {
	c := newRowsCase(G.Float64, 3, 2)
	r := c.touch.Rows(Of(c.table)).Sub(c.touch.Merge(c.touch.Values()))
	c.plan = must(Compile([]Update{{c.table, r}, {c.slot, c.touch.Merge(c.touch.Values())}}))
	table := dense(G.Float64, []int{3, 2}, 1, 2, 3, 4, 5, 6)
	err := c.run(map[*G.Node]G.Value{c.table: table, c.slot: table, c.grad: must(NewRows(G.Float64, tensor.Shape{3, 2}, []int{0}, dense(G.Float64, []int{1, 2}, 1, 1)))})
	require.ErrorAs(t, err, &SharedMemoryError{})
	require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, valueFloats(table))
}

// Rows whose number changes from run to run, more than a worker takes at a time, agree with whole tensors, and need no new memory.
func TestManyRows(t *testing.T) {
	const rows, width = 3000, 40
	for _, dt := range dtypes {
		c, w := newRowsCase(dt, rows, width), newRowsCase(dt, rows, width)
		step := func(table, slot, g Expr) (Expr, Expr) {
			m := slot.Mul(Const(.9)).Add(g.Mul(Const(1).Div(Const(1).Add(g.Norm()))))
			return m, table.Sub(m.Div(m.Square().Add(Const(1)).Sqrt()))
		}
		m, x := step(c.touch.Rows(Of(c.table)), c.touch.Rows(Of(c.slot)), c.touch.Merge(c.touch.Values()))
		c.plan = must(Compile([]Update{{c.slot, m}, {c.table, x}}))
		m, x = step(Of(w.table), Of(w.slot), Of(w.grad))
		mask := w.touch.Mask()
		w.plan = must(Compile([]Update{{w.slot, mask.Select(m, Of(w.slot))}, {w.table, mask.Select(x, Of(w.table))}}))
		rng := rand.New(rand.NewPCG(1, 2))
		fill := func(shape ...int) *tensor.Dense {
			x := make([]float64, tensor.Shape(shape).TotalSize())
			for i := range x {
				x[i] = rng.Float64() - .5
			}
			return dense(dt, shape, x...)
		}
		a, s := fill(rows, width), fill(rows, width)
		b, r := a.Clone().(*tensor.Dense), s.Clone().(*tensor.Dense)
		for _, n := range []int{2000, 3, 900, 1, 2900} {
			at := make([]int, n)
			for i := range at {
				at[i] = rng.IntN(rows)
			}
			g := must(NewRows(dt, tensor.Shape{rows, width}, at, fill(n, width)))
			require.NoError(t, c.run(map[*G.Node]G.Value{c.table: a, c.slot: s, c.grad: g}))
			require.NoError(t, w.run(map[*G.Node]G.Value{w.table: b, w.slot: r, w.grad: g}))
			require.InDeltaSlice(t, valueFloats(b), valueFloats(a), 1e-6)
			require.InDeltaSlice(t, valueFloats(r), valueFloats(s), 1e-6)
		}
		g := must(NewRows(dt, tensor.Shape{rows, width}, []int{5, 2, 5}, fill(3, width)))
		var all []G.Value
		for _, n := range c.plan.Leaves() {
			all = append(all, map[*G.Node]G.Value{c.table: a, c.slot: s, c.grad: g}[n])
		}
		require.Zero(t, testing.AllocsPerRun(5, func() { require.NoError(t, c.plan.Run(all)) }))
	}
}
