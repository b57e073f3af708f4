package updater

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// ownTraining is a solver's, by Minimize or by Step, with dropout and a schedule.
func ownTraining(t *testing.T, seed int64, bySteps bool) (s Saver, run func()) {
	g := G.NewGraph()
	w := inputOf(g, tensor.Float64, "w", []float64{float64(seed), 2, 3})
	gen := must(graphops.NewGenerator(graphops.NewStore(), "dropout", seed))
	loss := must(G.Sum(must(G.Square(must(graphops.Dropout(w, .5, gen))))))
	solver := solvers.Lookahead(solvers.NewAdam(), func(o *solvers.LookaheadOptions) { o.SyncPeriod = 2 })
	require.NoError(t, solver.Schedule("learning_rate", schedule.NewInverseTimeDecay(.1, 2, .5)))
	if !bySteps {
		vm := must(graphops.NewMachine(must(solver.Minimize(loss, w)), loss))
		return SaverOf(solver, G.Nodes{w}, loss), func() { require.NoError(t, vm.RunAll()) }
	}
	must(G.Grad(loss, w))
	vm := G.NewTapeMachine(g, G.BindDualValues(w))
	require.NoError(t, solver.Build(G.NodesToValueGrads(G.Nodes{w})))
	return SaverOf(solver, G.Nodes{w}, loss), func() {
		require.NoError(t, vm.RunAll())
		require.NoError(t, solver.Step(G.NodesToValueGrads(G.Nodes{w})))
		require.NoError(t, gen.Next())
		vm.Reset()
	}
}

// Those who train with a solver of their own resume bit for bit, too.
func TestSaverOf(t *testing.T) {
	for _, bySteps := range []bool{false, true} {
		whole, run := ownTraining(t, 1, bySteps)
		second, runSecond := ownTraining(t, 9, bySteps)
		for range 5 {
			run()
		}
		runSecond()
		s := must(whole.Snapshot())
		require.Contains(t, s.Schedules(), "inverse_time_decay")
		require.NoError(t, second.Restore(s, SameConfig()))
		for range 4 {
			run()
			runSecond()
		}
		var a, b bytes.Buffer
		require.NoError(t, must(whole.Snapshot()).Write(&a))
		require.NoError(t, must(second.Snapshot()).Write(&b))
		require.Equal(t, a.Bytes(), b.Bytes())
		require.Subset(t, s.Names(), []string{"w", "dropout/run", "dropout/seed", "global_step"})
	}
}

func TestSaverOfRefuses(t *testing.T) {
	g := G.NewGraph()
	w, nameless := input(g, "w", 1), G.NewScalar(g, G.Float64, G.WithValue(1.0))
	solver := solvers.NewAdam()
	for want, s := range map[string]Saver{
		"the solver is nil": SaverOf(nil, G.Nodes{w}),
		"not built yet":     SaverOf(solver, G.Nodes{w}),
		"beta1":             SaverOf(solvers.NewAdam(func(a *solvers.Adam) { a.Beta1 = 2 }), G.Nodes{w}),
	} {
		_, err := s.Snapshot()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, s.Restore(&Snapshot{}), want)
	}
	require.NoError(t, solver.Build([]G.ValueGrad{w}))
	for _, n := range []*G.Node{nil, nameless} {
		_, err := SaverOf(solver, G.Nodes{n}).Snapshot()
		require.ErrorContains(t, err, "has no name of its own")
	}
	_, err := SaverOf(solver, G.Nodes{w}).Snapshot()
	require.NoError(t, err)
}
