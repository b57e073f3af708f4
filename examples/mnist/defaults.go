package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"optimop/solvers"
)

// adamFamily are the solvers that the models' own rates and the memory rule below are made for.
var adamFamily = []string{"adam", "adamw"}

func isAdam(name string) bool { return slices.Contains(adamFamily, plainName(name)) }

// plainName is the name as the registry compares it.
func plainName(name string) string {
	name = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	return strings.TrimSuffix(name, "optimizer")
}

// plainRates are first rates at a batch of 100 that suit all three models. The solvers' own default of 0.01 is a safe one for
// models of any kind, and slow on these.
var plainRates = map[string]float64{"sgd": 0.2, "momentum": 0.05, "nesterov": 0.05}

// newSolver makes the solver for a run of the given number of steps.
//
// Adam's averages remember the last 1/(1−β) gradients. A run of few steps needs a shorter memory than the usual 10 and 1000, or it
// ends while they still hold its beginning: here they get at most a fiftieth and a tenth of the run. Large batches make
// short runs: 60,000 images in batches of 1000 are 60 steps an epoch.
func newSolver(cfg config, steps int) (*solvers.Solver, error) {
	var opts []solvers.Option
	if cfg.host == hostExpanded {
		opts = append(opts, solvers.Expanded())
	}
	s, err := solvers.FromConfig(cfg.solver, nil, opts...)
	if err != nil || !isAdam(cfg.solver) {
		return s, err
	}
	for name, part := range map[string]float64{"beta1": 50, "beta2": 10} {
		usual, err := s.Get(name)
		if err != nil {
			return nil, err
		}
		if err := s.Set(name, min(usual, max(0.5, 1-part/float64(steps)))); err != nil {
			return nil, errors.Wrapf(err, "%s for %d steps", name, steps)
		}
	}
	return s, nil
}

// startRate is the learning rate of the first step: -lr, or a default.
//
// The default at batch size B is r·√(B/B₀), with the model's rate r for adam at its own batch size B₀, a plain rate, or the
// solver's own default: the noise of a batch's gradient falls with √B, and adam's steps do not grow with the gradient.
func startRate(cfg config, arch architecture, batch int, solver *solvers.Solver) (float64, error) {
	own, err := solver.Get("learning_rate")
	if err != nil {
		return 0, usagef("-solver %s has no learning_rate to decay: %v", cfg.solver, err)
	}
	if cfg.rate > 0 {
		return cfg.rate, nil
	}
	base := own
	if isAdam(cfg.solver) {
		base = arch.rate
	} else if rate, ok := plainRates[plainName(cfg.solver)]; ok {
		base = rate
	}
	return base * math.Sqrt(float64(batch)/float64(arch.batch)), nil
}

// rates says what the learning rate of the first step is, where there is one, and what a solver of Adam's kind remembers.
func (t *trainer) rates() string {
	if t.solver == nil {
		rate, err := t.updater.LearningRate()
		if err != nil {
			return ""
		}
		return fmt.Sprintf(", learning rate %.4g", rate)
	}
	text := fmt.Sprintf(", learning rate %.4g", t.rate)
	beta1, err1 := t.solver.Get("beta1")
	beta2, err2 := t.solver.Get("beta2")
	if err1 == nil && err2 == nil {
		text += fmt.Sprintf(", betas %.3g and %.4g", beta1, beta2)
	}
	return text
}
