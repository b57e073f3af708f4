package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

func vector(g *G.ExprGraph, name string, x ...float64) *G.Node {
	return G.NewVector(g, G.Float64, G.WithShape(len(x)), G.WithName(name), G.WithValue(tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x))))
}

func number(g *G.ExprGraph, name string, x float64) *G.Node {
	return G.NewScalar(g, G.Float64, G.WithName(name), G.WithValue(x))
}

func squares(w *G.Node) *G.Node { return must(G.Sum(must(G.Square(w)))) }

// A chain does not change with the caller's slice.
func TestChainCopiesItsRules(t *testing.T) {
	rules := []Rule{NewSGD(), scale{1}}
	s := Chain(rules...)
	require.Equal(t, scale{1}, rules[1])
	rules[0] = s // would never end
	w := &pair{"w", G.NewF64(1), G.NewF64(1)}
	require.NoError(t, s.Step([]G.ValueGrad{w}))
	require.Equal(t, []float64{.99}, floats(w.value))
}

type composite struct{ inner Rule }

func (c *composite) Apply(b *Builder, in []Step) ([]Step, error) { return b.Run(c.inner, in) }

type careless struct{}

func (careless) Apply(b *Builder, in []Step) ([]Step, error) { return b.Run(NewSGD(), in) }

// Rules that another rule runs have names that no other rule has, are validated, and can be set.
func TestComposedRules(t *testing.T) {
	inner, outer := &SGD{LearningRate: 2}, &SGD{LearningRate: 3}
	s := Chain(&composite{inner}, outer)
	require.NoError(t, s.Set("sgd/learning_rate", 5))
	require.Equal(t, 5.0, outer.LearningRate)
	w := &pair{"w", G.NewF64(0), G.NewF64(1)}
	require.NoError(t, s.Step([]G.ValueGrad{w}))
	require.Equal(t, []float64{-10}, floats(w.value))
	require.NoError(t, s.Set("sgd#2/learning_rate", 7))
	require.Equal(t, []float64{7, 5}, []float64{inner.LearningRate, outer.LearningRate})
	g := G.NewGraph()
	v := number(g, "w", 1)
	must(s.Minimize(must(G.Square(v)), v))
	require.Equal(t, 7.0, must(s.Get("sgd#2/learning_rate")))

	step := []G.ValueGrad{w}
	require.ErrorContains(t, New(&composite{&Adam{Beta1: 7}}).Step(step), "adam/beta1 is 7")
	require.ErrorContains(t, New(careless{}).Step(step), "was made within Apply")
	endless := &composite{}
	endless.inner = endless
	require.ErrorContains(t, New(endless).Step(step), "does one run itself?")
	require.ErrorContains(t, New(&composite{}).Step(step), "a rule is nil")
	require.ErrorContains(t, New(&struct{ twice }{}).Step(step), "two fields are called lr")
}

type twice struct{ LR, Lr float64 }

func (twice) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }

// A hyperparameter that gorgonia.Let set out of its range is refused in every host, and nothing is written.
func TestLetOutOfRange(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		for _, bad := range []any{-1.0, tensor.New(tensor.FromScalar(-1.0))} {
			s := New(&SGD{.1}, opts...)
			g1, g2 := G.NewGraph(), G.NewGraph()
			w1, w2 := number(g1, "w", 1), number(g2, "w", 1)
			vm1 := must(graphops.NewMachine(must(s.Minimize(must(G.Square(w1)), w1))))
			vm2 := must(graphops.NewMachine(must(s.Minimize(must(G.Square(w2)), w2))))
			require.NoError(t, G.Let(g1.ByName("sgd/learning_rate")[0], bad))
			require.ErrorContains(t, vm1.RunAll(), "must be in [0, +Inf)")
			require.Equal(t, []float64{1}, floats(w1.Value()))
			require.NoError(t, s.Set("learning_rate", .25))
			require.NoError(t, vm2.RunAll())
			require.Equal(t, []float64{.5}, floats(w2.Value()))
		}
	}
}

// A user's node may be called like a constant of ours.
func TestConstantsAreOurOwn(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		g := G.NewGraph()
		w := number(g, "const 1 3ff0000000000000", 1)
		s := New(Chain(NewClipByGlobalNorm(1), NewSGD(func(s *SGD) { s.LearningRate = .1 })), opts...)
		run(t, must(s.Minimize(must(G.Square(must(G.Sub(w, number(g, "const/1", 5))))), w)), 50)
		require.InDelta(t, 4.9824, floats(w.Value())[0], 1e-4)
	}
}

// Slots of parameters whose names begin alike.
func TestSlotOfPathNames(t *testing.T) {
	g := G.NewGraph()
	a, b := vector(g, "enc/w", 1, 2, 3), vector(g, "enc", 1, 2)
	s := NewAdam()
	must(s.Minimize(must(G.Add(squares(a), squares(b))), a, b))
	require.Equal(t, "enc/adam/m", s.Slot(b, "m").Name())
	require.Equal(t, "enc/w/adam/m", s.Slot(a, "adam/m").Name())
}

// ValueGrads of one name keep their state apart, in any order.
func TestTwins(t *testing.T) {
	s := NewMomentum(func(m *Momentum) { m.LearningRate = 1 })
	a, b := &pair{"w", G.NewF64(0), G.NewF64(1)}, &pair{"w", G.NewF64(0), G.NewF64(-1)}
	require.NoError(t, s.Step([]G.ValueGrad{a, b}))
	a.grad, b.grad = G.NewF64(0), G.NewF64(0)
	require.NoError(t, s.Step([]G.ValueGrad{b, a}))
	require.InDeltaSlice(t, []float64{-1.9, 1.9}, floats(a.value, b.value), 1e-15)
	b.grad = G.NewF64(0)
	require.NoError(t, s.Step([]G.ValueGrad{b}))
	require.InDeltaSlice(t, []float64{-1.9, 2.71}, floats(a.value, b.value), 1e-15)
}

// Check and what is refused leave no names behind.
func TestRefusalsNameNothing(t *testing.T) {
	g := G.NewGraph()
	a, b := vector(g, "w", 1, 2, 3), vector(g, "w", 1, 2)
	s := NewAdam()
	require.NoError(t, s.Check(squares(a), a))
	_, err := s.Minimize(squares(a), a, a)
	require.Error(t, err)
	must(s.Minimize(must(G.Add(squares(a), squares(b))), b, a))
	require.Equal(t, "w/adam/m", s.Slot(b, "m").Name())
	require.Equal(t, "w#2/adam/m", s.Slot(a, "m").Name())
}

// Reset repairs what gorgonia.Let broke.
func TestResetAfterLet(t *testing.T) {
	g := G.NewGraph()
	w := vector(g, "w", 1, 2)
	s := Chain(NewAdam(), NewAdam())
	vm := must(graphops.NewMachine(must(s.Minimize(squares(w), w))))
	require.NoError(t, vm.RunAll())
	require.NoError(t, G.Let(g.ByName("adam#2/step")[0], 3.5))
	require.Error(t, vm.RunAll())
	require.NoError(t, s.Reset())
	require.Equal(t, make([]float64, 5), floats(s.Slot(w, "adam/m").Value(), s.Slot(w, "adam#2/v").Value(), g.ByName("adam#2/step")[0].Value()))
	require.NoError(t, vm.RunAll())
}

// Nothing panics on nil and on factories that do.
func TestNoPanics(t *testing.T) {
	var s *Solver
	w := &pair{"w", G.NewF64(1), G.NewF64(1)}
	g := G.NewGraph()
	n := number(g, "n", 1)
	_, err := s.Minimize(n, n)
	require.Error(t, err)
	_, err = s.Get("x")
	require.Error(t, err)
	for _, err := range []error{s.Err(), s.Set("x", 1), s.Step([]G.ValueGrad{w}), s.Reset(), s.Check(n, n), s.Bind("x", n)} {
		require.Error(t, err)
	}
	require.Nil(t, s.Slot(n, "m"))
	require.NoError(t, Register("explosive", func() Rule { panic("boom") }))
	require.NoError(t, Register("hollow", func() Rule { return nil }))
	require.NoError(t, Register("patient", func() Rule { return New(&SGD{1}, SkipMissing()) }))
	defer func() {
		for _, name := range []string{"explosive", "hollow", "patient"} {
			delete(registry.factory, name)
			delete(registry.name, name)
		}
	}()
	_, err = FromConfig("explosive", nil)
	require.ErrorContains(t, err, "boom")
	_, err = FromConfig("hollow", nil)
	require.Error(t, err)
	p, err := FromConfig("patient", nil)
	require.NoError(t, err)
	require.NoError(t, p.Step([]G.ValueGrad{w, &pair{"v", G.NewF64(1), nil}}))
	ints := G.NewScalar(g, G.Int, G.WithName("i"), G.WithValue(3))
	require.ErrorContains(t, NewSGD().Bind("learning_rate", ints), "must be float32 or float64")
}

// Errors of Step name the parameters.
func TestStepNamesParameters(t *testing.T) {
	shared := tensor.New(tensor.WithBacking([]float64{1, 2}))
	err := NewSGD().Step([]G.ValueGrad{&pair{"alpha", shared, shared.Clone().(*tensor.Dense)}, &pair{"beta", shared, shared.Clone().(*tensor.Dense)}})
	require.ErrorContains(t, err, "alpha")
	require.ErrorContains(t, err, "beta")
}

// A mistake in the name of a hyperparameter is what the error is about, and a field that is read directly cannot be set.
func TestMistakesInRules(t *testing.T) {
	step := []G.ValueGrad{&pair{"w", G.NewF64(1), G.NewF64(1)}}
	require.ErrorContains(t, New(RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
		rate := b.Hyper("rat")
		return b.Each(in, func(s Step) Expr { return s.Delta.Mul(rate) })
	})).Step(step), `no hyperparameter is called "rat"`)
	s := New(&direct{Rate: .5})
	require.NoError(t, s.Step(step))
	require.ErrorContains(t, s.Set("rate", 0), "read it with Builder.Hyper")
	_, err := FromConfig("adam", map[string]any{"beta1": 2})
	require.Error(t, err)
}

type direct struct{ Rate float64 }

func (d *direct) Apply(b *Builder, in []Step) ([]Step, error) {
	return b.Each(in, func(s Step) Expr { return s.Delta.Mul(graphops.Const(d.Rate)) })
}

// A rule returns a step at most once for each parameter that it was given, also where it runs for some of them.
func TestStepsThatRulesReturn(t *testing.T) {
	model := []G.ValueGrad{&pair{"a", G.NewF64(1), G.NewF64(1)}, &pair{"b", G.NewF64(1), G.NewF64(1)}}
	var all []Step
	for want, rule := range map[string]RuleFunc{
		`two steps for "a"`:                      func(_ *Builder, in []Step) ([]Step, error) { return append(in[:1:1], in[0]), nil },
		`a step for "b", which it was not given`: func(*Builder, []Step) ([]Step, error) { return all, nil },
		`a step for "", which it was not given`:  func(*Builder, []Step) ([]Step, error) { return make([]Step, 1), nil },
	} {
		s := New(RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
			all = in
			return b.Partly(in, func(p Param) bool { return p.Name == "a" }, func(some []Step) ([]Step, error) { return b.Run(rule, some) })
		}))
		require.ErrorContains(t, s.Step(model), want)
	}
	require.Equal(t, 1., model[0].Value().Data())
}
