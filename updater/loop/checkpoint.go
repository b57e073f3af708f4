package loop

import (
	"encoding/json"
	"os"
	"os/signal"
	"strconv"

	"github.com/pkg/errors"

	"optimop/updater"
)

// statusNote is where a snapshot has the Status of the loop.
const statusNote = "loop"

// Checkpoint saves a training and the Status of the loop where a trigger fires, by default AfterEpoch and AfterTraining, which is also
// where Stop ended it amid an epoch. Resume goes on from there. Put it behind the callbacks that keep numbers in the Status.
func Checkpoint(s updater.Saver, c updater.Checkpoints, triggers ...Trigger) Callback {
	return Do(func(e Event) error {
		x, err := snapshot(s, e)
		if err == nil {
			_, err = c.Save(x)
		}
		return err
	}, orElse(triggers, AfterEpoch, AfterTraining))
}

// SaveBest is a Save of Best: it keeps the snapshot of the best value of a record as the best checkpoint.
func SaveBest(s updater.Saver, c updater.Checkpoints, record string) func(Event) error {
	return func(e Event) error {
		v, _ := e.Loop.Log.Get(record)
		score, ok := v.(float64)
		if !ok {
			return errors.Errorf("loop: SaveBest: the record %q is %v, no number", record, v)
		}
		x, err := snapshot(s, e)
		if err == nil {
			_, err = c.SaveIfBest(x, score)
		}
		return err
	}
}

func snapshot(s updater.Saver, e Event) (*updater.Snapshot, error) {
	x, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	status := e.Loop.Log.Status
	x.Position.Epoch, x.Position.Batch = status.EpochsDone, status.Taken
	if x.Notes == nil {
		x.Notes = map[string]string{}
	}
	x.Notes[statusNote], err = encodeStatus(status)
	return x, err
}

// savedStatus is a Status as JSON, which has no infinities and no NaN.
type savedStatus struct {
	Status
	Numbers map[string]string
}

func encodeStatus(s Status) (string, error) {
	x := savedStatus{Status: s, Numbers: map[string]string{}}
	for name, v := range s.Numbers { // into another map
		x.Numbers[name] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	b, err := json.Marshal(x)
	return string(b), errors.Wrap(err, "loop: the status")
}

func decodeStatus(text string) (Status, error) {
	var x savedStatus
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		return Status{}, errors.Wrap(err, "loop: the status")
	}
	for name, v := range x.Numbers { // into another map
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return Status{}, errors.Wrapf(err, "loop: the status: %s", name)
		}
		x.Status.SetNumber(name, f)
	}
	return x.Status, x.Status.check()
}

// Resume gives a training what its last checkpoint has, and returns a Log for a new Loop, which then goes on with the next batch: its Data must
// give the same batches for the same epoch. That there is no checkpoint is an error that is os.ErrNotExist; nothing is changed then.
func Resume(s updater.Saver, c updater.Checkpoints, opts ...updater.LoadOpt) (*Log, error) {
	path, err := c.Last()
	if err != nil {
		return nil, err
	}
	x, err := updater.ReadSnapshotFile(path)
	if err != nil {
		return nil, err
	}
	text, ok := x.Notes[statusNote]
	if !ok {
		return nil, errors.Errorf("loop: %s has no status of a loop: it was not saved by Checkpoint", path)
	}
	l := NewLog()
	if l.Status, err = decodeStatus(text); err != nil {
		return nil, err
	}
	return l, errors.Wrap(s.Restore(x, opts...), path)
}

// StopOnInterrupt lets the first interrupt (Ctrl-C) end a training after the present batch, as Stop does, so that Checkpoint saves it,
// and calls note, if it is not nil. The second ends the process at once. release puts an end to that.
func StopOnInterrupt(l *Loop, note func()) (release func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals) // the next one does what it does by itself
			l.Stop()
			if note != nil {
				note()
			}
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
