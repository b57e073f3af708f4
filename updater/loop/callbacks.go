package loop

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"gorgonia.org/tensor"

	"optimop/updater"
)

// Modify changes a hyperparameter where a trigger fires, by default AfterBatch. Its iteration is the number of batches done, this
// one included: the first is 1. The change is for the batches after that.
func Modify(m *updater.Modifier, triggers ...Trigger) Callback {
	return Do(func(e Event) error {
		return m.Apply(e.Loop.Log.Status.IterationsDone)
	}, orElse(triggers, AfterBatch))
}

// Print writes the current row as a line where a trigger fires, by default AfterEpoch: the records by name, but those that
// begin with an underscore.
func Print(w io.Writer, triggers ...Trigger) Callback {
	return Do(func(e Event) error {
		s := e.Loop.Log.Status
		line := fmt.Sprintf("epoch %d, iteration %d", s.EpochsDone, s.IterationsDone)
		sep := ": "
		row := e.Row()
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if !strings.HasPrefix(name, "_") {
				line += sep + name + " " + show(row[name])
				sep = ", "
			}
		}
		_, err := fmt.Fprintln(w, line)
		return errors.Wrap(err, "loop: printing")
	}, orElse(triggers, AfterEpoch))
}

func show(v any) string {
	switch x := v.(type) {
	case float64:
		return fmt.Sprintf("%.6g", x)
	case *tensor.Dense:
		return fmt.Sprintf("%.6g", x.Data())
	}
	return fmt.Sprint(v)
}

// Timing records where time goes, in seconds, where a trigger fires, by default AfterEpoch; it is for events AfterBatch and AfterEpoch:
// time_train_this_epoch, the mean of the epochs since the last time, time_train_total, and so for time_read_data; after
// a batch "batch" stands for "epoch". names gives these a prefix or suffix. Before the first epoch of a Loop it records
// time_initialization.
func Timing(names Names, triggers ...Trigger) Callback {
	t := &timing{names: names, trigger: orElse(triggers, AfterEpoch)}
	return t.on
}

type timing struct {
	names   Names
	trigger Trigger
	began   bool
	at      map[Kind]timed // the last time after a batch, and after an epoch
}

// timed is what had been done, and how long it took.
type timed struct {
	done int
	Times
}

func (t *timing) on(e Event) error {
	times, s := e.Loop.Times(), e.Loop.Log.Status
	if t.at == nil {
		t.at = map[Kind]timed{AfterBatch: {s.IterationsDone, times}, AfterEpoch: {s.EpochsDone, times}}
	}
	if e.Kind == BeforeEpoch && !t.began {
		t.began = true
		e.Row()["time_initialization"] = times.Initialization.Seconds()
	}
	if !t.trigger.Fires(e) {
		return nil
	}
	done, unit := s.EpochsDone, "epoch"
	switch e.Kind {
	case AfterEpoch:
	case AfterBatch:
		done, unit = s.IterationsDone, "batch"
	default:
		return errors.Errorf("loop: timing is for events after batches and epochs, not %v", e.Kind)
	}
	before, row := t.at[e.Kind], e.Row()
	for _, a := range []struct {
		name        string
		total, then time.Duration
	}{{"time_train", times.Train, before.Train}, {"time_read_data", times.ReadData, before.ReadData}} {
		row[t.names.record(a.name+"_total")] = a.total.Seconds()
		row[t.names.record(a.name+"_this_"+unit)] = (a.total - a.then).Seconds() / float64(done-before.done)
	}
	t.at[e.Kind] = timed{done, times}
	return nil
}
