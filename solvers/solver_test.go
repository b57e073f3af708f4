package solvers

import (
	"math"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

func TestHyperparameters(t *testing.T) {
	s := NewAdam(func(a *Adam) { a.LearningRate = .5; a.Beta1 = .8 })
	require.NoError(t, s.Err())
	get := func(name string) float64 { return must(s.Get(name)) }
	require.Equal(t, []float64{.5, .8, .999, 1e-8}, []float64{get("learning_rate"), get("adam/beta1"), get("beta2"), get("epsilon")})
	require.NoError(t, s.Set("learning_rate", .25))
	require.Equal(t, .25, get("adam/learning_rate"))
	require.NoError(t, s.Set("learning_rate", 0))
	require.ErrorContains(t, s.Set("beta1", 1), "adam/beta1 is 1; it must be in [0, 1)")
	require.ErrorContains(t, s.Set("beta1", math.NaN()), "NaN")
	require.ErrorContains(t, s.Set("learning_rate", math.Inf(1)), "Inf")
	require.NoError(t, s.Set("Adam/LearningRate", .125))
	require.NoError(t, s.Set("LR", 0))
	require.Equal(t, 1e-8, get("eps"))
	require.ErrorContains(t, s.Set("learning_rat", 1), `did you mean "adam/learning_rate"?`)
	_, err := s.Get("momentum")
	require.ErrorContains(t, err, "no hyperparameter")
	require.Equal(t, []float64{0, .8}, []float64{get("learning_rate"), get("beta1")})

	c := Chain(NewClipByGlobalNorm(1), NewAdam(), NewSGD(), NewAdam())
	require.ErrorContains(t, c.Set("learning_rate", 1), "adam/learning_rate, sgd/learning_rate, adam#2/learning_rate")
	require.NoError(t, c.Set("adam#2/learning_rate", .125))
	require.NoError(t, c.Set("max_norm", 2))
	require.Equal(t, []float64{.001, .125, 2}, []float64{must(c.Get("adam/learning_rate")), must(c.Get("adam#2/learning_rate")), must(c.Get("max_norm"))})
	require.ErrorContains(t, c.Set("max_norm", -1), "[0, +Inf)")
}

// A solver with a mistake says so whatever is done with it, names it, and changes nothing.
func TestBadSolvers(t *testing.T) {
	for want, s := range map[string]*Solver{
		"sgd/learning_rate is -1":          NewSGD(func(r *SGD) { r.LearningRate = -1 }),
		"adam/beta1 is 2":                  NewAdam(func(r *Adam) { r.Beta1 = 2 }),
		"adam/epsilon is -1":               NewAdam(func(r *Adam) { r.Epsilon = -1 }),
		"adamw/weight_decay is NaN":        NewAdamW(func(r *AdamW) { r.WeightDecay = math.NaN() }),
		"adamw/beta2 is 1":                 NewAdamW(func(r *AdamW) { r.Beta2 = 1 }),
		"momentum/momentum is 1.5":         NewMomentum(func(r *Momentum) { r.Momentum = 1.5 }),
		"clipbyglobalnorm/max_norm is -1":  NewClipByGlobalNorm(-1),
		"clipbyglobalnorm/max_norm is NaN": Chain(NewClipByGlobalNorm(math.NaN()), NewSGD()),
		"rule is nil":                      New(nil),
		"solver is nil":                    New((*Solver)(nil)),
		"*solvers.Adam is nil":             New((*Adam)(nil)),
		"no rules":                         Chain(),
		"is nil":                           Chain(NewSGD(), nil),
		"bad range":                        New(&badTag{}),
		"both at once":                     New(&choosy{A: 1, B: 1}),
	} {
		m := newModel(tensor.Float64)
		nodes, before := len(m.g.AllNodes()), floats(values(m.vars)...)
		_, err := s.Minimize(m.loss, m.vars...)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, s.Err(), want)
		require.ErrorContains(t, s.Set("learning_rate", 1), want)
		_, err = s.Get("learning_rate")
		require.ErrorContains(t, err, want)
		w := &pair{"w", G.NewF64(1), G.NewF64(1)}
		require.ErrorContains(t, s.Step([]G.ValueGrad{w}), want)
		require.ErrorContains(t, s.Check(m.loss, m.vars...), want)
		require.Len(t, m.g.AllNodes(), nodes)
		require.Equal(t, append(before, 1, 1), append(floats(values(m.vars)...), floats(w.value, w.grad)...))
	}
}

type badTag struct {
	A float64 `range:"[0,1"`
}

func (*badTag) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }

type choosy struct{ A, B float64 }

func (*choosy) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }
func (c *choosy) Validate() error {
	if c.A > 0 && c.B > 0 {
		return errors.New("A and B cannot be set both at once")
	}
	return nil
}

// Rules that misbehave are caught before anything is made or changed.
func TestBadRules(t *testing.T) {
	for want, f := range map[string]RuleFunc{
		"which it was not given": func(b *Builder, in []Step) ([]Step, error) {
			in[0].Param.Node = G.NewScalar(G.NewGraph(), G.Float64, G.WithName("stranger"))
			return in, nil
		},
		"two steps for":               func(b *Builder, in []Step) ([]Step, error) { return append(in, in[0]), nil },
		"zero Expr":                   func(b *Builder, in []Step) ([]Step, error) { in[0].Delta = Expr{}; return in, nil },
		"no hyperparameter is called": func(b *Builder, in []Step) ([]Step, error) { b.Hyper("x"); return in, nil },
		"a rule is nil":               func(b *Builder, in []Step) ([]Step, error) { return b.Run(nil, in) },
		"my own mistake":              func(b *Builder, in []Step) ([]Step, error) { return nil, errors.New("my own mistake") },
		"shape": func(b *Builder, in []Step) ([]Step, error) {
			return b.Each(in, func(s Step) Expr { return in[0].Delta })
		},
		"panicked: oh":     func(b *Builder, in []Step) ([]Step, error) { panic("oh") },
		"returned no step": func(b *Builder, in []Step) ([]Step, error) { return nil, nil },
		"slot": func(b *Builder, in []Step) ([]Step, error) {
			b.Slot(in[0], "m").Set(in[1].Delta)
			return in, nil
		},
	} {
		s := New(f)
		m := newModel(tensor.Float32)
		nodes, before := len(m.g.AllNodes()), floats(values(m.vars)...)
		_, err := s.Minimize(m.loss, m.vars...)
		if want == "slot" {
			want = "shape"
		}
		require.ErrorContains(t, err, want)
		require.Len(t, m.g.AllNodes(), nodes)
		require.Empty(t, s.Store().States())
		a, b := random(tensor.Float64, 1, 2), random(tensor.Float64, 1, 3)
		require.ErrorContains(t, s.Step([]G.ValueGrad{&pair{"a", a, a.Clone().(*tensor.Dense)}, &pair{"b", b, b.Clone().(*tensor.Dense)}}), want)
		require.Equal(t, before, floats(values(m.vars)...))
		require.Empty(t, s.Store().States())
	}
}

// A rule that is a struct, not a pointer, has hyperparameters too.
type scale struct{ Rate float64 }

func (scale) Apply(b *Builder, in []Step) ([]Step, error) {
	rate := b.Hyper("rate")
	return b.Each(in, func(s Step) Expr { return s.Delta.Mul(rate) })
}

func TestStructRule(t *testing.T) {
	s := Chain(scale{2}, New(scale{3}))
	w := &pair{"w", G.NewF64(1), G.NewF64(1)}
	require.NoError(t, s.Step([]G.ValueGrad{w}))
	require.Equal(t, []float64{-5, 0}, floats(w.value, w.grad))
	require.NoError(t, s.Set("scale/rate", 1))
	require.NoError(t, s.Set("scale#2/rate", 4))
	w.grad = G.NewF64(1)
	require.NoError(t, s.Step([]G.ValueGrad{w}))
	require.Equal(t, []float64{-9}, floats(w.value))
}

// One rule object in two solvers: hyperparameters are shared, slots are not.
func TestSharedRule(t *testing.T) {
	r := &Momentum{LearningRate: 1, Momentum: .5}
	a, b := New(r), New(r)
	w, v := &pair{"w", G.NewF64(0), G.NewF64(1)}, &pair{"w", G.NewF64(0), G.NewF64(1)}
	require.NoError(t, a.Step([]G.ValueGrad{w}))
	require.NoError(t, a.Set("learning_rate", 10))
	require.Equal(t, 10.0, must(b.Get("learning_rate")))
	require.NoError(t, b.Step([]G.ValueGrad{v}))
	require.Equal(t, []float64{-1, -10}, floats(w.value, v.value))
}

// A hyperparameter that is a node of the user's, in the graph and through Step.
func TestBind(t *testing.T) {
	g := G.NewGraph()
	w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(1.0))
	lr := G.NewScalar(g, G.Float32, G.WithName("my rate"), G.WithValue(float32(.5)))
	s := NewSGD()
	require.NoError(t, s.Bind("learning_rate", lr))
	require.ErrorContains(t, s.Set("learning_rate", 1), `node "my rate"`)
	require.Equal(t, .5, must(s.Get("learning_rate")))
	op := must(s.Minimize(must(G.Square(w)), w))
	vm := must(graphops.NewMachine(op))
	require.NoError(t, vm.RunAll())
	require.Equal(t, []float64{0}, floats(w.Value()))
	p := &pair{"w", G.NewF64(1), G.NewF64(1)}
	require.NoError(t, G.Let(lr, float32(.25)))
	require.NoError(t, s.Step([]G.ValueGrad{p}))
	require.Equal(t, []float64{.75}, floats(p.value))
	other := newModel(tensor.Float64)
	require.ErrorContains(t, s.Check(other.loss, other.vars...), "another graph")
	require.Error(t, s.Bind("learning_rate", nil))
	require.Error(t, s.Bind("learning_rate", other.x))
	require.Error(t, s.Bind("rate", lr))
}

// The derivative of the loss after a step with respect to the learning rate, through the update.
func TestDifferentiateThroughTheUpdate(t *testing.T) {
	g := G.NewGraph()
	w := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("w"), G.WithValue(tensor.New(tensor.WithBacking([]float64{1, 2}))))
	lr := G.NewScalar(g, G.Float64, G.WithName("lr"), G.WithValue(.1))
	loss := must(G.Sum(must(G.Square(w))))
	s := NewSGD()
	require.NoError(t, s.Bind("learning_rate", lr))
	updates := must(s.Updates(loss, w))
	require.Len(t, updates, 2) // and the global step
	next := must(graphops.Expand(updates[0].Value))
	after := must(G.Sum(must(G.Square(next))))
	var d G.Value
	G.Read(must(graphops.Gradients(after, G.Nodes{lr}))[0], &d)
	require.NoError(t, G.NewTapeMachine(g).RunAll())
	require.InEpsilon(t, -2*2*.8*5, floats(d)[0], 1e-12)
}

// A second loss on the same graph, and a graph of another batch size, share slots and counters.
func TestSharedState(t *testing.T) {
	for _, sameGraph := range []bool{true, false} {
		s := NewAdam(func(a *Adam) { a.LearningRate = .02 })
		full := newModel(tensor.Float64)
		g, vars := full.g, full.vars
		if !sameGraph {
			g, vars = G.NewGraph(), nil
			for _, v := range full.vars {
				vars = append(vars, G.NewTensor(g, v.Dtype(), v.Dims(), G.WithShape(v.Shape()...), G.WithName(v.Name())))
				require.NoError(t, G.Let(vars[len(vars)-1], v.Value()))
			}
		}
		short := func(g *G.ExprGraph, vars G.Nodes) *G.Node {
			x := G.NewMatrix(g, G.Float64, G.WithShape(3, 5), G.WithName("short x"), G.WithValue(random(G.Float64, 8, 3, 5)))
			h := must(G.Tanh(must(G.BroadcastAdd(must(G.Mul(x, vars[0])), vars[1], nil, []byte{0}))))
			return must(G.Mean(must(G.Square(must(G.HadamardProd(must(G.Mul(h, vars[2])), vars[3]))))))
		}
		vmFull := must(graphops.NewMachine(must(s.Minimize(full.loss, full.vars...))))
		vmShort := must(graphops.NewMachine(must(s.Minimize(short(g, vars), vars...))))
		if sameGraph {
			require.ErrorContains(t, G.NewTapeMachine(g).RunAll(), "two optim ops")
		}
		// the reference: Step on two graphs over the same values
		ref, r := newModel(tensor.Float64), NewAdam(func(a *Adam) { a.LearningRate = .02 })
		g2 := G.NewGraph()
		var vars2 G.Nodes
		for _, v := range ref.vars {
			vars2 = append(vars2, G.NewTensor(g2, v.Dtype(), v.Dims(), G.WithShape(v.Shape()...), G.WithName(v.Name())))
			require.NoError(t, G.Let(vars2[len(vars2)-1], v.Value()))
		}
		l2 := short(g2, vars2)
		must(G.Grad(ref.loss, ref.vars...))
		must(G.Grad(l2, vars2...))
		v1, v2 := G.NewTapeMachine(ref.g, G.BindDualValues(ref.vars...)), G.NewTapeMachine(g2, G.BindDualValues(vars2...))
		for i := range 30 {
			vm, rvm, m := vmFull, v1, ref.vars
			if i%3 == 2 {
				vm, rvm, m = vmShort, v2, vars2
			}
			require.NoError(t, vm.RunAll())
			require.NoError(t, rvm.RunAll())
			require.NoError(t, r.Step(G.NodesToValueGrads(m)))
			rvm.Reset()
		}
		require.Zero(t, differing(floats(values(full.vars)...), floats(values(ref.vars)...)))
		require.Equal(t, []float64{30}, floats(must(s.store.Lookup("adam/step").Value())))
	}
}

// The names of states, and slots found by name.
func TestStateNames(t *testing.T) {
	m := newModel(tensor.Float32)
	s := Chain(NewClipByGlobalNorm(1), NewAdam())
	require.Nil(t, s.Slot(m.vars[0], "m"))
	must(s.Minimize(m.loss, m.vars[0], m.vars[3]))
	var names []string
	for _, st := range s.Store().States() {
		names = append(names, st.Name())
	}
	require.Equal(t, []string{"clipbyglobalnorm/max_norm", "adam/learning_rate", "adam/beta1", "adam/beta2", "adam/epsilon", "adam/step",
		"w0/adam/m", "w0/adam/v", "gain/adam/m", "gain/adam/v", "global_step"}, names)
	require.Equal(t, "w0/adam/m", s.Slot(m.vars[0], "m").Name())
	require.Equal(t, "gain/adam/v", s.Slot(m.vars[3], "adam/v").Name())
	require.Nil(t, s.Slot(m.vars[0], "x"))
	require.Nil(t, s.Slot(m.vars[1], "m"))
	require.Nil(t, s.Slot(nil, "m"))
	require.Len(t, m.g.ByName("clipbyglobalnorm+adam(w0)"), 1)
}

func TestRegistry(t *testing.T) {
	require.Subset(t, Names(), []string{"adam", "sgd", "keras/adam", "tf1/rmsprop", "returnn/nadam", "blocks/adam_old_betas"})
	for _, name := range []string{"adam", "Adam", "AdamOptimizer", "ADAM_OPTIMIZER"} {
		f, err := Lookup(name)
		require.NoError(t, err)
		require.Equal(t, "adam", f().(*Solver).rules[0].name)
	}
	_, err := Lookup("adma")
	require.ErrorContains(t, err, `did you mean "adam"?`)
	_, err = Lookup("")
	require.Error(t, err)
	require.ErrorContains(t, Register("Adam", func() Rule { return NewSGD() }), `taken by "adam"`)
	require.Error(t, Register("", func() Rule { return NewSGD() }))
	require.Error(t, Register("x", nil))
	require.NoError(t, Register("My_Own", func() Rule { return scale{7} }))
	defer func() { delete(registry.factory, "myown"); delete(registry.name, "myown") }()
	s, err := FromConfig("myown", map[string]any{"rate": 5})
	require.NoError(t, err)
	require.Equal(t, 5.0, must(s.Get("rate")))
	for want, options := range map[string]map[string]any{
		`did you mean "beta1"?`:       {"beta_11": .5},
		`"beta1" already sets beta1`:  {"beta1": .5, "beta_1": .5},
		`want a float64, not "small"`: {"learning_rate": "small"},
		"want a float64, not null":    {"lr": nil},
		"adam/beta2 is 1.5":           {"beta2": 1.5},
	} {
		_, err := FromConfig("adam", options)
		require.ErrorContains(t, err, want)
	}
	s, err = FromConfig("momentum", map[string]any{"lr": .5, "nesterov": true})
	require.NoError(t, err)
	require.Equal(t, Momentum{LearningRate: .5, Momentum: .9, Nesterov: true}, *s.rule.(*Momentum))
	for _, class := range []any{"sgd", func() string { return "SGD" }, func() Rule { return NewSGD() }, NewSGD(), &SGD{}} {
		f, err := Resolve(class)
		require.NoError(t, err)
		require.Equal(t, "sgd", New(f()).rules[0].name)
	}
	for _, class := range []any{nil, 3, "sdg", func() string { return "x" }, (func() string)(nil), (func() Rule)(nil)} {
		_, err := Resolve(class)
		require.Error(t, err)
	}
	_, err = FromConfig("adam", map[string]any{"use_locking": true, "name": "Adam"})
	require.NoError(t, err)
	_, err = FromConfig("adam", map[string]any{"use_locking": 3})
	require.ErrorContains(t, err, "unknown option")
	require.ErrorContains(t, New(&BaseCustomOptimizer{}).Step([]G.ValueGrad{&pair{"w", G.NewF64(1), G.NewF64(1)}}), "needs an Apply")
	f, err := Lookup("momentum")
	require.NoError(t, err)
	require.False(t, f().(*Solver).rule.(*Momentum).Nesterov)
}
