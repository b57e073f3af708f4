package updater

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// The exact numbers of Lasagne's tests, after 1, 2 and sometimes 3 or 10 batches: Σ [0.1, 0.2, 0.3]·(A² + B²) from ones.
func TestLasagneByDescent(t *testing.T) {
	rule := func(name string, options map[string]any) solvers.Rule {
		return must(solvers.FromConfig("lasagne/"+name, options))
	}
	rate := func(r float64) map[string]any { return map[string]any{"learning_rate": r} }
	for name, c := range map[string]struct {
		rule solvers.Rule
		want map[int][]float64
	}{
		"sgd": {rule("sgd", rate(.1)), map[int][]float64{1: {.98, .96, .94}, 2: {.9604, .9216, .8836}, 10: {.81707280688755, .6648326359915, .5386151140949}}},
		"momentum": {rule("momentum", map[string]any{"learning_rate": .1, "momentum": .5}),
			map[int][]float64{1: {.98, .96, .94}, 2: {.9504, .9016, .8536}, 10: {.6848486952183, .44803321781003, .27431190123502}}},
		"nesterov": {rule("nesterov_momentum", map[string]any{"learning_rate": .1, "momentum": .5}),
			map[int][]float64{1: {.97, .94, .91}, 2: {.9359, .8736, .8131}, 10: {.67466543592725, .44108468114241, .2769002108997}}},
		"adagrad": {rule("adagrad", rate(.1)), map[int][]float64{1: {.900001249977, .900000312499, .900000138889},
			2: {.833105187470, .833103942001, .833103711355}, 10: {.553733443030, .553731761027, .553731449542}}},
		"rmsprop": {rule("rmsprop", rate(.01)), map[int][]float64{1: {.968381175504, .968378211564, .968377662594},
			2: {.945793467996, .945789385714, .945788629626}, 10: {.832061354053, .832054649993, .832053408366}}},
		"adadelta": {rule("adadelta", nil), map[int][]float64{1: {.995528981660, .995528143527, .995527988266},
			2: {.991010919300, .991009223222, .991008909029}, 10: {.95453237704725, .9545237471374, .95452214847397}}},
		"adam": {rule("adam", rate(.01)), map[int][]float64{1: {.990000015811, .990000007906, .990000005270},
			2: {.980002772939, .980002759417, .980002754910}, 10: {.900349733818, .900349693658, .900349680271}}},
		"adamax": {rule("adamax", rate(.01)), map[int][]float64{1: {.990000000500, .990000000250, .990000000167},
			2: {.980042675249, .980042674751, .980042674585}, 10: {.902117490029, .902117487635, .902117486837}}},
		"amsgrad": {rule("amsgrad", rate(.01)), map[int][]float64{1: {.990000015811, .990000007906, .990000005270},
			2: {.980002772939, .980002759417, .980002754910}, 10: {.900349733818, .900349693658, .900349680271}}},
		"momentum on rmsprop": {solvers.Chain(rule("rmsprop", rate(.01)), basicMomentum(.9)), map[int][]float64{
			1: {.968381175504, .968378211564, .968377662594}, 2: {.917336525950, .917329776121, .917328525961}, 3: {.853033967479, .853023191096, .853021195179}}},
		"nesterov on rmsprop": {solvers.Chain(rule("rmsprop", rate(.01)), nesterov(1, .9)), map[int][]float64{
			1: {.939924233458, .939918601971, .939917558929}, 2: {.872028152516, .872018025471, .872016149808}, 3: {.796887344002, .796873013107, .796870358859}}},
	} {
		for _, dt := range bothTypes {
			g := G.NewGraph()
			a, b := state(g, "A", dt, []int{3}, 1, 1, 1), state(g, "B", dt, []int{3}, 1, 1, 1)
			k := state(g, "k", dt, []int{3}, .1, .2, .3)
			f := func(x *G.Node) *G.Node { return G.Must(G.Sum(G.Must(G.HadamardProd(k, G.Must(G.Square(x)))))) }
			d := descent(t, Descent{Cost: G.Must(G.Add(f(a), f(b))), Parameters: G.Nodes{a, b}, StepRule: c.rule})
			for i := 1; i <= 10; i++ {
				require.NoError(t, d.ProcessBatch(nil))
				if want := c.want[i]; want != nil {
					closeTo(t, want, numbers(a.Value()), tolerance(dt, 1e-10), name, dt, i)
				}
				require.Equal(t, numbers(a.Value()), numbers(b.Value()), name)
			}
		}
	}
}

// Parameters without names train, and have buffers of their own.
func TestNamelessParameters(t *testing.T) {
	for _, rule := range []func() solvers.Rule{func() solvers.Rule { return adaGrad(.1) }, func() solvers.Rule { return momentum(.1, .5) }} {
		train := func(named bool) (out []float64) {
			g := G.NewGraph()
			var params G.Nodes
			for i := range 2 {
				x := []float64{1, 2, 3}[:2+i] // Gorgonia takes nameless inputs of one shape for one
				opts := []G.NodeConsOpt{G.WithShape(2 + i), G.WithValue(tensorOf(G.Float64, []int{2 + i}, x...))}
				if named {
					opts = append(opts, G.WithName(fmt.Sprint("p", i)))
				}
				params = append(params, G.NewVector(g, G.Float64, opts...))
			}
			a := descent(t, Descent{Gradients: []ParameterGradient{{params[0], of(params[0])}, {params[1], of(params[1])}}, StepRule: rule()})
			for range 3 {
				require.NoError(t, a.ProcessBatch(nil))
			}
			return all(params...)
		}
		require.Equal(t, train(true), train(false))
	}
}

// known_grads of the cost itself and of a parameter, consider_constant of a parameter and of the cost, and a cost that is a parameter.
func TestGradientsOfEnds(t *testing.T) {
	for _, dt := range bothTypes {
		for name, c := range map[string]struct {
			known, constant func(w, cost *G.Node) *G.Node
			shape           []int
			want            []float64 // nil: the cost does not depend on W
		}{
			"known of the cost":         {func(_, cost *G.Node) *G.Node { return cost }, nil, nil, []float64{.5, 1, 1.5, 2}},
			"known of the parameter":    {func(w, _ *G.Node) *G.Node { return w }, nil, []int{2, 2}, []float64{.75, 1.75, 2.75, 3.75}},
			"constant is the parameter": {nil, func(w, _ *G.Node) *G.Node { return w }, nil, []float64{-1, -2, -3, -4}},
			"constant is the cost":      {nil, func(_, cost *G.Node) *G.Node { return cost }, nil, nil},
		} {
			w, cost := square(dt)
			d := Descent{Cost: cost, Parameters: G.Nodes{w}}
			if c.known != nil {
				quarter := state(w.Graph(), "k", dt, c.shape, .25, .25, .25, .25)
				d.KnownGrads = []KnownGrad{{c.known(w, cost), quarter}}
			} else {
				d.ConsiderConstant = G.Nodes{c.constant(w, cost)}
			}
			a, err := NewGradientDescent(d)
			if c.want == nil {
				require.ErrorContains(t, err, `the cost "cost" does not depend on "W"`, name)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, a.Initialize())
			require.NoError(t, a.ProcessBatch(nil))
			require.Equal(t, c.want, numbers(w.Value()), name)
		}
		w := state(G.NewGraph(), "w", dt, nil, 3)
		a := descent(t, Descent{Cost: w, Parameters: G.Nodes{w}})
		require.NoError(t, a.ProcessBatch(nil))
		require.Equal(t, []float64{2}, numbers(w.Value()))
	}
}

// layers is tanh(x·w0 + b)·w1 with dropout, and nodes of all kinds to look at.
func layers(dt tensor.Dtype) (params, nodes G.Nodes, cost *G.Node) {
	g := G.NewGraph()
	x := sourceNode(g, "x", dt, 3, 2)
	w0, b, w1 := state(g, "w0", dt, []int{2, 2}, .1, -.2, .3, .4), state(g, "b", dt, []int{1, 2}, .1, -.2), state(g, "w1", dt, []int{2, 1}, .5, -.6)
	named := func(name string, n *G.Node) *G.Node {
		G.WithName(name)(n)
		nodes = append(nodes, n)
		return n
	}
	pre := named("pre", must(G.BroadcastAdd(G.Must(G.Mul(x, w0)), b, nil, []byte{0})))
	drop := named("drop", must(graphops.Dropout(named("tanh", G.Must(G.Tanh(pre))), .5, must(graphops.NewGenerator(graphops.NewStore(), "d", 3)))))
	view := named("view", G.Must(G.Reshape(named("out", G.Must(G.Mul(drop, w1))), tensor.Shape{3})))
	cost = named("cost", G.Must(G.Mean(named("square", G.Must(G.Square(view))))))
	return G.Nodes{w0, b, w1}, append(nodes, w0, b, w1, x), cost
}

// No option changes a bit of what is observed and trained.
func TestOptionsChangeNoBit(t *testing.T) {
	for _, dt := range bothTypes {
		for _, rule := range []func() solvers.Rule{
			func() solvers.Rule { return newAdam(.1, 1) },
			func() solvers.Rule {
				return solvers.Chain(removeNotFinite(1), solvers.NewStepClipping(.1), momentum(.1, .9))
			},
		} {
			var want []float64
			for mode := range 8 {
				params, nodes, cost := layers(dt)
				o := AlgorithmOptions{CheckFinite: mode&1 > 0, Profile: mode&2 > 0}
				if mode&4 > 0 {
					o.Commit = []graphops.CommitOpt{graphops.Expanded()}
				}
				a, err := NewGradientDescent(Descent{Cost: cost, Parameters: params, StepRule: rule(), AlgorithmOptions: o})
				require.NoError(t, err)
				nodes = append(append(nodes, a.Gradients()...), a.TotalGradientNorm(), a.TotalStepNorm())
				for _, u := range a.StepRuleUpdates() {
					nodes = append(nodes, u.Target)
				}
				require.NoError(t, a.Observe(nodes...))
				require.NoError(t, a.Initialize())
				var got []float64
				for i := range 4 {
					x := tensorOf(dt, []int{3, 2}, float64(i), 1, 2, -1, .5, .25)
					require.NoError(t, a.ProcessBatch(map[string]any{"x": x}))
					for _, n := range nodes {
						got = append(got, numbers(must(a.Observed(n.Name())))...)
					}
					got = append(got, all(params...)...)
				}
				if want == nil {
					want = got
				}
				require.Equal(t, want, got, mode)
				for _, r := range a.Profile() {
					require.Equal(t, 4, r.Calls, r.Op)
				}
			}
			require.False(t, math.IsNaN(want[len(want)-1]))
		}
	}
}
