package solvers

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers/schedule"
)

// fit trains in a host and returns the loss of each run, which is that of before its step. feed gives the inputs their values.
func fit(t *testing.T, host string, s *Solver, loss *G.Node, vars G.Nodes, runs int, feed func(run int)) (losses []float64) {
	t.Helper()
	if host == "expanded" {
		Expanded()(s)
	}
	var vm G.VM
	if host == "step" {
		must(G.Grad(loss, vars...))
		vm = G.NewTapeMachine(loss.Graph(), G.BindDualValues(vars...))
	} else {
		vm = must(graphops.NewMachine(must(s.Minimize(loss, vars...)), loss))
	}
	for run := range runs {
		if feed != nil {
			feed(run)
		}
		require.NoError(t, vm.RunAll())
		losses = append(losses, floats(loss.Value())[0])
		if host == "step" {
			require.NoError(t, s.Step(G.NodesToValueGrads(vars)))
		}
		vm.Reset()
	}
	return losses
}

var allHosts = []string{"step", "fused", "expanded"}

func filled(g *G.ExprGraph, name string, x float64, shape ...int) *G.Node {
	init := func(dt tensor.Dtype, s ...int) any { return slices.Repeat([]float64{x}, tensor.Shape(s).TotalSize()) }
	return G.NewTensor(g, G.Float64, len(shape), G.WithShape(shape...), G.WithName(name), G.WithInit(init))
}

// squaredError is the mean of (y−want)².
func squaredError(y, want *G.Node) *G.Node { return must(G.Mean(must(G.Square(must(G.Sub(y, want)))))) }

// Keras' fit of a dense layer with a learning rate that decays: the losses of the epochs, in which the loss is read before each step.
func TestFitWithDecay(t *testing.T) {
	for _, host := range allHosts {
		g := G.NewGraph()
		x := filled(g, "x", 0, 4, 2)
		kernel, bias := filled(g, "kernel", 1, 2, 2), filled(g, "bias", 1, 2)
		y := must(G.BroadcastAdd(must(G.Mul(x, kernel)), bias, nil, []byte{0}))
		s := New(kerasAdam(0))
		require.NoError(t, s.Schedule("learning_rate", schedule.NewExponentialDecay(.05, 1, .9)))
		losses := fit(t, host, s, squaredError(y, x), G.Nodes{kernel, bias}, 12, func(run int) {
			batch := make([]float64, 8)
			for i := range batch {
				batch[i] = float64(run%4*8 + i)
			}
			require.NoError(t, G.Let(x, tensor.New(tensor.WithShape(4, 2), tensor.WithBacking(batch))))
		})
		for epoch, want := range []float64{230.79457, 128.30319, 79.33649} {
			mean := 0.
			for _, l := range losses[4*epoch : 4*epoch+4] {
				mean += l / 4
			}
			require.InEpsilon(t, want, mean, 5e-5, "%s, epoch %d", host, epoch)
		}
		require.Equal(t, []float64{12, 12}, counted(t, s, "global_step", "adam/step"))
		require.NotContains(t, variableNames(s), "adam/learning_rate")
	}
}

// Keras' fit of two layers with rules of their own: rates that callbacks change are those of each rule.
func TestFitWithRules(t *testing.T) {
	for _, host := range allHosts {
		g := G.NewGraph()
		x, zeros := filled(g, "x", 1, 1, 1), filled(g, "zeros", 0, 1, 1)
		first, second := filled(g, "dense_1/kernel", 1, 1, 2), filled(g, "dense_2/kernel", 1, 2, 1)
		s := OptimizerMap(counting(.1), Route{"dense_1/.*", sgd(1e-3)}, Route{"dense_2/.*", sgd(1e-2)})
		fit(t, host, s, squaredError(must(G.Mul(must(G.Mul(x, first)), second)), zeros), G.Nodes{first, second}, 1, nil)
		require.InDeltaSlice(t, []float64{.996, .996, .96, .96}, floats(first.Value(), second.Value()), 1e-12, host)
		require.Nil(t, s.Store().Lookup("adam/step"), "the default has nothing to train")

		rates := func() []float64 { return []float64{must(s.Get("sgd/lr")), must(s.Get("sgd#2/lr"))} }
		for _, name := range []string{"sgd/lr", "sgd#2/lr"} {
			require.NoError(t, s.Set(name, .5*must(s.Get(name))))
			plateau := must(schedule.NewReduceOnPlateau(must(s.Get(name)), func(r *schedule.ReduceOnPlateau) {
				r.Form, r.Factor, r.Patience = "keras", .5, 1
			}))
			for range 2 {
				require.NoError(t, s.Set(name, must(plateau.Observe(7))))
			}
		}
		require.Equal(t, []float64{1e-3 / 4, 1e-2 / 4}, rates())
	}
}

// The mean square of what is missing to a target goes down to the published weights.
func TestFitConverges(t *testing.T) {
	decay := func(a *AdaBelief) { a.LearningRate, a.WeightDecay, a.Decay = .02, .01, "direction" }
	for name, c := range map[string]struct {
		s    func() *Solver
		want []float64
	}{
		"adabelief":       {func() *Solver { return NewAdaBelief(decay) }, []float64{.3994091, .1997143, -.4991613}},
		"plain adabelief": {func() *Solver { return New(plainBelief(decay)) }, []float64{.3998468, .1998889, -.4997397}},
		"lamb":            {func() *Solver { return NewLAMB(func(l *LAMB) { l.LearningRate, l.WeightDecay = .02, .01 }) }, []float64{.3937211, .1949783, -.4899644}},
	} {
		for _, host := range allHosts {
			g := G.NewGraph()
			w, target := vector(g, "w", .1, -.2, -.1), vector(g, "target", .4, .2, -.5)
			fit(t, host, c.s(), squaredError(target, w), G.Nodes{w}, 200, nil)
			require.InDeltaSlice(t, c.want, floats(w.Value()), 6e-8, "%s, %s", name, host)
			for i, x := range []float64{.4, .2, -.5} {
				require.InDelta(t, x, floats(w.Value())[i], .01+.01*math.Abs(x))
			}
		}
	}
}

// With its defaults, every optimizer of Addons and Keras lowers the loss of a layer of one weight over ten epochs, and goes on as
// well after it was saved and loaded.
func TestFitOfEveryDefault(t *testing.T) {
	layer := func() (loss *G.Node, vars G.Nodes) {
		g := G.NewGraph()
		x, kernel, bias := filled(g, "x", 1, 1, 1), filled(g, "kernel", .7, 1, 1), filled(g, "bias", 0, 1)
		y := must(G.BroadcastAdd(must(G.Mul(x, kernel)), bias, nil, []byte{0}))
		return squaredError(y, filled(g, "zeros", 0, 1, 1)), G.Nodes{kernel, bias}
	}
	for _, family := range []string{"keras", "addons"} {
		for _, p := range families[family] {
			name := family + "/" + p.name
			s := must(FromConfig(name, nil))
			if !s.Optimizes() {
				continue
			}
			loss, vars := layer()
			first := fit(t, "fused", s, loss, vars, 10, nil)
			require.Less(t, first[9], first[0], name)

			var file bytes.Buffer
			require.NoError(t, s.Save(&file))
			again, weights := layer()
			for i, v := range vars {
				require.NoError(t, graphops.Copy(weights[i].Value(), v.Value()))
			}
			other := must(FromConfig(name, nil))
			require.NoError(t, other.Build(G.NodesToValueGrads(weights)))
			require.NoError(t, other.Load(&file))
			second := fit(t, "step", other, again, weights, 10, nil)
			require.LessOrEqual(t, second[9], first[9], name)
			require.Equal(t, 20, must(other.GlobalStep()))
		}
	}
}

// A small net learns to tell two clouds of points apart, with the optimizer found by its name.
func TestFitOfAClassifier(t *testing.T) {
	config := map[string]any{"module": nil, "class_name": "AdaBelief", "registered_name": "AdaBelief", "config": map[string]any{"learning_rate": .01}}
	const batch, train, test = 16, 1000, 200
	r := rand.New(rand.NewPCG(1337, 0))
	sample := func(x, y []float64) { // 10 features around 0 or 1, and the class as one of two
		c := r.IntN(2)
		for i := range x {
			x[i] = float64(c) + .7*r.NormFloat64()
		}
		y[0], y[1] = float64(1-c), float64(c)
	}
	var xs, ys [train + test][]float64
	for i := range xs {
		xs[i], ys[i] = make([]float64, 10), make([]float64, 2)
		sample(xs[i], ys[i])
	}
	for _, host := range allHosts {
		s := must(FromKerasConfig(config))
		require.Equal(t, must(s.Config()), must(must(FromKerasConfig(must(s.KerasConfig()))).Config()))
		g := G.NewGraph()
		x, want := filled(g, "x", 0, batch, 10), filled(g, "want", 0, batch, 2)
		w0 := G.NewMatrix(g, G.Float64, G.WithShape(10, 10), G.WithName("w0"), G.WithValue(random(tensor.Float64, 1, 10, 10)))
		w1 := G.NewMatrix(g, G.Float64, G.WithShape(10, 2), G.WithName("w1"), G.WithValue(random(tensor.Float64, 2, 10, 2)))
		hidden := must(G.Rectify(must(G.BroadcastAdd(must(G.Mul(x, w0)), filled(g, "b0", 0, 10), nil, []byte{0}))))
		p := must(G.SoftMax(must(G.BroadcastAdd(must(G.Mul(hidden, w1)), filled(g, "b1", 0, 2), nil, []byte{0}))))
		loss := must(G.Neg(must(G.Mean(must(G.HadamardProd(want, must(G.Log(p))))))))
		show := func(from int) {
			var bx, by []float64
			for i := from; i < from+batch; i++ {
				bx, by = append(bx, xs[i]...), append(by, ys[i]...)
			}
			require.NoError(t, G.Let(x, tensor.New(tensor.WithShape(batch, 10), tensor.WithBacking(bx))))
			require.NoError(t, G.Let(want, tensor.New(tensor.WithShape(batch, 2), tensor.WithBacking(by))))
		}
		vars := G.Nodes{w0, w1, g.ByName("b0")[0], g.ByName("b1")[0]}
		eval := must(graphops.NewEvalMachine(p))
		fit(t, host, s, loss, vars, 4*(train/batch), func(run int) { show(run % (train / batch) * batch) })
		right, seen := 0, 0
		for from := train; from+batch <= train+test; from += batch {
			show(from)
			require.NoError(t, eval.RunAll())
			q := floats(p.Value()) // of which the larger counts: Gorgonia may have made them logarithms
			for i := range batch {
				seen++
				if (q[2*i+1] > q[2*i]) == (ys[from+i][1] == 1) {
					right++
				}
			}
			eval.Reset()
		}
		require.Greater(t, float64(right), .9*float64(seen), host)
	}
}
