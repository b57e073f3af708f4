package updater

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// initialized makes an algorithm of updates and initializes it.
func initialized(t *testing.T, updates ...graphops.Update) *UpdatesAlgorithm {
	t.Helper()
	a, err := NewUpdatesAlgorithm(updates)
	require.NoError(t, err)
	require.NoError(t, a.Initialize())
	return a
}

func all(ns ...*G.Node) (out []float64) {
	for _, n := range ns {
		out = append(out, numbers(n.Value())...)
	}
	return out
}

// The examples of Theano: everything is computed from the old values of everything.
func TestOldValues(t *testing.T) {
	for _, dt := range bothTypes {
		g := G.NewGraph()
		a, b := state(g, "a", dt, nil, 1), state(g, "b", dt, nil, 2)
		swap := initialized(t, graphops.Update{Target: a, Value: of(b)}, graphops.Update{Target: b, Value: of(a)})
		require.NoError(t, swap.ProcessBatch(nil))
		require.Equal(t, []float64{2, 1}, all(a, b))

		x, y, z := state(g, "x", dt, nil, 2), state(g, "y", dt, nil, 1), state(g, "z", dt, nil, -1)
		chain := initialized(t, graphops.Update{Target: x, Value: of(x).Sub(of(y))}, graphops.Update{Target: y, Value: of(z)},
			graphops.Update{Target: z, Value: of(z).Sub(num(1))})
		require.NoError(t, chain.ProcessBatch(nil))
		require.Equal(t, []float64{1, -1, -2}, all(x, y, z))
		require.NoError(t, chain.ProcessBatch(nil))
		require.Equal(t, []float64{2, -2, -3}, all(x, y, z))

		x, y, z = state(g, "x3", dt, []int{3}, 4, 4, 4), state(g, "y3", dt, []int{3}, 4, 4, 4), state(g, "z3", dt, []int{3}, 2, 2, 2)
		sum := of(x).Mul(num(5)).Add(of(y))
		power := initialized(t, graphops.Update{Target: x, Value: of(x).Mul(num(5))}, graphops.Update{Target: y, Value: sum},
			graphops.Update{Target: z, Value: sum.Pow(of(z))})
		require.NoError(t, power.ProcessBatch(nil))
		require.Equal(t, []float64{20, 20, 20, 24, 24, 24, 576, 576, 576}, all(x, y, z))
	}
}

// A state that becomes itself stays, and so does the place of the others.
func TestOwnValue(t *testing.T) {
	for _, first := range []float64{1, 2} {
		g := G.NewGraph()
		a, b := state(g, "a", G.Float64, nil, 3), state(g, "b", G.Float64, []int{2, 3}, 1, 2, 3, 4, 5, 6)
		own := initialized(t, graphops.Update{Target: a, Value: of(a).Mul(num(first))}, graphops.Update{Target: b, Value: of(b).Mul(num(3 - first))})
		require.NoError(t, own.ProcessBatch(nil))
		require.Equal(t, 3*first, all(a)[0])
		require.InDeltaSlice(t, []float64{3 - first, 6 - 2*first}, all(b)[:2], 0)
		require.True(t, a.Value().Shape().IsScalar())
		require.Equal(t, tensor.Shape{2, 3}, b.Value().Shape())
	}
}

// Neither the data of a batch nor the other targets share memory with a target.
func TestNoAliasing(t *testing.T) {
	g := G.NewGraph()
	a, b, d := state(g, "A", G.Float64, []int{2}, 0, 0), state(g, "B", G.Float64, []int{2}, 0, 0), sourceNode(g, "D", G.Float64, 2)
	alg := initialized(t, graphops.Update{Target: a, Value: of(d)}, graphops.Update{Target: b, Value: of(d)})
	data := []float64{1, 2}
	for _, batch := range []any{data, tensor.New(tensor.WithBacking(data))} {
		require.NoError(t, alg.ProcessBatch(map[string]any{"D": batch}))
		data[0] = 7
		require.Equal(t, []float64{1, 2, 1, 2, 1, 2}, all(a, b, d))
		a.Value().Data().([]float64)[1] = 8
		require.Equal(t, []float64{1, 2, 1, 2}, all(b, d))
		data[0] = 1
	}
	list := []graphops.Update{{Target: a, Value: of(a)}}
	alg, err := NewUpdatesAlgorithm(list)
	require.NoError(t, err)
	list[0].Target = b
	require.Same(t, a, alg.Updates()[0].Target)
	alg.AddUpdates(graphops.Update{Target: b, Value: of(b)})
	alg.Updates()[0].Target = nil
	require.Same(t, a, alg.Updates()[0].Target)
	require.Len(t, list, 1)
	alg.SetUpdates(list)
	require.Len(t, alg.Updates(), 1)
}

// What is wrong with updates shows in Initialize, and leaves what was compiled before.
func TestUpdatesRefused(t *testing.T) {
	g := G.NewGraph()
	w, v := state(g, "w", G.Float64, []int{2, 2}, 1, 2, 3, 4), state(g, "v", G.Float32, []int{2, 2}, 1, 2, 3, 4)
	x, one := sourceNode(g, "x", G.Float64, 2, 2), state(g, "one", G.Float64, []int{1, 1}, 1)
	double := graphops.Update{Target: w, Value: of(w).Mul(num(2))}
	for name, c := range map[string]struct {
		add  graphops.Update
		want string
	}{
		"twice":      {double, `"w" is updated twice`},
		"dtype":      {graphops.Update{Target: v, Value: of(x)}, `"v" is float32, its new value float64`},
		"shape":      {graphops.Update{Target: one, Value: of(x)}, `"one" has shape (1, 1), its new value (2, 2)`},
		"broadcast":  {graphops.Update{Target: v, Value: num(1)}, `"v" has shape (2, 2), its new value is a scalar`},
		"no state":   {graphops.Update{Target: x, Value: of(w)}, `the target "x" has no value`},
		"computed":   {graphops.Update{Target: G.Must(G.Square(x)), Value: of(w)}, "has no value"},
		"nil":        {graphops.Update{Value: of(w)}, "nil target"},
		"zero":       {graphops.Update{Target: one}, "zero Expr"},
		"elsewhere":  {graphops.Update{Target: state(G.NewGraph(), "o", G.Float64, nil, 1), Value: num(1)}, "not on the graph"},
		"nil source": {graphops.Update{Target: one, Value: graphops.Of(nil)}, "nil node"},
	} {
		a := initialized(t, double)
		a.AddUpdates(c.add)
		require.ErrorContains(t, a.Initialize(), c.want, name)
		before := all(w)
		require.NoError(t, a.ProcessBatch(nil), name)
		require.Equal(t, 2*before[0], all(w)[0], name)
		a.SetUpdates(nil)
		require.NoError(t, a.Initialize())
		require.NoError(t, a.ProcessBatch(nil))
		require.Equal(t, 2*before[0], all(w)[0], name)
	}
	_, err := NewUpdatesAlgorithm(nil, func(o *AlgorithmOptions) { o.OnUnusedSources = "explode" })
	require.ErrorContains(t, err, `OnUnusedSources is "explode"`)
	_, err = NewUpdatesAlgorithm(nil, nil, func(o *AlgorithmOptions) { o.Sources = G.Nodes{nil} })
	require.ErrorContains(t, err, "no input")
}

// The order of updates changes no bit, and neither does another run.
func TestOrderOfUpdates(t *testing.T) {
	for _, dt := range bothTypes {
		var want []float64
		for trial := range 6 {
			g, r := G.NewGraph(), rand.New(rand.NewPCG(1, 2))
			var states G.Nodes
			for i := range 5 {
				x := make([]float64, 7)
				for k := range x {
					x[k] = r.NormFloat64()
				}
				states = append(states, state(g, string(rune('a'+i)), dt, []int{7}, x...))
			}
			in := sourceNode(g, "in", dt, 7)
			var updates []graphops.Update
			for i, s := range states {
				next := of(states[(i+1)%5])
				updates = append(updates, graphops.Update{Target: s, Value: of(s).Mul(next).Tanh().Add(of(in).Mul(next.Norm()))})
			}
			rand.New(rand.NewPCG(uint64(trial/2), 3)).Shuffle(len(updates), func(i, j int) { updates[i], updates[j] = updates[j], updates[i] })
			a := initialized(t, updates...)
			for range 3 {
				require.NoError(t, a.ProcessBatch(map[string]any{"in": tensorOf(dt, []int{7}, .1, .2, .3, .4, .5, .6, .7)}))
			}
			if got := all(states...); want == nil {
				want = got
			} else {
				require.Equal(t, want, got)
			}
		}
	}
}

// AddUpdates works at the next Initialize, and inputs of added updates are found (A7 is in TestGradients).
func TestAddUpdatesLater(t *testing.T) {
	g := G.NewGraph()
	n, m, x := state(g, "n", G.Float64, nil, 0), state(g, "m", G.Float64, nil, 0), sourceNode(g, "x", G.Float64)
	a := initialized(t, graphops.Update{Target: n, Value: of(n).Add(num(1))})
	a.AddUpdates(graphops.Update{Target: m, Value: of(m).Add(of(x))})
	require.NoError(t, a.ProcessBatch(nil))
	require.Equal(t, []float64{1, 0}, all(n, m))
	for range 3 {
		require.NoError(t, a.Initialize())
	}
	require.Len(t, a.Updates(), 2)
	require.Equal(t, G.Nodes{x}, a.Inputs())
	for i := range 2 {
		require.NoError(t, a.ProcessBatch(map[string]any{"x": 5}))
		require.Equal(t, []float64{float64(2 + i), float64(5 + 5*i)}, all(n, m))
		require.NoError(t, a.Initialize()) // x has a value now, and stays an input
		require.Equal(t, G.Nodes{x}, a.Inputs())
	}
}

// Inputs with values are states, unless they are named as sources.
func TestSources(t *testing.T) {
	g := G.NewGraph()
	n, x := state(g, "n", G.Float64, nil, 0), state(g, "x", G.Float64, nil, 3)
	updates := []graphops.Update{{Target: n, Value: of(n).Add(of(x))}}
	a := initialized(t, updates...)
	for _, mode := range []string{"raise", "ignore"} { // the value of before would be used in silence
		a.opts.OnUnusedSources = mode
		require.ErrorContains(t, a.ProcessBatch(map[string]any{"x": 1}), "name it in Sources")
		require.NoError(t, a.Initialize())
	}
	require.NoError(t, a.ProcessBatch(nil))
	a, err := NewUpdatesAlgorithm(updates, func(o *AlgorithmOptions) { o.Sources = G.Nodes{x} })
	require.NoError(t, err)
	require.NoError(t, a.Initialize())
	require.ErrorContains(t, a.ProcessBatch(nil), "not all sources")
	require.NoError(t, a.ProcessBatch(map[string]any{"x": 1}))
	require.Equal(t, []float64{4}, all(n))
	a, err = NewUpdatesAlgorithm(updates, func(o *AlgorithmOptions) { o.Sources = G.Nodes{n} })
	require.NoError(t, err)
	require.ErrorContains(t, a.Initialize(), `"n" is a source`)
	require.Empty(t, a.Inputs())
	require.True(t, slices.Contains(graphops.Inputs(n), n))
}

// A store's states are targets too, and random operations draw anew in each batch.
func TestStatesAndRandomNumbers(t *testing.T) {
	g := G.NewGraph()
	store := graphops.NewStore()
	st := must(store.Slot("mean", "", G.Float64, tensor.Shape{8}, 0))
	mean, x := must(st.Node(g)), sourceNode(g, "x", G.Float64, 8)
	gen := must(graphops.NewGenerator(store, "drop", 1))
	dropped := must(graphops.Dropout(x, .5, gen))
	a, err := NewUpdatesAlgorithm([]graphops.Update{{Target: mean, Value: of(dropped)}}, func(o *AlgorithmOptions) {
		o.Commit = []graphops.CommitOpt{graphops.From(store)}
	})
	require.NoError(t, err)
	require.NoError(t, a.Initialize())
	var seen [][]float64
	for range 4 {
		require.NoError(t, a.ProcessBatch(map[string]any{"x": []int{1, 1, 1, 1, 1, 1, 1, 1}}))
		seen = append(seen, all(mean))
	}
	require.NotEqual(t, seen[0], seen[1])
	require.Equal(t, []float64{4}, numbers(must(gen.States()[1].Value())))
	require.NoError(t, gen.States()[1].Set(0))
	require.NoError(t, a.ProcessBatch(map[string]any{"x": []int{1, 1, 1, 1, 1, 1, 1, 1}}))
	require.Equal(t, seen[0], all(mean))
}
