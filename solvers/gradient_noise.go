package solvers

import (
	"math"

	"github.com/pkg/errors"
)

// GradientNoise adds random numbers to the steps (Neelakantan et al. 2015, https://arxiv.org/abs/1511.06807; RETURNN's
// gradient_noise).
//
//	step = g + σ·ε
//
// ε is drawn anew for each element and step, from the normal distribution without what lies beyond ±2, as TensorFlow's
// truncated_normal: so the noise has mean 0, standard deviation 0.8796·σ, and never exceeds 2σ. It is a function of Seed, of the
// global step, which is saved with the state, of the names of rule and parameter, and of the element's index: the same in
// every host, for every order of the parameters, and after a restart. A deviation below zero is an error. It has no slots.
type GradientNoise struct {
	StandardDeviation float64 `range:"[0,inf)"` // σ; 0: none
	Seed              float64 // a whole number, default 0
}

// NewGradientNoise makes a solver of GradientNoise, to be chained.
func NewGradientNoise(standardDeviation float64, options ...func(*GradientNoise)) *Solver {
	return configured(&GradientNoise{StandardDeviation: standardDeviation}, options)
}

// Transforms implements Transformation.
func (*GradientNoise) Transforms() {}

// Validate implements Validator.
func (r *GradientNoise) Validate() error {
	if r.Seed != math.Trunc(r.Seed) {
		return errors.Errorf("seed is %v; it must be a whole number", r.Seed)
	}
	return nil
}

// Apply implements Rule.
func (r *GradientNoise) Apply(b *Builder, in []Step) ([]Step, error) {
	if !b.Uses("standard_deviation") {
		return in, nil
	}
	sigma, seed, t := b.Hyper("standard_deviation"), b.Hyper("seed"), b.GlobalStep().Add(one)
	return b.Each(in, func(s Step) Expr {
		g := s.Delta
		noise := g.TruncatedNormal(seed, t, s.Param.Name+"/"+b.full("noise"))
		return sigma.Greater(zero).Select(g.Add(noise.Mul(sigma)), g)
	})
}
