package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// config is what the command line says. A zero batch or rate stands for the model's own default. The solver and the rate mean
// nothing where there is a file: the updater's config in it says how to train.
type config struct {
	model, solver, host string
	file, summaries     string
	data, report        string
	lrFind, schedule    string // plots
	checkpoints         string // a folder
	resume              bool
	rate                float64
	epochs, batch       int
	seed                uint64
}

const (
	hostGraph    = "graph"    // the update is one fused node of the graph
	hostExpanded = "expanded" // the update is many ordinary nodes of the graph
	hostStep     = "step"     // the update runs outside the graph, as Gorgonia's own solvers do
)

var hosts = []string{hostGraph, hostStep, hostExpanded}

// usageError marks what the caller of the program got wrong, as against what failed while it ran.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{errors.Errorf(format, args...)} }

func exitCode(err error) int {
	var u usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &u):
		return 2
	}
	return 1
}

func parseFlags(args []string, help io.Writer) (config, error) {
	cfg := config{}
	fs := flag.NewFlagSet("mnist", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // a parse error is returned and printed once, by main
	fs.StringVar(&cfg.model, "model", "mlp", "what to train: "+strings.Join(modelNames(), ", "))
	fs.StringVar(&cfg.solver, "solver", "adam", "name of the solver, as in solvers.Names()")
	fs.StringVar(&cfg.host, "host", hostGraph, "where the solver runs: "+strings.Join(hosts, ", "))
	fs.Float64Var(&cfg.rate, "lr", 0, "learning rate at the start; it falls linearly to 0 (default: depends on model, solver and batch)")
	fs.StringVar(&cfg.file, "config", "", "train as this JSON or YAML file says, by package updater; see configs")
	fs.StringVar(&cfg.summaries, "summaries", "", "write the summaries that -config asks for to files in this new folder")
	fs.IntVar(&cfg.epochs, "epochs", 3, "passes over the training images")
	fs.IntVar(&cfg.batch, "batch", 0, "images per step (default: the model's own)")
	fs.Uint64Var(&cfg.seed, "seed", 1, "seed of the first weights and of the order of the images")
	fs.StringVar(&cfg.data, "data", "", "folder with the four gzipped MNIST files (default: those of the GoMNIST module)")
	fs.StringVar(&cfg.report, "report", "", "write the results as JSON to this file")
	fs.StringVar(&cfg.checkpoints, "checkpoints", "", "save the last epochs, the best one, and an interrupted one, in this folder")
	fs.BoolVar(&cfg.resume, "resume", false, "go on with what an earlier run with the same flags has in the folder of -checkpoints")
	fs.StringVar(&cfg.lrFind, "lr-find", "", "train with growing learning rates, plot the loss to this PNG file, suggest a rate, and stop")
	fs.StringVar(&cfg.schedule, "plot-schedule", "", "plot the learning rate of the run's steps to this PNG file, and stop")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(help, "Usage: go run ./examples/mnist [flags]")
			fs.SetOutput(help)
			fs.PrintDefaults()
			return cfg, err
		}
		return cfg, usageError{err}
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return cfg, cfg.check(given, fs.Args())
}

// check refuses values that no run could use. Only a flag that was given can be wrong: the zero of the others means "default".
func (c *config) check(given map[string]bool, rest []string) error {
	if len(rest) > 0 {
		return usagef("unexpected argument %q; all settings are flags, see -h", rest[0])
	}
	if _, ok := architectures[c.model]; !ok {
		return usagef("unknown -model %q; have %s", c.model, strings.Join(modelNames(), ", "))
	}
	known := false
	for _, h := range hosts {
		known = known || h == c.host
	}
	if !known {
		return usagef("unknown -host %q; have %s", c.host, strings.Join(hosts, ", "))
	}
	if given["lr"] && (!(c.rate > 0) || math.IsInf(c.rate, 0)) {
		return usagef("-lr must be a positive number, got %v", c.rate)
	}
	if c.epochs < 1 {
		return usagef("-epochs must be at least 1, got %d", c.epochs)
	}
	if given["batch"] && c.batch < 1 {
		return usagef("-batch must be at least 1, got %d", c.batch)
	}
	if err := c.checkPlots(given); err != nil {
		return err
	}
	if c.checkpoints == "" && (given["checkpoints"] || c.resume) {
		return usagef("-checkpoints needs the name of a folder, and -resume needs -checkpoints")
	}
	return c.checkConfig(given)
}

// plots reports whether the program only plots.
func (c *config) plots() bool { return c.lrFind != "" || c.schedule != "" }

// checkPlots refuses what means nothing where a plot takes the place of a training.
func (c *config) checkPlots(given map[string]bool) error {
	for _, p := range []struct {
		name, file string
		not        []string
	}{
		{"lr-find", c.lrFind, []string{"lr", "plot-schedule", "report", "summaries", "checkpoints"}},
		{"plot-schedule", c.schedule, []string{"report", "summaries", "checkpoints"}},
	} {
		if !given[p.name] {
			continue
		}
		if p.file == "" {
			return usagef("-%s needs the name of a file", p.name)
		}
		for _, other := range p.not {
			if given[other] {
				return usagef("-%s conflicts with -%s, which only makes a plot", other, p.name)
			}
		}
	}
	if c.lrFind != "" && c.host == hostStep {
		return usagef("-host %s conflicts with -lr-find, which needs the updater; use %s or %s", c.host, hostGraph, hostExpanded)
	}
	return nil
}

// checkConfig refuses what contradicts -config, or needs it.
func (c *config) checkConfig(given map[string]bool) error {
	if c.file == "" {
		if given["config"] {
			return usagef("-config needs the name of a file")
		}
		if given["summaries"] {
			return usagef("-summaries needs -config, with a summary_interval in the file")
		}
		return nil
	}
	for _, name := range []string{"solver", "lr"} {
		if given[name] {
			return usagef("-%s conflicts with -config: %s says which optimizer and learning rate to use", name, c.file)
		}
	}
	if c.host == hostStep {
		return usagef("-host %s conflicts with -config: the updater is always a part of the graph; use %s or %s",
			c.host, hostGraph, hostExpanded)
	}
	return nil
}
