package graphops

import (
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// model is a loss as a function of parameters.
type model struct {
	name   string
	shapes [][]int
	loss   func(dt tensor.Dtype, p G.Nodes) *G.Node // or any value: it is squared and summed up with weights
}

// inputs makes named inputs with numbers between 0.3 and 0.9, none equal to another.
func (m model) inputs(dt tensor.Dtype) (ps G.Nodes) {
	g := G.NewGraph()
	k := 0
	for i, s := range m.shapes {
		x := make([]float64, max(1, tensor.Shape(s).TotalSize()))
		for j := range x {
			x[j] = .3 + .6*math.Mod(float64(k)*.381966, 1)
			k++
		}
		ps = append(ps, input(g, dt, fmt.Sprint("p", i), s, x...))
	}
	return ps
}

// weighted is Σ c·y + y², with another c for each element.
func weighted(y *G.Node) *G.Node {
	c := make([]float64, y.Shape().TotalSize())
	for i := range c {
		c[i] = .5 + math.Mod(float64(i)*.618034, 1)
	}
	var shape []int
	if !y.IsScalar() {
		shape = y.Shape()
	} else {
		c = []float64{.7}
	}
	k := input(y.Graph(), y.Dtype(), "c", shape, c...)
	return must(Expand(Of(y).Mul(Of(k)).Add(Of(y).Square()).Sum()))
}

func unary(name string, f func(*G.Node) (*G.Node, error)) model {
	return model{name, [][]int{{2, 3}}, one(f)}
}

func axes(f func(*G.Node, ...int) (*G.Node, error), along ...int) func(*G.Node) (*G.Node, error) {
	return func(n *G.Node) (*G.Node, error) { return f(n, along...) }
}

func one(f func(*G.Node) (*G.Node, error)) func(tensor.Dtype, G.Nodes) *G.Node {
	return func(_ tensor.Dtype, p G.Nodes) *G.Node { return must(f(p[0])) }
}

func contracted(a, b *G.Node) (*G.Node, error) { return G.Tensordot([]int{1}, []int{0}, a, b) }

func two(f func(a, b *G.Node) (*G.Node, error)) func(tensor.Dtype, G.Nodes) *G.Node {
	return func(_ tensor.Dtype, p G.Nodes) *G.Node { return must(f(p[0], p[1])) }
}

func bin(name string, f func(a, b *G.Node) (*G.Node, error)) model {
	return model{name, [][]int{{2, 3}, {2, 3}}, two(f)}
}

func broadcast(f func(a, b *G.Node, left, right []byte) (*G.Node, error), left, right []byte) func(a, b *G.Node) (*G.Node, error) {
	return func(a, b *G.Node) (*G.Node, error) { return f(a, b, left, right) }
}

func sc(name string, f func(a, b *G.Node) (*G.Node, error)) model {
	return model{name, [][]int{{2, 3}, nil}, two(f)}
}

func cs(name string, f func(a, b *G.Node) (*G.Node, error)) model {
	return model{name, [][]int{nil, {2, 3}}, two(f)}
}

func ss(name string, f func(a, b *G.Node) (*G.Node, error)) model {
	return model{name, [][]int{nil, nil}, two(f)}
}

// models are those whose second derivatives are right.
var models = []model{
	unary("abs", G.Abs), unary("sin", G.Sin), unary("cos", G.Cos), unary("exp", G.Exp),
	unary("ln", G.Log), unary("log2", G.Log2), unary("neg", G.Neg),
	unary("square", G.Square), unary("sqrt", G.Sqrt), unary("inv", G.Inverse),
	unary("invsqrt", G.InverseSqrt), unary("cube", G.Cube), unary("tanh", G.Tanh),
	unary("sigmoid", G.Sigmoid), unary("log1p", G.Log1p), unary("expm1", G.Expm1), unary("softplus", G.Softplus),
	unary("rectify", func(n *G.Node) (*G.Node, error) { return G.Rectify(must(Expand(Of(n).Sub(Const(.5))))) }),
	unary("leaky", func(n *G.Node) (*G.Node, error) { return G.LeakyRelu(must(Expand(Of(n).Sub(Const(.5)))), .1) }),
	unary("mish", G.Mish),
	unary("sum", axes(G.Sum)), unary("sum0", axes(G.Sum, 0)), unary("sum1", axes(G.Sum, 1)),
	unary("sum01", axes(G.Sum, 0, 1)), unary("sum10", axes(G.Sum, 1, 0)),
	unary("mean", axes(G.Mean)), unary("mean0", axes(G.Mean, 0)), unary("mean1", axes(G.Mean, 1)),
	unary("max", axes(G.Max)), unary("max0", axes(G.Max, 0)), unary("max1", axes(G.Max, 1)),
	unary("norm2", func(n *G.Node) (*G.Node, error) { return G.Norm(n, 1, 2) }),
	unary("reshape", func(n *G.Node) (*G.Node, error) { return G.Reshape(n, tensor.Shape{3, 2}) }),
	unary("transpose", axes(G.Transpose, 1, 0)),
	unary("slice", func(n *G.Node) (*G.Node, error) { return G.Slice(n, nil, G.S(1, 3)) }),
	unary("slice row", func(n *G.Node) (*G.Node, error) { return G.Slice(n, G.S(1)) }),
	unary("slice col", func(n *G.Node) (*G.Node, error) { return G.Slice(n, nil, G.S(1)) }),
	unary("slice el", func(n *G.Node) (*G.Node, error) { return G.Slice(n, G.S(1), G.S(1)) }),
	unary("softmax", func(n *G.Node) (*G.Node, error) { return G.SoftMax(n) }),
	unary("logsoftmax", func(n *G.Node) (*G.Node, error) { return G.LogSoftMax(n) }),
	unary("unconcat", func(n *G.Node) (*G.Node, error) { x, err := G.Unconcat(n, 1, 3); return x[1], err }),
	{"sum3 1", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.Sum(x, 1) })},
	{"sum3 02", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.Sum(x, 0, 2) })},
	{"sum3 12", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.Sum(x, 1, 2) })},
	{"sum3 21", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.Sum(x, 2, 1) })},
	{"mean3 01", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.Mean(x, 0, 1) })},
	{"max3 1", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.Max(x, 1) })},
	{"transpose3", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.Transpose(x, 2, 0, 1) })},
	bin("add", G.Add), bin("sub", G.Sub), bin("mul", G.HadamardProd), bin("div", G.HadamardDiv), bin("pow", G.Pow),
	sc("add s", G.Add), sc("sub s", G.Sub), sc("mul s", G.HadamardProd), sc("div s", G.HadamardDiv), sc("pow s", G.Pow),
	cs("s add", G.Add), cs("s sub", G.Sub), cs("s mul", G.HadamardProd), cs("s div", G.HadamardDiv), cs("s pow", G.Pow),
	ss("ss add", G.Add), ss("ss sub", G.Sub), ss("ss mul", G.HadamardProd), ss("ss div", G.HadamardDiv), ss("ss pow", G.Pow),
	bin("minbetween", G.MinBetween), bin("maxbetween", G.MaxBetween), bin("xent", G.BinaryXent),
	bin("concat0", func(a, b *G.Node) (*G.Node, error) { return G.Concat(0, a, b) }),
	bin("concat1", func(a, b *G.Node) (*G.Node, error) { return G.Concat(1, a, b) }),
	bin("lt mul", func(a, b *G.Node) (*G.Node, error) { return G.HadamardProd(must(G.Lt(a, b, true)), must(G.Square(a))) }),
	{"matmul", [][]int{{2, 3}, {3, 2}}, two(G.Mul)},
	{"matmul chain", [][]int{{2, 3}, {3, 2}}, func(_ tensor.Dtype, p G.Nodes) *G.Node {
		return must(G.Tanh(must(G.Mul(must(G.Tanh(must(G.Mul(p[0], p[1])))), p[0]))))
	}},
	{"matvec", [][]int{{2, 3}, {3}}, two(G.Mul)},
	{"vecdot", [][]int{{3}, {3}}, two(G.Mul)},
	{"outer", [][]int{{3}, {3}}, two(G.OuterProd)},
	{"outer2", [][]int{{3}, {2}}, two(G.OuterProd)},
	{"outer softmax", [][]int{{3}, {2}}, two(func(a, b *G.Node) (*G.Node, error) { return G.SoftMax(must(G.OuterProd(a, b))) })},
	{"sum3 10", [][]int{{2, 3, 3}}, one(func(x *G.Node) (*G.Node, error) { return G.Sum(x, 1, 0) })},
	{"softmax 0", [][]int{{2, 3}}, one(func(x *G.Node) (*G.Node, error) { return G.SoftMax(x, 0) })},
	{"softmax 3", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.SoftMax(x, 1) })},
	{"softmax v", [][]int{{3}}, one(func(x *G.Node) (*G.Node, error) { return G.SoftMax(x) })},
	{"logsoftmax 3", [][]int{{2, 3, 2}}, one(func(x *G.Node) (*G.Node, error) { return G.LogSoftMax(x, 1) })},
	{"logsoftmax v", [][]int{{3}}, one(func(x *G.Node) (*G.Node, error) { return G.LogSoftMax(x) })},
	{"mean s", [][]int{{4}}, one(func(x *G.Node) (*G.Node, error) { return G.Tanh(must(G.Mean(must(G.Cube(x))))) })},
	{"batched", [][]int{{2, 2, 3}, {2, 3, 2}}, two(func(a, b *G.Node) (*G.Node, error) { return G.BatchedMatMul(a, b) })},
	{"batched t", [][]int{{2, 3, 2}, {2, 3, 2}}, two(func(a, b *G.Node) (*G.Node, error) { return G.BatchedMatMul(a, b, true) })},
	{"tensordot", [][]int{{2, 3}, {3, 2}}, two(contracted)},
	{"tensordot3", [][]int{{2, 3, 2}, {3, 2}}, two(contracted)},
	{"badd 0", [][]int{{2, 3}, {1, 3}}, two(broadcast(G.BroadcastAdd, nil, []byte{0}))},
	{"bmul 0", [][]int{{2, 3}, {1, 3}}, two(broadcast(G.BroadcastHadamardProd, nil, []byte{0}))},
	{"bmul vec", [][]int{{2, 3}, {3}}, two(broadcast(G.BroadcastHadamardProd, nil, []byte{0}))},
	{"bmul 1", [][]int{{2, 3}, {2, 1}}, two(broadcast(G.BroadcastHadamardProd, nil, []byte{1}))},
	{"bmul 1 vec", [][]int{{2, 3}, {2}}, two(broadcast(G.BroadcastHadamardProd, nil, []byte{1}))},
	{"bdiv left", [][]int{{1, 3}, {2, 3}}, two(broadcast(G.BroadcastHadamardDiv, []byte{0}, nil))},
	{"badd 4", [][]int{{2, 2, 2, 2}, {1, 2, 1, 1}}, two(broadcast(G.BroadcastHadamardProd, nil, []byte{0, 2, 3}))},
	{"by indices", [][]int{{3, 2}}, func(_ tensor.Dtype, p G.Nodes) *G.Node {
		rows := tensor.New(tensor.WithBacking([]int{0, 2, 2, 1}))
		ix := G.NewVector(p[0].Graph(), tensor.Int, G.WithShape(4), G.WithName("rows"), G.WithValue(rows))
		return must(G.ByIndices(p[0], ix, 0))
	}},
	{"conv2d", [][]int{{1, 2, 4, 4}, {2, 2, 3, 3}}, two(func(a, b *G.Node) (*G.Node, error) {
		return G.Conv2d(a, b, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1})
	})},
	{"conv2d b2", [][]int{{2, 2, 4, 4}, {2, 2, 3, 3}}, two(func(a, b *G.Node) (*G.Node, error) {
		return G.Conv2d(a, b, tensor.Shape{3, 3}, []int{0, 0}, []int{1, 1}, []int{1, 1})
	})},
	{"conv2d stride", [][]int{{1, 1, 5, 5}, {2, 1, 3, 3}}, two(func(a, b *G.Node) (*G.Node, error) {
		return G.Conv2d(a, b, tensor.Shape{3, 3}, []int{1, 1}, []int{2, 2}, []int{1, 1})
	})},
	{"conv2d filter", [][]int{{2, 1, 3, 3}}, func(dt tensor.Dtype, p G.Nodes) *G.Node {
		x := input(p[0].Graph(), dt, "x", []int{1, 1, 4, 4}, .1, .2, .7, .4, .9, .3, .7, .2, .6, .8, .1, .5, .3, .7, .2, .4)
		return must(G.Tanh(must(G.Conv2d(x, p[0], tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))))
	}},
	{"conv1d", [][]int{{1, 2, 1, 5}, {2, 2, 1, 3}}, two(func(a, b *G.Node) (*G.Node, error) { return G.Conv1d(a, b, 3, 1, 1, 1) })},
	{"im2col", [][]int{{1, 1, 4, 4}}, func(_ tensor.Dtype, p G.Nodes) *G.Node {
		return must(G.Im2Col(p[0], tensor.Shape{3, 3}, tensor.Shape{1, 1}, tensor.Shape{1, 1}, tensor.Shape{1, 1}))
	}},
	{"dense net", [][]int{{4, 3}, {3, 5}, {1, 5}, {5, 2}, {1, 2}}, denseNet},
	{"convolution net", [][]int{{2, 1, 4, 4}, {3, 1, 3, 3}, {12, 2}}, func(_ tensor.Dtype, p G.Nodes) *G.Node {
		h := must(G.Tanh(must(G.Conv2d(p[0], p[1], tensor.Shape{3, 3}, []int{0, 0}, []int{1, 1}, []int{1, 1}))))
		return must(G.LogSoftMax(must(G.Mul(must(G.Reshape(h, tensor.Shape{2, 12})), p[2]))))
	}},
}

// denseNet has layers with biases, activations, and a cross entropy.
func denseNet(_ tensor.Dtype, p G.Nodes) *G.Node {
	h := must(G.Tanh(must(G.BroadcastAdd(must(G.Mul(p[0], p[1])), p[2], nil, []byte{0}))))
	h = must(G.Softplus(must(G.Sigmoid(h))))
	y := must(G.SoftMax(must(G.BroadcastAdd(must(G.Mul(h, p[3])), p[4], nil, []byte{0}))))
	return must(G.Neg(must(G.Mean(must(G.Sum(must(G.HadamardProd(must(G.Log(y)), must(G.Exp(y)))), 1))))))
}
