package loop

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"optimop/solvers"
	"optimop/updater"
)

// M1 and M2: the learning rate as a function of the batches done, and of the old one too.
func TestModify(t *testing.T) {
	ways(t, func(t *testing.T, dt tensor.Dtype, way string) {
		data := examples(dt, [][2]float64{{1, 2}, {3, 4}, {5, 6}}, 1, 1, 1)
		for name, test := range map[string]struct {
			modifier func(s *solvers.Solver) (*updater.Modifier, error)
			rate     float64
			w        [3][2]float64
		}{
			"M1": {func(s *solvers.Solver) (*updater.Modifier, error) {
				return updater.NewModifier(s, "learning_rate", func(n int) float64 { return 10 / float64(n) })
			}, 10. / 3, [3][2]float64{{.002, .004}, {58.682, 78.244}, {-38035.018, -45634.196}}},
			"M2": {func(s *solvers.Solver) (*updater.Modifier, error) {
				return updater.NewModifier(s, "learning_rate", func(_ int, old float64) float64 { return .2 * old })
			}, 8e-6, [3][2]float64{{.002, .004}, {.0031736, .0055648}, {.00355389728, .006021156736}}},
		} {
			m := newLinear(t, dt, way, .001)
			batch := 0
			l := &Loop{Algorithm: m, Data: data, Callbacks: []Callback{
				Modify(must(test.modifier(m.solver))),
				Do(func(Event) error {
					near(t, dt, test.w[batch][:], m.w.Value())
					batch++
					return nil
				}, AfterBatch),
				FinishAfter(AfterEpochs(1)),
			}}
			run(t, l)
			require.Equal(t, 3, batch, name)
			require.InEpsilon(t, test.rate, must(m.solver.Get("learning_rate")), 1e-14, name)
		}
		m := newLinear(t, dt, way, .001)
		bad := must(updater.NewModifier(m.solver, "learning_rate", func(int) float64 { panic("no rate") }))
		var at *BatchError
		require.ErrorAs(t, (&Loop{Algorithm: m, Data: data, Callbacks: []Callback{Modify(bad), FinishAfter(AfterBatch)}}).Run(context.Background()), &at)
		require.Equal(t, 1, at.Iteration)
	})
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{
		Do(func(e Event) error {
			row := e.Row()
			row["cost"], row["_hidden"], row["best"], row["a"] = 1./3, 1, true, dense(tensor.Float64, []int{2}, 1, 2.5)
			return nil
		}, AfterEpoch),
		FinishAfter(AfterEpochs(2)),
		Print(&out),
		Print(&out, BeforeTraining),
	}}
	run(t, l)
	require.Equal(t, `epoch 0, iteration 0
epoch 1, iteration 10: a [1 2.5], best true, cost 0.333333
epoch 2, iteration 20: a [1 2.5], best true, cost 0.333333, training_finish_requested true
`, out.String())
	l.Callbacks = []Callback{Print(broken{})}
	require.ErrorContains(t, l.Run(context.Background()), "printing: no paper")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no paper") }

// On a clock of its own: 10 batches an epoch, of 0.1 s in the first and 0.3 s in the others, with 0.01 s of reading.
func TestTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := 0
		a := &fake{do: func(map[string]any) error {
			time.Sleep(time.Duration(1+2*min(epoch, 1)) * 100 * time.Millisecond)
			return nil
		}}
		data := func(e int) Batches {
			epoch = e
			return func(yield func(map[string]any, error) bool) {
				for b := range ten(e) {
					time.Sleep(10 * time.Millisecond)
					if !yield(b, nil) {
						return
					}
				}
			}
		}
		l := &Loop{Algorithm: a, Data: data, Callbacks: []Callback{
			Do(func(Event) error { time.Sleep(time.Second); return nil }, BeforeTraining),
			Do(func(Event) error { time.Sleep(time.Hour); return nil }, BeforeBatch), // nobody's time
			Timing(Names{Prefix: "each"}),
			Timing(Names{Prefix: "each_second"}, EveryEpochs(2)),
			Timing(Names{Suffix: "b"}, EveryBatches(20)),
			FinishAfter(AfterEpochs(2)),
		}}
		run(t, l)
		row0, row1, row2 := must(l.Log.Row(0)), must(l.Log.Row(10)), must(l.Log.Row(20))
		require.Equal(t, Row{"time_initialization": 1.0}, row0)
		for name, want := range map[string][2]float64{
			"each_time_train_this_epoch": {1, 3}, "each_time_train_total": {1, 4},
			"each_time_read_data_this_epoch": {.1, .1}, "each_time_read_data_total": {.1, .2},
		} {
			require.InDelta(t, want[0], row1[name], 1e-12)
			require.InDelta(t, want[1], row2[name], 1e-12)
		}
		require.InDelta(t, 2, row2["each_second_time_train_this_epoch"], 1e-12)
		require.InDelta(t, .1, row2["each_second_time_read_data_this_epoch"], 1e-12)
		require.InDelta(t, .2, row2["time_train_this_batch_b"], 1e-12)

		// A new loop over the old status begins at 0.
		again := &Loop{Algorithm: a, Data: data, Log: &Log{Status: l.Log.Status}, Callbacks: []Callback{
			Timing(Names{}), FinishAfter(AfterEpochs(3)),
		}}
		run(t, again)
		require.InDelta(t, 3, again.Log.Current()["time_train_this_epoch"], 1e-12)
		require.InDelta(t, 3, again.Log.Current()["time_train_total"], 1e-12)

		l.Callbacks = []Callback{Timing(Names{}, BeforeBatch)}
		require.ErrorContains(t, l.Run(t.Context()), "timing is for events after batches and epochs, not before batch")
		l.Close()
	})
}
