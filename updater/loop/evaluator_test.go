package loop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/updater"
)

// A parameter's square without data, and means over rows, weighted and not, of batches of 2 and 3 rows.
func TestEvaluate(t *testing.T) {
	ctx := context.Background()
	for _, dt := range dtypes {
		g := G.NewGraph()
		v := G.NewScalar(g, dt, G.WithName("V"), G.WithValue(goNumber(dt, 2)))
		e := must(NewEvaluator(Model{Quantities: []Quantity{Last(named("V²", G.Must(G.Square(v)))), Last(v)}}))
		require.Equal(t, Row{"V²": 4., "V": 2.}, must(e.Evaluate(ctx, nil)))
		only := must(NewEvaluator(Model{Quantities: []Quantity{Last(v)}}))
		require.Equal(t, Row{"V": 2.}, must(only.Evaluate(ctx, nil)), "nothing to compute")
		require.NoError(t, only.Close())

		model := matrixModel(dt, func(x *G.Node) []Quantity { return []Quantity{Mean(named("mean", G.Must(G.Mean(x))))} })
		for _, test := range []struct {
			rows []map[string]any
			one  float64
			want float64
		}{
			{[]map[string]any{{"x": dense(dt, []int{2, 2}, 1, 2, 3, 4)}, {"x": dense(dt, []int{3, 2}, 10, 11, 12, 13, 14, 15)}}, 0, 8.5},
			{[]map[string]any{{"x": dense(dt, []int{2, 2}, 1, 2, 3, 4)}, {"x": dense(dt, []int{3, 2}, 10, 11, 12, 13, 14, 15)}}, 1, 7.5},
			{[]map[string]any{{"x": [][]int{{0, 1}, {2, 3}}}, {"x": [][]int{{4, 5}, {6, 7}, {8, 9}}, "other": 5.}}, 0, 4.5},
		} {
			e := NewShapedEvaluator(model)
			if test.one > 0 {
				e.Examples = func(map[string]any) (float64, error) { return test.one, nil }
			}
			require.Equal(t, Row{"mean": test.want}, must(e.Evaluate(ctx, Slice(test.rows...))))
			require.NoError(t, e.Close())
		}
	}
}

// Two equal quantities, of three batches, share nothing, nor do two evaluators of one graph.
func TestTwoEqualQuantities(t *testing.T) {
	for _, dt := range dtypes {
		g := G.NewGraph()
		targets := G.NewVector(g, dt, G.WithShape(2), G.WithName("t"))
		p := G.NewVector(g, dt, G.WithShape(2), G.WithName("p"))
		entropy := named("entropy", G.Must(G.Neg(G.Must(G.Sum(G.Must(G.HadamardProd(targets, G.Must(G.Log(p)))))))))
		m := Model{G.Nodes{targets, p}, []Quantity{Mean(entropy), Mean(entropy).Named("again"), Sum(entropy).Named("sum")}}
		batches := Slice(
			map[string]any{"t": []int{1, 2}, "p": []int{11, 12}}, map[string]any{"t": []int{3, 4}, "p": []int{13, 14}},
			map[string]any{"t": []int{5, 6}, "p": []int{15, 16}})
		for range 2 {
			got := must(must(NewEvaluator(m)).Evaluate(context.Background(), batches))
			require.InEpsilon(t, -18.5981897674, got["entropy"], 1e-6)
			require.Equal(t, got["entropy"], got["again"])
			require.InEpsilon(t, -3*18.5981897674, got["sum"], 1e-6)
		}
	}
}

// What is wanted of a run is what the nodes are, though Gorgonia writes results over operands that nobody reads any more.
func TestEvaluatorReadsIntermediateNodes(t *testing.T) {
	g := G.NewGraph()
	x := G.NewVector(g, tensor.Float64, G.WithShape(2), G.WithName("x"))
	a := named("a", G.Must(G.Square(x)))
	b := named("b", G.Must(G.Add(a, x)))
	c := named("c", G.Must(G.Tanh(b)))
	d := named("d", G.Must(G.Sum(G.Must(G.Reshape(c, tensor.Shape{2, 1})))))
	e := must(NewEvaluator(Model{G.Nodes{x}, []Quantity{Last(a), Last(b), Last(c), Last(d), Last(x)}}))
	for range 2 {
		got := must(e.Evaluate(context.Background(), Slice(map[string]any{"x": []float64{.1, .2}})))
		near(t, tensor.Float64, []float64{.01, .04}, got["a"])
		near(t, tensor.Float64, []float64{.11, .24}, got["b"])
		near(t, tensor.Float64, []float64{0.10955847, 0.23549575}, dense(tensor.Float64, []int{2}, rounded(floats(t, got["c"]))...))
		near(t, tensor.Float64, []float64{.1, .2}, got["x"])
		require.InDelta(t, floats(t, got["c"])[0]+floats(t, got["c"])[1], got["d"], 1e-15)
	}
}

func rounded(x []float64) (out []float64) {
	for _, v := range x {
		out = append(out, float64(int(v*1e8+.5))/1e8)
	}
	return out
}

func TestEvaluateErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	x := G.NewMatrix(G.NewGraph(), tensor.Float32, G.WithShape(1, 2), G.WithName("x"))
	e := must(NewEvaluator(Model{G.Nodes{x}, []Quantity{Sum(x)}}))
	for name, test := range map[string]struct {
		data Batches
		err  string
	}{
		"wrong source": {Slice(map[string]any{"y": 1}), "batch 1 of y (): not all data sources are there: the batch has [\"y\"]; the inputs are [\"x\"]"},
		"wrong shape": {then(rows(tensor.Float32, 1, [2]float64{1, 2}), rows(tensor.Float32, 2, [2]float64{}, [2]float64{})),
			`batch 2 of x (2, 2): source "x": the data have shape (2, 2), the input has (1, 2)`},
		"wrong dtype": {rows(tensor.Float64, 1, [2]float64{}), "a float64 tensor for a float32 input"},
		"no batches":  {Slice(), "no batches"},
		"nil":         {nil, "needs data"},
		"broken":      {func(yield func(map[string]any, error) bool) { yield(nil, oddError{}) }, "odd"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Evaluate(ctx, test.data)
			require.ErrorContains(t, err, test.err)
		})
	}
	cancel()
	_, err := e.Evaluate(ctx, rows(tensor.Float32, 1, [2]float64{1, 2}))
	require.ErrorIs(t, err, context.Canceled)

	for _, inputs := range []G.Nodes{{x, x}, {G.NewScalar(x.Graph(), tensor.Float64)}, {named("sum", G.Must(G.Sum(x)))}} {
		_, err := NewEvaluator(Model{inputs, []Quantity{Sum(x)}})
		require.Error(t, err)
	}
	var read G.Value
	for _, q := range []Quantity{
		Sum(G.NewScalar(G.NewGraph(), tensor.Float32, G.WithName("elsewhere"))), // than the inputs
		Ratio(x, G.NewScalar(G.NewGraph(), tensor.Float32, G.WithName("elsewhere"))),
		Sum(G.Read(named("sum", G.Must(G.Sum(x))), &read)).Named("read"),
	} {
		_, err := NewEvaluator(Model{G.Nodes{x}, []Quantity{q}})
		require.ErrorContains(t, err, "cannot be read")
	}
	n := 0
	shaped := NewShapedEvaluator(func(shapes map[string]tensor.Shape) (Model, error) {
		if n++; n == 3 {
			return Model{}, oddError{}
		}
		m, err := matrixModel(tensor.Float32, func(x *G.Node) []Quantity { return []Quantity{Sum(x).Named(fmt.Sprint(n))} })(shapes)
		return m, err
	})
	_, err = shaped.Evaluate(context.Background(), rows(tensor.Float32, 2, [2]float64{}, [2]float64{}, [2]float64{}))
	require.ErrorContains(t, err, "batch 2 of x (1, 2): the model of these shapes has other quantities")
	_, err = shaped.Evaluate(context.Background(), rows(tensor.Float32, 3, [2]float64{}, [2]float64{}, [2]float64{}))
	require.ErrorContains(t, err, "building the model: odd")
}

// then puts other batches behind.
func then(first, second Batches) Batches {
	return func(yield func(map[string]any, error) bool) {
		for _, part := range []Batches{first, second} {
			for b, err := range part {
				if !yield(b, err) {
					return
				}
			}
		}
	}
}

// No more graphs are kept than there should be, and those that are needed again are.
func TestEvaluatorKeepsSomeGraphs(t *testing.T) {
	built := 0
	model := matrixModel(tensor.Float64, func(x *G.Node) []Quantity { return []Quantity{Sum(named("s", G.Must(G.Sum(x))))} })
	e := NewShapedEvaluator(func(shapes map[string]tensor.Shape) (Model, error) {
		built++
		return model(shapes)
	})
	evaluate := func(n int) {
		t.Helper()
		got := must(e.Evaluate(context.Background(), rows(tensor.Float64, n, make([][2]float64, n)...)))
		require.Equal(t, Row{"s": 0.}, got)
	}
	for n := 1; n <= maxPrograms+2; n++ {
		evaluate(n)
		evaluate(1)
	}
	require.Equal(t, maxPrograms+2, built)
	require.Len(t, e.programs, maxPrograms)
	evaluate(2)
	require.Equal(t, maxPrograms+3, built)
	require.NoError(t, e.Close())
}

// newDropped is a model with two dropouts, trained by Adam on the graph that is also evaluated.
func newDropped(dt tensor.Dtype, way string) (a algorithm, x, cost, out *G.Node, weights G.Nodes) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(shape ...int) *tensor.Dense {
		x := make([]float64, tensor.Shape(shape).TotalSize())
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		return dense(dt, shape, x...)
	}
	solver := solvers.NewAdam(func(a *solvers.Adam) { a.LearningRate = .05 })
	gen := must(graphops.NewGenerator(solver.Store(), "dropout", 7))
	g := G.NewGraph()
	w0 := G.NewMatrix(g, dt, G.WithShape(2, 8), G.WithName("w0"), G.WithValue(random(2, 8)))
	w1 := G.NewMatrix(g, dt, G.WithShape(8, 1), G.WithName("w1"), G.WithValue(random(8, 1)))
	x = G.NewMatrix(g, dt, G.WithShape(2, 2), G.WithName("x"))
	h := must(graphops.Dropout(G.Must(G.Tanh(G.Must(G.Mul(x, w0)))), .5, gen))
	out = named("out", must(graphops.Dropout(G.Must(G.Mul(h, w1)), .25, gen)))
	cost = named("cost", G.Must(G.Mean(G.Must(G.Square(out)))))
	weights = G.Nodes{w0, w1}
	if way == byDescent {
		return must(updater.NewGradientDescent(updater.Descent{Cost: cost, Parameters: weights, StepRule: solver})), x, cost, out, weights
	}
	return must(NewSteps(G.Nodes{x}, func(reads ...*G.Node) (G.VM, error) {
		op, err := solver.Minimize(cost, weights...)
		if err != nil {
			return nil, err
		}
		return graphops.NewMachine(op, reads...)
	})), x, cost, out, weights
}

// Evaluations before the training and in the middle of each epoch, on the graph that is trained, with dropout off, leave no trace in
// the training: it goes on with the same bits as without.
func TestEvaluationLeavesTheTrainingAlone(t *testing.T) {
	ways(t, func(t *testing.T, dt tensor.Dtype, way string) {
		data := func(int) Batches {
			return rows(dt, 2, [2]float64{1, 2}, [2]float64{3, 4}, [2]float64{-1, 0}, [2]float64{.5, 2}, [2]float64{1, 1}, [2]float64{0, 1})
		}
		var ends [2][]float64
		var logs [2]*Log
		for i := range 2 {
			a, x, cost, out, weights := newDropped(dt, way)
			e := must(NewEvaluator(Model{G.Nodes{x}, []Quantity{Mean(cost), Last(out)}}))
			l := &Loop{Algorithm: a, Data: data, Callbacks: []Callback{FinishAfter(AfterEpochs(3))}}
			evaluate := func() Row { return must(e.Evaluate(context.Background(), data(0))) }
			if i == 1 {
				evaluate()
				require.Nil(t, x.Value())
				l.Callbacks = append(l.Callbacks, MonitorData(e, func() Batches { return data(0) }, Names{Prefix: "valid"}, BeforeBatch, AfterBatch, AfterEpoch))
			}
			l.Callbacks = append(l.Callbacks, MonitorTraining([]Quantity{Last(cost), Last(out)}, Names{}, AfterBatch))
			run(t, l)
			for _, w := range weights {
				ends[i] = append(ends[i], floats(t, w.Value())...)
			}
			logs[i] = l.Log
			if i == 1 {
				last := evaluate()
				require.Equal(t, last, evaluate(), "nothing is random")
				require.Equal(t, last["cost"], l.Log.Current()["valid_cost"])
			}
		}
		require.Equal(t, ends[0], ends[1])
		require.Equal(t, values(logs[0], "cost"), values(logs[1], "cost"))
		require.Equal(t, values(logs[0], "out"), values(logs[1], "out"))
		require.NotEqual(t, values(logs[1], "cost"), values(logs[1], "valid_cost")[1:])
	})
}
