package loop

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
)

// byHand is a loop whose events a test makes.
type byHand struct{ Loop }

func newByHand() *byHand { return &byHand{Loop{Log: NewLog()}} }

// step counts so many epochs and iterations, writes the record and tells a callback.
func (l *byHand) step(t *testing.T, c Callback, k Kind, epochs, iterations int, record string, v any) Row {
	t.Helper()
	l.Log.Status.EpochsDone += epochs
	l.Log.Status.IterationsDone += iterations
	l.Log.Current()[record] = v
	require.NoError(t, c(Event{Kind: k, Loop: &l.Loop}))
	return l.Log.Current()
}

func TestTrackTheBest(t *testing.T) {
	nan := math.NaN()
	for name, test := range map[string]struct {
		best         Best
		costs, bests []float64
		notified     []bool
	}{
		"min": {Best{}, []float64{5, 6, 5, 4}, []float64{5, 5, 5, 4}, []bool{true, false, false, true}},
		"max": {Best{Better: func(new, old float64) bool { return new > old }},
			[]float64{5, 6, 5, 4}, []float64{5, 6, 6, 6}, []bool{true, true, false, false}},
		"NaN": {Best{}, []float64{nan, nan, 5, nan, 4}, []float64{nan, nan, 5, 5, 4}, []bool{true, false, true, false, true}},
		"Inf": {Best{}, []float64{math.Inf(1), math.Inf(1), 3}, []float64{math.Inf(1), math.Inf(1), 3}, []bool{true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			test.best.Record = "cost"
			l, c := newByHand(), TrackTheBest(test.best)
			for i, cost := range test.costs {
				row := l.step(t, c, AfterEpoch, 1, 10, "cost", cost)
				best, ok := l.Log.Status.Number("best_cost")
				require.True(t, ok)
				require.Equal(t, math.Float64bits(test.bests[i]), math.Float64bits(best))
				_, ok = row["cost_best_so_far"]
				require.Equal(t, test.notified[i], ok)
			}
		})
	}
	l, c := newByHand(), TrackTheBest(Best{Record: "cost", Notification: "notified", Save: func(Event) error { return errors.New("full") }})
	l.step(t, c, AfterEpoch, 1, 10, "other", 1.0)
	l.step(t, c, AfterBatch, 0, 1, "cost", 1.0)
	require.Empty(t, l.Log.Status.Numbers, "no record, no trigger")
	l.Log.Current()["cost"] = "low"
	require.ErrorContains(t, c(Event{Kind: AfterEpoch, Loop: &l.Loop}), "is a string")
	l.Log.Current()["cost"] = 2.0
	require.EqualError(t, c(Event{Kind: AfterEpoch, Loop: &l.Loop}), "saving the best cost: full")
	require.Equal(t, true, l.Log.Current()["notified"])
}

// A value in each batch of an epoch, and what is saved in each: always, and when it was the best.
func TestSaveTheBest(t *testing.T) {
	saves := map[int][]string{}
	l := &Loop{Algorithm: &fake{}, Data: ten}
	save := func(file string) func(e Event) error {
		return func(e Event) error {
			n := e.Loop.Log.Status.IterationsDone
			saves[n] = append(saves[n], file)
			return nil
		}
	}
	l.Callbacks = []Callback{
		FinishAfter(AfterEpochs(1)),
		Do(func(e Event) error {
			e.Row()["cost"] = math.Abs(float64(e.Loop.Log.Status.IterationsDone)-5) + 3
			return nil
		}, AfterBatch),
		Do(save("dst"), AfterBatch),
		TrackTheBest(Best{Record: "cost", Save: save("hook")}, AfterBatch),
		Do(save("dst_best"), All(AfterBatch, OnRecord("cost_best_so_far"))),
	}
	run(t, l)
	for i := 1; i <= 10; i++ {
		want := []string{"dst", "hook", "dst_best"}
		if i > 5 {
			want = want[:1]
		}
		require.Equal(t, want, saves[i])
	}
	require.Equal(t, map[string]float64{"best_cost": 3}, l.Log.Status.Numbers)
}

func TestFinishIfNoImprovement(t *testing.T) {
	for name, test := range map[string]struct {
		patience           Patience
		kind               Kind
		epochs, iterations int
		record             string
	}{
		"iterations": {Patience{Iterations: 3}, AfterBatch, 0, 1, "best_patience_iterations"},
		"epochs":     {Patience{Epochs: 3}, AfterEpoch, 1, 10, "best_patience_epochs"},
		"own record": {Patience{Epochs: 3, Record: "patience"}, AfterEpoch, 1, 10, "patience"},
	} {
		t.Run(name, func(t *testing.T) {
			l, c := newByHand(), FinishIfNoImprovement("best", test.patience, test.kind)
			row := l.step(t, c, test.kind, test.epochs, test.iterations, "other", 0)
			require.NotContains(t, row, test.record)
			for i, left := range []float64{3, 2, 1, 3, 2, 1, 0} {
				record := "other"
				if left == 3 {
					record = "best"
				}
				row := l.step(t, c, test.kind, test.epochs, test.iterations, record, false)
				require.Equal(t, left, row[test.record], i)
				_, finish := row[FinishRequested]
				require.Equal(t, left == 0, finish)
			}
			require.Equal(t, int32(stopNow), l.stop.Load())
		})
	}
}

// A patience that jumps below 0, as the callback is seldom called, ends the training too.
func TestPatienceBelowZero(t *testing.T) {
	l, c := newByHand(), FinishIfNoImprovement("best", Patience{Iterations: 3})
	l.step(t, c, AfterEpoch, 1, 10, "best", true)
	row := l.step(t, c, AfterEpoch, 1, 10, "other", true)
	require.Equal(t, -7.0, row["best_patience_iterations"])
	require.Equal(t, true, row[FinishRequested])
}

func TestPatienceIsOneOfTwo(t *testing.T) {
	for _, p := range []Patience{{}, {Epochs: 1, Iterations: 1}, {Epochs: -1}} {
		for _, c := range []Callback{FinishIfNoImprovement("best", p), EarlyStopping(Best{Record: "cost"}, p)} {
			l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{c}}
			require.ErrorContains(t, l.Run(context.Background()), "either iterations or epochs")
		}
	}
}

func TestEarlyStopping(t *testing.T) {
	for name, test := range map[string]struct {
		patience           Patience
		kind               Kind
		epochs, iterations int
		record             string
	}{
		"iterations": {Patience{Iterations: 3}, AfterBatch, 0, 1, "notified_patience_iterations"},
		"epochs":     {Patience{Epochs: 3}, AfterEpoch, 1, 10, "notified_patience_epochs"},
	} {
		t.Run(name, func(t *testing.T) {
			saved := 0
			save := func(Event) error { saved++; return nil }
			l, c := newByHand(), EarlyStopping(Best{Record: "cost", Notification: "notified", Save: save}, test.patience, test.kind)
			l.Log.Current()["cost"] = 9.0 // before any event
			patience := []float64{3, 3, 2, 1, 3, 2, 1, 0}
			for i, cost := range []float64{8, 7, 8, 7, 6, 7, 7, 7} {
				row := l.step(t, c, test.kind, test.epochs, test.iterations, "cost", cost)
				_, notified := row["notified"]
				require.Equal(t, patience[i] == 3, notified, i)
				require.Equal(t, patience[i], row[test.record], i)
				_, finish := row[FinishRequested]
				require.Equal(t, i == 7, finish, i)
			}
			require.Equal(t, 3, saved)
		})
	}
}

// The best value and the patience outlive a loop: they are in the status.
func TestEarlyStoppingAfterARestart(t *testing.T) {
	costs := []float64{3, 2, 4, 4, 4, 4}
	loop := func(log *Log, until int) *Loop {
		return &Loop{Algorithm: &fake{}, Data: ten, Log: log, Callbacks: []Callback{
			Do(func(e Event) error { e.Row()["cost"] = costs[e.Loop.Log.Status.EpochsDone-1]; return nil }, AfterEpoch),
			EarlyStopping(Best{Record: "cost"}, Patience{Epochs: 3}),
			FinishAfter(AfterEpochs(until)),
		}}
	}
	first := loop(nil, 3)
	run(t, first)
	second := loop(saved(t, first.Log), 6)
	run(t, second)
	require.Equal(t, 5, second.Log.Status.EpochsDone)
	require.Equal(t, first.Log.Status.Numbers, second.Log.Status.Numbers)
	require.Equal(t, map[string]float64{"best_cost": 2, "cost_best_so_far_epochs": 2}, second.Log.Status.Numbers)
}

// That there was no such record is told when the training ends, and only then.
func TestNothingToTrack(t *testing.T) {
	var text bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	l, c := newByHand(), EarlyStopping(Best{Record: "vaild_cost"}, Patience{Epochs: 2})
	l.step(t, c, AfterEpoch, 1, 10, "valid_cost", 5.)
	require.Empty(t, text.String())
	l.step(t, c, AfterTraining, 0, 0, "valid_cost", 5.)
	require.Contains(t, text.String(), "record=vaild_cost")
	text.Reset()
	c = TrackTheBest(Best{Record: "valid_cost"})
	l.step(t, c, AfterEpoch, 1, 10, "valid_cost", 4.)
	l.step(t, c, AfterTraining, 0, 0, "valid_cost", 4.)
	require.Empty(t, text.String())
}
