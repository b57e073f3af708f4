package solvers

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Whatever Minimize refuses leaves graph and solver as they were.
func TestMinimizeRefuses(t *testing.T) {
	m := newModel(tensor.Float64)
	w0 := m.vars[0]
	ints := G.NewVector(m.g, tensor.Int, G.WithShape(2), G.WithName("ints"), G.WithValue(tensor.New(tensor.WithBacking([]int{1, 2}))))
	n := G.NewScalar(m.g, tensor.Int, G.WithName("n"), G.WithValue(1))
	stmt := G.Read(m.h, new(G.Value))
	other := newModel(tensor.Float64)
	signs := must(G.Sum(must(G.Sign(w0))))
	f32 := newModel(tensor.Float32)
	must(G.Add(G.NewScalar(f32.g, G.Float64, G.WithName("d"), G.WithValue(1.0)), G.NewConstant(1.0)))
	for name, c := range map[string]struct {
		loss *G.Node
		vars G.Nodes
		want string
	}{
		"nil loss":            {nil, m.vars, "loss is nil"},
		"vector loss":         {m.h, m.vars, "must be a scalar"},
		"integer loss":        {n, m.vars, "must be float32 or float64"},
		"statement as loss":   {stmt, m.vars, "not a value"},
		"no variables":        {m.loss, nil, "no variables"},
		"nil variable":        {m.loss, G.Nodes{w0, nil}, "variable 1 is nil"},
		"twice":               {m.loss, G.Nodes{w0, w0}, `"w0" is listed twice`},
		"no input":            {m.loss, G.Nodes{m.h}, "only its inputs"},
		"integers":            {m.loss, G.Nodes{ints}, "must be float32 or float64"},
		"another graph":       {m.loss, G.Nodes{other.vars[0]}, "not on the graph"},
		"no path":             {signs, G.Nodes{w0}, "depends on none"},
		"unused only":         {m.loss, G.Nodes{G.NewScalar(m.g, G.Float64, G.WithName("lonely"))}, "depends on none"},
		"a constant in float": {f32.loss, f32.vars, "use a named scalar input"},
	} {
		for _, s := range []*Solver{NewAdam(), New(&Adam{LearningRate: .1, Beta1: .9, Beta2: .999, Epsilon: 1e-8}, Expanded())} {
			nodes := len(m.g.AllNodes()) + len(f32.g.AllNodes())
			_, err := s.Minimize(c.loss, c.vars...)
			require.ErrorContains(t, err, c.want, name)
			_, err = s.Updates(c.loss, c.vars...)
			require.ErrorContains(t, err, c.want, name)
			require.ErrorContains(t, s.Check(c.loss, c.vars...), c.want, name)
			require.Equal(t, nodes, len(m.g.AllNodes())+len(f32.g.AllNodes()), name)
			require.Empty(t, s.Store().States(), name)
		}
	}
	// another form of a parameter of that name
	s := NewSGD()
	must(s.Minimize(m.loss, m.vars...))
	g := G.NewGraph()
	w := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("w0"))
	_, err := s.Minimize(must(G.Sum(w)), w)
	require.ErrorContains(t, err, `"w0"`)
}

// A variable that the loss does not depend on is left out, with one warning.
func TestUnusedVariable(t *testing.T) {
	var out bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(old)
	m := newModel(tensor.Float64)
	lonely := G.NewScalar(m.g, G.Float64, G.WithName("lonely"), G.WithValue(7.0))
	s := NewAdam()
	for range 2 {
		run(t, must(s.Minimize(m.loss, append(m.vars, lonely)...)), 1)
	}
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\n")))
	require.Contains(t, out.String(), "lonely")
	require.Equal(t, []float64{7}, floats(lonely.Value()))
}

// run does some steps.
func run(t *testing.T, op *G.Node, steps int) {
	t.Helper()
	vm := must(graphops.NewMachine(op))
	for range steps {
		require.NoError(t, vm.RunAll())
		vm.Reset()
	}
}

// Parameters that Gorgonia's traps make easy to mix up: equal shapes, no names, equal names, gradients that are each other.
func TestConfusableParameters(t *testing.T) {
	f := func(x ...float64) *tensor.Dense { return tensor.New(tensor.WithBacking(x)) }
	for _, opts := range [][]Option{nil, {Expanded()}} {
		g := G.NewGraph()
		a := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("a"), G.WithValue(f(1, 2)))
		b := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("b"), G.WithValue(f(3, 4)))
		s := New(&Momentum{LearningRate: .1, Momentum: .5}, opts...)
		run(t, must(s.Minimize(must(G.Sum(must(G.HadamardProd(a, b)))), a, b)), 1)
		require.InDeltaSlice(t, []float64{.7, 1.6, 2.9, 3.8}, floats(a.Value(), b.Value()), 1e-15)

		// of one name but different form, and nameless ones; each loss is Σw
		g = G.NewGraph()
		w1 := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("w"), G.WithValue(f(1, 2)))
		w2 := G.NewVector(g, G.Float64, G.WithShape(3), G.WithName("w"), G.WithValue(f(1, 2, 3)))
		n1 := G.NewScalar(g, G.Float64, G.WithValue(5.0))
		n2 := G.NewVector(g, G.Float64, G.WithShape(4), G.WithValue(f(1, 1, 1, 1)))
		loss := must(G.Add(must(G.Add(must(G.Sum(w1)), must(G.Sum(w2)))), must(G.Add(n1, must(G.Sum(n2))))))
		s = New(&Momentum{LearningRate: .1, Momentum: .5}, opts...)
		run(t, must(s.Minimize(loss, w1, w2, n1, n2)), 2)
		require.InDeltaSlice(t, []float64{.75, 1.75, .75, 1.75, 2.75, 4.75, .75, .75, .75, .75}, floats(w1.Value(), w2.Value(), n1.Value(), n2.Value()), 1e-15)
		var names []string
		for _, st := range s.Store().States() {
			if st.Kind() == graphops.Slot {
				names = append(names, st.Name())
			}
		}
		require.Equal(t, []string{"w/momentum/momentum", "w#2/momentum/momentum", "param/momentum/momentum", "param#2/momentum/momentum"}, names)
	}
}

// Scalar parameters of Gorgonia's scalar types and 0-d tensors, in both dtypes and all hosts.
func TestScalarParameters(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, zeroD := range []bool{false, true} {
			var want []float64
			for _, host := range []string{"fused", "expanded", "step"} {
				g := G.NewGraph()
				mk := func(name string, v float64) *G.Node {
					var x any = v
					if dt == tensor.Float32 {
						x = float32(v)
					}
					if zeroD {
						x = tensor.New(tensor.FromScalar(x))
					}
					return G.NewScalar(g, dt, G.WithName(name), G.WithValue(x))
				}
				a, b := mk("a", 1), mk("b", 2)
				v := G.NewVector(g, dt, G.WithShape(2), G.WithName("v"), G.WithValue(random(dt, 1, 2)))
				loss := must(G.Add(must(G.Sum(must(G.Square(must(G.HadamardProd(v, a)))))), must(G.Sum(must(G.HadamardProd(v, b))))))
				var opts []Option
				if host == "expanded" {
					opts = append(opts, Expanded())
				}
				s := New(&Adam{LearningRate: .02, Beta1: .9, Beta2: .999, Epsilon: 1e-8}, opts...)
				if host == "step" {
					must(G.Grad(loss, a, b))
					vm := G.NewTapeMachine(g, G.BindDualValues(a, b))
					for range 20 {
						require.NoError(t, vm.RunAll())
						require.NoError(t, s.Step(G.NodesToValueGrads(G.Nodes{a, b})))
						vm.Reset()
					}
				} else {
					run(t, must(s.Minimize(loss, a, b)), 20)
				}
				if got := floats(a.Value(), b.Value()); want == nil {
					want = got
					require.NotEqual(t, []float64{1, 2}, want)
				} else {
					require.Equal(t, want, got, "%v 0-d=%v %s", dt, zeroD, host)
				}
			}
		}
	}
}

// Parameters of rank 0 to 4 and with dimensions of 1.
func TestShapes(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		for _, shape := range [][]int{{1}, {1, 1}, {1, 4}, {4, 1}, {3, 4}, {1, 1, 1}, {2, 3, 4}, {2, 1, 3, 2}, {1, 1, 1, 1}, {100_000}} {
			var want []float64
			for _, host := range []string{"fused", "expanded", "step"} {
				w, d := random(dt, 3, shape...), random(dt, 4, shape...)
				var opts []Option
				if host == "expanded" {
					opts = append(opts, Expanded())
				}
				s := New(Chain(NewClipByGlobalNorm(.5), &AdamW{Adam: Adam{LearningRate: .02, Beta1: .9, Beta2: .999, Epsilon: 1e-8}, WeightDecay: .1}), opts...)
				if host == "step" {
					for range 3 {
						require.NoError(t, s.Step([]G.ValueGrad{&pair{"w", w, d.Clone().(*tensor.Dense)}}))
					}
				} else {
					g := G.NewGraph()
					wn := G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName("w"), G.WithValue(w))
					dn := G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName("d"), G.WithValue(d))
					run(t, must(s.Minimize(must(G.Sum(must(G.HadamardProd(wn, dn)))), wn)), 3)
				}
				if want == nil {
					want = floats(w)
					require.NotEqual(t, floats(random(dt, 3, shape...)), want)
				} else {
					require.Zero(t, differing(want, floats(w)), fmt.Sprint(dt, shape, host))
				}
			}
		}
	}
}

// Weights whose values share memory cannot both be trained.
func TestAliasedWeights(t *testing.T) {
	shared := tensor.New(tensor.WithBacking([]float64{1, 2}))
	g := G.NewGraph()
	a := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("a"), G.WithValue(shared))
	b := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("b"), G.WithValue(shared))
	s := NewSGD()
	vm := must(graphops.NewMachine(must(s.Minimize(must(G.Sum(must(G.Add(a, b)))), a, b))))
	require.ErrorContains(t, vm.RunAll(), `"a" and "b" share memory`)
	d := tensor.New(tensor.WithBacking([]float64{1, 1}))
	require.ErrorContains(t, s.Step([]G.ValueGrad{&pair{"a", shared, d}, &pair{"b", shared, d}}), "share memory")
	require.Equal(t, []float64{1, 2, 1, 1}, floats(shared, d))
}

// A fresh tape machine over a subgraph that holds only the optim op reads the loss of before the step.
func TestLossIsOfBefore(t *testing.T) {
	m := newModel(tensor.Float64)
	s := NewSGD()
	op := must(s.Minimize(m.loss, m.vars...))
	var loss G.Value
	G.Read(m.loss, &loss)
	eval := newModel(tensor.Float64)
	require.NoError(t, must(graphops.NewEvalMachine(eval.loss)).RunAll())
	require.NoError(t, G.NewTapeMachine(m.g.SubgraphRoots(op)).RunAll())
	require.Equal(t, floats(eval.loss.Value()), floats(loss))
	require.NotNil(t, m.loss.Value())
}
