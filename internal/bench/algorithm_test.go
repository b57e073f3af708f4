package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/updater"
)

// perceptron is the MLP 784-300-100-10 with a batch of 100.
type perceptron struct {
	x, y, loss *gorgonia.Node
	weights    gorgonia.Nodes
	images     *tensor.Dense
	labels     *tensor.Dense
}

func newPerceptron(tb testing.TB) *perceptron {
	const batch = 100
	g := gorgonia.NewGraph()
	node := func(name string, shape ...int) *gorgonia.Node {
		return gorgonia.NewTensor(g, gorgonia.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	}
	m := &perceptron{x: node("x", batch, 784), y: node("y", batch, 10)}
	r := rand.New(rand.NewPCG(1, 2))
	random := func(scale float32, shape ...int) *tensor.Dense {
		d := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))
		for i := range d.Float32s() {
			d.Float32s()[i] = scale * float32(r.NormFloat64())
		}
		return d
	}
	h, sizes := m.x, []int{784, 300, 100, 10}
	for i := range 3 {
		w, b := node(fmt.Sprint("w", i), sizes[i], sizes[i+1]), node(fmt.Sprint("b", i), sizes[i+1])
		require.NoError(tb, gorgonia.Let(w, random(.05, sizes[i], sizes[i+1])))
		require.NoError(tb, gorgonia.Let(b, random(0, sizes[i+1])))
		m.weights = append(m.weights, w, b)
		h = gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(h, w)), b, nil, []byte{0}))
		if i < 2 {
			h = gorgonia.Must(gorgonia.Rectify(h))
		}
	}
	h = gorgonia.Must(gorgonia.LogSoftMax(h, 1))
	m.loss = gorgonia.Must(gorgonia.Neg(gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.HadamardProd(h, m.y))))))
	m.images, m.labels = random(1, batch, 784), tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(batch, 10))
	for i := range batch {
		m.labels.Float32s()[10*i+r.IntN(10)] = 1
	}
	return m
}

// bare is a step with Minimize and a machine; algorithm is one with ProcessBatch, with the same data.
func (m *perceptron) bare(tb testing.TB) func() {
	op, err := solvers.NewAdam().Minimize(m.loss, m.weights...)
	require.NoError(tb, err)
	vm, err := graphops.NewMachine(op)
	require.NoError(tb, err)
	return func() {
		require.NoError(tb, gorgonia.Let(m.x, m.images))
		require.NoError(tb, gorgonia.Let(m.y, m.labels))
		require.NoError(tb, vm.RunAll())
	}
}

func (m *perceptron) algorithm(tb testing.TB) func() {
	a, err := updater.NewGradientDescent(updater.Descent{Cost: m.loss, Parameters: m.weights, StepRule: solvers.NewAdam()})
	require.NoError(tb, err)
	require.NoError(tb, a.Initialize())
	batch := map[string]any{"x": m.images, "y": m.labels}
	return func() { require.NoError(tb, a.ProcessBatch(batch)) }
}

// Both do the same.
func TestAlgorithm(t *testing.T) {
	a, b := newPerceptron(t), newPerceptron(t)
	one, two := a.algorithm(t), b.bare(t)
	for range 3 {
		one()
		two()
	}
	for i := range a.weights {
		require.Equal(t, b.weights[i].Value(), a.weights[i].Value())
	}
}

// BenchmarkAlgorithm reports what ProcessBatch costs beyond a bare RunAll, as the ratio of their times.
func BenchmarkAlgorithm(b *testing.B) {
	var r pairs
	for range b.N {
		r = algorithmRatio(b)
	}
	b.ReportMetric(r.ratio, "ProcessBatch/RunAll")
	b.ReportMetric(r.low, "low")
	b.ReportMetric(r.high, "high")
}

// algorithmRatio is measured with one worker, as the whole is less noisy then.
func algorithmRatio(tb testing.TB) (r pairs) {
	withWorkers(1, func(*pool) { r = paired(newPerceptron(tb).algorithm(tb), newPerceptron(tb).bare(tb), 1) })
	return r
}

// acceptAlgorithm: ProcessBatch takes at most 1.05 of the time of a bare RunAll of the same graph.
func acceptAlgorithm(t *testing.T, judge func(line)) {
	judge(line{name: "ProcessBatch / RunAll, MLP 784-300-100-10, 1 worker", r: algorithmRatio(t), n: 1, bound: 1.05})
}
