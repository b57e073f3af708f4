package loop

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"optimop/internal/batch"
	"optimop/updater"
)

// Loop trains an algorithm on batches, epoch after epoch, until it is asked to stop or there are no more data. Set the fields, then
// call Run. A Loop is for one goroutine at a time, but for Stop and StopAfterEpoch.
type Loop struct {
	Algorithm updater.TrainingAlgorithm

	// Data gives the batches of an epoch; the first is 0. Without any (nil) the training is at its end.
	Data func(epoch int) Batches

	// Callbacks are called in their order at every event, at AfterTraining and OnError too. Some may be added between runs.
	Callbacks []Callback

	// Examples counts the examples of a batch, for means that are weighted by them; nil stands for the function Examples.
	Examples func(batch map[string]any) (float64, error)

	// Log is made by the first Run if it is nil. A Log with the Status of another loop goes on from there: Data must then give
	// the same batches for the same epoch, and those that were done are passed over.
	Log *Log

	started, running bool
	stop             atomic.Int32 // stopEpoch, stopNow
	source           source
	current          map[string]any // the batch of the present iteration
	times            Times
}

const (
	stopEpoch = 1 + iota
	stopNow
)

// Times are what the parts of a training took, over all runs of a Loop.
type Times struct {
	Initialization time.Duration // callbacks before the training, and the algorithm's Initialize
	ReadData       time.Duration // waiting for batches
	Train          time.Duration // the algorithm's ProcessBatch
}

// Times are those so far.
func (l *Loop) Times() Times { return l.times }

// Stop asks for an end after the present batch; between epochs after the present callbacks. Any goroutine may call it.
func (l *Loop) Stop() { l.stop.Store(stopNow) }

// StopAfterEpoch asks for an end after the present epoch. Any goroutine may call it.
func (l *Loop) StopAfterEpoch() { l.stop.CompareAndSwap(0, stopEpoch) }

// Run trains until it is asked to stop. The first time it calls the callbacks BeforeTraining and initializes the algorithm; where
// batches have been done it calls those OnResumption. Then for each epoch: BeforeEpoch; for each batch BeforeBatch, ProcessBatch,
// AfterBatch; AfterEpoch. Where it was asked to stop, it calls those AfterTraining and returns nil.
//
// The end of the context ends the run between two batches: Run returns the context's error, and that is no failure. Any other error, of
// the algorithm, the data or a callback, is recorded as Failed and given to the callbacks OnError. An epoch without batches is one. At a
// batch it is a BatchError. A panic of the data, a callback or the algorithm is such an error too.
//
// A further Run goes on where the last one ended, in the middle of an epoch too, with the batch after the one that failed.
func (l *Loop) Run(ctx context.Context) error {
	if l.Algorithm == nil || l.Data == nil {
		return errors.New("loop: a Loop needs an Algorithm and Data")
	}
	if l.running {
		return errors.New("loop: Run was called during a run")
	}
	l.running = true
	defer func() { l.running = false }()
	defer l.stop.Store(0) // what ended one run is no reason to end the next
	if l.Log == nil {
		l.Log = NewLog()
	}
	if err := l.Log.Status.check(); err != nil {
		return err
	}
	err := l.begin(ctx)
	for more := true; more && err == nil; {
		more, err = l.epoch(ctx)
	}
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	l.Log.Current()[Failed] = err.Error()
	if e := l.tell(ctx, Event{Kind: OnError, Err: err}); e != nil {
		slog.Error("loop: a callback failed", "error", e.Error())
	}
	return err
}

func (l *Loop) begin(ctx context.Context) error {
	if !l.started {
		start := time.Now()
		if err := l.tell(ctx, Event{Kind: BeforeTraining}); err != nil {
			return err
		}
		if err := safely(l.Algorithm.Initialize); err != nil {
			return errors.Wrap(err, "loop: initializing the algorithm")
		}
		l.times.Initialization += time.Since(start)
		l.started = true
	}
	if l.Log.Status.IterationsDone > 0 {
		return l.tell(ctx, Event{Kind: OnResumption})
	}
	return nil
}

// epoch does an epoch, or the rest of it, and reports whether there is more to do.
func (l *Loop) epoch(ctx context.Context) (more bool, err error) {
	s := &l.Log.Status
	if err := ctx.Err(); err != nil {
		return false, errors.WithMessagef(err, "loop: before epoch %d", s.EpochsDone+1)
	}
	if ok, err := l.source.open(l.Data, s); err != nil || !ok {
		return false, err
	}
	if !s.EpochStarted {
		s.EpochStarted = true
		if err := l.tell(ctx, Event{Kind: BeforeEpoch}); err != nil {
			return false, err
		}
	}
	for {
		if l.stop.Load() == stopNow {
			return false, l.finish(ctx)
		}
		ok, err := l.iteration(ctx)
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
	}
	l.Close()
	if s.Taken == 0 {
		return false, errors.Errorf("loop: epoch %d has no batches", s.EpochsDone+1)
	}
	s.EpochsDone++
	s.EpochEnds = append(s.EpochEnds, s.IterationsDone)
	s.EpochStarted, s.Taken = false, 0
	if err := l.tell(ctx, Event{Kind: AfterEpoch}); err != nil {
		return false, err
	}
	if l.stop.Load() != 0 {
		return false, l.finish(ctx)
	}
	return true, nil
}

func (l *Loop) finish(ctx context.Context) error {
	l.Log.Current()[Finished] = true
	return l.tell(ctx, Event{Kind: AfterTraining})
}

// iteration does a batch, or reports that the epoch has no more.
func (l *Loop) iteration(ctx context.Context) (ok bool, err error) {
	s := &l.Log.Status
	number := s.IterationsDone + 1
	defer func() {
		if err != nil {
			err = &BatchError{Iteration: number, Epoch: s.EpochsDone + 1, Batch: batch.Describe(l.current), Err: err}
		}
		l.current = nil
	}()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	start := time.Now()
	b, ok, err := l.source.read(l.Data, s)
	l.times.ReadData += time.Since(start)
	if err != nil {
		l.Close() // the next run opens it anew
		return false, errors.WithMessage(err, "reading a batch")
	}
	if !ok {
		return false, nil
	}
	s.Taken++
	l.current = b
	if err := l.tell(ctx, Event{Kind: BeforeBatch, Batch: b}); err != nil {
		return false, err
	}
	start = time.Now()
	err = safely(func() error { return l.Algorithm.ProcessBatch(b) })
	l.times.Train += time.Since(start)
	if err != nil {
		return false, err
	}
	s.IterationsDone++
	return true, l.tell(ctx, Event{Kind: AfterBatch, Batch: b})
}

// tell calls all callbacks, up to the first that fails.
func (l *Loop) tell(ctx context.Context, e Event) error {
	e.Loop, e.ctx = l, ctx
	for _, c := range l.Callbacks {
		err := safely(func() error { return c(e) })
		if err == nil {
			continue
		}
		done := l.Log.Status.EpochsDone
		switch e.Kind {
		case BeforeBatch, AfterBatch: // a BatchError says which
			return errors.WithMessagef(err, "%v", e.Kind)
		case BeforeEpoch:
			return errors.WithMessagef(err, "loop: %v %d", e.Kind, done+1)
		case AfterEpoch:
			return errors.WithMessagef(err, "loop: %v %d", e.Kind, done)
		}
		return errors.WithMessagef(err, "loop: %v", e.Kind)
	}
	return nil
}

// Close lets go of the data of an epoch that a run has left in the middle. A further Run opens them again, and passes over the batches
// that were done.
func (l *Loop) Close() { l.source.close() }

func (l *Loop) examples() (float64, error) { return count(l.Examples, l.current) }
