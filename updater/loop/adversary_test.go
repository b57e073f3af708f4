package loop

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/updater"
)

// A batch without examples is an error, in evaluations and in trainings, after which they go on.
func TestNoExamples(t *testing.T) {
	for _, dt := range dtypes {
		none := map[string]any{"x": tensor.New(tensor.Of(dt), tensor.WithShape(0, 2))}
		square := func(x *G.Node) *G.Node { return named("s", G.Must(G.Sum(G.Must(G.Square(x))))) }
		e := NewShapedEvaluator(matrixModel(dt, func(x *G.Node) []Quantity { return []Quantity{Mean(square(x))} }))
		_, err := e.Evaluate(context.Background(), then(rows(dt, 2, [2]float64{1, 2}), Slice(none)))
		require.ErrorContains(t, err, `batch 2 of x (0, 2): loop: input "x": the input has the shape (0, 2) and so no elements`)
		require.Equal(t, Row{"s": 5.}, must(e.Evaluate(context.Background(), rows(dt, 2, [2]float64{1, 2}))))
		require.NoError(t, e.Close())

		weights := dense(dt, []int{2}, 1, -1)
		a := must(updater.NewBatched(func(shapes map[string]tensor.Shape) (updater.Descent, error) {
			g := G.NewGraph()
			w := G.NewVector(g, dt, G.WithShape(2), G.WithName("w"), G.WithValue(weights))
			x := G.NewMatrix(g, dt, G.WithShape(shapes["x"]...), G.WithName("x"))
			return updater.Descent{Cost: square(G.Must(G.Mul(x, w))), Parameters: G.Nodes{w}}, nil
		}))
		l := &Loop{Algorithm: a, Data: func(int) Batches { return Slice(none, map[string]any{"x": [][]int{{0, 0}}}) },
			Callbacks: []Callback{FinishAfter(AfterEpoch)}}
		require.ErrorContains(t, l.Run(context.Background()), "no elements")
		run(t, l)
		require.Equal(t, []float64{1, -1}, floats(t, a.Value("w")))
	}
}

// Where a loop is asked to stop before an epoch it trains on no batch; the next run does.
func TestFinishBeforeBatches(t *testing.T) {
	for kind, batches := range map[Kind]int{BeforeTraining: 0, BeforeEpoch: 0, BeforeBatch: 1, AfterBatch: 1, AfterEpoch: 10} {
		t.Run(kind.String(), func(t *testing.T) {
			a := &fake{}
			l := &Loop{Algorithm: a, Data: ten, Callbacks: []Callback{FinishAfter(kind)}}
			run(t, l)
			require.Equal(t, batches, a.batches)
			require.Equal(t, true, l.Log.Current()[Finished])
			l.Callbacks = []Callback{FinishAfter(AfterEpochs(2))}
			run(t, l)
			require.Equal(t, 20, a.batches)
		})
	}
	a := &fake{}
	l := &Loop{Algorithm: a, Data: ten, Callbacks: []Callback{FinishAfter(AfterBatches(4))}}
	run(t, l)
	l.Callbacks = []Callback{FinishAfter(OnResumption)}
	run(t, l)
	require.Equal(t, 4, a.batches)
	l.Stop()
	run(t, l)
	require.Equal(t, 4, a.batches)
	l.Close()
}

// A callback may close the data at any event: they are opened again, and no batch is lost.
func TestCloseDuringARun(t *testing.T) {
	for kind := BeforeTraining; kind <= OnError; kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{
				record,
				Do(func(e Event) error { e.Loop.Close(); return nil }, kind),
				FinishAfter(AfterEpochs(2)),
			}}
			run(t, l)
			require.Equal(t, []int{10, 20}, l.Log.Status.EpochEnds)
			for i := 1; i <= 20; i++ {
				require.Equal(t, (i-1)%10, must(l.Log.Row(i))["batch"])
			}
		})
	}
}

// A panic of a callback is an error of the run, told to the callbacks and recorded, and the next run goes on.
func TestPanics(t *testing.T) {
	for kind := BeforeTraining; kind <= AfterTraining; kind++ {
		t.Run(kind.String(), func(t *testing.T) {
			armed := kind != OnResumption
			var told []error
			l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{
				Do(func(e Event) error { told = append(told, e.Err); panic("told") }, OnError),
				Do(func(Event) error {
					if armed {
						armed = false
						panic(oddError{})
					}
					return nil
				}, kind),
				FinishAfter(AfterEpochs(1)),
			}}
			if kind == OnResumption {
				run(t, l)
				armed = true
			}
			err := l.Run(context.Background())
			require.ErrorIs(t, err, oddError{})
			require.ErrorContains(t, err, kind.String())
			require.Equal(t, []error{err}, told)
			require.Equal(t, []any{err.Error()}, values(l.Log, Failed))
			l.Callbacks = append(l.Callbacks, FinishAfter(AfterEpochs(2)))
			run(t, l)
			l.Close()
		})
	}
}

// Nor do panics of the data, of the algorithm and of what is evaluated pass by, or end an epoch before its time.
func TestPanicsOfTheData(t *testing.T) {
	var seen []any
	armed := map[any]bool{"open": true, 3: true, 6: true}
	fuse := func(at any) {
		if armed[at] {
			armed[at] = false
			panic(at)
		}
	}
	a := &fake{do: func(b map[string]any) error {
		if b["data"] == 6 {
			fuse(6)
		}
		seen = append(seen, b["data"])
		return nil
	}}
	data := func(epoch int) Batches {
		fuse("open")
		return Each(func(yield func(map[string]any) bool) {
			for b := range ten(epoch) {
				if fuse(b["data"]); !yield(b) {
					return
				}
			}
		})
	}
	l := &Loop{Algorithm: a, Data: data, Callbacks: []Callback{FinishAfter(AfterEpochs(1))}}
	armed[6] = false
	for _, text := range []string{"loop: opening the data of epoch 1: panic: open", "loop: iteration 4, epoch 1: reading a batch: panic: 3"} {
		require.EqualError(t, l.Run(context.Background()), text)
	}
	armed[3] = true
	l.Close()
	require.EqualError(t, l.Run(context.Background()), "loop: iteration 4, epoch 1: reading a batch: panic: 3")
	l.Data = ten
	armed[6] = true
	require.EqualError(t, l.Run(context.Background()), "loop: iteration 7, epoch 1, batch of data (): panic: 6")
	run(t, l)
	require.Equal(t, []any{0, 1, 2, 3, 4, 5, 7, 8, 9}, seen)

	x := G.NewVector(G.NewGraph(), tensor.Float64, G.WithShape(1), G.WithName("x"))
	e := must(NewEvaluator(Model{G.Nodes{x}, []Quantity{Last(x)}}))
	one := map[string]any{"x": []float64{5}}
	_, err := e.Evaluate(context.Background(), func(yield func(map[string]any, error) bool) {
		yield(one, nil)
		panic(oddError{})
	})
	require.ErrorIs(t, err, oddError{})
	require.Nil(t, x.Value())
	e.Examples = func(map[string]any) (float64, error) { panic("uncountable") }
	_, err = e.Evaluate(context.Background(), Slice(one))
	require.ErrorContains(t, err, "panic: uncountable")
	require.Nil(t, x.Value())
}
