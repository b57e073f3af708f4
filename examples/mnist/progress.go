package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is the bar of one epoch; without a terminal it shows nothing, and the epoch's line has to do.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, epoch, epochs, images int) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(images,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(fmt.Sprintf("epoch %d/%d", epoch, epochs)),
		progressbar.OptionThrottle(100*time.Millisecond), // a small model makes thousands of steps a second
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("images"),
		progressbar.OptionClearOnFinish(),
	)}
}

// add counts images. A bar that cannot be drawn is no reason to stop a training, so its errors are dropped.
func (p *progress) add(images int) {
	if p.bar != nil {
		_ = p.bar.Add(images)
	}
}

// done removes the bar, so that the epoch's line takes its place.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
