package solvers

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// rowsGolden are trajectories with gradients of rows, as other libraries compute them.
type rowsGolden struct {
	Shape     []int
	Initial   []float64
	Sequences map[string][]rowsStep
	Rows      []struct {
		Name     string
		Options  map[string]any
		Sequence string
		Values   [][]float64
	}
}

// rowsStep is a gradient, of rows or whole.
type rowsStep struct {
	Indices []int
	Values  [][]float64
	Dense   [][]float64
}

func (s rowsStep) flat() (x []float64) {
	for _, row := range append(s.Values, s.Dense...) {
		x = append(x, row...)
	}
	return x
}

// value is the gradient for Step.
func (s rowsStep) gradient(dt tensor.Dtype, shape []int) G.Value {
	if s.Dense != nil {
		return value(dt, shape, s.flat())
	}
	if len(s.Indices) == 0 {
		return must(graphops.NewRows(dt, shape, nil, nil))
	}
	of := append([]int{len(s.Indices)}, shape[1:]...)
	return must(graphops.NewRows(dt, shape, s.Indices, value(dt, of, s.flat()).(*tensor.Dense)))
}

// loss has the gradient with respect to w. Half of the lookups are Gorgonia's.
func (s rowsStep) loss(w *G.Node, ours bool) *G.Node {
	weights := func(shape []int) *G.Node {
		return G.NewTensor(w.Graph(), w.Dtype(), len(shape), G.WithShape(shape...), G.WithName("weights"), G.WithValue(value(w.Dtype(), shape, s.flat())))
	}
	if s.Dense != nil {
		return must(G.Sum(must(G.HadamardProd(w, weights(w.Shape())))))
	}
	at := G.NewVector(w.Graph(), tensor.Int, G.WithShape(len(s.Indices)), G.WithName("at"), G.WithValue(tensor.New(tensor.WithShape(len(s.Indices)), tensor.WithBacking(s.Indices))))
	look := graphops.Gather
	if !ours {
		look = func(w, at *G.Node) (*G.Node, error) { return G.ByIndices(w, at, 0) }
	}
	x := must(look(w, at))
	return must(G.Sum(must(G.HadamardProd(x, weights(x.Shape())))))
}

// rowsHosts train a table on steps and show it after each.
var rowsHosts = map[string]func(t *testing.T, s *Solver, dt tensor.Dtype, shape []int, initial []float64, steps []rowsStep, show func(i int, w []float64)){
	"step": func(t *testing.T, s *Solver, dt tensor.Dtype, shape []int, initial []float64, steps []rowsStep, show func(i int, w []float64)) {
		w := &pair{name: "w", value: value(dt, shape, initial)}
		for i, st := range steps {
			w.grad = st.gradient(dt, shape)
			require.NoError(t, s.Step([]G.ValueGrad{w}))
			show(i, floats(w.value))
		}
	},
	"fused": func(t *testing.T, s *Solver, dt tensor.Dtype, shape []int, initial []float64, steps []rowsStep, show func(i int, w []float64)) {
		v := value(dt, shape, initial)
		for i, st := range steps {
			w := G.NewTensor(G.NewGraph(), dt, len(shape), G.WithShape(shape...), G.WithName("w"), G.WithValue(v))
			vm := must(graphops.NewMachine(must(s.Minimize(st.loss(w, i%2 == 0), w))))
			require.NoError(t, vm.RunAll())
			show(i, floats(v))
		}
	},
}

func TestRowsGolden(t *testing.T) {
	var f rowsGolden
	require.NoError(t, json.Unmarshal(must(os.ReadFile("../testdata/golden/rows/tf.json")), &f))
	for _, row := range f.Rows {
		for host, train := range rowsHosts {
			for dt, tol := range map[tensor.Dtype]float64{tensor.Float64: 3e-10, tensor.Float32: 2e-5} {
				t.Run(fmt.Sprintf("%s/%v/%s/%s/%v", row.Name, row.Options, row.Sequence, host, dt), func(t *testing.T) {
					s := must(FromConfig(row.Name, row.Options))
					train(t, s, dt, f.Shape, f.Initial, f.Sequences[row.Sequence], func(i int, w []float64) {
						require.InDeltaSlice(t, row.Values[i], w, tol, "step %d", i)
					})
				})
			}
		}
	}
}
