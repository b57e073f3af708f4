package main

import (
	"math"
	"strings"

	"optimop/solvers"
)

// startRate is the learning rate of the first step: -lr, or a default.
//
// The default at batch size B is r·√(B/B₀), r being the model's rate for adam at its own batch size B₀: the noise of a batch's
// gradient falls with √B, and adam's steps do not grow with the gradient.
func startRate(cfg config, arch architecture, batch int, solver *solvers.Solver) (float64, error) {
	own, err := solver.Get("learning_rate")
	if err != nil {
		return 0, usagef("-solver %s has no learning_rate to decay: %v", cfg.solver, err)
	}
	if cfg.rate > 0 {
		return cfg.rate, nil
	}
	base := own
	switch strings.ToLower(cfg.solver) {
	case "adam", "adamw":
		base = arch.rate
	}
	return base * math.Sqrt(float64(batch)/float64(arch.batch)), nil
}
