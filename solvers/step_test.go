package solvers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Whatever Step refuses leaves all values, gradients and states as they were.
func TestStepRefuses(t *testing.T) {
	f := func(x ...float64) *tensor.Dense { return tensor.New(tensor.WithBacking(x)) }
	a := &pair{"a", f(1, 2), f(1, 1)}
	s := NewAdam()
	require.NoError(t, s.Step([]G.ValueGrad{a, &pair{"b", f(3, 4), f(1, 1)}}))
	g := G.NewGraph()
	node := G.NewScalar(g, G.Float64, G.WithName("node"), G.WithValue(1.0))
	empty := G.NewScalar(g, G.Float64, G.WithName("empty"))
	var nilNode *G.Node
	a.grad = f(1, 1)
	for name, c := range map[string]struct {
		bad  G.ValueGrad
		want string
	}{
		"nil":               {nil, "parameter 1 is nil"},
		"nil node":          {nilNode, "parameter 1 is nil"},
		"no gradient":       {node, `"node" has no gradient`},
		"nil gradient":      {&pair{"b", f(3, 4), nil}, "run the machine first"},
		"no value":          {empty, `"empty" has no value`},
		"changed shape":     {&pair{"b", f(1, 2, 3), f(1, 1, 1)}, `"b" is float64 of shape (3), but was float64 of shape (2)`},
		"changed dtype":     {&pair{"b", random(tensor.Float32, 1, 2), random(tensor.Float32, 1, 2)}, `"b" is float32`},
		"gradient's dtype":  {&pair{"c", f(3, 4), random(tensor.Float32, 1, 2)}, `"c" is float64, its gradient float32`},
		"gradient's shape":  {&pair{"c", f(3, 4), f(1, 1, 1)}, `"c" has shape (2), its gradient (3)`},
		"integers":          {&pair{"c", tensor.New(tensor.WithBacking([]int{1})), tensor.New(tensor.WithBacking([]int{1}))}, "must be float32"},
		"the same twice":    {a, "share memory"},
		"no identity":       {loose{}, "identity"},
		"typed nil":         {&pair{"c", (*tensor.Dense)(nil), f(1)}, "has no value"},
		"typed nil scalar":  {&pair{"c", G.NewF64(1), (*G.F64)(nil)}, "run the machine first"},
		"two of one memory": {&pair{"b", a.value, f(1, 1)}, "share memory"},
	} {
		m0, step := floats(must(s.store.Lookup("a/adam/m").Value())), floats(must(s.store.Lookup("adam/step").Value()))
		before := floats(a.value, a.grad)
		require.ErrorContains(t, s.Step([]G.ValueGrad{a, c.bad}), c.want, name)
		require.Equal(t, before, floats(a.value, a.grad), name)
		require.Equal(t, m0, floats(must(s.store.Lookup("a/adam/m").Value())), name)
		require.Equal(t, step, floats(must(s.store.Lookup("adam/step").Value())), name)
	}
	require.ErrorContains(t, s.Step(nil), "empty")
	require.NoError(t, s.Step([]G.ValueGrad{a}))
	skip := New(&SGD{.1}, SkipMissing())
	require.NoError(t, skip.Step([]G.ValueGrad{&pair{"a", a.value, f(1, 1)}, node, &pair{"b", f(3, 4), nil}}))
	require.ErrorContains(t, skip.Step([]G.ValueGrad{node}), "no parameter has a gradient")
}

// loose is a ValueGrad that cannot be compared.
type loose []int

func (loose) Value() G.Value         { return G.NewF64(1) }
func (loose) Grad() (G.Value, error) { return G.NewF64(1), nil }

// State goes by name, not by position: the model may be reordered, split and joined.
func TestStepByName(t *testing.T) {
	model := func() (a, b *pair) {
		return &pair{"a", G.NewF64(1), nil}, &pair{"b", G.NewF64(1), nil}
	}
	steps := func(s *Solver, order func(i int, a, b *pair) [][]G.ValueGrad) []float64 {
		a, b := model()
		for i := range 5 {
			a.grad, b.grad = G.NewF64(float64(i+1)), G.NewF64(-2*float64(i+1))
			for _, m := range order(i, a, b) {
				require.NoError(t, s.Step(m))
			}
		}
		return floats(a.value, b.value)
	}
	want := steps(NewMomentum(), func(_ int, a, b *pair) [][]G.ValueGrad { return [][]G.ValueGrad{{a, b}} })
	require.Equal(t, want, steps(NewMomentum(), func(i int, a, b *pair) [][]G.ValueGrad {
		return [][][]G.ValueGrad{{{a, b}}, {{b, a}}, {{a}, {b}}, {{b}, {a}}, {{&pair{"a", a.value, a.grad}, &pair{"b", b.value, b.grad}}}}[i]
	}))
	// nameless ones go by identity
	x, y := &nameless{pair{value: G.NewF64(1)}}, &nameless{pair{value: G.NewF64(1)}}
	s := NewMomentum()
	for i := range 5 {
		x.grad, y.grad = G.NewF64(float64(i+1)), G.NewF64(-2*float64(i+1))
		m := []G.ValueGrad{x, y}
		if i%2 == 1 {
			m = []G.ValueGrad{y, x}
		}
		require.NoError(t, s.Step(m))
	}
	require.Equal(t, want, floats(x.value, y.value))
	// of two nodes of one name, each keeps its state
	g := G.NewGraph()
	w1 := G.NewVector(g, G.Float64, G.WithShape(1), G.WithName("w"), G.WithValue(tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{1}))), G.WithGrad(tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{1}))))
	w2 := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(1.0), G.WithGrad(1.0))
	s = NewMomentum()
	for i := range 4 {
		m := G.Nodes{w1, w2}
		if i%2 == 1 {
			m = G.Nodes{w2, w1}
		}
		for k, n := range []*G.Node{w1, w2} {
			d, err := n.Grad()
			require.NoError(t, err)
			switch d := d.(type) {
			case *tensor.Dense:
				d.Float64s()[0] = float64(i + 1)
			case *G.F64:
				*d = G.F64(-2 * (i + 1) * k)
			}
		}
		require.NoError(t, s.Step(G.NodesToValueGrads(m)))
	}
	ref := NewMomentum()
	r1, r2 := &pair{"1", G.NewF64(1), nil}, &pair{"2", G.NewF64(1), nil}
	for i := range 4 {
		r1.grad, r2.grad = G.NewF64(float64(i+1)), G.NewF64(-2*float64(i+1))
		require.NoError(t, ref.Step([]G.ValueGrad{r1, r2}))
	}
	require.Equal(t, floats(r1.value, r2.value), floats(w1.Value(), w2.Value()))
}

type nameless struct{ pair }

func (*nameless) Name() string { return "" }

// Gradients are set to zero where they are the solver's to write, and nowhere else.
func TestStepZeroesGradients(t *testing.T) {
	m := newModel(tensor.Float64)
	must(G.Grad(m.loss, m.vars...))
	vm := G.NewTapeMachine(m.g, G.BindDualValues(m.vars...))
	require.NoError(t, vm.RunAll())
	s := NewSGD()
	require.NoError(t, s.Step(G.NodesToValueGrads(m.vars)))
	for _, v := range m.vars {
		for _, x := range floats(must(v.Grad())) {
			require.Zero(t, x)
		}
	}
	// without dual values the gradient is the value of a node
	m = newModel(tensor.Float64)
	must(G.Grad(m.loss, m.vars...))
	require.NoError(t, G.NewTapeMachine(m.g).RunAll())
	before := floats(must(m.vars[0].Grad()))
	require.NoError(t, s.Step(G.NodesToValueGrads(m.vars)))
	require.Equal(t, before, floats(must(m.vars[0].Grad())))
	// or even Gorgonia's own constant 1, or another weight
	g := G.NewGraph()
	w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(3.0))
	must(G.Grad(w, w))
	a := G.NewScalar(g, G.Float64, G.WithName("a"), G.WithValue(5.0))
	require.NoError(t, G.NewTapeMachine(g).RunAll())
	require.NoError(t, s.Step(G.NodesToValueGrads(G.Nodes{w})))
	g2 := G.NewGraph()
	p, q := G.NewScalar(g2, G.Float64, G.WithName("p"), G.WithValue(3.0)), G.NewScalar(g2, G.Float64, G.WithName("q"), G.WithValue(5.0))
	grads := must(G.Grad(must(G.Mul(p, q)), p, q))
	require.NoError(t, G.NewTapeMachine(g2).RunAll())
	require.Equal(t, []float64{5, 3}, floats(grads[0].Value(), grads[1].Value()))
	require.Equal(t, []float64{5}, floats(a.Value()))
	self := tensor.New(tensor.WithBacking([]float64{1, 2})) // the gradient of ½w² is w
	require.NoError(t, New(&SGD{.5}).Step([]G.ValueGrad{&pair{"self", self, self}}))
	require.Equal(t, []float64{.5, 1}, floats(self))
	// a gradient that two weights share works for both
	shared := G.NewF64(1)
	x, y := &pair{"x", G.NewF64(1), shared}, &pair{"y", G.NewF64(2), shared}
	require.NoError(t, New(&SGD{.5}).Step([]G.ValueGrad{x, y}))
	require.Equal(t, []float64{.5, 1.5, 0}, floats(x.value, y.value, shared))
}

// Weights and gradients may be views.
func TestStepOnViews(t *testing.T) {
	base := tensor.New(tensor.WithShape(2, 4), tensor.WithBacking([]float64{0, 1, 2, 0, 0, 3, 4, 0}))
	w := must(base.Slice(nil, G.S(1, 3))).(*tensor.Dense)
	d := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{1, 2, 3, 4}))
	require.NoError(t, d.T()) // [[1 3] [2 4]]
	require.NoError(t, New(&SGD{1}).Step([]G.ValueGrad{&pair{"w", w, d}}))
	require.Equal(t, []float64{0, 0, -1, 0, 0, 1, 0, 0}, base.Float64s())
	require.Equal(t, []float64{0, 0, 0, 0}, d.Float64s())
}

// Extreme numbers do what the formula says; nothing fails.
func TestStepOnExtremes(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for kind, mk := range kinds {
			x := []float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e-310, 1e-40, 1}
			w, d := value(dt, []int{7}, []float64{1, 1, 1, 1, 1, 1, 1}), value(dt, []int{7}, x)
			require.NoError(t, mk().Step([]G.ValueGrad{&pair{"w", w, d}}))
			got := floats(w)
			if kind == "clip+adam" { // the norm is not finite, so no step is
				require.True(t, math.IsNaN(got[0]) && math.IsNaN(got[6]))
				continue
			}
			require.True(t, math.IsNaN(got[1]), kind)
			require.True(t, got[0] <= 1 && got[0] > .99, kind)
			require.True(t, got[6] < 1 && got[6] > .8, kind)
		}
	}
	zero := &pair{"w", G.NewF64(1), G.NewF64(0)}
	require.NoError(t, kinds["clip+adam"]().Step([]G.ValueGrad{zero}))
	require.Equal(t, []float64{1}, floats(zero.value))
	none := &pair{"none", tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(0, 3)), tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(0, 3))}
	require.NoError(t, kinds["clip+adam"]().Step([]G.ValueGrad{none, &pair{"w", G.NewF64(1), G.NewF64(1)}}))
}

// Step and Minimize share slots, counters and hyperparameters.
func TestStepAfterMinimize(t *testing.T) {
	g := G.NewGraph()
	w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(1.0))
	s := NewAdam(func(a *Adam) { a.LearningRate = .1 })
	op := must(s.Minimize(must(G.Square(w)), w))
	run(t, op, 3)
	require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w.Value(), G.NewF64(2 * floats(w.Value())[0])}}))
	require.NoError(t, G.Let(g.ByName("adam/learning_rate")[0], .2))
	require.Equal(t, .2, must(s.Get("learning_rate")))
	require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w.Value(), G.NewF64(2 * floats(w.Value())[0])}}))
	run(t, op, 1)
	ref := &pair{"w", G.NewF64(1), nil}
	r := NewAdam(func(a *Adam) { a.LearningRate = .1 })
	for i := range 6 {
		if i == 4 {
			require.NoError(t, r.Set("learning_rate", .2))
		}
		ref.grad = G.NewF64(2 * floats(ref.value)[0])
		require.NoError(t, r.Step([]G.ValueGrad{ref}))
	}
	require.Equal(t, floats(ref.value), floats(w.Value()))
	require.Equal(t, []float64{6}, floats(must(s.store.Lookup("adam/step").Value())))
	require.NoError(t, s.Reset())
	require.Equal(t, []float64{0, 0}, floats(s.Slot(w, "m").Value(), g.ByName("adam/step")[0].Value()))
}

// Many graphs, each stepped once, leave no trace in the solver.
func TestStepOnManyGraphs(t *testing.T) {
	s := NewAdam()
	for range 500 {
		g := G.NewGraph()
		w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(1.0), G.WithGrad(1.0))
		require.NoError(t, s.Step(G.NodesToValueGrads(G.Nodes{w})))
	}
	require.Len(t, s.plans, 1)
	require.Less(t, len(s.params.node), 501)
	require.Equal(t, []float64{500}, floats(must(s.store.Lookup("adam/step").Value())))
}
