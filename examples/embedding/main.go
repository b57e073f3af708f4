// Command embedding learns vectors of words from a short text, by skip-gram with negative sampling (Mikolov et al. 2013,
// https://arxiv.org/abs/1310.4546), and compares what a step costs where all rows of the two tables are updated and where only
// those are that it read. See README.md.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pkg/errors"

	"optimop/solvers"
)

//go:embed testdata/village.txt
var village string

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "embedding:", err)
		os.Exit(1)
	}
}

// settings are those of the flags.
type settings struct {
	rows, width, batch, negatives, steps int
	solver                               string
	rate                                 float64
	seed                                 uint64
}

// modes are what is compared, all on the same steps.
var modes = []solvers.RowMode{solvers.RowsDense, solvers.RowsCatchUp, solvers.RowsLazy}

// run trains once in each mode and reports.
func run(args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("embedding", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&s.rows, "rows", 20_000, "rows of each table: the words of the text take some, the others stand for the rest of a language")
	flags.IntVar(&s.width, "width", 32, "elements of a row")
	flags.IntVar(&s.batch, "batch", 64, "pairs of words in a step")
	flags.IntVar(&s.negatives, "negatives", 4, "words drawn at random for each pair")
	flags.IntVar(&s.steps, "steps", 1500, "steps of training")
	flags.StringVar(&s.solver, "solver", "adam", "the optimizer: adam, adamw, adabelief, sgd, momentum or another that can catch up")
	flags.Float64Var(&s.rate, "rate", 0.01, "its learning rate")
	flags.Uint64Var(&s.seed, "seed", 1, "of the first values and the order of the pairs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c := read(village)
	if s.rows < len(c.words) {
		return errors.Errorf("-rows is %d, but the text has %d different words", s.rows, len(c.words))
	}
	if min(s.width, s.batch, s.negatives, s.steps) < 1 {
		return errors.New("-width, -batch, -negatives and -steps must be 1 or more")
	}
	fmt.Fprintf(out, "%d words, %d of them different; %s, %d steps that read %d of %d rows\n\n",
		len(c.text), len(c.words), s.solver, s.steps, s.batch*(2+s.negatives), 2*s.rows)
	fmt.Fprintf(out, "%-10s %12s %12s %14s\n", "rows", "first loss", "last loss", "time of a step")
	var last *model
	for _, mode := range modes {
		m, err := newModel(s, mode)
		if err != nil {
			return err
		}
		start := time.Now()
		first, loss, err := m.train(c)
		if err != nil {
			return errors.Wrap(err, string(mode))
		}
		fmt.Fprintf(out, "%-10s %12.6f %12.6f %14v\n", mode, first, loss, (time.Since(start) / time.Duration(s.steps)).Round(time.Microsecond))
		last = m
	}
	fmt.Fprintln(out)
	for _, word := range []string{"cat", "plum", "winter", "baker"} {
		fmt.Fprintf(out, "nearest to %-7s %s\n", word+":", strings.Join(last.nearest(c, word, 3), ", "))
	}
	return nil
}
