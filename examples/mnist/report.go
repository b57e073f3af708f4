package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// accuracies are fractions of the test images. Where a config lets the weights be averaged the first is that of the averages, and
// the second that of the weights themselves, which is nil elsewhere.
type accuracies struct {
	TestAccuracy    float64  `json:"test_accuracy"`
	WeightsAccuracy *float64 `json:"weights_accuracy,omitempty"`
}

func (a accuracies) text() string {
	text := fmt.Sprintf("test accuracy %.2f %%", 100*a.TestAccuracy)
	if a.WeightsAccuracy != nil {
		text += fmt.Sprintf(" with averaged weights (%.2f %% without averaging)", 100**a.WeightsAccuracy)
	}
	return text
}

// epochResult is one epoch's line. Seconds is the time of the training steps alone, without the test after them.
type epochResult struct {
	Epoch     int     `json:"epoch"`
	TrainLoss float64 `json:"train_loss"` // mean over all training images, each seen before its step
	accuracies
	Seconds         float64 `json:"seconds"`
	ImagesPerSecond float64 `json:"images_per_second"`
	SkippedSteps    int     `json:"skipped_steps,omitempty"` // so far, where a config lets steps be skipped
}

func (e epochResult) String() string {
	line := fmt.Sprintf("epoch %d: train loss %.4f, %s, %.1f s, %.0f images/s",
		e.Epoch, e.TrainLoss, e.text(), e.Seconds, e.ImagesPerSecond)
	if e.SkippedSteps > 0 {
		line += fmt.Sprintf(", %d steps skipped so far", e.SkippedSteps)
	}
	return line
}

// report is the JSON file of a run.
type report struct {
	Epochs     []epochResult `json:"epochs"`
	accuracies               // of the last epoch
}

func (r *report) add(e epochResult) {
	r.Epochs = append(r.Epochs, e)
	r.accuracies = e.accuracies
}

func (r *report) save(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return errors.Wrap(err, "encoding the report")
	}
	return errors.Wrap(os.WriteFile(file, append(text, '\n'), 0o644), "writing the report")
}

// checkPath finds a mistyped path before the training and not after it.
func checkPath(name, file string) error {
	if file == "" {
		return nil
	}
	if isDir(file) {
		return usagef("-%s %s is a folder", name, file)
	}
	if dir := filepath.Dir(file); !isDir(dir) {
		return usagef("-%s: there is no folder %s", name, dir)
	}
	return nil
}
