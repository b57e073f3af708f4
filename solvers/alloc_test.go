package solvers

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers/schedule"
)

// list makes a model of n wrapped values with gradients of 1.
func list(n int, value func(i int) G.Value) []G.ValueGrad {
	m := make([]G.ValueGrad, n)
	for i := range m {
		m[i] = &pair{fmt.Sprint("w", i), value(i), value(i)}
	}
	return m
}

// dual makes a model of n nodes with dual values.
func dual(n int, dt tensor.Dtype, shape ...int) []G.ValueGrad {
	g := G.NewGraph()
	var ns G.Nodes
	for i := range n {
		w, d := random(dt, 1, shape...), random(dt, 2, shape...)
		ns = append(ns, G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(fmt.Sprint("w", i)), G.WithValue(w), G.WithGrad(d)))
	}
	return G.NodesToValueGrads(ns)
}

// zeroD is a dense tensor of no dimensions.
func zeroD(dt tensor.Dtype) *tensor.Dense {
	if dt == tensor.Float32 {
		return tensor.New(tensor.FromScalar(float32(1)))
	}
	return tensor.New(tensor.FromScalar(1.0))
}

// plain is a nameless ValueGrad by value.
type plain struct{ value, grad G.Value }

func (p plain) Value() G.Value         { return p.value }
func (p plain) Grad() (G.Value, error) { return p.grad, nil }

// named is a ValueGrad by value, with a name.
type named struct {
	plain
	name string
}

func (n named) Name() string { return n.name }

var stepSolvers = map[string]func() *Solver{
	"sgd":         func() *Solver { return NewSGD() },
	"momentum":    func() *Solver { return NewMomentum() },
	"adam":        func() *Solver { return NewAdam() },
	"adamw":       func() *Solver { return NewAdamW() },
	"clip + adam": func() *Solver { return Chain(NewClipByGlobalNorm(1), NewAdam()) },
	"prepared":    func() *Solver { return Chain(all(1, 1, 1, 1, 1), NewAdam()) },
	"lamb":        func() *Solver { return NewLAMB() },
	"bound": func() *Solver {
		s := NewAdam()
		s.err = s.Bind("learning_rate", number(G.NewGraph(), "rate", .1))
		return s
	},
	"scheduled": func() *Solver {
		s := NewAdam()
		s.err = s.Schedule("learning_rate", schedule.NewNoam(512, 4000))
		if s.err == nil {
			s.err = s.Schedule("beta1", schedule.NewIntervalDecay(.9, 3, .5))
		}
		return s
	},
}

var stepModels = map[string]func() []G.ValueGrad{
	"one tensor": func() []G.ValueGrad {
		return list(1, func(int) G.Value { return random(tensor.Float32, 1, 3, 4) })
	},
	"1000 tensors": func() []G.ValueGrad {
		return list(1000, func(i int) G.Value { return random(tensor.Float32, uint64(i), 5) })
	},
	"scalars": func() []G.ValueGrad {
		return list(4, func(i int) G.Value {
			return []G.Value{G.NewF64(1), G.NewF32(1), zeroD(tensor.Float32), zeroD(tensor.Float64)}[i]
		})
	},
	"mix": func() []G.ValueGrad {
		return list(20, func(i int) G.Value {
			return random([]tensor.Dtype{tensor.Float32, tensor.Float64}[i%2], 1, i+1, 2)
		})
	},
	"nodes":      func() []G.ValueGrad { return dual(20, tensor.Float32, 3, 4) },
	"1000 nodes": func() []G.ValueGrad { return dual(1000, tensor.Float32, 7) },
	"nameless": func() []G.ValueGrad {
		return []G.ValueGrad{&nameless{pair{value: G.NewF64(1), grad: G.NewF64(1)}}, &plain{random(tensor.Float64, 1, 2), random(tensor.Float64, 1, 2)},
			plain{random(tensor.Float64, 1, 2), random(tensor.Float64, 1, 2)}, named{plain{G.NewF64(1), G.NewF64(1)}, "w"}}
	},
	"twins": func() []G.ValueGrad {
		return []G.ValueGrad{&pair{"w", G.NewF64(1), G.NewF64(1)}, &pair{"w", G.NewF64(1), G.NewF64(1)}, dual(1, tensor.Float64, 2)[0]}
	},
	"views": func() []G.ValueGrad {
		return list(3, func(int) G.Value {
			return must(random(tensor.Float32, 1, 4, 5).Slice(nil, G.S(1, 3))).(*tensor.Dense)
		})
	},
}

// From the second step on a model, Step allocates nothing.
func TestStepAllocatesNothing(t *testing.T) {
	for rule, mk := range stepSolvers {
		for name, model := range stepModels {
			s, m := mk(), model()
			require.NoError(t, s.Step(m))
			assert.Zero(t, testing.AllocsPerRun(10, func() {
				if err := s.Step(m); err != nil {
					panic(err)
				}
			}), "%s, %s", rule, name)
		}
	}
}

// Between steps the solver holds neither gradients nor nodes.
func TestStepLetsGo(t *testing.T) {
	s := NewAdam()
	w := random(tensor.Float32, 1, 3)
	held := func() (weak.Pointer[tensor.Dense], weak.Pointer[G.Node]) {
		d := random(tensor.Float32, 2, 3)
		n := dual(1, tensor.Float32, 3)[0].(*G.Node)
		require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w, d}, n}))
		require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w, d}, n}))
		return weak.Make(d), weak.Make(n)
	}
	d, n := held()
	for range 3 {
		runtime.GC()
	}
	require.Nil(t, d.Value())
	require.Nil(t, n.Value())
	runtime.KeepAlive(s)
}

// A model that changes between steps in any way gives what a solver gives that recognises nothing.
func TestStepOnChangingModels(t *testing.T) {
	for seed := range uint64(40) {
		quick, slow := newChanging(seed), newChanging(seed)
		for i := range 60 {
			quick.change()
			slow.change()
			slow.s.params.last = nil
			e1, e2 := quick.s.Step(quick.model()), slow.s.Step(slow.model())
			if e2 != nil && strings.Contains(e2.Error(), "share memory") { // of three, any two
				require.ErrorContains(t, e1, "share memory", "%d, %d", seed, i)
			} else {
				require.Equal(t, fmt.Sprint(e2), fmt.Sprint(e1), "%d, %d", seed, i)
			}
			require.Equal(t, slow.state(), quick.state(), "%d, %d", seed, i)
		}
	}
}

// changing is a model with random changes, equal for equal seeds.
type changing struct {
	s    *Solver
	adam *Adam
	r    *rand.Rand
	all  []G.ValueGrad
	now  []int // of all
}

func newChanging(seed uint64) *changing {
	c := &changing{adam: &Adam{LearningRate: .1, Beta1: .9, Beta2: .99, Epsilon: 1e-8}, r: rand.New(rand.NewPCG(seed, 2))}
	var opts []Option
	if seed%2 == 1 {
		opts = append(opts, SkipMissing())
	}
	c.s = New(c.adam, opts...)
	f := func() *tensor.Dense { return random(tensor.Float64, 1, 3) }
	c.all = []G.ValueGrad{&pair{"a", f(), f()}, &pair{"b", G.NewF64(1), G.NewF64(2)}, &nameless{pair{value: f(), grad: f()}},
		&pair{"n", f(), f()}, &nameless{pair{value: G.NewF32(1), grad: G.NewF32(2)}}, named{plain{f(), f()}, "c"}}
	g := G.NewGraph()
	for _, name := range []string{"n", "m"} {
		c.all = append(c.all, G.NewVector(g, G.Float64, G.WithShape(3), G.WithName(name), G.WithValue(f()), G.WithGrad(f())))
	}
	c.now = c.r.Perm(len(c.all))
	return c
}

func (c *changing) change() {
	k := c.r.IntN(len(c.all))
	p, _ := c.all[k].(*pair)
	n, _ := c.all[k].(*G.Node)
	switch what := c.r.IntN(40); {
	case what == 0:
		c.now = c.r.Perm(len(c.all))
	case what == 1:
		c.now = c.r.Perm(len(c.all))[:1+c.r.IntN(len(c.all))]
	case what == 2:
		c.now[c.r.IntN(len(c.now))] = k
	case what == 3:
		c.adam.Beta1 = []float64{.9, 2}[c.r.IntN(2)]
	case what == 4:
		_ = c.s.Bind("learning_rate", number(G.NewGraph(), "rate", c.r.Float64()))
	case what == 5 && n != nil:
		_ = G.Let(n, random(tensor.Float64, 5, 3))
	case p == nil:
	case what == 6:
		p.name = []string{"a", "b", "n", "d"}[c.r.IntN(4)]
	case what == 7: // the same parameter in another wrapper
		c.all[k] = &pair{p.name, p.value, p.grad}
	case what == 8:
		p.value, p.grad = random(tensor.Float64, 3, 3), random(tensor.Float64, 4, 3)
	case what == 9: // a column is a vector to Gorgonia
		p.value, p.grad = random(tensor.Float64, 3, 3, 1), random(tensor.Float64, 4, 3, 1)
	case what == 10:
		p.value, p.grad = random(tensor.Float64, 3, 1, 3), random(tensor.Float64, 4, 3)
	case what == 11:
		p.grad = nil
	case what == 12:
		p.grad = p.value
	case what == 13:
		p.value = (*tensor.Dense)(nil)
	case what == 14:
		c.all[k] = named{plain{p.value, p.grad}, p.name}
	case what == 15:
		c.all[k] = named{plain{uncomparable{F64: G.NewF64(1)}, p.grad}, p.name}
	default: // mostly nothing but other gradients
		if p.grad = random(tensor.Float64, c.r.Uint64(), 3); p.name == "b" {
			p.grad = G.NewF64(c.r.Float64())
		}
	}
}

type uncomparable struct {
	*G.F64
	_ []int
}

func (c *changing) model() (m []G.ValueGrad) {
	for _, k := range c.now {
		m = append(m, c.all[k])
	}
	return m
}

// state is all that a step may change.
func (c *changing) state() (out [][]float64) {
	for _, m := range c.all {
		d, _ := m.Grad()
		for _, v := range []G.Value{m.Value(), d} {
			if !absent(v) {
				out = append(out, floats(v))
			}
		}
	}
	for _, st := range c.s.store.States() {
		if v, err := st.Value(); err == nil {
			out = append(out, floats(v))
		}
	}
	return out
}

func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name  string
		model []G.ValueGrad
	}{
		{"1x1", list(1, func(int) G.Value { return random(tensor.Float32, 1, 1) })},
		{"1xF64", list(1, func(int) G.Value { return G.NewF64(1) })},
		{"1000x1", list(1000, func(int) G.Value { return random(tensor.Float32, 1, 1) })},
		{"1000x1000", list(1000, func(int) G.Value { return random(tensor.Float32, 1, 1000) })},
		{"1000x1 nodes", dual(1000, tensor.Float32, 1)},
	} {
		for _, rule := range []string{"sgd", "adam"} {
			b.Run(rule+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				s := stepSolvers[rule]()
				require.NoError(b, s.Step(c.model))
				for b.Loop() {
					if err := s.Step(c.model); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
