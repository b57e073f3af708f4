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

// accuracyRecord is what the best epoch is best at.
const accuracyRecord = "test_accuracy"

// images are the batches of an epoch: every image once, in an order that the seed and the number of the epoch give.
func (t *trainer) images(epoch int) loop.Batches {
	return loop.Each(func(yield func(map[string]any) bool) {
		for ; t.shuffled <= epoch; t.shuffled++ {
			t.shuffle()
		}
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
		loop.Do(e.resume, loop.OnResumption),
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
	seen   int     // images in all
}

func (e *epoch) open(at loop.Event) {
	*e = epoch{t: e.t, newBar: e.newBar, result: e.result, bar: e.newBar(at.Loop.Log.Status.EpochsDone + 1), start: time.Now()}
}

func (e *epoch) begin(at loop.Event) error {
	e.open(at)
	return e.t.startEpoch()
}

// What the status of the loop remembers of an epoch.
const (
	lossSum    = "epoch_loss_sum"
	lossImages = "epoch_loss_images"
)

// resume opens an epoch of which a part was done in an earlier run of the program. Its speed is that of the rest.
func (e *epoch) resume(at loop.Event) error {
	if s := at.Loop.Log.Status; s.EpochStarted {
		e.open(at)
		e.bar.add(s.Taken * e.t.batch)
		images, _ := s.Number(lossImages)
		e.sum, _ = s.Number(lossSum)
		e.images = int(images)
	}
	return nil
}

func (e *epoch) add(at loop.Event) error {
	n := len(at.Batch[imageSource].([]int))
	if finite(e.t.loss) {
		e.sum += e.t.loss * float64(n) // the last batch may be short: weigh each by its images
		e.images += n
	}
	e.seen += n
	at.Loop.Log.Status.SetNumber(lossSum, e.sum)
	at.Loop.Log.Status.SetNumber(lossImages, float64(e.images))
	e.bar.add(n)
	return nil
}

func (e *epoch) end(at loop.Event) error {
	e.bar.done()
	n, seconds := float64(e.seen), time.Since(e.start).Seconds()
	skipped, err := e.t.skipped(e.images)
	if err != nil {
		return err
	}
	found, err := e.t.evaluate()
	if err != nil {
		return err
	}
	at.Row()[accuracyRecord] = found.TestAccuracy
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
