package updater

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
)

// What made a step bad keeps its name where the updater's variables change, and for updaters that share the state.
func TestNameOfBadGradient(t *testing.T) {
	u, vars := roots(t, `{"skip_non_finite_steps":true}`)
	vm := must(u.NewMachine())
	require.NoError(t, G.Let(vars[1], 0.))
	runs(t, vm, 1)
	requireSkipped(t, u, 1, 1, "the gradient of b")

	g := G.NewGraph()
	c, b := input(g, "c", 4), input(g, "b", 4)
	on := must(u.On(must(G.Add(must(G.Sqrt(c)), must(G.Sqrt(b)))), G.Nodes{c, b}))
	must(on.OptimOp())
	requireSkipped(t, on, 1, 1, "the gradient of b")

	require.NoError(t, u.SetTrainableVars(G.Nodes{vars[2], vars[0]}))
	must(u.OptimOp())
	requireSkipped(t, u, 1, 1, "the gradient of b")
}

// Losses of two dtypes on one graph train together, by one global norm of both.
func TestTwoDtypes(t *testing.T) {
	for _, host := range hosts {
		l := newLinear(G.Float64, initial{"w", []float64{0, 0}})
		g := l.loss.Graph()
		x, by := inputOf(g, G.Float32, "x", []float64{0, 0}), inputOf(g, G.Float32, "y", []float64{6, 0})
		u := must(New(l.loss, l.vars, config(t, `{"gradient_clip_global_norm":1,"learning_rate":1}`), host...))
		require.NoError(t, u.AddLoss(must(G.Sum(must(G.HadamardProd(x, by)))), x))
		l.run(t, must(u.NewMachine()), []float64{0, 8})
		near(t, precision{1e-6, 0}, []float64{0, -.8}, elements(l.vars[0]))
		near(t, precision{1e-6, 0}, []float64{-.6, 0}, elements(x))
	}
}

// The norm that is maximized is that of the sum of all losses, with shared and other variables.
func TestMaximizeNormOfSeveralLosses(t *testing.T) {
	at := []float64{1, 2, 1, 2}
	objective := func(p []float64) float64 { // Σ w³ + Σ w²x − f·‖gradient‖
		w, v, x, y := p[0], p[1], p[2], p[3]
		norm := math.Hypot(math.Hypot(3*w*w+2*w*x, 3*v*v+2*v*y), math.Hypot(w*w, v*v))
		return w*w*w + v*v*v + w*w*x + v*v*y - .1*norm
	}
	g := G.NewGraph()
	w, x := input(g, "w", 1, 2), input(g, "x", 1, 2)
	u := must(New(must(G.Sum(must(G.Cube(w)))), G.Nodes{w}, config(t, `{"maximize_grad_norm":0.1,"learning_rate":0.1}`)))
	require.NoError(t, u.AddLoss(must(G.Sum(must(G.HadamardProd(must(G.Square(w)), x)))), w, x))
	runs(t, must(u.NewMachine()), 1)
	got := append(elements(w), elements(x)...)
	for i := range at {
		up, down := append([]float64{}, at...), append([]float64{}, at...)
		up[i], down[i] = up[i]+1e-5, down[i]-1e-5
		require.InDelta(t, (objective(up)-objective(down))/2e-5, (at[i]-got[i])/.1, 1e-7, i)
	}
}

// A skipped step updates nothing, which is what its ratio says; its gradient is what it is.
func TestUpdateRatioOfSkippedStep(t *testing.T) {
	u, vars := roots(t, `{"skip_non_finite_steps":true,"summary_interval":1}`)
	vm := must(u.NewMachine())
	require.NoError(t, G.Let(vars[1], 0.))
	runs(t, vm, 1)
	for _, name := range []string{"a", "b"} {
		require.Zero(t, tags(t, u)["update_ratio/"+name], name)
	}
	require.True(t, math.IsInf(tags(t, u)["grad_norm/b"], 1))
	require.NoError(t, G.Let(vars[1], 4.))
	runs(t, vm, 1)
	require.NotZero(t, tags(t, u)["update_ratio/b"])
}
