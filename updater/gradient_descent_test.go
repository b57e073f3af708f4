package updater

import (
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// square is W = [[1,2],[3,4]] with its cost ΣW².
func square(dt tensor.Dtype) (w, cost *G.Node) {
	w = state(G.NewGraph(), "W", dt, []int{2, 2}, 1, 2, 3, 4)
	cost = G.Must(G.Sum(G.Must(G.Square(w))))
	G.WithName("cost")(cost)
	return w, cost
}

// descent makes the algorithm and initializes it.
func descent(t *testing.T, d Descent) *GradientDescent {
	t.Helper()
	a, err := NewGradientDescent(d)
	require.NoError(t, err)
	require.NoError(t, a.Initialize())
	return a
}

var moved = []float64{-.5, -1, -1.5, -2} // the first step from W at the rate 0.75

// A4, A15, A16, and the norms.
func TestGradientDescent(t *testing.T) {
	for _, dt := range bothTypes {
		w, cost := square(dt)
		a, err := NewGradientDescent(Descent{Cost: cost, Parameters: G.Nodes{w}, AlgorithmOptions: AlgorithmOptions{Profile: true}})
		require.NoError(t, err)
		require.NoError(t, a.Solver().Set("learning_rate", .75))
		require.NoError(t, a.Observe(cost, a.TotalGradientNorm(), a.TotalStepNorm(), w))
		require.NoError(t, a.Initialize())
		require.ErrorContains(t, a.ProcessBatch(map[string]any{"example_id": "test"}), "example_id")
		require.Equal(t, []float64{1, 2, 3, 4}, numbers(w.Value()))
		require.NoError(t, a.ProcessBatch(nil))
		require.Equal(t, moved, numbers(w.Value()))
		for name, want := range map[string]float64{"cost": 30, "total_gradient_norm": 10.954451150103322, "total_step_norm": 8.215838362577491} {
			v, err := a.Observed(name)
			require.NoError(t, err)
			require.InDelta(t, want, numbers(v)[0], 1e-12)
		}
		require.Equal(t, []float64{1, 2, 3, 4}, numbers(must(a.Observed("W"))))
		rows := a.Profile()
		require.NotEmpty(t, rows)
		for _, r := range rows {
			require.Equal(t, 1, r.Calls, r.Op)
		}
	}
}

// A5 to A14: gradients that are given, and what is wrong.
func TestGradients(t *testing.T) {
	for _, dt := range bothTypes {
		w, _ := square(dt)
		g := w.Graph()
		z := state(g, "z", dt, nil, 7)
		rate := func() solvers.Rule { return solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = .75 }) }
		start := func() { require.NoError(t, G.Let(w, tensorOf(dt, []int{2, 2}, 1, 2, 3, 4))) }
		pairs := []ParameterGradient{{w, of(w).Mul(num(2))}}
		unordered := map[*G.Node]Expr{w: of(w).Mul(num(2))}
		for name, d := range map[string]Descent{
			"pairs":            {Gradients: pairs},
			"twice":            {Gradients: []ParameterGradient{{w, of(w)}, pairs[0]}},
			"map in an order":  {GradientMap: unordered, Parameters: G.Nodes{w}},
			"no known grads":   {Gradients: pairs, KnownGrads: []KnownGrad{}},
			"other parameters": {Gradients: pairs, Parameters: G.Nodes{z}},
		} {
			start()
			d.StepRule = rate()
			a := descent(t, d)
			require.NoError(t, a.Initialize())
			require.NoError(t, a.Initialize())
			require.Len(t, a.Updates(), 1, name)
			require.Equal(t, G.Nodes{w}, a.Parameters(), name)
			require.Nil(t, a.Cost())
			require.NoError(t, a.ProcessBatch(nil))
			require.Equal(t, moved, numbers(w.Value()), name)
		}
		start()
		n, m := state(g, "n", dt, nil, 0), sourceNode(g, "m", dt)
		a, err := NewGradientDescent(Descent{Gradients: []ParameterGradient{{w, of(w).Add(num(1))}}})
		require.NoError(t, err)
		a.AddUpdates(graphops.Update{Target: n, Value: of(n).Add(of(m))})
		require.NoError(t, a.Initialize())
		require.Equal(t, G.Nodes{m}, a.Inputs())
		require.NoError(t, a.ProcessBatch(map[string]any{"m": 3}))
		require.Equal(t, []float64{3, -1, -1, -1, -1}, all(n, w))

		user := []graphops.Update{{Target: z, Value: of(z).Add(num(1))}}
		a, err = NewGradientDescent(Descent{Gradients: []ParameterGradient{{w, of(w).Div(num(2))}}, Updates: user})
		require.NoError(t, err)
		require.Equal(t, []*G.Node{z, w}, targets(a.Updates()))
		require.Len(t, user, 1)
	}
}

func targets(us []graphops.Update) (ns []*G.Node) {
	for _, u := range us {
		ns = append(ns, u.Target)
	}
	return ns
}

func TestGradientDescentRefuses(t *testing.T) {
	w, cost := square(G.Float64)
	g := w.Graph()
	z, v := state(g, "z", G.Float64, []int{2}, 0, 0), state(g, "v", G.Float64, nil, 0)
	pairs := []ParameterGradient{{w, of(w)}}
	for name, c := range map[string]struct {
		d    Descent
		want string
	}{
		"nothing":                {Descent{}, "no cost"},
		"no cost":                {Descent{Parameters: G.Nodes{w}}, "no cost"},
		"no parameters":          {Descent{Cost: cost}, "no parameters"},
		"no gradients":           {Descent{Parameters: G.Nodes{w}, Gradients: []ParameterGradient{}}, "no cost"},
		"no order":               {Descent{GradientMap: map[*G.Node]Expr{w: of(w)}}, "fixed order"},
		"no order, others":       {Descent{GradientMap: map[*G.Node]Expr{w: of(w)}, Parameters: G.Nodes{z}}, "fixed order"},
		"both":                   {Descent{GradientMap: map[*G.Node]Expr{w: of(w)}, Gradients: pairs}, "leave one of them out"},
		"known":                  {Descent{Gradients: pairs, KnownGrads: []KnownGrad{{cost, v}}}, "KnownGrads have no effect"},
		"constant":               {Descent{Gradients: pairs, ConsiderConstant: G.Nodes{}}, "ConsiderConstant has no effect"},
		"twice":                  {Descent{Cost: cost, Parameters: G.Nodes{w, w}}, `"W" is listed twice`},
		"nil parameter":          {Descent{Cost: cost, Parameters: G.Nodes{nil}}, "parameter 0 is nil"},
		"nil in a pair":          {Descent{Gradients: []ParameterGradient{{nil, of(w)}}}, "parameter 0 is nil"},
		"unused":                 {Descent{Cost: cost, Parameters: G.Nodes{w, z}}, `"z"`},
		"no scalar":              {Descent{Cost: z, Parameters: G.Nodes{w}}, "scalar"},
		"computed":               {Descent{Gradients: []ParameterGradient{{cost, of(cost)}}}, "only its inputs can be trained"},
		"shape":                  {Descent{Gradients: []ParameterGradient{{w, of(z)}}}, `the gradient of "W"`},
		"scalar":                 {Descent{Gradients: []ParameterGradient{{w, num(1)}}}, "is a scalar, but the parameter has shape (2, 2)"},
		"zero Expr":              {Descent{Gradients: []ParameterGradient{{w, Expr{}}}}, "zero Expr"},
		"mode":                   {Descent{Gradients: pairs, AlgorithmOptions: AlgorithmOptions{OnUnusedSources: "x"}}, "OnUnusedSources"},
		"rule":                   {Descent{Gradients: pairs, StepRule: solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = math.NaN() })}, "learning_rate"},
		"axes":                   {Descent{Gradients: []ParameterGradient{{z, of(z)}}, StepRule: solvers.NewVariableClipping(1, func(v *solvers.VariableClipping) { v.Axes = []int{1} })}, "rank 1"},
		"unknown variable":       {Descent{Gradients: pairs, StepRule: solvers.Restrict(solvers.NewScale(), "x")}, `no parameter is called "x"`},
		"rule of a cost":         {Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: solvers.Restrict(solvers.NewScale(), "x")}, `no parameter is called "x"`},
		"known nil":              {Descent{Cost: cost, Parameters: G.Nodes{w}, KnownGrads: []KnownGrad{{}}}, "nil"},
		"elsewhere":              {Descent{Cost: cost, Parameters: G.Nodes{state(G.NewGraph(), "o", G.Float64, nil, 1)}}, "graph"},
		"setup":                  {Descent{Gradients: pairs, Setup: func(s *solvers.Solver) error { return s.Set("nonsense", 1) }}, "Setup"},
		"a constant of no graph": {Descent{Cost: cost, Parameters: G.Nodes{w}, ConsiderConstant: G.Nodes{nil}}, "nil"},
	} {
		nodes := len(g.AllNodes())
		_, err := NewGradientDescent(c.d)
		require.ErrorContains(t, err, c.want, name)
		require.Len(t, g.AllNodes(), nodes, name)
	}
	a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, Updates: []graphops.Update{{Target: z, Value: of(z)}}})
	a.AddUpdates(graphops.Update{Target: w, Value: of(w)})
	require.ErrorContains(t, a.Initialize(), `"W" is updated twice`)
}

// What is ignored is warned of; what is built is told.
func TestGradientDescentLogs(t *testing.T) {
	w, cost := square(G.Float64)
	pairs := []ParameterGradient{{w, of(w)}}
	text := logged(t, slog.LevelDebug)
	for _, c := range []struct {
		d    Descent
		want []string
	}{
		{Descent{Gradients: pairs}, []string{"level=DEBUG msg=\"gradient descent is built\""}},
		{Descent{Gradients: pairs, Cost: cost}, []string{"level=WARN msg=\"the cost of the gradient descent is not used"}},
		{Descent{Gradients: pairs, Parameters: G.Nodes{cost}}, []string{"level=WARN msg=\"the parameters of the gradient descent are not those"}},
		{Descent{Cost: cost, Parameters: G.Nodes{w}}, []string{"level=INFO msg=\"taking the gradient of the cost\"", "level=INFO msg=\"the gradient of the cost is built\""}},
	} {
		text.Reset()
		_, err := NewGradientDescent(c.d)
		require.NoError(t, err)
		for _, want := range c.want {
			require.Contains(t, text.String(), want)
		}
		require.Equal(t, len(c.want) == 1 && c.d.Cost == nil && c.d.Parameters == nil || c.d.Gradients == nil, !strings.Contains(text.String(), "WARN"))
	}
}

// known_grads replaces what would be propagated, consider_constant stops it.
func TestKnownGrads(t *testing.T) {
	for _, dt := range bothTypes {
		make := func(d func(h, k *G.Node) Descent) []float64 {
			g := G.NewGraph()
			x := state(g, "x", dt, []int{2}, 3, 4)
			h := G.Must(G.Square(x))
			d2 := d(h, state(g, "k", dt, []int{2}, 10, 20))
			d2.Cost, d2.Parameters = G.Must(G.Add(G.Must(G.Sum(h)), G.Must(G.Sum(x)))), G.Nodes{x}
			a := descent(t, d2)
			require.NoError(t, a.ProcessBatch(nil))
			return numbers(x.Value())
		}
		require.Equal(t, []float64{3 - 7, 4 - 9}, make(func(_, _ *G.Node) Descent { return Descent{} }))
		require.Equal(t, []float64{3 - 61, 4 - 161}, make(func(h, k *G.Node) Descent { return Descent{KnownGrads: []KnownGrad{{h, k}}} }))
		require.Equal(t, []float64{2, 3}, make(func(h, _ *G.Node) Descent { return Descent{ConsiderConstant: G.Nodes{h}} }))
	}
}

// One rule in two algorithms: buffers of their own, hyperparameters in common.
func TestSharedRule(t *testing.T) {
	rule := solvers.New(&solvers.Momentum{LearningRate: .1, Momentum: .5, RateInside: true})
	w, cost := square(G.Float64)
	v, other := square(G.Float64)
	a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: rule})
	b := descent(t, Descent{Cost: other, Parameters: G.Nodes{v}, StepRule: rule})
	for range 2 {
		require.NoError(t, a.ProcessBatch(nil))
	}
	require.NoError(t, b.ProcessBatch(nil))
	require.InDeltaSlice(t, []float64{.54, 1.08, 1.62, 2.16}, numbers(w.Value()), 1e-14)
	require.InDeltaSlice(t, []float64{.8, 1.6, 2.4, 3.2}, numbers(v.Value()), 1e-14)
	require.NoError(t, b.Solver().Set("learning_rate", 0))
	require.Equal(t, 0.0, must(a.Solver().Get("learning_rate")))
	require.Equal(t, 0.0, must(rule.Get("learning_rate")))
	require.NoError(t, rule.Set("learning_rate", .1))
	require.NoError(t, a.ProcessBatch(nil))
	require.InDeltaSlice(t, []float64{.302, .604, .906, 1.208}, numbers(w.Value()), 1e-14)
}

// A schedule, expanded updates, and a step that is not made by the delta alone.
func TestDescentOptions(t *testing.T) {
	w, cost := square(G.Float64)
	a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, Setup: func(s *solvers.Solver) error {
		return s.Schedule("learning_rate", schedule.NewStepDecay(.75, 1, func(d *schedule.StepDecay) { d.Gamma = .5 }))
	}, AlgorithmOptions: AlgorithmOptions{Commit: []graphops.CommitOpt{graphops.Expanded()}}})
	require.NoError(t, a.Observe(a.Steps()[0].Step, cost, w))
	require.NoError(t, a.Initialize())
	require.NoError(t, a.ProcessBatch(nil))
	require.Equal(t, moved, numbers(w.Value()))
	require.Equal(t, []float64{30}, numbers(must(a.Observed("cost"))))
	require.Equal(t, []float64{1, 2, 3, 4}, numbers(must(a.Observed("W"))))
	require.Equal(t, []float64{1.5, 3, 4.5, 6}, numbers(must(a.Observed(a.Steps()[0].Step.Name()))))
	require.NoError(t, a.ProcessBatch(nil))
	require.Equal(t, []float64{-.125, -.25, -.375, -.5}, numbers(w.Value()))

	w, cost = square(G.Float64)
	decay := solvers.NewAdamW(func(d *solvers.AdamW) { d.LearningRate, d.WeightDecay = .1, .5 })
	a = descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: decay})
	step := a.Steps()[0].Step
	G.WithName("step")(step)
	G.WithName("gradient")(a.Gradients()[0])
	require.NoError(t, a.Observe(step, a.TotalStepNorm(), a.Gradients()[0]))
	require.NoError(t, a.Initialize())
	require.NoError(t, a.ProcessBatch(nil))
	norm := 0.0
	for i, x := range numbers(must(a.Observed("step"))) {
		require.InDelta(t, float64(i+1)-numbers(w.Value())[i], x, 1e-15)
		require.InDelta(t, .1+.05*float64(i+1), x, 1e-8)
		norm += x * x
	}
	require.InDelta(t, math.Sqrt(norm), numbers(must(a.Observed("total_step_norm")))[0], 1e-15)
	require.Equal(t, []float64{2, 4, 6, 8}, numbers(must(a.Observed("gradient"))))
}

// A scale of the loss that the rule divides by multiplies the cost, also where it grows.
func TestLossScaleOfStepRule(t *testing.T) {
	for _, dt := range bothTypes {
		want, plain := square(dt)
		a := descent(t, Descent{Cost: plain, Parameters: G.Nodes{want}, StepRule: scale(.1)})
		w, cost := square(dt)
		grows := solvers.WithLossScale(scale(.1), func(l *solvers.LossScale) { l.DynamicGrowthSteps = 2 })
		b := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: grows})
		require.NoError(t, b.Observe(cost))
		require.NoError(t, b.Initialize())
		for range 5 {
			before := numbers(w.Value())
			require.NoError(t, a.ProcessBatch(nil))
			require.NoError(t, b.ProcessBatch(nil))
			require.Equal(t, numbers(want.Value()), numbers(w.Value()))
			squares := 0.
			for _, x := range before {
				squares += x * x
			}
			require.InDelta(t, squares, numbers(must(b.Observed(cost.Name())))[0], 1e-5)
		}
		got, err := b.Solver().LossScale()
		require.NoError(t, err)
		require.Equal(t, 4*32768., got)
	}
}
