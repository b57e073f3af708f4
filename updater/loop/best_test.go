package loop

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The best value is that of the weights that were saved: where that fails, a later value that is better than those is saved, though
// it is not as good as the one that was lost.
func TestSaveFails(t *testing.T) {
	costs := []float64{5, 3, 4, 6}
	for name, test := range map[string]struct {
		full float64 // the cost at which there is no room
		kept []float64
	}{"the first": {5, []float64{3}}, "the second": {3, []float64{5, 4}}, "none": {0, []float64{5, 3}}} {
		for _, panics := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var kept []float64
				l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{
					Do(func(e Event) error { e.Row()["cost"] = costs[e.Loop.Log.Status.EpochsDone-1]; return nil }, AfterEpoch),
					EarlyStopping(Best{Record: "cost", Save: func(e Event) error {
						now, _ := e.Loop.Log.Status.Number("best_cost")
						require.Equal(t, e.Row()["cost"], now, "it may be saved, too")
						if now == test.full && panics {
							panic(oddError{})
						}
						if now == test.full {
							return oddError{}
						}
						kept = append(kept, now)
						return nil
					}}, Patience{Epochs: 5}),
					FinishAfter(AfterEpochs(4)),
				}}
				err := l.Run(context.Background())
				if test.full > 0 {
					require.ErrorIs(t, err, oddError{})
					err = l.Run(context.Background())
				}
				require.NoError(t, err)
				require.Equal(t, test.kept, kept)
				best, ok := l.Log.Status.Number("best_cost")
				require.True(t, ok)
				require.Equal(t, kept[len(kept)-1], best)
			})
		}
	}
}

// What is written for the best value is what a new loop goes on from: the status of the iteration at which it was.
func TestSaveTheLog(t *testing.T) {
	var best *Log
	l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{
		FinishAfter(AfterEpochs(1)),
		Do(func(e Event) error {
			e.Row()["cost"] = math.Abs(float64(e.Loop.Log.Status.IterationsDone)-5) + 3
			return nil
		}, AfterBatch),
		TrackTheBest(Best{Record: "cost", Save: func(e Event) error { best = saved(t, e.Loop.Log); return nil }}, AfterBatch),
	}}
	run(t, l)
	require.Equal(t, Status{IterationsDone: 5, EpochStarted: true, Taken: 5, Numbers: map[string]float64{"best_cost": 3}}, best.Status)
}

// A record that never appears, and one that is never a number that is better, stop nothing too early and NaN not too late.
func TestEarlyStoppingWithoutImprovement(t *testing.T) {
	for name, test := range map[string]struct {
		record any // nil: there is none
		epochs int
	}{"none": {nil, 9}, "NaN": {math.NaN(), 4}, "+Inf": {math.Inf(1), 4}, "always the same": {1., 4}} {
		t.Run(name, func(t *testing.T) {
			l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{
				Do(func(e Event) error {
					if test.record != nil {
						e.Row()["cost"] = test.record
					}
					return nil
				}, AfterEpoch),
				EarlyStopping(Best{Record: "cost"}, Patience{Epochs: 3}),
				FinishAfter(AfterEpochs(9)),
			}}
			run(t, l)
			require.Equal(t, test.epochs, l.Log.Status.EpochsDone)
		})
	}
}
