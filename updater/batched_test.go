package updater

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// meanModel is a linear model, mean over rows of (x·w − y)², with the number of batches and the mean of x so far beside it.
func meanModel(dt tensor.Dtype, rows int) Descent {
	g := G.NewGraph()
	x, y := sourceNode(g, "x", dt, rows, 2), sourceNode(g, "y", dt, rows)
	w := state(g, "w", dt, []int{2}, .5, -.5)
	mean := state(g, "mean", dt, []int{1, 2}, 0, 0)
	runs := state(g, "runs", dt, nil, 0)
	cost := G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(G.Must(G.Mul(x, w)), y))))))
	G.WithName("cost")(cost)
	return Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: solvers.NewAdam(func(a *solvers.Adam) { a.LearningRate = .1 }), Updates: []graphops.Update{
		{Target: runs, Value: of(runs).Add(num(1))},
		{Target: mean, Value: of(mean).Mul(num(.9)).Add(of(x).MeanAlong(0).Mul(num(.1)))},
	}}
}

// rowsOf is a batch of some rows.
func rowsOf(dt tensor.Dtype, seed float64, rows int) map[string]any {
	x, y := make([]float64, 2*rows), make([]float64, rows)
	for i := range x {
		x[i] = seed + float64(i%5)/4
	}
	for i := range y {
		y[i] = seed - float64(i%3)/2
	}
	return map[string]any{"x": tensorOf(dt, []int{rows, 2}, x...), "y": tensorOf(dt, []int{rows}, y...)}
}

func build(dt tensor.Dtype) (func(map[string]tensor.Shape) (Descent, error), *int) {
	built := 0
	return func(shapes map[string]tensor.Shape) (Descent, error) {
		built++
		if len(shapes["x"]) != 2 {
			return Descent{}, errors.New("x must be a matrix")
		}
		return meanModel(dt, shapes["x"][0]), nil
	}, &built
}

// With one shape it is the algorithm of one graph; several graphs train one model.
func TestBatched(t *testing.T) {
	for _, dt := range bothTypes {
		make, built := build(dt)
		b, err := NewBatched(make)
		require.NoError(t, err)
		require.Nil(t, b.Solver())
		require.Nil(t, b.Value("w"))
		require.ErrorContains(t, b.ProcessBatch(rowsOf(dt, 1, 3)), "before Initialize")
		b.ObserveNames("cost", "total_step_norm", "w")
		require.NoError(t, b.Initialize())
		_, err = b.Observed("cost")
		require.ErrorContains(t, err, "before the first batch")

		alone := descent(t, meanModel(dt, 3))
		require.NoError(t, alone.Observe(alone.Cost()))
		require.NoError(t, alone.Initialize())
		for i := range 4 {
			require.NoError(t, b.ProcessBatch(rowsOf(dt, float64(i), 3)))
			require.NoError(t, alone.ProcessBatch(rowsOf(dt, float64(i), 3)))
			require.Equal(t, must(alone.Observed("cost")), must(b.Observed("cost")))
		}
		same := func() {
			for _, u := range alone.Updates() {
				if v := b.Value(u.Target.Name()); v != nil {
					require.Equal(t, numbers(u.Target.Value()), numbers(v), u.Target.Name())
				}
			}
			for _, st := range alone.Solver().Store().States() {
				require.Equal(t, must(st.Value()), must(b.Solver().Store().Lookup(st.Name()).Value()), st.Name())
			}
		}
		same()
		require.Equal(t, 1, *built)

		// A batch of twice the rows has the same mean, and so the same step.
		rows := rowsOf(dt, 2, 3)
		double := map[string]any{}
		for name, v := range rows {
			d := v.(*tensor.Dense)
			double[name] = must(d.Concat(0, d))
		}
		require.NoError(t, b.ProcessBatch(double))
		require.NoError(t, alone.ProcessBatch(rows))
		require.Equal(t, 2, *built)
		require.InDeltaSlice(t, all(alone.Parameters()...), numbers(b.Value("w")), 1e-6)
		require.Equal(t, []float64{5}, numbers(b.Value("runs")))
		require.Equal(t, []float64{5}, numbers(must(b.Solver().Store().Lookup("global_step").Value())))
		before := numbers(must(b.Observed("w")))
		require.NotEqual(t, before, numbers(b.Value("w")))

		// Alternating shapes train as one graph would, batch by batch.
		for i := range 6 {
			require.NoError(t, b.ProcessBatch(rowsOf(dt, float64(i), 2+i%3)))
			require.Equal(t, []float64{float64(6 + i)}, numbers(b.Value("runs")))
		}
		require.Equal(t, 4, *built)
	}
}

// The graphs share values also where somebody else changes them, and learning rates.
func TestBatchedValues(t *testing.T) {
	make, _ := build(G.Float64)
	b := must(NewBatched(make))
	require.NoError(t, b.Initialize())
	for _, rows := range []int{2, 3} {
		require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, rows)))
	}
	two := must(b.Model(rowsOf(G.Float64, 1, 2)))
	require.NoError(t, G.Let(two.Parameters()[0], tensorOf(G.Float64, []int{2}, 7, 8)))
	require.NoError(t, b.Solver().Set("learning_rate", 0))
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 4)))
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 3)))
	require.Equal(t, []float64{7, 8}, numbers(b.Value("w")))
	require.Equal(t, []float64{7, 8}, numbers(must(b.Model(rowsOf(G.Float64, 1, 3))).Parameters()[0].Value()))
}

// No more graphs are kept than wanted; the one used least recently goes.
func TestBatchedBound(t *testing.T) {
	make, built := build(G.Float64)
	b := must(NewBatched(make, func(o *BatchedOptions) { o.Graphs = 2 }))
	alike := must(NewBatched(make))
	*built = 0
	require.NoError(t, b.Initialize())
	for _, c := range []struct{ rows, built int }{{1, 1}, {2, 2}, {1, 2}, {3, 3}, {1, 3}, {2, 4}, {1, 4}, {3, 5}} {
		require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, c.rows)))
		require.Equal(t, c.built, *built, "%v", c)
	}
	old := must(b.Model(rowsOf(G.Float64, 1, 3)))
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 7)))
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 8)))
	require.ErrorContains(t, old.ProcessBatch(rowsOf(G.Float64, 1, 3)), "before Initialize")
	require.NoError(t, alike.Initialize())
	for _, rows := range []int{1, 2, 1, 3, 1, 2, 1, 3, 7, 8} {
		require.NoError(t, alike.ProcessBatch(rowsOf(G.Float64, 1, rows)))
	}
	require.Equal(t, numbers(alike.Value("w")), numbers(b.Value("w"))) // bit for bit
	_, err := NewBatched(make, func(o *BatchedOptions) { o.Graphs = 0 })
	require.ErrorContains(t, err, "Graphs is 0")
	_, err = NewBatched(nil)
	require.ErrorContains(t, err, "nil")
}

// A graph that was let go is garbage.
func TestBatchedMemory(t *testing.T) {
	make, _ := build(G.Float64)
	b := must(NewBatched(make, func(o *BatchedOptions) { o.Graphs = 1 }))
	require.NoError(t, b.Initialize())
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 50)))
	old := weak.Make(must(b.Model(rowsOf(G.Float64, 1, 50))).Cost().Graph())
	require.NotNil(t, old.Value())
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 60)))
	for range 10 {
		if runtime.GC(); old.Value() == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.Nil(t, old.Value())
	require.NotNil(t, b.Value("w"))
}

// What cannot be built is an error, after which training goes on.
func TestBatchedErrors(t *testing.T) {
	make, built := build(G.Float64)
	odd := func(change func(d *Descent)) func(map[string]tensor.Shape) (Descent, error) {
		return func(shapes map[string]tensor.Shape) (Descent, error) {
			d, err := make(shapes)
			if err == nil && shapes["x"][0] == 3 {
				change(&d)
			}
			return d, err
		}
	}
	for name, c := range map[string]struct {
		change func(d *Descent)
		want   string
	}{
		"nameless": {func(d *Descent) {
			g := d.Cost.Graph()
			n := G.NewScalar(g, G.Float64, G.WithValue(1.))
			d.Updates = append(d.Updates, graphops.Update{Target: n, Value: of(n)})
		}, "needs a name"},
		"other shape": {func(d *Descent) {
			n := state(d.Cost.Graph(), "mean", G.Float64, []int{3}, 1, 2, 3)
			d.Updates[1] = graphops.Update{Target: n, Value: of(n)}
		}, `"mean" is not what it is in the other models`},
		"more parameters": {func(d *Descent) {
			u := state(d.Cost.Graph(), "u", G.Float64, nil, 1)
			d.Cost, d.Parameters = G.Must(G.Mul(d.Cost, u)), append(d.Parameters, u)
		}, `it updates "u", and the first model did not`},
		"other gradients": {func(d *Descent) {
			u := state(d.Cost.Graph(), "u", G.Float64, nil, 1)
			d.Gradients = []ParameterGradient{{u, of(u)}}
		}, `it updates "u", and the first model did not`},
		"fewer updates": {func(d *Descent) { d.Updates = d.Updates[:1] }, `it does not update "mean", as the first model did`},
		"two parameters of a name": {func(d *Descent) {
			u := state(d.Cost.Graph(), "w", G.Float64, nil, 1)
			d.Cost, d.Parameters = G.Must(G.Mul(d.Cost, u)), append(d.Parameters, u)
		}, `two targets of updates are called "w"`},
		"other dtype": {func(d *Descent) { *d = meanModel(G.Float32, 3) }, `parameter "w" is float32`},
		"two of a name": {func(d *Descent) {
			n := state(d.Cost.Graph(), "mean", G.Float64, []int{3}, 1, 2, 3)
			d.Updates = append(d.Updates, graphops.Update{Target: n, Value: of(n)})
		}, `two targets of updates are called "mean"`},
		"no cost":     {func(d *Descent) { d.Cost = nil }, "no cost"},
		"not there":   {func(d *Descent) { G.WithName("other")(d.Cost) }, `0 nodes called "cost"`},
		"twice there": {func(d *Descent) { state(d.Cost.Graph(), "cost", G.Float64, nil, 1) }, `2 nodes called "cost"`},
	} {
		b, plain := must(NewBatched(odd(c.change))), must(NewBatched(make))
		for _, x := range []*Batched{b, plain} {
			require.NoError(t, x.Initialize())
			x.ObserveNames("cost")
			require.NoError(t, x.ProcessBatch(rowsOf(G.Float64, 1, 2)))
		}
		require.ErrorContains(t, b.ProcessBatch(rowsOf(G.Float64, 1, 3)), c.want, name)
		for _, x := range []*Batched{b, plain} {
			require.NoError(t, x.ProcessBatch(rowsOf(G.Float64, 1, 2)))
		}
		require.Equal(t, numbers(plain.Value("w")), numbers(b.Value("w")), name)
		require.Len(t, b.Solver().Store().States(), len(plain.Solver().Store().States()), name) // no slots are left
	}
	one := meanModel(G.Float64, 2)
	same := must(NewBatched(func(map[string]tensor.Shape) (Descent, error) { return one, nil }))
	require.NoError(t, same.Initialize())
	require.NoError(t, same.ProcessBatch(rowsOf(G.Float64, 1, 2)))
	require.ErrorContains(t, same.ProcessBatch(rowsOf(G.Float64, 1, 3)), "make a new graph each time")
	require.NoError(t, same.ProcessBatch(rowsOf(G.Float64, 1, 2)))
	*built = 0
	b := must(NewBatched(make))
	require.NoError(t, b.Initialize())
	require.ErrorContains(t, b.ProcessBatch(map[string]any{"x": 1}), "x must be a matrix")
	require.ErrorContains(t, b.ProcessBatch(map[string]any{"x": (*tensor.Dense)(nil), "y": nil}), "x must be a matrix")
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 2)))
	require.ErrorContains(t, b.ProcessBatch(map[string]any{"y": 1}), `the batch lacks ["x"]`) // and so the model cannot be built
	require.ErrorContains(t, b.ProcessBatch(rowsOf(G.Float64, 1, 0)), "no elements")
	extra := rowsOf(G.Float64, 2, 2)
	extra["id"] = "text"
	require.ErrorContains(t, b.ProcessBatch(extra), `sources ["id"] that are no inputs`)
	require.Equal(t, 5, *built)
	require.ErrorContains(t, b.Observe(G.NewScalar(G.NewGraph(), G.Float64)), "must have names")
	require.ErrorContains(t, b.Observe(nil), "must have names")
	require.ErrorContains(t, b.Observe(state(G.NewGraph(), "nowhere", G.Float64, nil, 1)), `0 nodes called "nowhere"`)
	require.NoError(t, b.Initialize()) // and it is not observed
	cost := must(b.Model(rowsOf(G.Float64, 2, 2))).Cost()
	require.NoError(t, b.Observe(cost))
	require.NoError(t, b.Initialize())
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 2, 2)))
	require.NotZero(t, numbers(must(b.Observed("cost")))[0])
}
