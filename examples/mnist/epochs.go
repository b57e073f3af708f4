package main

import (
	"time"

	"optimop/updater"
	"optimop/updater/loop"
)

// The trainer is an algorithm whose batches are the numbers of images.
const imageSource = "images"

var _ updater.TrainingAlgorithm = (*trainer)(nil)

// Initialize has nothing to do: graphs are built when a batch needs them.
func (t *trainer) Initialize() error { return nil }

// ProcessBatch makes one step.
func (t *trainer) ProcessBatch(batch map[string]any) (err error) {
	t.loss, err = t.train(batch[imageSource].([]int))
	return err
}

// images are the batches of an epoch: every image once, in a new order.
func (t *trainer) images(int) loop.Batches {
	return loop.Each(func(yield func(map[string]any) bool) {
		t.shuffle()
		for part := range batches(t.order, t.batch) {
			if !yield(map[string]any{imageSource: part}) {
				return
			}
		}
	})
}

// training is the loop of a run. result is given the numbers of each epoch, with the accuracy on the test images after it.
func (t *trainer) training(epochs int, newBar func(epoch int) *progress, result func(epochResult) error) *loop.Loop {
	e := &epoch{t: t, newBar: newBar, result: result}
	return &loop.Loop{Algorithm: t, Data: t.images, Callbacks: []loop.Callback{
		loop.Do(e.begin, loop.BeforeEpoch),
		loop.Do(e.add, loop.AfterBatch),
		loop.Do(e.end, loop.AfterEpoch),
		loop.Do(e.fail, loop.OnError),
		loop.FinishAfter(loop.AfterEpochs(epochs)),
	}}
}

// epoch gathers the numbers of an epoch.
type epoch struct {
	t      *trainer
	newBar func(epoch int) *progress
	result func(epochResult) error

	bar    *progress
	start  time.Time
	sum    float64 // of the losses that are finite, each times its images
	images int     // of those
}

func (e *epoch) begin(at loop.Event) error {
	e.bar, e.start, e.sum, e.images = e.newBar(at.Loop.Log.Status.EpochsDone+1), time.Now(), 0, 0
	return e.t.startEpoch()
}

func (e *epoch) add(at loop.Event) error {
	n := len(at.Batch[imageSource].([]int))
	if finite(e.t.loss) {
		e.sum += e.t.loss * float64(n) // the last batch may be short: weigh each by its images
		e.images += n
	}
	e.bar.add(n)
	return nil
}

func (e *epoch) end(at loop.Event) error {
	e.bar.done()
	n, seconds := float64(len(e.t.order)), time.Since(e.start).Seconds()
	skipped, err := e.t.skipped(e.images)
	if err != nil {
		return err
	}
	found, err := e.t.evaluate()
	if err != nil {
		return err
	}
	return e.result(epochResult{
		Epoch: at.Loop.Log.Status.EpochsDone, TrainLoss: e.sum / float64(e.images), accuracies: found,
		Seconds: seconds, ImagesPerSecond: n / seconds, SkippedSteps: skipped,
	})
}

func (e *epoch) fail(loop.Event) error {
	if e.bar != nil {
		e.bar.done()
	}
	return nil
}
