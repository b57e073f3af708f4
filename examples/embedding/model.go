package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// model are the tables of words and of contexts, and a machine that trains them.
type model struct {
	settings
	solver         *solvers.Solver
	machine        gorgonia.VM
	loss           *gorgonia.Node
	table          *tensor.Dense // of words
	words, context []int         // the rows that the next step reads
	sign           []float64     // 1 for a neighbour, −1 for a word that was drawn
}

// newModel builds the graph: for words w, contexts c and s = ±1, the loss is the mean of log(1 + exp(−s·w·c)).
func newModel(s settings, mode solvers.RowMode) (*model, error) {
	m := &model{settings: s}
	var err error
	if m.solver, err = solvers.FromConfig(s.solver, map[string]any{"learning_rate": s.rate}); err != nil {
		return nil, err
	}
	m.solver = solvers.WithRows(m.solver, mode)
	g := gorgonia.NewGraph()
	rng := rand.New(rand.NewPCG(s.seed, 0))
	table := func(name string) (*gorgonia.Node, *tensor.Dense) {
		x := make([]float64, s.rows*s.width)
		for i := range x {
			x[i] = (rng.Float64() - 0.5) / float64(s.width)
		}
		t := tensor.New(tensor.WithShape(s.rows, s.width), tensor.WithBacking(x))
		return gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithName(name), gorgonia.WithShape(t.Shape()...), gorgonia.WithValue(t)), t
	}
	words, t := table("words")
	contexts, _ := table("contexts")
	m.table = t

	each := 1 + s.negatives
	m.words, m.context, m.sign = make([]int, s.batch), make([]int, s.batch*each), make([]float64, s.batch*each)
	repeated := make([]int, len(m.context)) // the rows of words, one for each context
	for i := range repeated {
		repeated[i] = i / each
		m.sign[i] = -1
		if i%each == 0 {
			m.sign[i] = 1
		}
	}
	vector := func(name string, backing any, n int) *gorgonia.Node {
		v := tensor.New(tensor.WithShape(n), tensor.WithBacking(backing))
		return gorgonia.NewVector(g, v.Dtype(), gorgonia.WithName(name), gorgonia.WithShape(n), gorgonia.WithValue(v))
	}
	w, err := graphops.Gather(words, vector("word", m.words, s.batch))
	if err == nil {
		w, err = graphops.Gather(w, vector("repeat", repeated, len(repeated)))
	}
	if err != nil {
		return nil, err
	}
	c, err := graphops.Gather(contexts, vector("context", m.context, len(m.context)))
	if err != nil {
		return nil, err
	}
	if m.loss, err = logistic(w, c, vector("sign", m.sign, len(m.sign))); err != nil {
		return nil, err
	}
	train, err := m.solver.Minimize(m.loss, words, contexts)
	if err != nil {
		return nil, err
	}
	m.machine, err = graphops.NewMachine(train, m.loss)
	return m, err
}

// logistic is the mean of log(1 + exp(−s·w·c)) over rows.
func logistic(w, c, sign *gorgonia.Node) (*gorgonia.Node, error) {
	product, err := gorgonia.HadamardProd(w, c)
	if err != nil {
		return nil, err
	}
	dot, err := gorgonia.Sum(product, 1)
	if err != nil {
		return nil, err
	}
	if dot, err = gorgonia.HadamardProd(dot, sign); err != nil {
		return nil, err
	}
	if dot, err = gorgonia.Neg(dot); err != nil {
		return nil, err
	}
	if dot, err = gorgonia.Softplus(dot); err != nil {
		return nil, err
	}
	return gorgonia.Mean(dot)
}

// train makes the steps. The losses are means of the first and the last tenth of them.
func (m *model) train(c *corpus) (first, last float64, err error) {
	rng := rand.New(rand.NewPCG(m.seed, 1))
	tenth := max(1, m.steps/10)
	for k := range m.steps {
		c.draw(rng, m.rows, m.words, m.context)
		if err := m.machine.RunAll(); err != nil {
			return 0, 0, err
		}
		loss, err := graphops.ScalarValue(m.loss.Value())
		switch {
		case err != nil:
			return 0, 0, err
		case math.IsNaN(loss):
			return 0, 0, errors.Errorf("the loss of step %d is not a number", k+1)
		case k < tenth:
			first += loss / float64(tenth)
		}
		if k >= m.steps-tenth {
			last += loss / float64(tenth)
		}
	}
	return first, last, m.solver.CatchUp() // before the table is read otherwise than by the graph
}

// nearest are the words whose vectors have the least angle with that of a word.
func (m *model) nearest(c *corpus, word string, n int) (near []string) {
	spread := m.rows / len(c.words)
	vector := func(i int) []float64 { return m.table.Float64s()[i*spread*m.width:][:m.width] }
	dot := func(a, b []float64) (s float64) {
		for i := range a {
			s += a[i] * b[i]
		}
		return s
	}
	of := vector(c.find(word))
	angle := func(i int) float64 { return dot(of, vector(i)) / math.Sqrt(dot(vector(i), vector(i))) }
	order := make([]int, len(c.words))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if angle(a) > angle(b) {
			return -1
		}
		return 1
	})
	for _, i := range order {
		if c.words[i] != word && len(near) < n {
			near = append(near, c.words[i])
		}
	}
	return near
}
