package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// epochResult is one epoch's line. Seconds is the time of the training steps alone, without the test after them.
type epochResult struct {
	Epoch           int     `json:"epoch"`
	TrainLoss       float64 `json:"train_loss"`    // mean over all training images, each seen before its step
	TestAccuracy    float64 `json:"test_accuracy"` // fraction of the test images
	Seconds         float64 `json:"seconds"`
	ImagesPerSecond float64 `json:"images_per_second"`
	SkippedSteps    int     `json:"skipped_steps,omitempty"` // so far, where a config lets steps be skipped
}

func (e epochResult) String() string {
	line := fmt.Sprintf("epoch %d: train loss %.4f, test accuracy %.2f %%, %.1f s, %.0f images/s",
		e.Epoch, e.TrainLoss, 100*e.TestAccuracy, e.Seconds, e.ImagesPerSecond)
	if e.SkippedSteps > 0 {
		line += fmt.Sprintf(", %d steps skipped so far", e.SkippedSteps)
	}
	return line
}

// report is the JSON file of a run.
type report struct {
	Epochs       []epochResult `json:"epochs"`
	TestAccuracy float64       `json:"test_accuracy"` // of the last epoch
}

func (r *report) add(e epochResult) {
	r.Epochs = append(r.Epochs, e)
	r.TestAccuracy = e.TestAccuracy
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

// checkReportPath finds a mistyped path before the training and not after it.
func checkReportPath(file string) error {
	if file == "" {
		return nil
	}
	if isDir(file) {
		return usagef("-report %s is a folder", file)
	}
	if dir := filepath.Dir(file); !isDir(dir) {
		return usagef("-report: there is no folder %s", dir)
	}
	return nil
}
