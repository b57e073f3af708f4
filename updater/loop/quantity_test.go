package loop

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// matrixModel makes the quantities of a matrix "x" of so many rows and two columns.
func matrixModel(dt tensor.Dtype, make func(x *G.Node) []Quantity) func(shapes map[string]tensor.Shape) (Model, error) {
	return func(shapes map[string]tensor.Shape) (Model, error) {
		x := G.NewMatrix(G.NewGraph(), dt, G.WithShape(shapes["x"]...), G.WithName("x"))
		return Model{G.Nodes{x}, make(x)}, nil
	}
}

func rowSum(x *G.Node) *G.Node { return G.Must(G.Sum(x, 0)) }

// rowCount is the number of rows as a node, of the dtype of x.
func rowCount(x *G.Node) *G.Node {
	return G.NewScalar(x.Graph(), x.Dtype(), G.WithName("rows"), G.WithValue(goNumber(x.Dtype(), float64(x.Shape()[0]))))
}

// The aggregators over 5 rows in batches of 2, so that the last is short.
func TestAggregators(t *testing.T) {
	first := [][2]float64{{0, 3}, {2, 9}, {2, 4}, {5, 1}, {6, 7}}
	sums := [][2]float64{{2, 3}, {2, 9}, {2, 4}, {5, 1}}
	again := [][2]float64{{2, 1}, {1, 3}, {1, -1}, {2.5, 1}}
	root := func(x *G.Node) *G.Node { return rowSum(G.Must(G.Sqrt(x))) }
	square := func(x *G.Node) *G.Node { return rowSum(G.Must(G.Square(x))) }
	all := func(f func(*G.Node) *G.Node) func(*G.Node) *G.Node {
		return func(x *G.Node) *G.Node { return G.Must(G.Sum(f(x))) }
	}
	least := func(x *G.Node) *G.Node { // of the two columns of the squares
		return G.Must(G.Neg(G.Must(G.Max(G.Must(G.Neg(square(x)))))))
	}
	for name, test := range map[string]struct {
		make  func(x *G.Node) Quantity
		data  [][2]float64
		shape []int
		want  []float64
	}{
		"per example":      {of(PerExample, root), first, []int{2}, []float64{1.502796969, 2.075560424}},
		"ratio":            {func(x *G.Node) Quantity { return Ratio(named("v", root(x)), rowCount(x)) }, first, []int{2}, []float64{1.502796969, 2.075560424}},
		"per example, sum": {of(PerExample, all(root)), first, nil, []float64{3.5783573927}},
		"perplexity": {func(x *G.Node) Quantity { return Perplexity(named("v", root(x)), rowCount(x)) },
			first, []int{2}, []float64{.222506944, .1254860824}},
		"perplexity, sum": {func(x *G.Node) Quantity { return Perplexity(named("v", all(root)(x)), rowCount(x)) },
			first, nil, []float64{.0279215247}},
		"mean of means":     {of(Mean, func(x *G.Node) *G.Node { return G.Must(G.Mean(x, 0)) }), first, []int{2}, []float64{3, 4.8}},
		"sum":               {of(Sum, rowSum), first, []int{2}, []float64{15, 24}},
		"last":              {of(Last, rowSum), first, []int{2}, []float64{6, 7}},
		"last, of a shape":  {of(Last, func(x *G.Node) *G.Node { return G.Must(G.Square(x)) }), first, []int{1, 2}, []float64{36, 49}},
		"max":               {of(Max, square), sums, []int{2}, []float64{29, 90}},
		"min":               {of(Min, least), sums, nil, []float64{8}},
		"max again":         {of(Max, square), again, []int{2}, []float64{7.25, 10}},
		"min again":         {of(Min, least), again, nil, []float64{2}},
		"concatenation":     {of(Concatenate, rowSum), sums, []int{2, 2}, []float64{4, 12, 7, 5}},
		"concatenated sums": {of(Concatenate, all(rowSum)), sums, []int{2}, []float64{16, 12}},
		"map":               {func(x *G.Node) Quantity { return Map(of(Sum, rowSum)(x), math.Sqrt) }, [][2]float64{{4, 9}}, []int{2}, []float64{2, 3}},
	} {
		for _, dt := range dtypes {
			t.Run(name+" "+dt.String(), func(t *testing.T) {
				e := NewShapedEvaluator(matrixModel(dt, func(x *G.Node) []Quantity { return []Quantity{test.make(x).Named("v")} }))
				for range 2 { // nothing is left of the first pass
					got := must(e.Evaluate(context.Background(), rows(dt, 2, test.data...)))["v"]
					for i, v := range floats(t, got) {
						require.InEpsilon(t, test.want[i], v, 1e-6)
					}
					if test.shape == nil {
						require.IsType(t, 0., got)
					} else {
						require.Equal(t, tensor.Shape(test.shape), got.(*tensor.Dense).Shape())
					}
				}
				require.NoError(t, e.Close())
			})
		}
	}
}

func of(aggregate func(*G.Node) Quantity, f func(x *G.Node) *G.Node) func(x *G.Node) Quantity {
	return func(x *G.Node) Quantity { return aggregate(named("v", f(x))) }
}

// Sums of many float32 values lose nothing: 0.1 in float32, 100,000 times.
func TestAggregatorsCountInFloat64(t *testing.T) {
	g := G.NewGraph()
	n := G.NewScalar(g, tensor.Float32, G.WithName("n"))
	tenth := float64(float32(.1))
	for _, test := range []struct {
		q    Quantity
		want float64
	}{{Sum(n), tenth * 1e5}, {Mean(n), tenth}} {
		a := test.q.New()
		for range 100_000 {
			require.NoError(t, a.Add([]G.Value{G.NewF32(.1)}, 3))
		}
		require.InEpsilon(t, test.want, must(a.Value()), 1e-10)
	}
}

// NaN and infinities come out, of a minimum and a maximum too; values may be of other types than floats.
func TestOddValues(t *testing.T) {
	n := G.NewScalar(G.NewGraph(), tensor.Float64, G.WithName("n"))
	nan, inf := math.NaN(), math.Inf(1)
	view := must(dense(tensor.Float64, []int{2, 2}, 1, 2, 3, 4).Slice(nil, G.S(1)))
	for name, test := range map[string]struct {
		q      Quantity
		values []G.Value
		want   []float64
	}{
		"min":    {Min(n), []G.Value{G.NewF64(1), G.NewF64(nan), G.NewF64(0)}, []float64{nan}},
		"max":    {Max(n), []G.Value{G.NewF64(nan), G.NewF64(2)}, []float64{nan}},
		"sum":    {Sum(n), []G.Value{G.NewF64(inf), G.NewF64(2)}, []float64{inf}},
		"mean":   {Mean(n), []G.Value{G.NewF64(-inf), G.NewF64(2)}, []float64{-inf}},
		"ints":   {Sum(n), []G.Value{G.NewI(3), G.NewI64(4), G.NewI32(5)}, []float64{12}},
		"bools":  {Mean(n), []G.Value{G.NewB(true), G.NewB(false)}, []float64{.5}},
		"matrix": {Sum(n), []G.Value{tensor.New(tensor.WithShape(2), tensor.WithBacking([]int{1, 2}))}, []float64{1, 2}},
		"view":   {Sum(n), []G.Value{view.(*tensor.Dense)}, []float64{2, 4}},
		"vector": {Last(n), []G.Value{dense(tensor.Float32, []int{1}, 3)}, []float64{3}},
		"empty":  {Sum(n), []G.Value{tensor.New(tensor.Of(tensor.Float64), tensor.WithShape(0, 2))}, []float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			a := test.q.New()
			for _, v := range test.values {
				require.NoError(t, a.Add([]G.Value{v}, 1))
			}
			got := floats(t, must(a.Value()))
			require.Len(t, got, len(test.want))
			for i, w := range test.want {
				require.Equal(t, math.IsNaN(w), math.IsNaN(got[i]))
				require.True(t, w == got[i] || math.IsNaN(w), "%v", got)
			}
		})
	}
}

func TestAggregatorErrors(t *testing.T) {
	n := G.NewScalar(G.NewGraph(), tensor.Float64, G.WithName("n"))
	two, three := dense(tensor.Float64, []int{2}, 1, 2), dense(tensor.Float64, []int{3}, 1, 2, 3)
	for _, q := range []Quantity{Sum(n), Min(n), Max(n), Mean(n), PerExample(n), Concatenate(n)} {
		a := q.New()
		require.NoError(t, a.Add([]G.Value{two}, 1))
		require.ErrorContains(t, a.Add([]G.Value{three}, 1), "shape (3) after one of shape (2)")
		require.Error(t, a.Add([]G.Value{nil}, 1))
	}
	require.Error(t, Last(n).New().Add([]G.Value{tensor.New(tensor.WithBacking([]string{"a"}))}, 1))
	require.ErrorContains(t, Ratio(n, n).New().Add([]G.Value{two, three}, 1), "a sum of shape (2) over one of shape (3)")
	a := Map(Quantity{New: func() Aggregator { return words{} }}, math.Exp).New()
	_, err := a.Value()
	require.Error(t, err)
}

// words is an aggregator of no numbers.
type words struct{}

func (words) Add([]G.Value, float64) error { return nil }
func (words) Value() (any, error)          { return "many", nil }

func TestExamples(t *testing.T) {
	for name, test := range map[string]struct {
		batch map[string]any
		want  float64
		err   string
	}{
		"rows":    {map[string]any{"x": dense(tensor.Float32, []int{3, 2}, 1, 2, 3, 4, 5, 6), "y": []int{1, 2, 3}, "rate": 7.}, 3, ""},
		"scalars": {map[string]any{"x": G.NewF64(1), "n": 3}, 1, ""},
		"nothing": {nil, 1, ""},
		"differ":  {map[string]any{"x": []float64{1, 2}, "y": []float64{1}}, 0, "the first axes of x (2), y (1) differ"},
		"text":    {map[string]any{"x": "a", "y": []int{1, 2}, "z": nil}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := Examples(test.batch)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, n)
		})
	}
}
