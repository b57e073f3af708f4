// Command mnist trains a classifier of handwritten digits on the MNIST images with a Gorgonia graph and any of optimop's
// solvers, in any of the three places where a solver can run. See README.md for the flags and the accuracy to expect.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pkg/errors"

	"optimop/updater/loop"
)

// blasName is what computes the matrix products; see openblas.go.
var blasName = "Gonum's BLAS"

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mnist:", err)
	}
	os.Exit(exitCode(err))
}

// run is the whole program: results go to stdout, the progress bar and notes to stderr.
func run(args []string, stdout, stderr io.Writer) error {
	cfg, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, o := range [][2]string{{"report", cfg.report}, {"lr-find", cfg.lrFind}, {"plot-schedule", cfg.schedule}} {
		if err := checkPath(o[0], o[1]); err != nil {
			return err
		}
	}
	data, err := openData(cfg.data, stderr)
	if err != nil {
		return err
	}
	t, err := newTrainer(cfg, data)
	if err != nil {
		return err
	}
	defer t.close()

	how, table := cfg.solver, ""
	if cfg.file != "" {
		how, table = cfg.file, t.updater.Table()
	}
	fmt.Fprintf(stdout, "%s on %d images, tested on %d: %s in the %s host%s, batch %d, %s\n%s",
		cfg.model, data.train.len(), data.test.len(), how, cfg.host, t.rates(), t.batch, blasName, table)
	switch {
	case cfg.lrFind != "":
		return t.findRate(cfg.lrFind, stdout)
	case cfg.schedule != "":
		return t.plotRates(cfg.schedule)
	}
	return t.run(cfg, stdout, stderr)
}

// run trains and tests, epoch after epoch.
func (t *trainer) run(cfg config, stdout, stderr io.Writer) error {
	var rep report
	l := t.training(cfg.epochs, func(epoch int) *progress {
		return newProgress(stderr, epoch, cfg.epochs, t.data.train.len())
	}, func(line epochResult) error {
		rep.add(line)
		_, err := fmt.Fprintln(stdout, line)
		return err
	})
	defer l.Close()
	if cfg.checkpoints != "" {
		if err := t.keep(l, cfg, stderr); err != nil {
			return err
		}
		defer loop.StopOnInterrupt(l, func() { fmt.Fprintln(stderr, "\nfinishing the batch; another interrupt stops at once") })()
	}
	if l.Log == nil || l.Log.Status.EpochsDone < cfg.epochs {
		if err := l.Run(context.Background()); err != nil {
			return err
		}
	}
	if l.Log.Status.EpochsDone < cfg.epochs {
		fmt.Fprintf(stderr, "stopped after %d batches; the same flags with -resume go on from there\n", l.Log.Status.IterationsDone)
	}
	if len(rep.Epochs) > 0 {
		fmt.Fprintln(stdout, rep.text())
	}
	return rep.save(cfg.report)
}
