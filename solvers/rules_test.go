package solvers

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// vec is a parameter of float64 elements.
func vec(name string, w, g []float64) *pair {
	of := func(x []float64) G.Value { return tensor.New(tensor.WithShape(len(x)), tensor.WithBacking(x)) }
	return &pair{name, of(w), of(g)}
}

// after is what a solver makes of one vector in one step.
func after(t *testing.T, s *Solver, w, g []float64) []float64 {
	p := vec("w", w, g)
	require.NoError(t, s.Step([]G.ValueGrad{p}))
	return floats(p.value)
}

// RemoveNotFinite also catches what rules before it wrote into the value.
func TestRemoveNotFiniteAfterEveryRule(t *testing.T) {
	for _, name := range Names() {
		s := must(FromConfig(name, nil))
		for _, bad := range []float64{math.NaN(), math.Inf(1)} {
			for scaler, want := range map[float64][]float64{1: {1, 2, 3}, .5: {.5, 1, 1.5}} {
				got := after(t, Chain(s, NewRemoveNotFinite(func(r *RemoveNotFinite) { r.Scaler = scaler })), []float64{1, 2, 3}, []float64{bad, 1, 1})
				for _, x := range got {
					require.False(t, math.IsNaN(x) || math.IsInf(x, 0), name)
				}
				filters := name == "filter_not_finite" || name == "returnn/gradient_nan_inf_filter" // what is left is finite
				if math.IsNaN(bad) && got[0] == want[0] && !filters {
					require.Equal(t, want, got, name)
				}
			}
		}
	}
	for _, rule := range []Rule{NewVariableClipping(1), NewFtrl(), NewYogi(func(y *Yogi) { y.L1 = .1 }), NewScheduleFreeAdamW(), NewAdamW()} {
		got := after(t, Chain(NewScale(), rule, NewRemoveNotFinite()), []float64{1, 2, 3}, []float64{math.NaN(), 1, 1})
		require.Equal(t, []float64{1, 2, 3}, got, "%T", rule.(*Solver).rule)
	}
}

// A parameter whose first step is late starts like one whose first step is the rule's.
func TestLateParameters(t *testing.T) {
	for name, s := range map[string]func() *Solver{
		"dampening": func() *Solver { return New(&Momentum{LearningRate: .1, Momentum: .9, Dampening: .5}, SkipMissing()) },
		"novograd":  func() *Solver { return New(NewNovoGrad(), SkipMissing()) },
	} {
		early, late := vec("early", []float64{5}, []float64{1}), vec("late", []float64{5}, []float64{1})
		solver := s()
		require.NoError(t, solver.Step([]G.ValueGrad{early}))
		first := 5 - floats(early.value)[0]
		early.grad.(tensor.Tensor).Data().([]float64)[0] = 1
		require.NoError(t, solver.Step([]G.ValueGrad{early, late}))
		require.InDelta(t, first, 5-floats(late.value)[0], 1e-15, name)
	}
	// its z begins as the parameter
	s := New(NewScheduleFreeAdamW(), SkipMissing())
	a, b := vec("a", []float64{1}, []float64{1}), &pair{"b", G.NewF64(5), nil}
	for range 5 {
		require.NoError(t, s.Step([]G.ValueGrad{a, b}))
		b.grad = G.NewF64(1e-9)
	}
	require.InDelta(t, 5, floats(b.value)[0], .02)
	// it has no differences to offer
	bb := NewBarzilaiBorwein()
	one, two := vec("one", []float64{1}, []float64{2}), vec("two", []float64{100}, []float64{200})
	require.NoError(t, bb.Step([]G.ValueGrad{one}))
	one.grad.(tensor.Tensor).Data().([]float64)[0] = 2 * floats(one.value)[0]
	require.NoError(t, bb.Step([]G.ValueGrad{one, two}))
	require.InDeltaSlice(t, []float64{0, 0}, floats(one.value, two.value), 1e-9) // of w², the second step is exact
}

// A rule that sets the value outright may stand before any other.
func TestEveryPairOfRules(t *testing.T) {
	form := tensor.Shape{2, 3}
	for _, a := range own {
		for _, b := range own {
			p := &pair{"w", random(tensor.Float64, 1, form...), random(tensor.Float64, 2, form...)}
			s := Chain(a.factory(), b.factory())
			require.NoError(t, s.Step([]G.ValueGrad{p}), "%s, %s", a.name, b.name)
			for _, st := range s.Store().States() {
				require.NotEqual(t, "w/adafactor/v", st.Name(), "a matrix has row and column")
				require.NotEqual(t, "w/muon/m", st.Name(), "a matrix has momentum")
			}
		}
	}
	axes := func(a int) Rule { return NewVariableClipping(1, func(v *VariableClipping) { v.Axes = []int{a} }) }
	p := &pair{"w", random(tensor.Float64, 1, form...), random(tensor.Float64, 2, form...)}
	require.NoError(t, Chain(NewSGD(), axes(0), axes(1)).Step([]G.ValueGrad{p}))
	// Blocks: what is clipped off is a step like any other
	require.InDeltaSlice(t, []float64{9.9, 0}, after(t, Chain(NewVariableClipping(1), NewStepClipping(.1)), []float64{10, 0}, []float64{0, 0}), 1e-12)
}

// An option that means "none" at 0 means it at any time, for plans that were made before and for new ones.
func TestSwitchedOff(t *testing.T) {
	for _, c := range []struct {
		rule func() Rule
		name string
		on   float64
	}{
		{func() Rule { return &RMSprop{LearningRate: 1, Rho: .9, Epsilon: .1} }, "max_scaling", 5},
		{func() Rule { return &RMSprop{LearningRate: 1, Rho: .9, Epsilon: .1} }, "momentum", .5},
		{func() Rule { return NewStepClipping(0) }, "threshold", .1},
		{func() Rule { return NewClipByValue(0) }, "max_value", .1},
		{func() Rule { return NewClipByNorm(0) }, "max_norm", .1},
		{func() Rule { return NewClipByAverageNorm(0) }, "max_norm", .1},
		{func() Rule { return NewClipByGlobalNorm(0) }, "max_norm", .1},
		{func() Rule { return NewZeroByGlobalNorm(0) }, "max_norm", .1},
		{func() Rule { return NewGradientNoise(0) }, "standard_deviation", .1},
		{func() Rule { return NewBarzilaiBorwein() }, "clip", 1e-5},
		{func() Rule { return NewMuon() }, "rms_rate", .3},
		{func() Rule { return NewYogi() }, "l1", 1},
		{func() Rule { return NewAdagrad() }, "rate_decay", 1},
		{func() Rule { return &Momentum{LearningRate: .1} }, "dampening", .3},
	} {
		w, g := []float64{1, -2}, []float64{.5, 3}
		run := func(s *Solver) []float64 {
			p := &pair{"w", tensor.New(tensor.WithShape(2, 1), tensor.WithBacking([]float64{w[0], w[1]})), nil}
			for i := range 2 {
				p.grad = tensor.New(tensor.WithShape(2, 1), tensor.WithBacking([]float64{g[0] + float64(i), g[1]}))
				require.NoError(t, s.Step([]G.ValueGrad{p}), c.name)
			}
			return floats(p.value)
		}
		fresh := func(v float64) *Solver {
			s := New(c.rule())
			require.NoError(t, s.Set(c.name, v))
			return s
		}
		off, on := run(fresh(0)), run(fresh(c.on))
		require.NotEqual(t, off, on, c.name)

		s := fresh(c.on)
		run(s)
		require.NoError(t, s.Reset())
		require.NoError(t, s.Set(c.name, 0))
		require.InDeltaSlice(t, off, run(s), 1e-15, c.name)
		s.rebuild() // as for other parameters
		require.NoError(t, s.Reset())
		require.NoError(t, s.Set(c.name, c.on))
		require.InDeltaSlice(t, on, run(s), 1e-15, c.name)

		bound := New(c.rule())
		require.NoError(t, bound.Bind(c.name, number(G.NewGraph(), "bound", c.on)))
		require.InDeltaSlice(t, on, run(bound), 1e-15, c.name)
	}
	s := NewYogi()
	after(t, s, []float64{1}, []float64{1})
	require.ErrorContains(t, s.Set("l1", 1), "was built without yogi/l1")
	for _, name := range []string{"initial_accumulator_value", "initial_momentum"} {
		s := NewYogi()
		require.NoError(t, s.Bind(name, number(G.NewGraph(), "bound", 1)))
		require.ErrorContains(t, s.Step([]G.ValueGrad{vec("w", []float64{1}, []float64{1})}), "yogi/"+name+" is bound")
	}
	belief := NewAdaBelief(func(a *AdaBelief) { a.EpsilonInner = 1e-12 })
	after(t, belief, []float64{1}, []float64{1})
	require.ErrorContains(t, belief.Set("epsilon_inner", -.5), "epsilon_inner is -0.5")
	require.NoError(t, belief.Set("epsilon_inner", -1))
	require.Equal(t, -1.0, must(belief.Get("epsilon_inner")))
}

// A restricted rule without parameters keeps the names of the rules after it, the value of its hyperparameters, and its clock.
func TestRestrictWithoutParameters(t *testing.T) {
	sum := func() Rule {
		return RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
			return b.Each(in, func(s Step) Expr { m := b.Slot(s, "m"); return m.Set(m.Add(s.Delta)) })
		})
	}
	for _, inner := range []Rule{sum(), Chain(sum()), &composite{sum()}, &composite{Chain(sum())}} {
		s := New(Chain(Restrict(inner, "b"), sum()), SkipMissing())
		a, b := &pair{"a", G.NewF64(0), nil}, &pair{"b", G.NewF64(0), nil}
		for i, want := range []float64{-1, -3, -6, -10} {
			a.grad = G.NewF64(1)
			if i >= 2 {
				b.grad = G.NewF64(1)
			}
			require.NoError(t, s.Step([]G.ValueGrad{a, b}))
			require.Equal(t, want, floats(a.value)[0])
		}
		require.Equal(t, -1.-3, floats(b.value)[0])
	}

	shared := &SGD{LearningRate: 1}
	s := New(Chain(Restrict(shared, "b"), shared), SkipMissing())
	require.NoError(t, s.Bind("sgd#2/lr", number(G.NewGraph(), "rate", 100)))
	a, b := &pair{"a", G.NewF64(0), G.NewF64(1)}, &pair{"b", G.NewF64(0), nil}
	require.NoError(t, s.Step([]G.ValueGrad{a, b}))
	require.Equal(t, -100.0, floats(a.value)[0])

	s = New(Chain(Restrict(NewAdam(), "b"), Restrict(NewSGD(), "a")), SkipMissing())
	a.grad = G.NewF64(1)
	require.NoError(t, s.Step([]G.ValueGrad{a, b}))
	require.NoError(t, s.Set("adam/learning_rate", .5))
	a.grad, b.grad = nil, G.NewF64(1)
	require.NoError(t, s.Step([]G.ValueGrad{a, b}))
	require.InDelta(t, -.5, floats(b.value)[0], 1e-7) // its first step
}

// Muon's own hyperparameters are its, too, where there is no matrix.
func TestMuonWithoutMatrix(t *testing.T) {
	s := New(NewMuon(), SkipMissing())
	require.NoError(t, s.Bind("a", number(G.NewGraph(), "a", 3)))
	require.NoError(t, s.Step([]G.ValueGrad{vec("bias", []float64{1}, []float64{1})}))
	require.NoError(t, s.Set("rms_rate", 0))
}

type shaky struct{ Rate float64 }

func (*shaky) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }
func (s *shaky) Validate() error {
	if s.Rate > 1 {
		panic("ouch")
	}
	return nil
}

type endless struct {
	Rule
	rules []Rule
}

func (e *endless) Rules() []Rule { return e.rules[:1:1] }

// Mistakes in rules are errors.
func TestShakyRules(t *testing.T) {
	loop := &endless{Rule: NewSGD()}
	require.ErrorContains(t, New(loop).Err(), "Rules panicked")
	loop.rules = []Rule{loop}
	require.ErrorContains(t, New(loop).Err(), "does one list itself")
	require.ErrorContains(t, New(&shaky{}).Set("rate", 2), "ouch")
	require.ErrorContains(t, New(&shaky{Rate: 2}).Err(), "ouch")
	misspelt := New(RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
		if b.Uses("rat") {
			return nil, nil
		}
		return in, nil
	}))
	require.ErrorContains(t, misspelt.Step([]G.ValueGrad{vec("w", []float64{1}, []float64{1})}), `no hyperparameter is called "rat"`)
	nesterov := NewNesterov()
	require.NoError(t, nesterov.Bind("dampening", number(G.NewGraph(), "d", .5)))
	require.ErrorContains(t, nesterov.Step([]G.ValueGrad{vec("w", []float64{1}, []float64{1})}), "has no dampening")
}

// What is not finite stays out, whether it is in the step or in the sum, and a weight that is infinite stays what it is.
func TestRemoveNotFiniteAtTheEdges(t *testing.T) {
	for _, c := range []struct{ scaler, w, g, want float64 }{
		{1, 1.7e308, -1.7e308, 1.7e308},
		{.5, 1e308, -1e308, 5e307},
		{1, math.Inf(1), 1, math.Inf(1)},
		{0, math.Inf(1), 1, 0},
		{0, 1, math.NaN(), 0},
		{1, -1e308, 5e307, -1.5e308},
	} {
		s := Chain(NewScale(), NewRemoveNotFinite(func(r *RemoveNotFinite) { r.Scaler = c.scaler }))
		require.Equal(t, c.want, after(t, s, []float64{c.w}, []float64{c.g})[0], "%v", c)
	}
	w32 := &pair{"w", G.NewF32(3e38), G.NewF32(-3e38)}
	require.NoError(t, Chain(NewScale(), NewRemoveNotFinite()).Step([]G.ValueGrad{w32}))
	require.Equal(t, float64(float32(3e38)), floats(w32.value)[0])
}

// Restrict knows parameters that get no step this time, and refuses others before anything is made.
func TestRestrictAndMissingParameters(t *testing.T) {
	g := G.NewGraph()
	a, b := vector(g, "a", 1, 2), vector(g, "b", 3, 4)
	loss := squares(a)
	s := Chain(Restrict(NewClipByGlobalNorm(1), "b"), NewSGD())
	require.NoError(t, s.Check(loss, a, b))
	must(s.Minimize(loss, a, b))
	before := len(g.AllNodes())
	wrong := Chain(Restrict(NewClipByGlobalNorm(1), "c"), NewSGD())
	_, err := wrong.Minimize(loss, a, b)
	require.ErrorContains(t, err, `no parameter is called "c"`)
	require.Len(t, g.AllNodes(), before)

	s = New(Chain(Restrict(NewClipByGlobalNorm(1), "b"), NewSGD()), SkipMissing())
	p, q := vec("a", []float64{1}, []float64{1}), &pair{"b", G.NewF64(1), nil}
	require.NoError(t, s.Step([]G.ValueGrad{p, q}))
	q.grad = G.NewF64(10)
	require.NoError(t, s.Step([]G.ValueGrad{q}))
	require.Equal(t, .99, floats(q.value)[0])
	require.NoError(t, s.Step([]G.ValueGrad{p}))
}

// Sums over all parameters do not depend on the order of the model.
func TestOrderOfTheModel(t *testing.T) {
	order := []int{3, 0, 4, 1, 2}
	for _, name := range Names() {
		var got [2][]float64
		for k := range got {
			s := must(FromConfig(name, nil))
			model, moved := make([]G.ValueGrad, 5), make([]G.ValueGrad, 5)
			for i := range model {
				model[i] = &pair{fmt.Sprint("w", i), random(tensor.Float64, uint64(i), 3, i+1), nil}
				moved[order[i]] = model[i]
			}
			for step := range 3 {
				for i, m := range model {
					m.(*pair).grad = random(tensor.Float64, uint64(10+5*step+i), 3, i+1)
				}
				require.NoError(t, s.Step([][]G.ValueGrad{model, moved}[k]))
			}
			for _, m := range model {
				got[k] = append(got[k], floats(m.Value())...)
			}
		}
		require.Zero(t, differing(got[0], got[1]), name)
	}
}

// The moving average of a small beta2 never is longer than 4.
func TestRectificationOfShortAverages(t *testing.T) {
	for _, beta2 := range []float64{0, .3, .5, .6, .61, .9} {
		for _, name := range []string{"radam", "adabelief"} {
			s := must(FromConfig(name, map[string]any{"beta2": beta2, "sma_threshold": 4}))
			p := vec("w", []float64{1}, []float64{.1})
			for range 300 {
				p.grad.(tensor.Tensor).Data().([]float64)[0] = .1
				require.NoError(t, s.Step([]G.ValueGrad{p}))
			}
			require.False(t, math.IsNaN(floats(p.value)[0]), "%s, beta2 %v", name, beta2)
		}
	}
}

// Where a division by zero is possible, the weight is what the original makes it, or the options are refused.
func TestZeroAccumulators(t *testing.T) {
	require.Equal(t, []float64{0, 0}, after(t, must(FromConfig("tf1/ftrl", map[string]any{"initial_accumulator_value": 0})), []float64{1, 2}, []float64{0, 0}))
	_, err := FromConfig("tf1/adagrad", map[string]any{"initial_accumulator_value": 0})
	require.ErrorContains(t, err, "initial_accumulator_value and epsilon are both 0")
	_, err = FromConfig("adabelief", map[string]any{"beta1": 0})
	require.ErrorContains(t, err, "must be in (0, 1): with 0 the belief")
	_, err = FromConfig("ftrl", map[string]any{"lr": 0})
	require.ErrorContains(t, err, "1/learning_rate")
}

// A field is the caller's at any time; what it may be is checked whenever it is used.
func TestFieldsAreCheckedInEveryRun(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		checkedInEveryRun(t, opts...)
	}
}

func checkedInEveryRun(t *testing.T, opts ...Option) {
	g := G.NewGraph()
	w := vector(g, "w", 1, 2)
	rule := &SGD{LearningRate: .1}
	s := New(rule, opts...)
	op := must(s.Minimize(squares(w), w))
	vm := must(graphops.NewMachine(op))
	p := vec("w", []float64{1, 2}, []float64{1, 1})
	require.NoError(t, s.Step([]G.ValueGrad{p}))
	for _, bad := range []float64{math.NaN(), -1} {
		rule.LearningRate = bad
		vm.Reset()
		require.ErrorContains(t, vm.RunAll(), "sgd/learning_rate is")
		p.grad = tensor.Ones(tensor.Float64, 2)
		require.ErrorContains(t, s.Step([]G.ValueGrad{p}), "sgd/learning_rate is")
	}
	require.Equal(t, []float64{1, 2, .9, 1.9}, floats(w.Value(), p.value))
	require.NoError(t, s.Set("learning_rate", .5))
	vm.Reset()
	require.NoError(t, vm.RunAll())
	require.Equal(t, []float64{0, 0}, floats(w.Value()))
}

// Slots are found as hyperparameters are.
func TestSlotNames(t *testing.T) {
	g := G.NewGraph()
	w := vector(g, "w", 1, 2)
	s := NewAdam()
	must(s.Minimize(squares(w), w))
	for _, name := range []string{"m", "M", "adam/m", "Adam/M", "w/adam/m"} {
		require.NotNil(t, s.Slot(w, name), name)
	}
	for _, name := range []string{"", "adam", "x/adam/m", "am/m", "W/adam/m"} {
		require.Nil(t, s.Slot(w, name), name)
	}
}
