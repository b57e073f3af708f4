package updater

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// The updates are the user's, those of the parameters, and those of the rule; any other order of the whole list, buffers and
// counters included, gives the same bits.
func TestOrderOfAllUpdates(t *testing.T) {
	for _, dt := range bothTypes {
		var want []float64
		for trial := range 5 {
			g := G.NewGraph()
			w, v, z := state(g, "w", dt, []int{2}, 1, 2), state(g, "v", dt, []int{2}, -.5, 3), state(g, "z", dt, []int{2}, 0, 0)
			cost := G.Must(G.Sum(G.Must(G.Tanh(G.Must(G.HadamardProd(w, v))))))
			a, err := NewGradientDescent(Descent{Cost: cost, Parameters: G.Nodes{w, v}, StepRule: newAdam(.1, .9),
				Updates: []graphops.Update{{Target: z, Value: of(z).Mul(num(.9)).Add(of(w))}}})
			require.NoError(t, err)
			updates := a.Updates()
			require.Equal(t, []*G.Node{z, w, v}, targets(updates[:3]))
			require.Equal(t, targets(a.StepRuleUpdates()), targets(updates[3:]))
			require.Len(t, updates, 3+2+2+1) // mean and variance of two, and their time
			if trial > 0 {
				rand.New(rand.NewPCG(uint64(trial), 1)).Shuffle(len(updates), func(i, j int) { updates[i], updates[j] = updates[j], updates[i] })
			}
			a.SetUpdates(updates)
			require.NoError(t, a.Initialize())
			for range 4 {
				require.NoError(t, a.ProcessBatch(nil))
			}
			got := all(z, w, v)
			for _, st := range a.Solver().Store().States() {
				got = append(got, numbers(must(st.Value()))...)
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got)
		}
	}
}

// The buffers of Adam after the sequence of S17, in both conventions.
func TestAdamBuffers(t *testing.T) {
	for _, dt := range bothTypes {
		for name, c := range map[string]struct {
			rule solvers.Rule
			mean []float64
		}{"SEED": {oldAdam(.002, oldDecay), []float64{1.046000047, 1.488000072}}, "HEAD": {newAdam(.002, 1), []float64{1.046, 1.488}}} {
			s := newStepTest(t, dt, c.rule, param{[]int{2}, []float64{3, 4}})
			for _, g := range [][]float64{{6, 8}, {4, 6}, {2, 3}} {
				s.step(g)
			}
			store := s.Solver().Store()
			closeTo(t, c.mean, numbers(must(store.Lookup("a/blocksadam/mean").Value())), tolerance(dt, 1e-9), name)
			closeTo(t, []float64{.055912036, .108836064}, numbers(must(store.Lookup("a/blocksadam/variance").Value())), tolerance(dt, 1e-9), name)
			times := slices.DeleteFunc(FilterStates(store.States(), RoleBuffer), func(st *graphops.State) bool {
				return st.Param() != "" || st.Name() == "global_step"
			})
			require.Len(t, times, 1)
			require.Equal(t, []float64{3}, numbers(must(times[0].Value())))
		}
	}
}

// A gradient that is NaN stays in the buffers of its element for good, and in no other's.
func TestPollutedBuffers(t *testing.T) {
	nan := math.NaN()
	for _, dt := range bothTypes {
		for name, rule := range map[string]solvers.Rule{"BasicMomentum": basicMomentum(.5), "Momentum": momentum(.1, .5), "Nesterov": nesterov(.1, .5),
			"AdaDelta": adaDelta(.95, 1e-6), "RMSProp": rmsProp(.1, .9, 1e5), "AdaGrad": adaGrad(.002), "Adam": newAdam(.002, 1)} {
			polluted, clean := newStepTest(t, dt, rule, param{[]int{2}, []float64{3, 4}}), newStepTest(t, dt, rule, param{[]int{2}, []float64{3, 4}})
			for _, g := range []float64{nan, 1, 2, 3} {
				got, want := polluted.step([]float64{g, 1})[0], clean.step([]float64{1, 1})[0]
				require.True(t, math.IsNaN(got[0]), name)
				require.Equal(t, want[1], got[1], name)
			}
		}
	}
}

// S10: a threshold that is not set changes nothing and has no updates. The norm of clipped steps is the threshold.
func TestClippedNorms(t *testing.T) {
	for _, dt := range bothTypes {
		s := newStepTest(t, dt, solvers.NewStepClipping(0), param{nil, []float64{0}}, param{nil, []float64{0}})
		require.Empty(t, s.StepRuleUpdates())
		for name, c := range map[string]struct {
			rule solvers.Rule
			norm float64
		}{
			"threshold 4":   {solvers.NewStepClipping(4), 4},
			"then scaled":   {solvers.Chain(solvers.NewStepClipping(4), scale(.1)), .4},
			"scaled before": {solvers.Chain(scale(.1), solvers.NewStepClipping(.5)), .5},
		} {
			w, cost := square(dt)
			a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: c.rule})
			require.NoError(t, a.Observe(a.TotalStepNorm()))
			require.NoError(t, a.Initialize())
			require.NoError(t, a.ProcessBatch(nil))
			closeTo(t, []float64{c.norm}, numbers(must(a.Observed("total_step_norm"))), max(1e-15, tolerance(dt, 1e-15)), name)
		}
	}
}

// What would have to be broadcast to its target is refused.
func TestNoBroadcastToTargets(t *testing.T) {
	for _, dt := range bothTypes {
		g := G.NewGraph()
		w, one, row := state(g, "w", dt, []int{2, 2}, 1, 2, 3, 4), state(g, "one", dt, []int{1, 1}, 1), state(g, "row", dt, []int{1, 2}, 1, 2)
		for _, n := range []*G.Node{one, row} {
			a, err := NewUpdatesAlgorithm([]graphops.Update{{Target: w, Value: of(n)}})
			require.NoError(t, err)
			require.ErrorContains(t, a.Initialize(), `"w" has shape (2, 2), its new value (1, `)
		}
	}
}
