package graphops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ramp is n numbers between 1 and 2.
func ramp(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 1 + float64(i)/float64(n)
	}
	return x
}

// once runs a tape machine, which is in training mode, over some nodes.
func once(t *testing.T, ns ...*G.Node) {
	t.Helper()
	vm := G.NewTapeMachine(ns[0].Graph().SubgraphRoots(ns...))
	require.NoError(t, vm.RunAll())
	require.NoError(t, vm.Close())
}

// What is kept is divided by 1 − rate; as much is kept as should be, and the mean stays.
func TestDropoutForward(t *testing.T) {
	const n = 100_000
	for _, dt := range dtypes {
		for _, rate := range []float64{0, .1, .5, .9} {
			g := G.NewGraph()
			x := input(g, dt, "x", []int{n / 10, 10}, ramp(n)...)
			y := must(Dropout(x, rate, must(NewGenerator(NewStore(), "dropout", 1))))
			require.Equal(t, x.Shape(), y.Shape())
			require.Equal(t, x.Dtype(), y.Dtype())
			in := floats(x)
			once(t, y)
			require.Equal(t, in, floats(x), "the operand stays")
			var kept, sum, all float64
			for i, v := range floats(y) {
				all += in[i]
				if sum += v; v != 0 {
					kept++
					require.InEpsilon(t, in[i]/(1-rate), v, 1e-6)
				}
			}
			deviation := math.Sqrt(rate * (1 - rate) / n)
			require.InDelta(t, 1-rate, kept/n, 4*deviation)
			require.InDelta(t, 1, sum/all, 1e-7+5*deviation/(1-rate))
		}
	}
}

// A dropped element is zero whatever it was; views, scalars and empty tensors can be dropped.
func TestDropoutOfOddValues(t *testing.T) {
	g := G.NewGraph()
	gen := must(NewGenerator(NewStore(), "dropout", 3))
	bad := make([]float64, 64)
	for i := range bad {
		bad[i] = []float64{math.NaN(), math.Inf(1)}[i%2]
	}
	x := input(g, tensor.Float64, "x", []int{64}, bad...)
	y := must(Dropout(x, .5, gen))
	once(t, y)
	require.Contains(t, floats(y), 0.0)
	require.Contains(t, floats(y), math.Inf(1))

	view := input(g, tensor.Float32, "view", []int{3, 2})
	require.NoError(t, G.Let(view, must(dense(tensor.Float32, []int{3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9).Slice(nil, G.S(1, 3)))))
	z := must(Dropout(view, 0, gen))
	once(t, z)
	require.Equal(t, []float64{2, 3, 5, 6, 8, 9}, floats(z))

	for _, dt := range dtypes {
		s := input(g, dt, "s", nil, 3)
		d := must(Dropout(s, .25, gen))
		once(t, d)
		require.Contains(t, []float64{0, 4}, floats(d)[0])
	}
	empty := input(g, tensor.Float64, "empty", []int{0, 2})
	once(t, must(Dropout(empty, .5, gen)))
}

// dropped is a cost that is not linear in a weight, through two dropouts, of a rate and of half of it.
func dropped(dt tensor.Dtype, rate float64, at []float64, seed int64) (w, cost *G.Node) {
	g := G.NewGraph()
	w = input(g, dt, "w", []int{8, 8}, at...)
	gen := must(NewGenerator(NewStore(), "dropout", seed))
	h := must(Dropout(must(G.Square(w)), rate, gen))
	return w, must(G.Sum(must(Dropout(must(G.HadamardProd(h, w)), rate/2, gen))))
}

// The gradient against finite differences, ours and Gorgonia's, and the LispMachine's.
func TestDropoutGradient(t *testing.T) {
	for _, dt := range dtypes {
		for _, rate := range []float64{.1, .5, .9} {
			at := ramp(64)
			w, cost := dropped(dt, rate, at, 5)
			grad := must(Gradients(cost, G.Nodes{w}))[0]
			once(t, cost, grad)
			got := floats(grad)
			w2, cost2 := dropped(dt, rate, at, 5)
			theirs := must(G.Grad(cost2, w2))[0]
			once(t, cost2, theirs)
			require.Equal(t, got, floats(theirs))
			w3, cost3 := dropped(dt, rate, at, 5)
			lisp := G.NewLispMachine(cost3.Graph())
			require.NoError(t, lisp.RunAll())
			require.Equal(t, got, valueFloats(must(w3.Grad())))
			h, tolerance := 1e-4, 1e-6
			if dt == tensor.Float32 {
				h, tolerance = 1./64, 1e-2
			}
			var nonzero int
			for i := range at {
				value := func(d float64) float64 {
					x := append([]float64(nil), at...)
					x[i] += d
					_, cost := dropped(dt, rate, x, 5)
					once(t, cost)
					return floats(cost)[0]
				}
				want := (value(h) - value(-h)) / (2 * h)
				require.InDelta(t, want, got[i], tolerance*(1+math.Abs(want)), "%v %v", dt, rate)
				if got[i] != 0 {
					nonzero++
				}
			}
			require.InDelta(t, (1-rate)*(1-rate/2)*64, nonzero, 12)
			require.NotZero(t, nonzero)
		}
	}
}

// The gradient of a function of the gradient.
func TestDropoutSecondOrder(t *testing.T) {
	at := ramp(64)
	w, cost := dropped(tensor.Float64, .3, at, 5)
	first := must(Gradients(cost, G.Nodes{w}))[0]
	second := must(Gradients(must(G.Sum(must(G.Square(first)))), G.Nodes{w}))[0]
	once(t, cost, second)
	// cost = Σ c·w³ where c is 0 or 1/(.7·.85): the gradient is 3cw², its squares' gradient 36c²w³
	for i, x := range floats(second) {
		c := 1 / (.7 * .85)
		if x != 0 {
			require.InEpsilon(t, 36*c*c*at[i]*at[i]*at[i], x, 1e-12)
		}
	}
	require.Contains(t, floats(second), 0.0)
	require.NotEqual(t, make([]float64, 64), floats(second))
}

// dropoutRun is a graph that trains nothing but the generator, and the two layers that it has.
type dropoutRun struct {
	store    *Store
	gen      *Generator
	op, a, b *G.Node
	vm, eval G.VM
}

func newDropoutRun(seed int64, opts ...CommitOpt) *dropoutRun {
	r := &dropoutRun{store: NewStore()}
	r.gen = must(NewGenerator(r.store, "dropout", seed))
	g := G.NewGraph()
	x := input(g, tensor.Float32, "x", []int{4, 16}, ramp(64)...)
	r.a, r.b = must(Dropout(x, .5, r.gen)), must(Dropout(x, .5, r.gen))
	w := input(g, tensor.Float64, "w", nil, 0)
	r.op = must(Commit([]Update{{w, ScalarOf(w)}, must(r.gen.Update(g))}, append(opts, After(r.a, r.b))...))
	r.vm, r.eval = must(NewMachine(r.op, r.a, r.b)), must(NewEvalMachine(r.a, r.b))
	return r
}

func (r *dropoutRun) run(t *testing.T) (a, b []float64) {
	t.Helper()
	require.NoError(t, r.vm.RunAll())
	return floats(r.a), floats(r.b)
}

func (r *dropoutRun) count(t *testing.T) float64 {
	t.Helper()
	return must(ScalarValue(must(r.store.Lookup("dropout/run").Value())))
}

// Every layer and every run has masks of its own, determined by seed and run, also where the commit does not know the store, or is
// expanded.
func TestDropoutMasks(t *testing.T) {
	var all [][]float64
	one := newDropoutRun(1)
	for range 3 {
		a, b := one.run(t)
		all = append(all, a, b)
	}
	require.Equal(t, 3.0, one.count(t))
	for i, a := range all {
		for j, b := range all {
			require.Equal(t, i == j, len(a) == len(b) && !differs(a, b), "%d %d", i, j)
		}
	}
	for _, opts := range [][]CommitOpt{nil, {Expanded()}, {From(NewStore())}} {
		again := newDropoutRun(1, opts...)
		for i := range 3 {
			a, b := again.run(t)
			require.Equal(t, all[2*i], a)
			require.Equal(t, all[2*i+1], b)
		}
	}
	other := newDropoutRun(2)
	a, _ := other.run(t)
	require.True(t, differs(all[0], a))

	resumed := newDropoutRun(7) // the saved state
	require.NoError(t, resumed.store.Lookup("dropout/seed").Set(1))
	require.NoError(t, resumed.store.Lookup("dropout/run").Set(2))
	a, b := resumed.run(t)
	require.Equal(t, all[4], a)
	require.Equal(t, all[5], b)
	require.Equal(t, 3.0, resumed.count(t))
	require.NoError(t, resumed.store.Reset())
	a, _ = resumed.run(t)
	require.Equal(t, all[0], a)
	require.NoError(t, resumed.gen.Next())
	a, _ = resumed.run(t)
	require.Equal(t, all[4], a)
}

func differs(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return true
		}
	}
	return false
}

// From of another store finds the store's own generator when it owns it.
func TestDropoutInCommitOfItsStore(t *testing.T) {
	r := newDropoutRun(1)
	g := r.a.Graph()
	require.NoError(t, Supersede(r.op))
	w := input(g, tensor.Float64, "v", nil, 0)
	vm := must(NewMachine(must(Commit([]Update{{w, ScalarOf(w)}, must(r.gen.Update(g))}, From(r.store), After(r.a)))))
	run(t, vm)
	run(t, vm)
	require.Equal(t, 2.0, r.count(t))
}

// In evaluation mode dropout is the identity; training goes on as if nothing had been.
func TestDropoutModes(t *testing.T) {
	one, other := newDropoutRun(1), newDropoutRun(1)
	for range 3 {
		require.NoError(t, one.eval.RunAll())
		require.InDeltaSlice(t, ramp(64), floats(one.a), 1e-7)
		require.InDeltaSlice(t, ramp(64), floats(one.b), 1e-7)
		a, b := one.run(t)
		wantA, wantB := other.run(t)
		require.Equal(t, wantA, a)
		require.Equal(t, wantB, b)
	}
	require.Equal(t, 3.0, one.count(t), "evaluation is no run")
	vm := G.NewTapeMachine(one.a.Graph().SubgraphRoots(one.a), G.EvalMode())
	require.NoError(t, vm.RunAll())
	require.InDeltaSlice(t, ramp(64), floats(one.a), 1e-7)
}

func TestGenerators(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float64, "x", []int{8}, ramp(8)...)
	s := NewStore()
	first, second := must(NewGenerator(s, "first", 1)), must(NewGenerator(s, "second", 1))
	a := must(Dropout(x, .5, second))
	b := must(Dropout(a, .5, first))
	c := must(Dropout(b, .5, second))
	require.Equal(t, []*Generator{second, first}, Generators(c))
	require.Equal(t, []*Generator{second, first}, Generators(b, nil, c, x))
	require.Equal(t, []*Generator{second}, Generators(a))
	require.Empty(t, Generators(x))
	require.Empty(t, Generators())
	once(t, a, must(Dropout(x, .5, first)))
}

func TestDropoutRefusals(t *testing.T) {
	g, s := G.NewGraph(), NewStore()
	gen := must(NewGenerator(s, "dropout", 1))
	x := input(g, tensor.Float64, "x", []int{8}, ramp(8)...)
	statement := G.Read(input(G.NewGraph(), tensor.Float64, "y", nil, 1), new(G.Value))
	whole := G.NewVector(G.NewGraph(), tensor.Int, G.WithShape(2))
	n := len(g.AllNodes())
	for name, f := range map[string]func() error{
		"nil generator": func() error { _, err := Dropout(x, .5, nil); return err },
		"nil node":      func() error { _, err := Dropout(nil, .5, gen); return err },
		"rate 1":        func() error { _, err := Dropout(x, 1, gen); return err },
		"rate below 0":  func() error { _, err := Dropout(x, -.1, gen); return err },
		"rate NaN":      func() error { _, err := Dropout(x, math.NaN(), gen); return err },
		"statement":     func() error { _, err := Dropout(statement, .5, gen); return err },
		"integers":      func() error { _, err := Dropout(whole, .5, gen); return err },
		"nil store":     func() error { _, err := NewGenerator(nil, "x", 1); return err },
		"name taken":    func() error { _, err := NewGenerator(s, "dropout", 2); return err },
		"large seed":    func() error { _, err := NewGenerator(s, "large", math.MaxInt64); return err },
		"small seed":    func() error { _, err := NewGenerator(s, "small", math.MinInt64); return err },
		"nil graph":     func() error { _, err := gen.Update(nil); return err },
		"no generator":  func() error { _, err := (*Generator)(nil).Update(g); return err },
		"nothing next":  func() error { return (*Generator)(nil).Next() },
		"broken seed":   func() error { return s.Lookup("dropout/seed").Set(.5) },
	} {
		require.Error(t, f(), name)
	}
	require.Len(t, g.AllNodes(), n)
	require.Len(t, s.States(), 2)
	f := input(g, tensor.Float32, "f", nil, 1)
	y := must(Dropout(f, .5, gen))
	require.NoError(t, G.Let(f, 1.0)) // Gorgonia lets a float64 in
	require.ErrorContains(t, G.NewTapeMachine(g.SubgraphRoots(y)).RunAll(), "operand 0")
}
