package updater

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// The scenarios of RETURNN's own tests of its updater, with the results that those want.

// net is a classifier: two layers of 13 tanh units and a softmax, with cross entropy.
type net struct {
	g    *G.ExprGraph
	loss *G.Node
	vars G.Nodes // W and b of layer1, layer2 and output
}

func newNet(dt tensor.Dtype) *net {
	const batch, in0, hidden, classes = 6, 4, 13, 3
	n := &net{g: G.NewGraph()}
	labels := make([]float64, batch*classes)
	for i := range batch {
		labels[i*classes+i%classes] = 1
	}
	x := n.matrix(dt, "x", batch, in0, waves(batch*in0, 1))
	for i, layer := range []struct {
		name     string
		from, to int
	}{{"layer1", in0, hidden}, {"layer2", hidden, hidden}, {"output", hidden, classes}} {
		w := n.matrix(dt, layer.name+"/W", layer.from, layer.to, waves(layer.from*layer.to, float64(i+2)))
		b := inputOf(n.g, dt, layer.name+"/b", make([]float64, layer.to))
		n.vars = append(n.vars, w, b)
		z := must(G.BroadcastAdd(must(G.Mul(x, w)), must(G.Reshape(b, tensor.Shape{1, layer.to})), nil, []byte{0}))
		if layer.name == "output" {
			x = must(G.Log(must(G.SoftMax(z, 1))))
		} else {
			x = must(G.Tanh(z))
		}
	}
	n.loss = must(G.Neg(must(G.Mean(must(G.HadamardProd(x, n.matrix(dt, "labels", batch, classes, labels)))))))
	return n
}

func (n *net) matrix(dt tensor.Dtype, name string, rows, cols int, x []float64) *G.Node {
	v := tensor.New(tensor.WithShape(rows, cols), tensor.WithBacking(in(dt, x).(*tensor.Dense).Data()))
	return G.NewMatrix(n.g, dt, G.WithShape(rows, cols), G.WithName(name), G.WithValue(v))
}

// waves are numbers without much order.
func waves(n int, scale float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Sin(float64(i*i)*scale+scale) / 2
	}
	return x
}

// elements are those of all variables.
func (n *net) elements() (all [][]float64) {
	for _, v := range n.vars {
		all = append(all, elements(v))
	}
	return all
}

// updater makes the updater of the net, and its machine.
func (n *net) updater(t *testing.T, text string, opts ...Option) (*Updater, G.VM) {
	t.Helper()
	u, err := New(n.loss, n.vars, config(t, text), opts...)
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	return u, vm
}

func TestScenarioGradientDescent(t *testing.T) {
	for _, dt := range floatTypes {
		l := newLinear(dt, initial{"w", 5.0})
		u := must(New(l.loss, l.vars, Config{LearningRate: new(1.0)}))
		l.run(t, must(u.NewMachine()), 3.0)
		require.Equal(t, []float64{2}, elements(l.vars[0]))
	}
}

func TestScenarioCustomUpdate(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", 4.0})
	u := must(New(l.loss, l.vars, Config{LearningRate: new(1000.0)},
		CustomUpdate(l.vars[0], func(old Expr) Expr { return old.Add(graphops.Const(13)) })))
	l.run(t, must(u.NewMachine()), 1.0)
	require.Equal(t, []float64{17}, elements(l.vars[0]))
}

func TestScenarioCheckNumerics(t *testing.T) {
	for _, c := range []struct {
		x  float64
		ok bool
	}{{9, true}, {0, false}, {-1, false}} {
		x := G.NewScalar(G.NewGraph(), G.Float64, G.WithName("x"), G.WithValue(c.x))
		checks := must(graphops.CheckNumerics(G.Nodes{must(G.Log(x))}))
		err := must(graphops.NewEvalMachine(checks...)).RunAll()
		if c.ok {
			require.NoError(t, err)
		} else {
			require.ErrorAs(t, err, new(graphops.NotFiniteError))
		}
	}
}

// The gradient of 1/x at 0 is −∞; that of √x is +∞, while its value is finite.
func TestScenarioCheckNumericsOfGradients(t *testing.T) {
	for _, c := range []struct {
		f     func(*G.Node) (*G.Node, error)
		after float64
	}{{G.Inverse, 2}, {G.Sqrt, .5}} {
		x := G.NewScalar(G.NewGraph(), G.Float64, G.WithName("x"), G.WithValue(1.0))
		u := must(New(must(c.f(x)), G.Nodes{x}, config(t, `{"learning_rate": 1, "debug_add_check_numerics_ops": true}`)))
		vm := must(u.NewMachine())
		require.NoError(t, vm.RunAll())
		require.Equal(t, []float64{c.after}, elements(x))
		require.NoError(t, G.Let(x, 0.0))
		require.ErrorAs(t, vm.RunAll(), new(graphops.NotFiniteError))
		require.Equal(t, []float64{0}, elements(x))
	}
}

func TestScenarioCheckNumericsOfUpdater(t *testing.T) {
	for _, opts := range hosts {
		w := G.NewScalar(G.NewGraph(), G.Float64, G.WithName("w"), G.WithValue(1.0))
		u := must(New(must(G.Log(w)), G.Nodes{w}, config(t, `{"learning_rate": 1, "debug_add_check_numerics_ops": true}`), opts...))
		vm := must(u.NewMachine())
		require.NoError(t, vm.RunAll())
		require.Equal(t, []float64{0}, elements(w))
		require.ErrorAs(t, vm.RunAll(), new(graphops.NotFiniteError))
		require.Equal(t, []float64{0}, elements(w))
		require.Equal(t, 1, must(u.GlobalStep()))
	}
}

func TestScenarioSimpleBatch(t *testing.T) {
	for _, dt := range floatTypes {
		n := newNet(dt)
		_, vm := n.updater(t, `{"learning_rate": 1}`)
		before := n.elements()
		require.NoError(t, vm.RunAll())
		first := elements(n.loss)[0]
		for i, x := range n.elements() {
			require.NotEqual(t, before[i], x, n.vars[i].Name())
		}
		require.NoError(t, vm.RunAll())
		require.Less(t, elements(n.loss)[0], first)
	}
}

// Every variable of the two layers is that of the run without decay, less 2·L2·w.
func TestScenarioDecoupleConstraints(t *testing.T) {
	plain, n := newNet(tensor.Float64), newNet(tensor.Float64)
	_, vm := plain.updater(t, `{"learning_rate": 1}`)
	require.NoError(t, vm.RunAll())
	before := n.elements()
	_, vm = n.updater(t, `{"learning_rate": 1, "decouple_constraints": true, "updater_opts": [{"match": "layer*/*", "l2": 0.01}]}`)
	require.NoError(t, vm.RunAll())
	for i, want := range plain.elements() {
		for k, w := range before[i] {
			if i < 4 {
				want[k] -= .02 * w
			}
		}
		require.InDeltaSlice(t, want, elements(n.vars[i]), 1e-15, n.vars[i].Name())
	}
}

// The data are 0, so that there is only decay.
func TestScenarioDecoupleConstraintsOfSimpleGraph(t *testing.T) {
	const text = `{"learning_rate": 1, "decouple_constraints": true, "updater_opts": [{"match": "w", "l2": 0.01}]%s}`
	l := newLinear(tensor.Float64, initial{"w", 1.0})
	u := must(New(l.loss, l.vars, config(t, fmt.Sprintf(text, ""))))
	l.run(t, must(u.NewMachine()), 0.0)
	require.InDeltaSlice(t, []float64{.98}, elements(l.vars[0]), 1e-15)

	l = newLinear(tensor.Float64, initial{"w", 1.0})
	u = must(New(l.loss, l.vars, config(t, fmt.Sprintf(text, `, "accum_grad_multiple_step": 2`))))
	vm := must(u.NewMachine())
	for i, want := range []float64{1, .98, .98, .9604, .9604, .941192, .941192, .92236816, .92236816, .903920797} {
		l.run(t, vm, 0.0)
		require.Equal(t, i+1, must(u.GlobalStep()))
		require.InDeltaSlice(t, []float64{want}, elements(l.vars[0]), 1e-9)
	}
}

func TestScenarioMultipleOptimizers(t *testing.T) {
	n := newNet(tensor.Float64)
	u, vm := n.updater(t, `{"learning_rate": 0.1, "updater_opts": [
		{"match": "layer1/*", "optimizer": {"class": "adam"}}, {"match": "layer2/*", "optimizer": {"class": "adagrad"}}]}`)
	before := n.elements()
	require.NoError(t, vm.RunAll())
	all := u.Optimizers()
	require.Len(t, all, 3)
	for i, want := range [][]string{{"m", "v"}, {"accumulator"}, nil} {
		require.Equal(t, want, u.SlotNamesOf(all[i]))
		require.Equal(t, n.vars[2*i:2*i+2], must(u.VarsOf(all[i], n.vars)))
		require.NotEqual(t, before[2*i], elements(n.vars[2*i]))
	}
	require.Equal(t, all[2], must(u.DefaultOptimizer()))
}

func TestScenarioMultipleOptimizersAndOptions(t *testing.T) {
	n := newNet(tensor.Float64)
	u, vm := n.updater(t, `{"learning_rate": 0.1, "updater_opts": [
		{"match": "layer1/*", "optimizer": {"class": "adam"}, "accum_grad_multiple_step": 2},
		{"match": "layer2/*", "optimizer": {"class": "adagrad", "learning_rate_multiplier": 3}, "gradient_noise": 0.1}]}`)
	require.Len(t, u.Optimizers(), 3)
	before := n.elements()
	require.NoError(t, vm.RunAll())
	for i, v := range n.vars {
		if i < 2 {
			require.Equal(t, before[i], elements(v), v.Name())
		} else {
			require.NotEqual(t, before[i], elements(v), v.Name())
		}
	}
	// Adagrad's step is 3·lr·g/√acc of the noisy gradient, which is what its accumulator says: acc = 0.1 + g².
	acc, start := elements(u.Slot(n.vars[2], "accumulator")), must(u.Solver().Get("adagrad/initial_accumulator_value"))
	for k, w := range elements(n.vars[2]) {
		require.InDelta(t, .3*math.Sqrt((acc[k]-start)/acc[k]), math.Abs(w-before[2][k]), 1e-7)
	}
	require.NoError(t, vm.RunAll())
	require.NotEqual(t, before[0], elements(n.vars[0]))
}
