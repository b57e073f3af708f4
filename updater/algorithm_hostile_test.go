package updater

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// What Initialize compiled before goes when it compiles anew: the graph, which keeps the nodes, does not keep the memory of the machine.
func TestInitializeLetsGo(t *testing.T) {
	for _, dt := range bothTypes {
		a, _ := regression(t, dt)
		require.NoError(t, a.Observe(a.TotalStepNorm()))
		require.NoError(t, a.Initialize())
		require.NoError(t, a.ProcessBatch(rowsOf(dt, 1, 3)))
		old := weak.Make(a.run)
		require.NoError(t, a.Initialize())
		for i := 0; i < 10 && old.Value() != nil; i++ {
			runtime.GC()
		}
		require.Nil(t, old.Value())
		require.NoError(t, a.ProcessBatch(rowsOf(dt, 1, 3)))
	}
}

// Both norms have a node of their own where the steps are the gradients, and nodes of the user's keep their names.
func TestNormsOfEqualSteps(t *testing.T) {
	for _, dt := range bothTypes {
		w, _ := square(dt)
		double := G.Must(G.Add(w, w))
		mine := must(graphops.Expand(solvers.L2Norm(of(double))))
		G.WithName("mine")(mine)
		for range 2 { // algorithms on one graph
			a, err := NewGradientDescent(Descent{Gradients: []ParameterGradient{{w, of(double)}}, StepRule: solvers.NewStepClipping(0)})
			require.NoError(t, err)
			require.NoError(t, a.Observe(a.TotalGradientNorm(), a.TotalStepNorm(), mine))
			require.NoError(t, a.Initialize())
			require.NoError(t, a.ProcessBatch(nil))
			for _, name := range []string{"total_gradient_norm", "total_step_norm"} {
				require.Equal(t, must(a.Observed("mine")), must(a.Observed(name)))
			}
		}
	}
}

// A node of another graph is refused at once: observed, it would be in the way of each Initialize from then on.
func TestObserveElsewhere(t *testing.T) {
	w, cost := square(G.Float64)
	_, other := square(G.Float64)
	set, err := NewUpdatesAlgorithm(nil)
	require.NoError(t, err)
	require.ErrorContains(t, set.Observe(w, other), "another graph")
	require.NoError(t, set.Observe(cost))
	for name, a := range map[string]*UpdatesAlgorithm{
		"updates":  initialized(t, graphops.Update{Target: w, Value: of(w)}),
		"descent":  descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}}).UpdatesAlgorithm,
		"observed": set,
	} {
		require.ErrorContains(t, a.Observe(w, other), `"cost" cannot be observed: it is on another graph than`, name)
		require.NoError(t, a.Initialize())
		require.NoError(t, a.ProcessBatch(nil))
		_, err := a.Observed("W")
		require.ErrorContains(t, err, "not observed", name) // all or nothing
	}
}

// A snapshot that is nil, a parameter whose value was taken away, a function that panics: errors.
func TestAlgorithmNil(t *testing.T) {
	make, _ := build(G.Float64)
	b := must(NewBatched(make))
	require.NoError(t, b.Initialize())
	require.NoError(t, b.ProcessBatch(rowsOf(G.Float64, 1, 2)))
	require.ErrorContains(t, b.Restore(nil), "the snapshot is nil")
	w := must(b.Model(rowsOf(G.Float64, 1, 2))).Parameters()[0]
	w.Graph().ExactSubgraphRoots(w).UnbindAll() // of the parameter alone: a whole graph gives Gorgonia some tensors back several times
	require.ErrorContains(t, b.ProcessBatch(rowsOf(G.Float64, 1, 2)), `"w" has no value any more`)

	w, cost := square(G.Float64)
	a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}})
	require.ErrorContains(t, a.Restore(nil), "the snapshot is nil")
	require.ErrorContains(t, a.Restore(nil, ParametersOnly()), "the snapshot is nil")
	_, err := NewGradientDescent(Descent{Cost: cost, Parameters: G.Nodes{w}, Setup: func(s *solvers.Solver) error { panic("no") }})
	require.EqualError(t, err, "updater: Setup: it panicked: no")
}

// Models that share a generator draw from one stream, which a snapshot goes on with.
func TestBatchedDropoutResumes(t *testing.T) {
	make := func() *Batched {
		gen := must(graphops.NewGenerator(graphops.NewStore(), "drop", 1))
		b := must(NewBatched(func(shapes map[string]tensor.Shape) (Descent, error) {
			g := G.NewGraph()
			x, w := sourceNode(g, "x", G.Float64, shapes["x"]...), state(g, "w", G.Float64, nil, 1)
			dropped, err := graphops.Dropout(x, .5, gen)
			if err != nil {
				return Descent{}, err
			}
			G.WithName("dropped")(dropped)
			return Descent{Cost: G.Must(G.Sum(G.Must(G.Mul(dropped, w)))), Parameters: G.Nodes{w}}, nil
		}))
		b.ObserveNames("dropped")
		require.NoError(t, b.Initialize())
		return b
	}
	step := func(b *Batched, i int) []float64 {
		require.NoError(t, b.ProcessBatch(map[string]any{"x": slices.Repeat([]float64{1}, 20+i%2)}))
		return numbers(must(b.Observed("dropped")))
	}
	whole, first, second := make(), make(), make()
	seen := map[string]bool{}
	for i := range 8 {
		want := step(whole, i)
		seen[fmt.Sprint(want[:20])] = true
		if i < 5 {
			require.Equal(t, want, step(first, i))
			continue
		}
		if i == 5 {
			step(second, 0)
			require.NoError(t, second.Restore(must(first.Snapshot())))
		}
		require.Equal(t, want, step(second, i))
	}
	require.Len(t, seen, 8)
}
