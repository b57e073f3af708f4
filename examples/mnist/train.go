package main

import (
	"math"
	"math/rand/v2"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/solvers"
	"optimop/updater"
)

// Streams of the seeded generators: the order of the images must not depend on how many weights were drawn.
const (
	weightStream  = 1
	shuffleStream = 2
)

// trainer holds a run's state. It caches one graph per batch size: the usual size and that of an epoch's short last batch.
type trainer struct {
	model  *model
	data   *dataset
	solver *solvers.Solver // nil with a config, which has an updater instead
	host   string
	rate   float64 // at the first step
	batch  int
	steps  int     // of the whole run
	step   int     // done so far
	loss   float64 // of the last step
	order  []int
	rng    *rand.Rand

	shuffled int // how often

	settings  updater.Config
	updater   *updater.Updater
	summaries *summaries

	learners   map[int]*learner
	predictors map[int]*predictor
}

func newTrainer(cfg config, data *dataset) (*trainer, error) {
	arch := architectures[cfg.model]
	t := &trainer{
		model: newModel(arch, cfg.seed), data: data, host: cfg.host, batch: cfg.batch,
		rng:      rand.New(rand.NewPCG(cfg.seed, shuffleStream)),
		learners: map[int]*learner{}, predictors: map[int]*predictor{},
	}
	if t.batch == 0 {
		t.batch = arch.batch
	}
	n := data.train.len()
	t.steps = cfg.epochs * ((n + t.batch - 1) / t.batch)
	for i := range n {
		t.order = append(t.order, i)
	}
	if cfg.file != "" {
		return t, t.useConfig(cfg)
	}
	var err error
	if t.solver, err = newSolver(cfg, t.steps); err != nil {
		return nil, usageError{err}
	}
	if t.rate, err = startRate(cfg, arch, t.batch, t.solver); err != nil {
		return nil, err
	}
	if cfg.lrFind != "" {
		return t, t.useUpdater()
	}
	return t, nil
}

func (t *trainer) shuffle() {
	t.rng.Shuffle(len(t.order), func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
}

// train makes one step and returns the batch's mean loss from before it.
func (t *trainer) train(numbers []int) (float64, error) {
	if t.solver != nil {
		rate, err := t.rateAt(t.step)
		if err == nil {
			err = t.solver.Set("learning_rate", rate)
		}
		if err != nil {
			return 0, errors.Wrap(err, "setting the learning rate")
		}
	}
	l, err := t.learner(len(numbers))
	if err != nil {
		return 0, err
	}
	t.data.train.gather(numbers, l.x, l.y)
	loss, err := l.step()
	if err != nil {
		return 0, errors.Wrapf(err, "step %d", t.step+1)
	}
	t.step++
	if !finite(loss) && !t.settings.SkipNonFiniteSteps {
		what := "-lr"
		if t.solver == nil {
			what = "learning_rate"
		}
		return 0, errors.Errorf("the loss of step %d is %v; a smaller %s may help", t.step, loss, what)
	}
	return loss, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// accuracy is the fraction of the images of s whose digit is recognised.
func (t *trainer) accuracy(s *split) (float64, error) {
	digits, err := t.predict(s)
	n := 0
	for i, d := range digits {
		if d == int(s.labels[i]) {
			n++
		}
	}
	return float64(n) / float64(s.len()), err
}

// predict returns the most probable digit of every image.
func (t *trainer) predict(s *split) ([]int, error) {
	numbers := make([]int, s.len())
	for i := range numbers {
		numbers[i] = i
	}
	digits := make([]int, 0, s.len())
	for part := range batches(numbers, t.batch) {
		p, err := t.predictor(len(part))
		if err != nil {
			return nil, err
		}
		s.gather(part, p.x, nil)
		found, err := p.digits()
		if err != nil {
			return nil, errors.Wrap(err, "testing")
		}
		digits = append(digits, found...)
	}
	return digits, nil
}

// batches cuts numbers into parts of the given size; the last one may be shorter.
func batches(numbers []int, size int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		for len(numbers) > 0 {
			n := min(size, len(numbers))
			if !yield(numbers[:n]) {
				return
			}
			numbers = numbers[n:]
		}
	}
}

func (t *trainer) close() {
	var vms []gorgonia.VM
	for _, l := range t.learners {
		vms = append(vms, l.vm)
	}
	for _, p := range t.predictors {
		vms = append(vms, p.vm)
	}
	for _, vm := range vms {
		_ = vm.Close() // a tape machine that is thrown away: nothing is lost
	}
	t.summaries.close()
}
