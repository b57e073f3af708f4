package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// architecture describes a classifier independently of any graph.
type architecture struct {
	batch   int          // default images per step
	rate    float64      // default learning rate of the adam family at that batch
	image   tensor.Shape // shape of one image as the first layer wants it
	params  []paramSpec
	forward func(s *stack) // pushes the layers onto the images; takes the parameters in order
}

type paramSpec struct {
	name  string
	shape tensor.Shape
	fanIn int // inputs that one output sums up; 0 is a bias, which starts at zero
}

var architectures = map[string]architecture{
	"logreg": {
		batch: 100, rate: 3e-3, image: tensor.Shape{pixels},
		params:  []paramSpec{{"w", tensor.Shape{pixels, classes}, pixels}, {"b", tensor.Shape{classes}, 0}},
		forward: func(s *stack) { s.dense() },
	},
	"mlp": {
		batch: 100, rate: 3e-3, image: tensor.Shape{pixels},
		params: []paramSpec{
			{"w0", tensor.Shape{pixels, 300}, pixels}, {"b0", tensor.Shape{300}, 0},
			{"w1", tensor.Shape{300, 100}, 300}, {"b1", tensor.Shape{100}, 0},
			{"w2", tensor.Shape{100, classes}, 100}, {"b2", tensor.Shape{classes}, 0},
		},
		forward: func(s *stack) { s.dense(); s.relu(); s.dense(); s.relu(); s.dense() },
	},
	// Pooling comes before the rectifier: the two commute, and there is a quarter of the work left for the second.
	"convnet": {
		batch: 100, rate: 2e-3, image: tensor.Shape{1, side, side},
		params: []paramSpec{
			{"conv0", tensor.Shape{8, 1, 5, 5}, 5 * 5},
			{"conv1", tensor.Shape{16, 8, 5, 5}, 8 * 5 * 5},
			{"w0", tensor.Shape{16 * 7 * 7, 100}, 16 * 7 * 7}, {"b0", tensor.Shape{100}, 0},
			{"w1", tensor.Shape{100, classes}, 100}, {"b1", tensor.Shape{classes}, 0},
		},
		forward: func(s *stack) {
			s.conv()
			s.pool()
			s.relu()
			s.conv()
			s.pool()
			s.relu()
			s.flatten()
			s.dense()
			s.relu()
			s.dense()
		},
	},
}

func modelNames() []string { return []string{"logreg", "mlp", "convnet"} }

// model is an architecture with weights. Graphs of any batch size share the weights' memory.
type model struct {
	architecture
	weights []*tensor.Dense
}

// newModel draws the weights by He's rule, whose variance 2/fanIn keeps the signal's size through rectified layers.
func newModel(a architecture, seed uint64) *model {
	rng := rand.New(rand.NewPCG(seed, weightStream))
	m := &model{architecture: a}
	for _, p := range a.params {
		w := make([]float32, p.shape.TotalSize())
		if p.fanIn > 0 {
			std := math.Sqrt(2 / float64(p.fanIn))
			if p.shape[len(p.shape)-1] == classes {
				std *= 0.3 // the last layer begins unsure, so that the first steps are about the images
			}
			for i := range w {
				w[i] = float32(rng.NormFloat64() * std)
			}
		}
		m.weights = append(m.weights, tensor.New(tensor.WithShape(p.shape...), tensor.WithBacking(w)))
	}
	return m
}

// graph is the model for one batch size; Gorgonia's shapes are fixed when a graph is built.
type graph struct {
	batch  int
	x      []float32 // memory of the images: fill it before a run
	vars   gorgonia.Nodes
	logits *gorgonia.Node
}

func (m *model) graph(batch int) (*graph, error) {
	g := gorgonia.NewGraph()
	gr := &graph{batch: batch, x: make([]float32, batch*pixels)}
	shape := append(tensor.Shape{batch}, m.image...)
	x := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(gr.x))
	// Gorgonia merges inputs of equal name, type and shape, nameless ones too: every input has a name of its own.
	s := &stack{x: gorgonia.NodeFromAny(g, x, gorgonia.WithName("images"))}
	for i, p := range m.params {
		gr.vars = append(gr.vars, gorgonia.NodeFromAny(g, m.weights[i], gorgonia.WithName(p.name)))
	}
	s.params = slices.Clone(gr.vars)
	m.forward(s)
	gr.logits = s.x
	return gr, errors.Wrapf(s.err, "building the graph for batches of %d", batch)
}

// stack builds layer upon layer. The first error sticks and the layers after it do nothing.
type stack struct {
	x      *gorgonia.Node
	params gorgonia.Nodes // not used yet
	err    error
}

func (s *stack) push(n *gorgonia.Node, err error) {
	if s.x, s.err = n, err; err != nil {
		s.x = nil
	}
}

func (s *stack) param() *gorgonia.Node {
	p := s.params[0]
	s.params = s.params[1:]
	return p
}

func (s *stack) dense() {
	w, b := s.param(), s.param()
	if s.err == nil {
		s.push(gorgonia.Mul(s.x, w))
	}
	if s.err == nil {
		s.push(gorgonia.BroadcastAdd(s.x, b, nil, []byte{0}))
	}
}

func (s *stack) relu() {
	if s.err == nil {
		s.push(gorgonia.Rectify(s.x))
	}
}

// conv keeps the size of the image: it pads half a kernel with zeros.
func (s *stack) conv() {
	w := s.param()
	if s.err == nil {
		k := w.Shape()[2]
		s.push(gorgonia.Conv2d(s.x, w, tensor.Shape{k, k}, []int{k / 2, k / 2}, []int{1, 1}, []int{1, 1}))
	}
}

func (s *stack) pool() {
	if s.err == nil {
		s.push(gorgonia.MaxPool2D(s.x, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
	}
}

func (s *stack) flatten() {
	if s.err == nil {
		n := s.x.Shape()[0]
		s.push(gorgonia.Reshape(s.x, tensor.Shape{n, s.x.Shape().TotalSize() / n}))
	}
}
