package solvers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

// random is a tensor of reproducible normal numbers.
func random(dt tensor.Dtype, seed uint64, shape ...int) *tensor.Dense {
	r := rand.New(rand.NewPCG(seed, 1))
	n := tensor.Shape(shape).TotalSize()
	if dt == tensor.Float32 {
		b := make([]float32, n)
		for i := range b {
			b[i] = float32(r.NormFloat64() * .3)
		}
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(b))
	}
	b := make([]float64, n)
	for i := range b {
		b[i] = r.NormFloat64() * .3
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(b))
}

// must returns what a call returned without error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// floats copies the elements of values.
func floats(vs ...G.Value) (out []float64) {
	for _, v := range vs {
		switch x := v.(type) {
		case *G.F64:
			out = append(out, float64(*x))
		case *G.F32:
			out = append(out, float64(*x))
		case *G.I64:
			out = append(out, float64(*x))
		case *tensor.Dense:
			if x.Dtype() == tensor.Float64 {
				out = append(out, x.Float64s()...)
				continue
			}
			for _, f := range x.Float32s() {
				out = append(out, float64(f))
			}
		}
	}
	return out
}

func values(ns G.Nodes) (vs []G.Value) {
	for _, n := range ns {
		vs = append(vs, n.Value())
	}
	return vs
}

// differing counts the elements that are not the same bits.
func differing(a, b []float64) int {
	d := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			d++
		}
	}
	return d
}

// model is a small MLP with a matrix, a bias row and a scalar gain.
type model struct {
	g       *G.ExprGraph
	x       *G.Node
	h, loss *G.Node
	vars    G.Nodes
}

func newModel(dt tensor.Dtype) *model {
	g := G.NewGraph()
	m := &model{g: g}
	mat := func(name string, seed uint64, shape ...int) *G.Node {
		return G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(random(dt, seed, shape...)))
	}
	m.x = mat("x", 1, 8, 5)
	y := mat("y", 2, 8, 3)
	w0, b0, w1 := mat("w0", 3, 5, 6), mat("b0", 4, 1, 6), mat("w1", 5, 6, 3)
	var one any = 1.0
	if dt == tensor.Float32 {
		one = float32(1)
	}
	gain := G.NewScalar(g, dt, G.WithName("gain"), G.WithValue(one))
	m.h = must(G.Tanh(must(G.BroadcastAdd(must(G.Mul(m.x, w0)), b0, nil, []byte{0}))))
	out := must(G.HadamardProd(must(G.Mul(m.h, w1)), gain))
	m.loss = must(G.Mean(must(G.Square(must(G.Sub(out, y))))))
	m.vars = G.Nodes{w0, b0, w1, gain}
	return m
}

var kinds = map[string]func(...Option) *Solver{
	"sgd":      func(o ...Option) *Solver { return New(&SGD{LearningRate: .1}, o...) },
	"momentum": func(o ...Option) *Solver { return New(&Momentum{LearningRate: .05, Momentum: .9}, o...) },
	"nesterov": func(o ...Option) *Solver {
		return New(&Momentum{LearningRate: .05, Momentum: .9, Nesterov: true}, o...)
	},
	"adam": func(o ...Option) *Solver {
		return New(&Adam{LearningRate: .02, Beta1: .9, Beta2: .999, Epsilon: 1e-8}, o...)
	},
	"adamw": func(o ...Option) *Solver {
		return New(&AdamW{Adam: Adam{LearningRate: .02, Beta1: .9, Beta2: .999, Epsilon: 1e-8}, WeightDecay: .05}, o...)
	},
	"clip+adam": func(o ...Option) *Solver {
		return New(Chain(NewClipByGlobalNorm(.05), NewAdam(func(a *Adam) { a.LearningRate = .02 })), o...)
	},
	"scheduled adam": func(o ...Option) *Solver {
		s := New(&Adam{LearningRate: .02, Beta1: .9, Beta2: .999, Epsilon: 1e-8}, o...)
		for name, sch := range map[string]schedule.Schedule{
			"learning_rate": schedule.NewNoam(8, 20),
			"beta1":         schedule.NewExponentialDecay(.95, 7, .9),
			"beta2":         schedule.NewExponentialDecay(.999, 7, .99, func(d *schedule.ExponentialDecay) { d.Staircase = true }),
			"epsilon":       schedule.NewConstant(1e-7),
		} {
			if err := s.Schedule(name, sch); err != nil {
				panic(err)
			}
		}
		return s
	},
	"wrapped": func(o ...Option) *Solver {
		return New(EMA(Lookahead(SWA(NewRanger(func(r *Ranger) { r.LearningRate = .02 })), func(l *LookaheadOptions) { l.SyncPeriod = 4 }),
			func(e *EMAOptions) { e.EMAOverwriteFrequency = 7 }), o...)
	},
	"map": func(o ...Option) *Solver {
		byName := OptimizerMap(MovingAverage(NewAdam()), Route{"w0", Accumulate(2, NewAdam())}, Route{"b.|gain", NewSGD()})
		return New(Lookahead(byName), o...)
	},
	"scheduled sgd": func(o ...Option) *Solver {
		s := New(&SGD{}, o...)
		if err := s.Schedule("lr", schedule.NewIntervalDecay(.1, 3, .7)); err != nil {
			panic(err)
		}
		return s
	},
}

// train runs 100 steps of a fresh model in one host and returns the weights.
func train(t *testing.T, dt tensor.Dtype, kind, host string) []float64 {
	m := newModel(dt)
	var s *Solver
	if host == "expanded" {
		s = kinds[kind](Expanded())
	} else {
		s = kinds[kind]()
	}
	var vm G.VM
	step := func() {
		require.NoError(t, vm.RunAll())
		vm.Reset()
	}
	switch host {
	case "step":
		must(G.Grad(m.loss, m.vars...))
		vm = G.NewTapeMachine(m.g, G.BindDualValues(m.vars...))
		step = func() {
			require.NoError(t, vm.RunAll())
			require.NoError(t, s.Step(G.NodesToValueGrads(m.vars)))
			vm.Reset()
		}
	case "lisp step":
		step = func() {
			vm := G.NewLispMachine(m.g)
			require.NoError(t, vm.RunAll())
			require.NoError(t, s.Step(G.NodesToValueGrads(m.vars)))
			require.NoError(t, vm.Close())
		}
	default:
		op, err := s.Minimize(m.loss, m.vars...)
		require.NoError(t, err)
		switch host {
		case "whole graph", "expanded":
			vm = G.NewTapeMachine(m.g)
		case "subgraph":
			vm = G.NewTapeMachine(m.g.SubgraphRoots(op))
		case "machine":
			vm = must(graphops.NewMachine(op))
		case "lisp forward":
			step = func() {
				vm := G.NewLispMachine(m.g, G.ExecuteFwdOnly())
				require.NoError(t, vm.RunAll())
				require.NoError(t, vm.Close())
			}
		}
	}
	for range 100 {
		step()
	}
	return floats(values(m.vars)...)
}

// Every host and every machine gives the same weights, bit for bit.
func TestHostsAgree(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for kind := range kinds {
			want := train(t, dt, kind, "machine")
			require.NotZero(t, differing(want, floats(values(newModel(dt).vars)...)))
			for _, host := range []string{"whole graph", "subgraph", "expanded", "lisp forward", "step", "lisp step"} {
				t.Run(dt.String()+"/"+kind+"/"+host, func(t *testing.T) {
					require.Zero(t, differing(want, train(t, dt, kind, host)))
				})
			}
		}
	}
}
