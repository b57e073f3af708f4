package loop

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/updater"
)

var dtypes = []tensor.Dtype{tensor.Float64, tensor.Float32}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fake is an algorithm that only counts; do may fail.
type fake struct {
	initialized, batches int
	do                   func(batch map[string]any) error
}

func (f *fake) Initialize() error {
	f.initialized++
	return nil
}

func (f *fake) ProcessBatch(batch map[string]any) error {
	f.batches++
	if f.do != nil {
		return f.do(batch)
	}
	return nil
}

// ten are batches {data: 0} to {data: 9} for each epoch.
func ten(int) Batches {
	return Each(func(yield func(map[string]any) bool) {
		for i := range 10 {
			if !yield(map[string]any{"data": i}) {
				return
			}
		}
	})
}

// events are the kinds of events that a loop tells.
func events(to *[]Kind) Callback {
	return func(e Event) error {
		*to = append(*to, e.Kind)
		return nil
	}
}

func run(t *testing.T, l *Loop) {
	t.Helper()
	require.NoError(t, l.Run(context.Background()))
}

// values are the records of a name in the rows that have one.
func values(l *Log, name string) (out []any) {
	for _, r := range l.Rows() {
		if v, ok := r[name]; ok {
			out = append(out, v)
		}
	}
	return out
}

// dense makes a tensor of a dtype.
func dense(dt tensor.Dtype, shape []int, x ...float64) *tensor.Dense {
	if dt == tensor.Float64 {
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(append([]float64{}, x...)))
	}
	small := make([]float32, len(x))
	for i, v := range x {
		small[i] = float32(v)
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(small))
}

// floats are the elements of a record or value.
func floats(t *testing.T, v any) []float64 {
	t.Helper()
	switch x := v.(type) {
	case float64:
		return []float64{x}
	case G.Value:
		return must(arrayOf(x)).data
	}
	require.Failf(t, "no numbers", "%T %v", v, v)
	return nil
}

func near(t *testing.T, dt tensor.Dtype, want []float64, got any) {
	t.Helper()
	tolerance := 1e-12
	if dt == tensor.Float32 {
		tolerance = 2e-6
	}
	have := floats(t, got)
	require.Len(t, have, len(want))
	for i, w := range want {
		require.InDelta(t, w, have[i], tolerance*max(1, w, -w))
	}
}

// named gives a node a name.
func named(name string, n *G.Node) *G.Node {
	G.WithName(name)(n)
	return n
}

// linear is the model of Blocks' tests: cost (x·W − y)² of single examples, plain gradient descent.
type linear struct {
	w, x, y, cost *G.Node
	solver        *solvers.Solver
	algorithm
}

type algorithm interface {
	updater.TrainingAlgorithm
	updater.Observer
}

// The ways in which a linear model is trained.
const (
	bySteps   = "steps"
	byDescent = "gradient descent"
)

// ways calls a test with each dtype and way.
func ways(t *testing.T, test func(t *testing.T, dt tensor.Dtype, way string)) {
	for _, dt := range dtypes {
		for _, way := range []string{bySteps, byDescent} {
			t.Run(dt.String()+" "+way, func(t *testing.T) { test(t, dt, way) })
		}
	}
}

func newLinear(t *testing.T, dt tensor.Dtype, way string, rate float64) *linear {
	g := G.NewGraph()
	l := &linear{
		w: G.NewVector(g, dt, G.WithShape(2), G.WithName("W"), G.WithValue(dense(dt, []int{2}, 0, 0))),
		x: G.NewVector(g, dt, G.WithShape(2), G.WithName("features")), y: G.NewScalar(g, dt, G.WithName("targets")),
	}
	l.cost = named("cost", G.Must(G.Square(G.Must(G.Sub(G.Must(G.Mul(l.x, l.w)), l.y)))))
	rule := solvers.NewScale(func(s *solvers.Scale) { s.LearningRate = rate })
	if way == byDescent {
		a, err := updater.NewGradientDescent(updater.Descent{Cost: l.cost, Parameters: G.Nodes{l.w}, StepRule: rule})
		require.NoError(t, err)
		l.solver, l.algorithm = a.Solver(), a
		return l
	}
	l.solver = rule
	l.algorithm = must(NewSteps(G.Nodes{l.x, l.y}, func(reads ...*G.Node) (G.VM, error) {
		op, err := l.solver.Minimize(l.cost, l.w)
		if err != nil {
			return nil, err
		}
		return graphops.NewMachine(op, reads...)
	}))
	return l
}

// examples are single examples of two features.
func examples(dt tensor.Dtype, features [][2]float64, targets ...float64) func(int) Batches {
	return func(int) Batches {
		return Each(func(yield func(map[string]any) bool) {
			for i, f := range features {
				if !yield(map[string]any{"features": dense(dt, []int{2}, f[0], f[1]), "targets": targets[i]}) {
					return
				}
			}
		})
	}
}

// rows are batches of so many rows each of a matrix of two columns, by the name "x"; the last may be short.
func rows(dt tensor.Dtype, size int, all ...[2]float64) Batches {
	return Each(iter.Seq[map[string]any](func(yield func(map[string]any) bool) {
		for len(all) > 0 {
			n := min(size, len(all))
			var flat []float64
			for _, r := range all[:n] {
				flat = append(flat, r[0], r[1])
			}
			if !yield(map[string]any{"x": dense(dt, []int{n, 2}, flat...)}) {
				return
			}
			all = all[n:]
		}
	}))
}

// goNumber is a Go number of a dtype.
func goNumber(dt tensor.Dtype, v float64) any {
	if dt == tensor.Float64 {
		return v
	}
	return float32(v)
}
