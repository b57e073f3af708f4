package loop

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/updater"
)

// What fails before a monitor began is told to the callbacks behind it.
func TestErrorBeforeTheMonitor(t *testing.T) {
	n := G.NewScalar(G.NewGraph(), tensor.Float64, G.WithName("n"))
	for _, first := range []Callback{
		Do(func(Event) error { return oddError{} }, BeforeTraining),
		MonitorTraining(nil, Names{}),
	} {
		told := 0
		l := &Loop{Algorithm: &observable{}, Data: ten, Callbacks: []Callback{
			first, MonitorTraining([]Quantity{Mean(n)}, Names{}), Do(func(Event) error { told++; return nil }, OnError)}}
		require.ErrorContains(t, l.Run(t.Context()), "before training")
		require.Equal(t, 1, told)
	}
}

// Callbacks, functions and evaluators that are nil are errors of the run or the evaluation.
func TestNil(t *testing.T) {
	for _, c := range []Callback{nil, Do(record, nil), Modify(nil), MonitorData(nil, nil, Names{}), Checkpoint(nil, updater.Checkpoints{})} {
		l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{c, FinishAfter(AfterEpoch)}}
		require.ErrorContains(t, l.Run(t.Context()), "nil pointer")
		l.Close()
	}
	var none *updater.UpdatesAlgorithm
	require.ErrorContains(t, (&Loop{Algorithm: none, Data: ten}).Run(t.Context()), "nil pointer")
	require.ErrorContains(t, (&Loop{Algorithm: &fake{}, Data: func(int) Batches { return Each(nil) }}).Run(t.Context()), "nil pointer")

	x := G.NewScalar(G.NewGraph(), tensor.Float64, G.WithName("x"))
	good := Slice(map[string]any{"x": 1})
	for _, q := range []Quantity{Map(Mean(x), nil), {Name: "q", New: func() Aggregator { return nil }}} {
		_, err := must(NewEvaluator(Model{G.Nodes{x}, []Quantity{q}})).Evaluate(t.Context(), good)
		require.ErrorContains(t, err, "nil pointer")
	}
	for _, e := range []*Evaluator{{}, NewShapedEvaluator(nil)} {
		_, err := e.Evaluate(t.Context(), good)
		require.ErrorContains(t, err, "the evaluator has no model")
	}
}

// An input that was forgotten among Inputs would have the value of the last batch of the training.
func TestEvaluatorWithoutAnInput(t *testing.T) {
	for _, dt := range dtypes {
		m := newLinear(t, dt, byDescent, .1)
		data := examples(dt, [][2]float64{{1, 2}, {3, 5}}, 1, 2)
		run(t, &Loop{Algorithm: m, Data: data, Callbacks: []Callback{FinishAfter(AfterEpoch)}})
		e := must(NewEvaluator(Model{G.Nodes{m.x}, []Quantity{Mean(m.cost)}}))
		_, err := e.Evaluate(t.Context(), data(0))
		require.ErrorContains(t, err, `the batch has a source "targets", and the quantities depend on an input of that name`)
		onlyX := map[string]any{"features": []int{1, 2}, "other": 1}
		require.Contains(t, must(e.Evaluate(t.Context(), Slice(onlyX))), "cost") // the rest is as it is
		e = must(NewEvaluator(Model{G.Nodes{m.x}, []Quantity{Sum(m.x)}}))
		require.Len(t, must(e.Evaluate(t.Context(), data(0))), 1)
	}
}
