package solvers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

// caughtUp are rules whose missed steps are known.
var caughtUp = map[string]func() *Solver{
	"sgd":             func() *Solver { return NewSGD() },
	"sgd, decay":      func() *Solver { return Chain(NewCoupledDecay(.01), NewSGD(func(s *SGD) { s.LearningRate = .1 })) },
	"momentum":        func() *Solver { return NewMomentum() },
	"momentum, decay": func() *Solver { return Chain(NewCoupledDecay(.01), NewMomentum()) },
	"nesterov, decay": func() *Solver { return Chain(NewCoupledDecay(.01), NewNesterov()) },
	"keras sgd":       func() *Solver { return NewNesterov(func(m *Momentum) { m.RateInside = true }) },
	"keras sgd, decay": func() *Solver {
		return Chain(NewCoupledDecay(.1), NewMomentum(func(m *Momentum) { m.RateInside = true }))
	},
	"sgdw": func() *Solver { return NewSGDW(func(s *SGDW) { s.Momentum, s.WeightDecay = .9, .001 }) },
	"sgdw, nesterov": func() *Solver {
		return NewSGDW(func(s *SGDW) { s.Momentum, s.WeightDecay, s.Nesterov = .9, .001, true })
	},
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
	"adabelief, fixed": func() *Solver {
		return NewAdaBelief(func(a *AdaBelief) { a.WeightDecay, a.Decay, a.TotalSteps = 1e-4, "fixed", 500 })
	},
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

// skipGram is a loss of two tables, from which each step reads other rows: their values matter.
func skipGram(dt tensor.Dtype, tables []G.Value, a, b []int) (loss *G.Node, vars G.Nodes) {
	g := G.NewGraph()
	for i, v := range tables {
		vars = append(vars, G.NewTensor(g, dt, 2, G.WithShape(v.Shape()...), G.WithName(fmt.Sprint("table", i)), G.WithValue(v)))
	}
	at := func(name string, x []int) *G.Node {
		return G.NewVector(g, tensor.Int, G.WithShape(len(x)), G.WithName(name), G.WithValue(tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x))))
	}
	x, y := must(graphops.Gather(vars[0], at("a", a))), must(graphops.Gather(vars[1], at("b", b)))
	d := must(G.Sub(must(G.HadamardProd(x, y)), must(G.Tanh(x))))
	return must(G.Mean(must(G.Square(d)))), vars
}

// In a graph the forward pass reads rows that have caught up, so that the losses are those of whole gradients; a schedule, a change of
// a hyperparameter by hand and a clip in between make no difference.
func TestCatchUpInGraphs(t *testing.T) {
	const rows, width = 40, 3
	rng := rand.New(rand.NewPCG(5, 6))
	for name, make := range map[string]func() *Solver{
		"adamw":     func() *Solver { return NewAdamW() },
		"adabelief": func() *Solver { return NewAdaBelief() },
		"momentum":  func() *Solver { return Chain(NewCoupledDecay(.001), NewMomentum()) },
	} {
		train := func(mode RowMode) (*Solver, []G.Value) {
			s := Chain(NewClipByGlobalNorm(.1), WithRows(make(), mode))
			if name != "momentum" {
				require.NoError(t, s.Schedule("learning_rate", schedule.NewExponentialDecay(.01, 50, .9)))
			}
			return s, []G.Value{random(tensor.Float64, 1, rows, width), random(tensor.Float64, 2, rows, width)}
		}
		lazy, a := train(RowsCatchUp)
		dense, b := train(RowsDense)
		for k := range 200 {
			at, to := []int{rng.IntN(rows), rng.IntN(rows), rng.IntN(4)}, []int{rng.IntN(rows), rng.IntN(rows), 1}
			if k == 100 && name != "momentum" {
				require.NoError(t, lazy.Set("beta1", .8))
				require.NoError(t, dense.Set("beta1", .8))
			}
			if k == 150 && name == "momentum" {
				require.NoError(t, lazy.Set("learning_rate", .05))
				require.NoError(t, dense.Set("learning_rate", .05))
			}
			var losses [2]float64
			for i, s := range []*Solver{lazy, dense} {
				loss, vars := skipGram(tensor.Float64, [][]G.Value{a, b}[i], at, to)
				vm := must(graphops.NewMachine(must(s.Minimize(loss, vars...)), loss))
				require.NoError(t, vm.RunAll())
				losses[i] = must(graphops.ScalarValue(loss.Value()))
			}
			require.InDelta(t, losses[1], losses[0], 1e-12, "%s, step %d", name, k)
		}
		require.NoError(t, lazy.CatchUp())
		for i := range a {
			near(t, floats(b[i]), floats(a[i]), 1e-12)
		}
	}
}

// What is saved has caught up; training goes on after it, also with a whole gradient in between.
func TestCatchUpBeforeOtherUses(t *testing.T) {
	make := func(mode RowMode) *Solver { return WithRows(NewAdam(), mode) }
	lazy, dense := make(RowsCatchUp), make(RowsDense)
	a, b := &pair{"w", random(tensor.Float64, 5, 20, 2), nil}, &pair{"w", random(tensor.Float64, 5, 20, 2), nil}
	same := func() {
		t.Helper()
		near(t, floats(b.value), floats(a.value), 1e-12)
	}
	for k, g := range rowSteps(tensor.Float64, 20, 2, 2, 100) {
		var grad G.Value = g
		if k%10 == 9 {
			grad = must(g.Dense())
		}
		require.NoError(t, lazy.ApplyGradients([]Pair{{a, grad}}))
		require.NoError(t, dense.ApplyGradients([]Pair{{b, grad}}))
		switch k {
		case 9, 29:
			same()
		case 15:
			var file bytes.Buffer
			require.NoError(t, lazy.Save(&file))
			same()
			require.NoError(t, lazy.Load(&file))
		case 25:
			w := must(lazy.Weights())
			same()
			require.NoError(t, lazy.SetWeights(w))
		case 45: // another tensor of the name: what the old one has missed belongs to that
			old := a.value
			a.value = value(tensor.Float64, []int{20, 2}, floats(b.value))
			defer func() { require.NotNil(t, old) }()
			require.NoError(t, lazy.CatchUp())
			near(t, floats(b.value), floats(old), 1e-12)
		case 65:
			before := floats(must(lazy.store.Lookup("w/adam/m").Value()))
			_, _, err := lazy.StatelessApply(must(lazy.Weights()), []G.Value{g}, []G.Value{a.value})
			require.NoError(t, err)
			same()
			require.NotEqual(t, before, floats(must(lazy.store.Lookup("w/adam/m").Value())))
		}
	}
	require.NoError(t, lazy.Reset())
	require.NoError(t, dense.Reset())
	same()
}

func TestCatchUpRefuses(t *testing.T) {
	g := rowSteps(tensor.Float64, 4, 2, 1, 1)[0]
	for want, rule := range map[string]Rule{
		"not for a *solvers.RMSprop there":           NewRMSprop(),
		"not for a *solvers.Adam there":              NewAdam(func(a *Adam) { a.AMSGrad = true }),
		"momentum with dampening has no closed form": NewMomentum(func(m *Momentum) { m.Dampening = .1 }),
		"not for a *solvers.ClipByNorm there":        Chain(NewClipByNorm(1), NewSGD()),
		"not for a *solvers.CoupledDecay there":      Chain(NewCoupledDecay(.1), NewAdam()),
		"AdaBelief with ams_grad":                    NewAdaBelief(func(a *AdaBelief) { a.Decay = "coupled" }),
	} {
		w := &pair{"w", random(tensor.Float64, 1, 4, 2), nil}
		before := floats(w.value)
		err := WithRows(rule, RowsCatchUp).ApplyGradients([]Pair{{w, g}})
		require.ErrorContains(t, err, want)
		require.Equal(t, before, floats(w.value))
	}
	s := WithRows(NewAdam(), RowsCatchUp)
	w := &pair{"w", random(tensor.Float64, 1, 4, 2), nil}
	require.NoError(t, s.CatchUpRows(w, []int{7})) // nothing is known of it yet
	require.NoError(t, s.ApplyGradients([]Pair{{w, g}}))
	require.ErrorContains(t, s.CatchUpRows(w, []int{0, 4}), `index 4, element 1 of the indices, is out of range: parameter "w" has 4 rows`)
	require.NoError(t, s.CatchUpRows(nil, nil))

	st := rowsStep{Indices: []int{1}, Values: [][]float64{{1, 2}}}
	n := G.NewMatrix(G.NewGraph(), tensor.Float64, G.WithShape(4, 2), G.WithName("w"), G.WithValue(value(tensor.Float64, []int{4, 2}, ones(8))))
	loss := st.loss(n, false)
	nodes := len(n.Graph().AllNodes())
	_, err := WithRows(NewAdam(), RowsCatchUp).Minimize(loss, n)
	require.ErrorContains(t, err, `"w" is read by node 2 (ByIndicesOp{axis=0}), which is no Gather`)
	require.Len(t, n.Graph().AllNodes(), nodes)

	_, err = FromConfigMap(map[string]any{"class": "rows", "mode": "sparse", "rule": map[string]any{"class": "adam"}})
	require.ErrorContains(t, err, `mode is "sparse"; it must be one of`)
}

func ones(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// What is remembered is closed in chapters, and when it is too much all rows catch up: over thousands of steps, in which some rows are
// touched once, neither makes a difference. A vector is a table, too.
func TestCatchUpForLong(t *testing.T) {
	for _, name := range []string{"sgd, decay", "momentum, decay", "adam", "adamw", "adabelief, decay", "adam, betas"} {
		for dt, tol := range map[tensor.Dtype]float64{tensor.Float64: 1e-11, tensor.Float32: 2e-3} {
			lazy, dense := WithRows(caughtUp[name](), RowsCatchUp), WithRows(caughtUp[name](), RowsDense)
			first := random(dt, 5, 40)
			a, b := &pair{"w", first.Clone().(*tensor.Dense), nil}, &pair{"w", first.Clone().(*tensor.Dense), nil}
			rng := rand.New(rand.NewPCG(7, 8))
			for k := range 5000 {
				at := []int{k % 30}
				if k >= 30 {
					at[0] = rng.IntN(10)
				}
				if k%1500 == 1499 {
					at = append(at, 10+rng.IntN(20))
				}
				v := make([]float64, len(at))
				for i := range v {
					v[i] = rng.NormFloat64()
				}
				g := must(graphops.NewRows(dt, tensor.Shape{40}, at, value(dt, []int{len(at)}, v).(*tensor.Dense)))
				require.NoError(t, lazy.ApplyGradients([]Pair{{a, g}}))
				require.NoError(t, dense.ApplyGradients([]Pair{{b, g}}))
				if k == 4500 { // as if it was too much
					require.NoError(t, lazy.arrears["w"].settle())
				}
			}
			require.NoError(t, lazy.CatchUp())
			near(t, floats(b.value), floats(a.value), tol)
			for _, st := range dense.store.States() {
				near(t, floats(must(st.Value())), floats(must(lazy.store.Lookup(st.Name()).Value())), tol)
			}
		}
	}
}
