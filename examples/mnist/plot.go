package main

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"optimop/updater"
)

// curve is a plot of y over x.
type curve struct {
	title, xName, yName string
	x, y                []float64
	logX                bool    // x is above 0, and drawn by its logarithm
	mark                float64 // an x that gets a line, or 0
}

// png writes the curve to a file.
func (c curve) png(file string) error {
	points := make(plotter.XYs, len(c.x))
	for i := range points {
		points[i].X, points[i].Y = c.x[i], c.y[i]
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return errors.Wrap(err, "plotting")
	}
	line.Color = color.RGBA{B: 200, A: 255}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.xName, c.yName
	if c.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{}
	}
	p.Add(plotter.NewGrid(), line)
	if c.mark != 0 {
		_, _, low, high := plotter.XYRange(points)
		mark, err := plotter.NewLine(plotter.XYs{{X: c.mark, Y: low}, {X: c.mark, Y: high}})
		if err != nil {
			return errors.Wrap(err, "plotting")
		}
		mark.Color = color.RGBA{R: 200, A: 255}
		p.Add(mark)
	}
	w, err := p.WriterTo(6*vg.Inch, 4*vg.Inch, "png")
	if err != nil {
		return errors.Wrap(err, "plotting")
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return errors.Wrap(err, "plotting")
	}
	return errors.Wrap(os.WriteFile(file, b.Bytes(), 0o644), "writing the plot")
}

// findRate looks for a learning rate with the first full batches of an epoch, over and over if need be.
func (t *trainer) findRate(file string, out io.Writer) error {
	t.shuffle()
	l, err := t.learner(min(t.batch, len(t.order)))
	if err != nil {
		return err
	}
	at := 0
	r, err := t.updater.FindLearningRate(func() (float64, error) {
		if at+l.batch > len(t.order) {
			at = 0
		}
		t.data.train.gather(t.order[at:at+l.batch], l.x, l.y)
		at += l.batch
		return l.step()
	}, func(o *updater.RangeTestOptions) { o.Min = 1e-6 })
	if err != nil {
		return err
	}
	c := curve{title: "Learning rate range test", xName: "learning rate", yName: "smoothed loss",
		x: r.Rates, y: r.Smoothed, logX: true, mark: r.Suggestion}
	if err := c.png(file); err != nil {
		return err
	}
	if len(r.Rates) > 1 {
		if err := r.Draw(out); err != nil {
			return err
		}
	}
	if r.Suggestion == 0 {
		return errors.New("the loss never fell, so there is no learning rate to suggest")
	}
	_, err = fmt.Fprintf(out, "suggested learning rate %.3g: a tenth of %.3g, where the loss was lowest; it fell fastest at %.3g\n",
		r.Suggestion, r.Minimum, r.Steepest)
	return err
}

// plotRates plots the learning rate of every step of the run.
func (t *trainer) plotRates(file string) error {
	c := curve{title: "Learning rate schedule", xName: "step", yName: "learning rate"}
	for step := range t.steps {
		rate, err := t.rateAt(step)
		if err != nil {
			return err
		}
		c.x, c.y = append(c.x, float64(step)), append(c.y, rate)
	}
	return c.png(file)
}

// rateAt is the learning rate of a step. The updater says it of its next one, so it is told that it is there.
func (t *trainer) rateAt(step int) (float64, error) {
	if t.solver != nil {
		return t.rate * float64(t.steps-step) / float64(t.steps), nil
	}
	if err := t.updater.Solver().Store().Lookup("global_step").Set(float64(step)); err != nil {
		return 0, err
	}
	return t.updater.LearningRate()
}
