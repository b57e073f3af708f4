package loop

import (
	"context"
	"fmt"
)

// Kind is a point in the course of a training at which callbacks are called. As a Trigger it fires at that point.
type Kind int

const (
	BeforeTraining Kind = iota // once, before the algorithm is initialized
	OnResumption               // when a run goes on with a training that has done batches
	BeforeEpoch
	BeforeBatch
	AfterBatch    // the batch is counted
	AfterEpoch    // the epoch is counted
	AfterTraining // when the training was asked to stop, but not after an error
	OnError
)

func (k Kind) String() string {
	names := []string{"before training", "on resumption", "before epoch", "before batch", "after batch", "after epoch", "after training", "on error"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("event %d", int(k))
	}
	return names[k]
}

// Event is what a callback is told.
type Event struct {
	Kind  Kind
	Loop  *Loop
	Batch map[string]any // of BeforeBatch and AfterBatch
	Err   error          // of OnError

	ctx context.Context
}

// Context is that of the run.
func (e Event) Context() context.Context {
	if e.ctx == nil {
		return context.Background()
	}
	return e.ctx
}

// Row is the row of the log for the batches done so far.
func (e Event) Row() Row { return e.Loop.Log.Current() }

// Finish asks the loop to stop after the present batch, or the present epoch where the event is after one, and records it. At an event
// before the training or an epoch, the loop stops without a further batch.
func (e Event) Finish() {
	e.Row()[FinishRequested] = true
	e.Loop.Stop()
}

// Callback is called at every event, in the order of Loop.Callbacks; Do makes one that is called at some. An error ends the run.
type Callback func(e Event) error

// Do calls f at events at which one of the triggers fires: once, however many do.
func Do(f func(e Event) error, triggers ...Trigger) Callback {
	t := Any(triggers...)
	return func(e Event) error {
		if !t.Fires(e) {
			return nil
		}
		return f(e)
	}
}

// orElse are the triggers of a callback that has default ones.
func orElse(triggers []Trigger, defaults ...Trigger) Trigger {
	if len(triggers) > 0 {
		return Any(triggers...)
	}
	return Any(defaults...)
}
