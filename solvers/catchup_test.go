package solvers

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// caughtUp are rules whose missed steps are known.
var caughtUp = map[string]func() *Solver{
	"sgd":                 func() *Solver { return NewSGD() },
	"sgd, decay":          func() *Solver { return Chain(NewCoupledDecay(.01), NewSGD(func(s *SGD) { s.LearningRate = .1 })) },
	"momentum":            func() *Solver { return NewMomentum() },
	"momentum, decay":     func() *Solver { return Chain(NewCoupledDecay(.01), NewMomentum()) },
	"nesterov, decay":     func() *Solver { return Chain(NewCoupledDecay(.01), NewNesterov()) },
	"keras sgd":           func() *Solver { return NewNesterov(func(m *Momentum) { m.RateInside = true }) },
	"keras sgd, decay":    func() *Solver { return Chain(NewCoupledDecay(.1), NewMomentum(func(m *Momentum) { m.RateInside = true })) },
	"sgdw":                func() *Solver { return NewSGDW(func(s *SGDW) { s.Momentum, s.WeightDecay = .9, .001 }) },
	"sgdw, nesterov":      func() *Solver { return NewSGDW(func(s *SGDW) { s.Momentum, s.WeightDecay, s.Nesterov = .9, .001, true }) },
	"adam":                func() *Solver { return NewAdam() },
	"adam, eps .1":        func() *Solver { return NewAdam(func(a *Adam) { a.Epsilon = .1 }) },
	"adam, eps 1e-3":      func() *Solver { return NewAdam(func(a *Adam) { a.Epsilon = 1e-3 }) },
	"adam, betas":         func() *Solver { return NewAdam(func(a *Adam) { a.Beta1, a.Beta2 = .5, .9 }) },
	"adam, beta1 0":       func() *Solver { return NewAdam(func(a *Adam) { a.Beta1 = 0 }) },
	"keras adam":          func() *Solver { return New(adamHat(1e-7)) },
	"adamw":               func() *Solver { return NewAdamW() },
	"adamw of addons":     func() *Solver { return NewAdamW(func(a *AdamW) { a.RateIndependent, a.WeightDecay = true, 1e-4 }) },
	"adabelief":           func() *Solver { return NewAdaBelief() },
	"adabelief, not rect": func() *Solver { return NewAdaBelief(func(a *AdaBelief) { a.Rectify = false }) },
	"adabelief, eps":      func() *Solver { return NewAdaBelief(func(a *AdaBelief) { a.Rectify, a.Epsilon = false, 1e-8 }) },
	"adabelief, big eps":  func() *Solver { return NewAdaBelief(func(a *AdaBelief) { a.Rectify, a.Epsilon = false, 1e-3 }) },
	"adabelief, decay":    func() *Solver { return NewAdaBelief(func(a *AdaBelief) { a.WeightDecay, a.Epsilon = .1, 1e-16 }) },
	"adabelief, fixed":    func() *Solver { return NewAdaBelief(func(a *AdaBelief) { a.WeightDecay, a.Decay, a.TotalSteps = 1e-4, "fixed", 500 }) },
	"adabelief, betas":    func() *Solver { return NewAdaBelief(func(a *AdaBelief) { a.Beta1, a.Beta2 = .99, .9 }) },
	"adabelief, beta1 .5": func() *Solver { return NewAdaBelief(func(a *AdaBelief) { a.Beta1, a.Rectify = .5, false }) },
}

// rowSteps are random gradients of some rows; the last rows get ever smaller ones, the very last none.
func rowSteps(dt tensor.Dtype, rows, width, each, steps int) []*graphops.Rows {
	rng := rand.New(rand.NewPCG(3, 4))
	all := make([]*graphops.Rows, steps)
	for k := range all {
		var at []int
		var v []float64
		for range each {
			r := rng.IntN(rows - 1)
			at = append(at, r)
			scale := 1.
			if r > rows/2 {
				scale = pow10(-(r - rows/2) / 4)
			}
			for range width {
				v = append(v, scale*rng.NormFloat64())
			}
		}
		all[k] = must(graphops.NewRows(dt, tensor.Shape{rows, width}, at, value(dt, []int{each, width}, v).(*tensor.Dense)))
	}
	return all
}

func pow10(k int) float64 {
	x := 1.
	for ; k < 0; k++ {
		x /= 10
	}
	return x
}

// A thousand steps give what they give with whole gradients.
func TestCatchUpEqualsDense(t *testing.T) {
	const rows, width, each, steps = 60, 3, 2, 1000
	for name, make := range caughtUp {
		for dt, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-12, tensor.Float32: 3e-4} {
			t.Run(fmt.Sprintf("%s/%v", name, dt), func(t *testing.T) {
				lazy, dense := WithRows(make(), RowsCatchUp), WithRows(make(), RowsDense)
				first := random(dt, 5, rows, width)
				a, b := &pair{"w", first.Clone().(*tensor.Dense), nil}, &pair{"w", first.Clone().(*tensor.Dense), nil}
				for k, g := range rowSteps(dt, rows, width, each, steps) {
					require.NoError(t, lazy.ApplyGradients([]Pair{{a, g}}))
					require.NoError(t, dense.ApplyGradients([]Pair{{b, g}}))
					if k == 300 {
						require.NoError(t, lazy.CatchUpRows(a, []int{0, 1, rows - 1}))
						width := 2 * width
						near(t, floats(b.value)[:width], floats(a.value)[:width], tol)
					}
				}
				if name != "sgd" { // of which rows miss nothing
					require.NotEqual(t, floats(a.value), floats(b.value))
				}
				require.NoError(t, lazy.CatchUp())
				near(t, floats(b.value), floats(a.value), tol)
				for _, st := range dense.store.States() {
					near(t, floats(must(st.Value())), floats(must(lazy.store.Lookup(st.Name()).Value())), tol)
				}
			})
		}
	}
}

// near compares as golden rows are compared.
func near(t *testing.T, want, got []float64, tol float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if diff := want[i] - got[i]; !(max(diff, -diff) <= tol*max(1, want[i], -want[i])) {
			t.Fatalf("element %d: want %v, got %v, %v off", i, want[i], got[i], diff)
		}
	}
}

var _ = G.NewGraph
