package graphops

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func lookupAt(g *G.ExprGraph, name string, shape []int, at ...int) *G.Node {
	n := G.NewTensor(g, tensor.Int, len(shape), G.WithShape(shape...), G.WithName(name))
	if err := G.Let(n, tensor.New(tensor.WithShape(shape...), tensor.WithBacking(at))); err != nil {
		panic(err)
	}
	return n
}

// numbered is Σ k·x over the elements of x, of which the k-th counts k-fold, from 1.
func numbered(x *G.Node) *G.Node {
	k := make([]float64, x.Shape().TotalSize())
	for i := range k {
		k[i] = float64(i + 1)
	}
	w := input(x.Graph(), x.Dtype(), "weights of "+x.Name(), x.Shape(), k...)
	return must(G.Sum(must(G.HadamardProd(x, w))))
}

func TestGatherTakesRows(t *testing.T) {
	for _, dt := range dtypes {
		g := G.NewGraph()
		table := input(g, dt, "table", []int{3, 2}, 1, 2, 3, 4, 5, 6)
		flat := must(Gather(table, lookupAt(g, "flat", []int{4}, 2, 0, 2, 1)))
		square := must(Gather(table, lookupAt(g, "square", []int{1, 2}, 1, 1)))
		one := must(Gather(table, G.NewScalar(g, tensor.Int, G.WithName("one"), G.WithValue(2))))
		vector := must(Gather(input(g, dt, "vector", []int{3}, 7, 8, 9), lookupAt(g, "of vector", []int{2}, 2, 0)))
		vm := must(NewEvalMachine(flat, square, one, vector))
		require.NoError(t, vm.RunAll())
		require.Equal(t, []float64{5, 6, 1, 2, 5, 6, 3, 4}, floats(flat))
		require.Equal(t, []float64{3, 4, 3, 4}, floats(square))
		require.Equal(t, tensor.Shape{1, 2, 2}, square.Value().Shape())
		require.Equal(t, []float64{5, 6}, floats(one))
		require.Equal(t, tensor.Shape{2}, one.Value().Shape())
		require.Equal(t, []float64{9, 7}, floats(vector))
	}
}

func TestGatherReadsOtherIntegers(t *testing.T) {
	g := G.NewGraph()
	table := input(g, G.Float64, "table", []int{3, 2}, 1, 2, 3, 4, 5, 6)
	short := G.NewVector(g, tensor.Int32, G.WithShape(2), G.WithName("short"), G.WithValue(tensor.New(tensor.WithBacking([]int32{2, 1}))))
	long := G.NewVector(g, tensor.Int64, G.WithShape(2), G.WithName("long"), G.WithValue(tensor.New(tensor.WithBacking([]int64{0, 2}))))
	a, b := must(Gather(table, short)), must(Gather(table, long))
	require.NoError(t, must(NewEvalMachine(a, b)).RunAll())
	require.Equal(t, []float64{5, 6, 3, 4, 1, 2, 5, 6}, floats(a, b))
}

func TestGatherRefusesBadOperands(t *testing.T) {
	g, other := G.NewGraph(), G.NewGraph()
	table, at := input(g, G.Float64, "table", []int{3, 2}, 1, 2, 3, 4, 5, 6), lookupAt(g, "at", []int{1}, 0)
	for name, c := range map[string]struct {
		table, at *G.Node
		want      string
	}{
		"nil table":      {nil, at, "the table is nil"},
		"nil indices":    {table, nil, "the indices are nil"},
		"float indices":  {table, input(g, G.Float64, "f", []int{1}, 0), `the indices "f" are float64; they must be int, int32 or int64`},
		"scalar table":   {input(g, G.Float64, "s", nil, 1), at, `the table "s" has shape (), which has no rows`},
		"integer table":  {lookupAt(g, "ints", []int{3}, 1, 2, 3), at, `the table "ints" is int; it must be float32 or float64`},
		"another graph":  {input(other, G.Float64, "o", []int{1, 1}, 1), at, `"o" and "at" are on different graphs`},
		"a statement":    {G.Read(table, new(G.Value)), at, "is a statement"},
		"of a statement": {table, G.Read(table, new(G.Value)), "is a statement"},
	} {
		_, err := Gather(c.table, c.at)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestIndexOutOfRangeIsNamed(t *testing.T) {
	for at, want := range map[int]string{
		-1: "index -1, element 1 of the indices, is out of range: there are 3 rows",
		3:  "index 3, element 1 of the indices, is out of range: there are 3 rows",
	} {
		g := G.NewGraph()
		table, to := input(g, G.Float64, "table", []int{3, 2}, 1, 2, 3, 4, 5, 6), lookupAt(g, "at", []int{2}, 0, at)
		loss := numbered(must(Gather(table, to)))
		d := must(Gradients(loss, G.Nodes{table}))[0]
		op := must(Commit([]Update{{table, Of(table).Sub(Of(d))}}, After(loss)))
		require.ErrorContains(t, must(NewMachine(op)).RunAll(), want)
		require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, floats(table))
		_, err := NewRows(G.Float64, tensor.Shape{3, 2}, []int{0, at}, dense(G.Float64, []int{2, 2}))
		require.ErrorContains(t, err, want)
	}
}

func TestGradientOfLookups(t *testing.T) {
	lookup := map[string]func(table, at *G.Node) (*G.Node, error){
		"Gather":    Gather,
		"ByIndices": func(table, at *G.Node) (*G.Node, error) { return G.ByIndices(table, at, 0) },
	}
	for name, look := range lookup {
		for _, dt := range dtypes {
			g := G.NewGraph()
			table := input(g, dt, "table", []int{4, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
			a := must(look(table, lookupAt(g, "a", []int{3}, 2, 0, 2)))
			b := must(look(table, lookupAt(g, "b", []int{2}, 1, 2)))
			once, both := numbered(a), must(G.Add(numbered(a), numbered(b)))
			rows := must(Gradients(both, G.Nodes{table}, KeepRows()))[0]
			require.True(t, IsRows(rows), name)
			whole := must(Gradients(both, G.Nodes{table}))[0]
			require.False(t, IsRows(whole))
			mixed := must(G.Add(once, numbered(table)))
			sum := must(Gradients(mixed, G.Nodes{table}, KeepRows()))[0]
			require.False(t, IsRows(sum))
			vm := must(NewEvalMachine(rows, whole, sum))
			require.NoError(t, vm.RunAll())
			r := rows.Value().(*Rows)
			require.ElementsMatch(t, []int{2, 0, 2, 1, 2}, r.Indices)
			want := []float64{3, 4, 1, 2, 0, 0, 0, 0}
			for i, x := range []float64{0, 0, 0, 0, 1 + 5 + 3, 2 + 6 + 4, 0, 0} {
				want[i] += x
			}
			require.Equal(t, want, floats(whole))
			require.Equal(t, want, valueFloats(must(r.Dense())))
			require.Equal(t, []float64{3 + 1, 4 + 2, 3, 4, 1 + 5 + 5, 2 + 6 + 6, 7, 8}, floats(sum))
		}
	}
}

// A table that is computed, a second derivative, and Gorgonia's own Grad get whole tensors.
func TestLookupsWhereRowsDoNotGo(t *testing.T) {
	g := G.NewGraph()
	w := input(g, G.Float64, "w", []int{3, 2}, 1, 2, 3, 4, 5, 6)
	rows := must(Gather(must(G.Square(w)), lookupAt(g, "at", []int{2}, 1, 1)))
	cost := numbered(rows) // (1+3)·w₁₀² + (2+4)·w₁₁²
	d := must(Gradients(cost, G.Nodes{w}, KeepRows()))[0]
	norm := must(G.Sum(must(G.Square(d))))
	second := must(Gradients(norm, G.Nodes{w}))[0]
	require.Equal(t, [][]float64{{0, 0, 24, 48, 0, 0}, {0, 0, 2 * 24 * 8, 2 * 48 * 12, 0, 0}}, evaluate(t, d, second))

	g = G.NewGraph()
	w = input(g, G.Float64, "w", []int{3, 2}, 1, 2, 3, 4, 5, 6)
	cost = numbered(must(Gather(w, lookupAt(g, "at", []int{2}, 2, 2))))
	ds := must(G.Grad(cost, w))
	require.NoError(t, must(NewEvalMachine(ds[0])).RunAll())
	require.Equal(t, []float64{0, 0, 0, 0, 4, 6}, floats(ds[0]))
}

// A lookup along another axis has no rows.
func TestByIndicesOfColumns(t *testing.T) {
	g := G.NewGraph()
	w := input(g, G.Float64, "w", []int{2, 3}, 1, 2, 3, 4, 5, 6)
	cost := numbered(must(G.ByIndices(w, lookupAt(g, "at", []int{2}, 2, 0), 1)))
	require.Equal(t, []bool{false}, must(TryRows(cost, G.Nodes{w})))
	require.False(t, IsRows(must(Gradients(cost, G.Nodes{w}, KeepRows()))[0]))
}
