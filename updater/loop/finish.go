package loop

import (
	"log/slog"
	"math"

	"github.com/pkg/errors"
)

// FinishAfter ends the training where a trigger fires, such as AfterEpochs(10): after the batch or epoch of that event.
func FinishAfter(triggers ...Trigger) Callback {
	return Do(func(e Event) error {
		e.Finish()
		return nil
	}, triggers...)
}

// Best says what TrackTheBest looks at.
type Best struct {
	Record       string                      // the record that should become small
	Notification string                      // the record that says that this row is the best so far; by default Record + "_best_so_far"
	Better       func(new, old float64) bool // by default new < old; to look for the greatest value, new > old
	Save         func(e Event) error         // called at once for each new best value, to keep the weights; may be nil
}

func (b Best) notification() string {
	if b.Notification != "" {
		return b.Notification
	}
	return b.Record + "_best_so_far"
}

// number is that in the status that holds the best value.
func (b Best) number() string { return "best_" + b.Record }

// TrackTheBest looks at a record where a trigger fires, by default AfterEpoch. A value that is better than all before becomes
// "best_" + Record in Status.Numbers, the notification becomes true in that row, and Save is called. An equal value is not
// better, and NaN never; but a NaN that comes first is the best until there is a number. A row without the record is passed over.
// Where Save fails, the best value stays what it was. Callbacks are called in their order: put what makes the record before. All
// that track a record share its best value. That there was none when the training ends is a warning of log/slog.
func TrackTheBest(b Best, triggers ...Trigger) Callback {
	track := Do(func(e Event) error {
		v, ok := e.Loop.Log.Get(b.Record)
		if !ok {
			return nil
		}
		now, ok := v.(float64)
		if !ok {
			return errors.Errorf("loop: the record %q is a %T, not a float64", b.Record, v)
		}
		status := &e.Loop.Log.Status
		best, ok := status.Number(b.number())
		if ok && !b.better(now, best) {
			return nil
		}
		status.SetNumber(b.number(), now)
		e.Row()[b.notification()] = true
		if b.Save == nil {
			return nil
		}
		err := safely(func() error { return b.Save(e) })
		switch {
		case err == nil:
			return nil
		case ok: // what is saved are still the weights of before
			status.SetNumber(b.number(), best)
		default:
			delete(status.Numbers, b.number())
		}
		return errors.WithMessagef(err, "saving the best %s", b.Record)
	}, orElse(triggers, AfterEpoch))
	return func(e Event) error {
		err := track(e)
		if _, seen := e.Loop.Log.Status.Number(b.number()); !seen && e.Kind == AfterTraining {
			slog.Warn("loop: there was nothing to find the best of: no row had the record when it was looked for", "record", b.Record)
		}
		return err
	}
}

func (b Best) better(now, best float64) bool {
	switch {
	case math.IsNaN(now):
		return false
	case math.IsNaN(best):
		return true
	case b.Better != nil:
		return b.Better(now, best)
	}
	return now < best
}

// Patience says how long FinishIfNoImprovement waits: set either Iterations or Epochs.
type Patience struct {
	Iterations, Epochs int
	Record             string // of the patience that is left; by default the notification + "_patience_iterations" or "_patience_epochs"
}

// checked refuses a patience that says nothing before anything is done.
func (p Patience) checked(c Callback) Callback {
	return func(e Event) error {
		if (p.Iterations > 0) == (p.Epochs > 0) && e.Kind != OnError {
			return errors.Errorf("loop: a patience needs either iterations or epochs, not %d and %d", p.Iterations, p.Epochs)
		}
		return c(e)
	}
}

// of names the records and numbers of a patience: that of what is left, and that of when the last improvement was. done is what is
// counted.
func (p Patience) of(notification string, s *Status) (record, last string, done, limit int) {
	record, last, done, limit = notification+"_patience_epochs", notification+"_epochs", s.EpochsDone, p.Epochs
	if p.Iterations > 0 {
		record, last, done, limit = notification+"_patience_iterations", notification+"_iterations", s.IterationsDone, p.Iterations
	}
	if p.Record != "" {
		record = p.Record
	}
	return record, last, done, limit
}

// FinishIfNoImprovement ends the training where no row had the notification of TrackTheBest, whatever its value, for so many iterations
// or epochs. It looks where a trigger fires, by default AfterEpoch, and writes how much patience is left once there was an improvement. Put
// it behind TrackTheBest.
func FinishIfNoImprovement(notification string, p Patience, triggers ...Trigger) Callback {
	return p.checked(Do(func(e Event) error {
		status := &e.Loop.Log.Status
		record, lastName, done, limit := p.of(notification, status)
		if _, ok := e.Loop.Log.Get(notification); ok {
			status.SetNumber(lastName, float64(done))
		}
		last, ok := status.Number(lastName)
		if !ok {
			return nil
		}
		left := limit - (done - int(last))
		e.Row()[record] = float64(left)
		if left <= 0 {
			e.Finish()
		}
		return nil
	}, orElse(triggers, AfterEpoch)))
}

// EarlyStopping ends the training if a record has not become better for a while: TrackTheBest and FinishIfNoImprovement with the
// same triggers, by default AfterEpoch; for a patience in iterations, take AfterBatch.
func EarlyStopping(b Best, p Patience, triggers ...Trigger) Callback {
	track, finish := TrackTheBest(b, triggers...), FinishIfNoImprovement(b.notification(), p, triggers...)
	return func(e Event) error {
		if err := track(e); err != nil {
			return err
		}
		return finish(e)
	}
}
