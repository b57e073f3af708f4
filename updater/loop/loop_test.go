package loop

import (
	"bytes"
	"context"
	"encoding/gob"
	"io"
	"math"
	"sync/atomic"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
)

// record writes each batch into the log.
func record(e Event) error {
	if e.Kind == AfterBatch {
		e.Row()["batch"] = e.Batch["data"]
	}
	return nil
}

// Two epochs of ten batches, and all events in their order.
func TestRun(t *testing.T) {
	var kinds []Kind
	a := &fake{}
	l := &Loop{Algorithm: a, Data: ten, Callbacks: []Callback{record, events(&kinds), FinishAfter(AfterEpochs(2))}}
	run(t, l)
	require.Equal(t, Status{IterationsDone: 20, EpochsDone: 2, EpochEnds: []int{10, 20}}, l.Log.Status)
	require.Equal(t, 20, l.Log.Len())
	for i, r := range l.Log.Rows() {
		require.Equal(t, (i-1)%10, r["batch"])
	}
	require.Equal(t, []any{true}, values(l.Log, Finished))
	require.Equal(t, 1, a.initialized)
	require.Equal(t, 20, a.batches)
	want := []Kind{BeforeTraining}
	for range 2 {
		want = append(want, BeforeEpoch)
		for range 10 {
			want = append(want, BeforeBatch, AfterBatch)
		}
		want = append(want, AfterEpoch)
	}
	require.Equal(t, append(want, AfterTraining), kinds)
	require.Equal(t, "after training", kinds[len(kinds)-1].String())
	require.Equal(t, "event 99", Kind(99).String())
}

// Callbacks come before the algorithm is initialized, so that they can add to it.
func TestBeforeTrainingComesBeforeInitialize(t *testing.T) {
	a := &fake{}
	l := &Loop{Algorithm: a, Data: ten, Callbacks: []Callback{
		Do(func(Event) error {
			require.Zero(t, a.initialized)
			return nil
		}, BeforeTraining),
		FinishAfter(AfterBatches(1)),
	}}
	run(t, l)
	require.Equal(t, 1, a.batches)
}

// A training that stops in the middle of an epoch goes on there, in the same loop or, with its status, in a new one.
func TestResumption(t *testing.T) {
	for name, next := range map[string]func(l *Loop) *Loop{
		"same loop": func(l *Loop) *Loop { return l },
		"closed":    func(l *Loop) *Loop { l.Close(); return l },
		"other loop": func(l *Loop) *Loop {
			return &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{record}, Log: saved(t, l.Log)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{record, FinishAfter(AfterBatches(14))}}
			run(t, first)
			require.Equal(t, 14, first.Log.Status.IterationsDone)
			require.Equal(t, 1, first.Log.Status.EpochsDone)
			l := next(first)
			defer l.Close()
			var kinds []Kind
			l.Callbacks = append(l.Callbacks, events(&kinds), FinishAfter(AfterBatches(27)))
			run(t, l)
			require.Equal(t, 27, l.Log.Status.IterationsDone)
			require.Equal(t, 2, l.Log.Status.EpochsDone)
			require.Equal(t, []int{10, 20}, l.Log.Status.EpochEnds)
			for i := 15; i <= 27; i++ {
				require.Equal(t, (i-1)%10, must(l.Log.Row(i))["batch"])
			}
			if kinds[0] == BeforeTraining {
				kinds = kinds[1:]
			}
			require.Equal(t, []Kind{OnResumption, BeforeBatch}, kinds[:2], "the epoch does not begin again")
		})
	}
}

// saved is a new log with the status of another after a trip through gob.
func saved(t *testing.T, l *Log) *Log {
	var file bytes.Buffer
	require.NoError(t, gob.NewEncoder(&file).Encode(l.Status))
	out := NewLog()
	require.NoError(t, gob.NewDecoder(&file).Decode(&out.Status))
	return out
}

// A stop after the last batch of an epoch comes before the epoch's end, which the next run makes up for; the old request is not
// one to that run.
func TestStopAfterTheLastBatch(t *testing.T) {
	l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{FinishAfter(AfterBatches(10))}}
	run(t, l)
	require.Equal(t, 0, l.Log.Status.EpochsDone)
	l.Callbacks = append(l.Callbacks, FinishAfter(AfterBatches(12)))
	run(t, l)
	defer l.Close()
	require.Equal(t, 12, l.Log.Status.IterationsDone)
	require.Equal(t, []int{10}, l.Log.Status.EpochEnds)
}

// StopAfterEpoch and Stop from another goroutine; the data are endless.
func TestStopFromOutside(t *testing.T) {
	var epochs atomic.Int32
	reached := make(chan struct{}, 1)
	l := &Loop{Algorithm: &fake{}, Callbacks: []Callback{Do(func(Event) error { epochs.Add(1); return nil }, AfterEpoch)},
		Data: func(epoch int) Batches {
			return Each(func(yield func(map[string]any) bool) {
				for i := 0; yield(map[string]any{}); i++ {
					if i == 3 {
						reached <- struct{}{}
					}
				}
			})
		}}
	defer l.Close()
	done := make(chan error)
	go func() { done <- l.Run(context.Background()) }()
	<-reached
	l.StopAfterEpoch()
	select {
	case <-done:
		t.Error("the epoch has no end")
	default:
	}
	l.Stop()
	require.NoError(t, <-done)
	require.Zero(t, epochs.Load())
	require.Equal(t, []any{true}, values(l.Log, Finished))

	l = &Loop{Algorithm: &fake{}, Data: ten}
	l.Callbacks = []Callback{Do(func(Event) error { l.StopAfterEpoch(); return nil }, AfterBatches(3))}
	run(t, l)
	require.Equal(t, []int{10}, l.Log.Status.EpochEnds)
	require.Empty(t, values(l.Log, FinishRequested))
}

// The end of a context is no failure, and the next run goes on.
func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var kinds []Kind
	l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{events(&kinds),
		Do(func(e Event) error {
			require.NoError(t, e.Context().Err())
			cancel()
			return nil
		}, AfterBatches(4)),
		FinishAfter(AfterEpochs(1))}}
	err := l.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 4, l.Log.Status.IterationsDone)
	require.NotContains(t, kinds, OnError)
	require.NotContains(t, kinds, AfterTraining)
	require.ErrorIs(t, l.Run(ctx), context.Canceled)
	require.Equal(t, 4, l.Log.Status.IterationsDone)
	run(t, l)
	require.Equal(t, []int{10}, l.Log.Status.EpochEnds)
	require.Empty(t, values(l.Log, Failed))
}

type oddError struct{}

func (oddError) Error() string { return "odd" }

// An error has the iteration and the shapes of its batch, keeps its cause, is recorded, and told once.
func TestErrors(t *testing.T) {
	batch := map[string]any{"x": [][]float64{{1, 2, 3}, {4, 5, 6}}, "y": 7}
	data := func(int) Batches { return Slice(map[string]any{}, batch, map[string]any{}) }
	at := "loop: iteration 2, epoch 1, batch of x (2, 3), y (): "
	fails := func(e Event) error { return oddError{} }
	for name, test := range map[string]struct {
		do   func(map[string]any) error
		data func(int) Batches
		call Callback
		text string
		done int
	}{
		"algorithm": {do: func(b map[string]any) error {
			if len(b) > 0 {
				return errors.Wrap(oddError{}, "deep")
			}
			return nil
		}, text: at + "deep: odd", done: 1},
		"before batch": {call: Do(fails, All(BeforeBatch, TriggerFunc(func(e Event) bool { return len(e.Batch) > 0 }))),
			text: at + "before batch: odd", done: 1},
		"after batch":     {call: Do(fails, AfterBatches(2)), text: at + "after batch: odd", done: 2},
		"before training": {call: Do(fails, BeforeTraining), text: "loop: before training: odd"},
		"after epoch":     {call: Do(fails, AfterEpoch), text: "loop: after epoch 1: odd", done: 3},
		"before epoch":    {call: Do(fails, BeforeEpoch), text: "loop: before epoch 1: odd"},
		"data": {data: func(int) Batches {
			return func(yield func(map[string]any, error) bool) {
				_ = yield(map[string]any{}, nil) && yield(nil, oddError{})
			}
		}, text: "loop: iteration 2, epoch 1: reading a batch: odd", done: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			l := &Loop{Algorithm: &fake{do: test.do}, Data: data, Callbacks: []Callback{
				Do(func(e Event) error { told = append(told, e.Err); return nil }, OnError),
				Do(func(e Event) error { return errors.New("not this one") }, OnError),
				Do(func(e Event) error { told = append(told, nil); return nil }, OnError, AfterTraining),
			}}
			if test.call != nil {
				l.Callbacks = append(l.Callbacks, test.call)
			}
			if test.data != nil {
				l.Data = test.data
			}
			err := l.Run(context.Background())
			require.EqualError(t, err, test.text)
			require.Equal(t, oddError{}, errors.Cause(err))
			require.ErrorAs(t, err, new(oddError))
			require.Equal(t, []error{err}, told, "the one that fails stops the rest")
			require.Equal(t, []any{test.text}, values(l.Log, Failed))
			require.Equal(t, test.done, l.Log.Status.IterationsDone)
			var b *BatchError
			if errors.As(err, &b) {
				require.Equal(t, 2, b.Iteration)
				require.Equal(t, 1, b.Epoch)
			}
			l.Close()
		})
	}
}

// After a failure a run goes on with the next batch; where it was the data that failed, with the same one.
func TestRunAfterErrors(t *testing.T) {
	var seen []any
	fail := 3
	a := &fake{do: func(b map[string]any) error {
		if b["data"] == fail {
			fail = -1
			return oddError{}
		}
		seen = append(seen, b["data"])
		return nil
	}}
	broken := true
	data := func(epoch int) Batches {
		return func(yield func(map[string]any, error) bool) {
			for b := range ten(epoch) {
				if b["data"] == 6 && broken {
					broken = false
					yield(nil, io.ErrUnexpectedEOF)
					return
				}
				if !yield(b, nil) {
					return
				}
			}
		}
	}
	l := &Loop{Algorithm: a, Data: data, Callbacks: []Callback{FinishAfter(AfterEpoch)}}
	require.ErrorIs(t, l.Run(context.Background()), oddError{})
	require.ErrorIs(t, l.Run(context.Background()), io.ErrUnexpectedEOF)
	run(t, l)
	require.Equal(t, []any{0, 1, 2, 4, 5, 6, 7, 8, 9}, seen)
	require.Equal(t, []int{9}, l.Log.Status.EpochEnds)
}

// Data without batches are an error, also after an epoch with some; no data are the end, without the events of one.
func TestEndOfData(t *testing.T) {
	empty := func(epoch int) Batches {
		if epoch < 2 {
			return ten(epoch)
		}
		return Slice()
	}
	l := &Loop{Algorithm: &fake{}, Data: empty}
	require.EqualError(t, l.Run(context.Background()), "loop: epoch 3 has no batches")
	require.EqualError(t, l.Run(context.Background()), "loop: epoch 3 has no batches")
	require.Equal(t, []int{10, 20}, l.Log.Status.EpochEnds)

	var kinds []Kind
	l = &Loop{Algorithm: &fake{}, Callbacks: []Callback{events(&kinds)}, Data: func(epoch int) Batches {
		if epoch == 2 {
			return nil
		}
		return ten(epoch)
	}}
	run(t, l)
	require.Equal(t, []int{10, 20}, l.Log.Status.EpochEnds)
	require.Equal(t, AfterEpoch, kinds[len(kinds)-1])
	require.Empty(t, values(l.Log, Finished))

	short := &Loop{Algorithm: &fake{}, Data: ten, Log: &Log{Status: Status{IterationsDone: 11, EpochStarted: true, Taken: 11}}}
	require.EqualError(t, short.Run(context.Background()), "loop: passing over the 11 batches of epoch 1 that were done: it has only 10")
}

func TestRunRefuses(t *testing.T) {
	require.Error(t, (&Loop{Data: ten}).Run(context.Background()))
	require.Error(t, (&Loop{Algorithm: &fake{}}).Run(context.Background()))
	l := &Loop{Algorithm: &fake{}, Data: ten}
	l.Callbacks = []Callback{Do(func(e Event) error { return l.Run(e.Context()) }, AfterBatch)}
	require.ErrorContains(t, l.Run(context.Background()), "during a run")
	l.Close()
}

func TestLog(t *testing.T) {
	l := NewLog()
	require.Nil(t, l.Previous())
	require.Nil(t, l.LastEpoch())
	must(l.Row(0))["field"] = 45
	require.Equal(t, 45, l.Current()["field"])
	require.Empty(t, must(l.Row(1)))
	l.Status.IterationsDone++
	require.Equal(t, 45, l.Previous()["field"])
	_, ok := l.Get("field")
	require.False(t, ok)
	require.Equal(t, 2, l.Len())
	_, err := l.Row(-1)
	require.Error(t, err)
	for range l.Rows() {
		break
	}
	l.Status.EpochEnds = []int{0}
	require.Equal(t, 45, l.LastEpoch()["field"])
	l.Status.IterationsDone = 9
	_, ok = l.Get("field")
	require.False(t, ok)
	require.Equal(t, 2, l.Len(), "looking makes no row")

	// A training of very many batches has the rows that have records, and no more; they come in order.
	l = NewLog()
	l.Status.IterationsDone = math.MaxInt - 1
	l.Current()["end"] = true
	must(l.Row(3))["begin"] = true
	var at []int
	for i := range l.Rows() {
		at = append(at, i)
	}
	require.Equal(t, []int{3, math.MaxInt - 1}, at)
	for _, s := range []Status{{IterationsDone: -1}, {EpochsDone: -1}, {Taken: -1}} {
		require.ErrorContains(t, (&Loop{Algorithm: &fake{}, Data: ten, Log: &Log{Status: s}}).Run(t.Context()), "none can be less than 0")
	}
}

// Each trigger in three epochs of ten batches.
func TestTriggers(t *testing.T) {
	for name, test := range map[string]struct {
		trigger Trigger
		want    []int // iterations done
	}{
		"every 2 epochs":    {EveryEpochs(2), []int{20}},
		"every 0 epochs":    {EveryEpochs(0), nil},
		"every 7 batches":   {EveryBatches(7), []int{7, 14, 21, 28}},
		"every -1 batches":  {EveryBatches(-1), nil},
		"after 2 epochs":    {AfterEpochs(2), []int{20}},
		"after 12 batches":  {AfterBatches(12), []int{12}},
		"first epoch":       {BeforeFirstEpoch{}, []int{0}},
		"any":               {Any(AfterEpochs(1), AfterBatches(11), AfterBatch.of(11)), []int{10, 11}},
		"none":              {Any(), nil},
		"all of none":       {All(), nil},
		"on record":         {All(AfterBatch, OnRecord("odd batch")), []int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29}},
		"on unknown record": {OnRecord("nothing"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{
				Do(func(e Event) error { e.Row()["odd batch"] = e.Loop.Log.Status.IterationsDone%2 == 1; return nil }, AfterBatch),
				Do(func(e Event) error { got = append(got, e.Loop.Log.Status.IterationsDone); return nil }, test.trigger),
				FinishAfter(AfterEpochs(3)),
			}}
			run(t, l)
			require.Equal(t, test.want, got)
		})
	}
}

// of is a second trigger for the same event.
func (k Kind) of(n int) Trigger { return All(k, AfterBatches(n)) }
