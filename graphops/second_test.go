package graphops

import (
	"math"
	"slices"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// costs builds the cost of a model and the norm of its gradients: √Σ‖g‖².
func (m model) costs(dt tensor.Dtype) (both [2]*G.Node, ps G.Nodes, err error) {
	ps = m.inputs(dt)
	both[0] = weighted(m.loss(dt, ps))
	grads, err := Gradients(both[0], ps, AllowUnused())
	if err != nil {
		return both, nil, errors.Wrap(err, "first")
	}
	sum := Const(0)
	for _, d := range grads {
		if d != nil {
			sum = sum.Add(Of(d).SumSquares())
		}
	}
	both[1], err = Expand(sum.Sqrt())
	return both, ps, err
}

// gradients are those of the cost or of the norm.
func (m model) gradients(t *testing.T, dt tensor.Dtype, which int) (out [][]float64) {
	both, ps, err := m.costs(dt)
	require.NoError(t, err, m.name)
	ds, err := Gradients(both[which], ps, AllowUnused())
	require.NoError(t, err, m.name)
	vm := must(NewEvalMachine(slices.DeleteFunc(slices.Clone(ds), func(n *G.Node) bool { return n == nil })...))
	require.NoError(t, vm.RunAll(), m.name)
	for i, d := range ds {
		if d == nil {
			out = append(out, make([]float64, ps[i].Shape().TotalSize()))
		} else {
			out = append(out, floats(d))
		}
	}
	return out
}

// differences are central ones of the cost or of the norm, in float64.
func (m model) differences(t *testing.T, which int) (out [][]float64) {
	both, ps, err := m.costs(tensor.Float64)
	require.NoError(t, err, m.name)
	vm := must(NewEvalMachine(both[which]))
	eval := func() float64 {
		require.NoError(t, vm.RunAll(), m.name)
		return must(ScalarValue(both[which].Value()))
	}
	const h = 1e-5
	for _, p := range ps {
		a := must(memoryOf(p.Value()))
		x := sliceOf[float64](a.Ptr, a.Len)
		d := make([]float64, len(x))
		for i, v := range x {
			x[i] = v + h
			d[i] = eval()
			x[i] = v - h
			d[i] = (d[i] - eval()) / (2 * h)
			x[i] = v
		}
		out = append(out, d)
	}
	return out
}

// The gradients of a cost, and those of their norm, against finite differences.
func TestSecondDerivatives(t *testing.T) {
	for _, m := range models {
		for which := range 2 {
			want := m.differences(t, which)
			for _, dt := range dtypes {
				tolerance := 1e-6
				if dt == tensor.Float32 {
					tolerance = 1e-4
				}
				for i, got := range m.gradients(t, dt, which) {
					require.Len(t, got, len(want[i]), m.name)
					for k := range got {
						require.InDelta(t, want[i][k], got[k], tolerance*(.1+math.Abs(want[i][k])),
							"%s, derivative %d, %v: input %d, element %d", m.name, which+1, dt, i, k)
					}
				}
			}
		}
	}
}

// A third derivative, through the rules for what Gorgonia makes of a first.
func TestThirdDerivatives(t *testing.T) {
	for name, f := range map[string]func(x *G.Node) *G.Node{
		"softmax":     func(x *G.Node) *G.Node { return must(G.SoftMax(x)) },
		"logsoftmax":  func(x *G.Node) *G.Node { return must(G.LogSoftMax(x)) },
		"slice":       func(x *G.Node) *G.Node { return must(G.Cube(must(G.Slice(x, G.S(1, 3))))) },
		"convolution": convolved,
	} {
		third := model{name, [][]int{{4}}, func(_ tensor.Dtype, p G.Nodes) *G.Node {
			d := must(Gradients(weighted(f(p[0])), p))[0]
			return must(Expand(Of(d).SumSquares()))
		}}
		want := third.differences(t, 1)
		got := third.gradients(t, tensor.Float64, 1)
		for k := range want[0] {
			require.InDelta(t, want[0][k], got[0][k], 1e-6*(1+math.Abs(want[0][k])), name)
		}
	}
}

func convolved(x *G.Node) *G.Node {
	im := must(G.Reshape(must(G.Tanh(x)), tensor.Shape{1, 1, 2, 2}))
	return must(G.Tanh(must(G.Conv2d(im, im, tensor.Shape{2, 2}, []int{1, 1}, []int{1, 1}, []int{1, 1}))))
}

// Through our Dropout both derivatives have the mask of the run: of Σkw² with mask k the norm of the gradient is 2‖kw‖.
func TestSecondDerivativeOfDropout(t *testing.T) {
	for _, dt := range dtypes {
		w := input(G.NewGraph(), dt, "w", []int{6}, .1, .2, .3, .4, .5, .6)
		y := must(Dropout(must(G.Square(w)), .5, must(NewGenerator(NewStore(), "dropout", 1))))
		d := must(Gradients(must(G.Sum(y)), G.Nodes{w}))
		n := must(Expand(Of(d[0]).Norm()))
		dd := must(Gradients(n, G.Nodes{w}))
		var norm, mask G.Value
		G.Read(n, &norm)
		G.Read(y, &mask)
		require.NoError(t, G.NewTapeMachine(w.Graph()).RunAll())
		for i, x := range floats(w) {
			k := valueFloats(mask)[i] / (x * x)
			require.InDelta(t, 4*k*k*x/must(ScalarValue(norm)), floats(dd[0])[i], 1e-5)
		}
	}
}

// faulty reports whether Gorgonia's own derivative of an operation is missing, fails, panics, or says that it is constant.
func faulty(n *G.Node) (fault bool) {
	defer func() { fault = fault || recover() != nil }()
	sd, ok := n.Op().(G.SDOp)
	kids := children(n)
	if !ok || !slices.Contains(sd.DiffWRT(len(kids)), true) {
		return true
	}
	_, err := sd.SymDiff(kids, n, n)
	return err != nil
}

// What has no second derivative is refused before anything is added, by name. Each is refused for a fault of Gorgonia's.
func TestNoSecondDerivative(t *testing.T) {
	image := [][]int{{1, 2, 4, 4}}
	kernel, pad, stride := tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}
	for _, m := range []model{
		{"MaxPool1D or MaxPool2D", image, one(func(x *G.Node) (*G.Node, error) { return G.MaxPool2D(x, kernel, pad, stride) })},
		{"AveragePool1D or AveragePool2D", image, one(func(x *G.Node) (*G.Node, error) {
			return G.AveragePool2D(x, kernel, pad, stride)
		})},
		{"Upsample2D", image, one(func(x *G.Node) (*G.Node, error) { return G.Upsample2D(x, 2) })},
		{"BatchNorm", [][]int{{4, 3}, {4, 3}, {4, 3}}, func(_ tensor.Dtype, p G.Nodes) *G.Node {
			y, _, _, _, err := G.BatchNorm(p[0], p[1], p[2], .9, 1e-5)
			return must(y, err)
		}},
		{"GroupNorm", [][]int{{2, 4, 2, 2}, {1, 4, 1, 1}, {1, 4, 1, 1}}, func(_ tensor.Dtype, p G.Nodes) *G.Node {
			return must(G.GroupNorm(p[0], p[1], p[2], 2, 4, 1e-5))
		}},
		{"Sparsemax", [][]int{{2, 3}}, one(func(x *G.Node) (*G.Node, error) { return G.Sparsemax(x) })},
		{"Dropout", [][]int{{2, 3}}, one(func(x *G.Node) (*G.Node, error) { return G.Dropout(x, .5) })},
		{"CTCLoss", [][]int{{3, 1, 3}}, one(ctc)},
	} {
		for _, dt := range dtypes {
			both, ps, err := m.costs(dt)
			require.NoError(t, err, m.name)
			nodes := len(ps[0].Graph().AllNodes())
			_, err = Gradients(both[1], ps, AllowUnused())
			require.ErrorContains(t, err, "is the derivative of "+m.name+", which has no second derivative")
			require.Len(t, ps[0].Graph().AllNodes(), nodes)
			var derivatives int
			for _, n := range ps[0].Graph().AllNodes()[:nodes] {
				if of, ok := noSecond(n.Op()); ok {
					require.Equal(t, m.name, of)
					require.True(t, faulty(n), m.name)
					derivatives++
				}
			}
			require.Equal(t, 1, derivatives, m.name)
		}
	}
}

func ctc(x *G.Node) (*G.Node, error) {
	ints := func(name string, shape []int, v ...int) *G.Node {
		return G.NewTensor(x.Graph(), tensor.Int, len(shape), G.WithShape(shape...), G.WithName(name),
			G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v))))
	}
	targets, lengths := ints("targets", []int{1, 1}, 1), ints("lengths", []int{1}, 3)
	return G.CTCLoss(x, targets, lengths, ints("target lengths", []int{1}, 1), G.ReductionMean)
}

// Gorgonia's derivatives of the operations that have a rule of ours instead are wrong or missing.
func TestRulesAreNeeded(t *testing.T) {
	g := G.NewGraph()
	x := input(g, tensor.Float64, "x", []int{3}, .5, 1, 2)
	for _, f := range []func(*G.Node) (*G.Node, error){G.Log2, G.InverseSqrt,
		func(x *G.Node) (*G.Node, error) { return G.OuterProd(x, must(G.Square(x))) }} {
		cost := must(G.Sum(must(f(x))))
		ours, theirs := must(Gradients(cost, G.Nodes{x})), must(G.Grad(cost, x))
		vm := must(NewEvalMachine(ours[0], theirs[0]))
		if vm.RunAll() == nil {
			require.NotEqual(t, floats(ours[0]), floats(theirs[0]))
		}
	}
}

// Gorgonia takes a node out of the graph where it replaces log(1−x), and then finds other nodes in the wrong place.
func TestGradientsAfterRemovedNode(t *testing.T) {
	for _, dt := range dtypes {
		g := G.NewGraph()
		x, y := input(g, dt, "x", []int{2}, .25, .5), input(g, dt, "y", []int{2}, 1, 0)
		d := must(Gradients(must(G.Sum(must(G.BinaryXent(x, y)))), G.Nodes{x}))
		require.NoError(t, must(NewEvalMachine(d...)).RunAll())
		require.InDeltaSlice(t, []float64{-4, 2}, floats(d[0]), 1e-6)
	}
}
