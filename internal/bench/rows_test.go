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
)

// The table of an embedding, and how many of its rows a step reads.
const tableRows, tableWidth, touchedRows = 1_000_000, 64, 1000

// embedded trains a table on gradients of random rows, some of them named twice.
type embedded struct {
	solver *solvers.Solver
	pairs  []solvers.Pair
	grads  []*graphops.Rows
	rows   [][]int // of a step
	next   int
}

// rowRules are those of which the cost of rows is measured.
var rowRules = []struct {
	name string
	make func() *solvers.Solver
}{
	{"sgd with decay", func() *solvers.Solver { return solvers.Chain(solvers.NewCoupledDecay(1e-4), solvers.NewSGD()) }},
	{"momentum", func() *solvers.Solver { return solvers.NewMomentum() }},
	{"adam", func() *solvers.Solver { return solvers.NewAdam() }},
	{"adabelief", func() *solvers.Solver { return solvers.NewAdaBelief() }},
}

// newTable does the first steps: with 1,500 of them, most rows were touched, and have missed hundreds when they are again.
func newTable(tb testing.TB, s *solvers.Solver, steps int) *embedded {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	shape := tensor.Shape{tableRows, tableWidth}
	w := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))
	for i := range w.Float32s() {
		w.Float32s()[i] = rng.Float32() - .5
	}
	t := &embedded{solver: s, pairs: []solvers.Pair{{Param: &held{v: w}}}}
	for range 3000 { // so that rows come again after thousands of steps
		at := make([]int, touchedRows)
		for i := range at {
			at[i] = rng.IntN(tableRows)
		}
		t.rows = append(t.rows, at)
	}
	for k := range 512 {
		v := make([]float32, touchedRows*tableWidth)
		for i := range v {
			v[i] = 0.01 * float32(rng.NormFloat64())
		}
		g, err := graphops.NewRows(tensor.Float32, shape, t.rows[k], tensor.New(tensor.WithShape(touchedRows, tableWidth), tensor.WithBacking(v)))
		require.NoError(tb, err)
		t.grads = append(t.grads, g)
	}
	t.pairs[0].Param.(*held).g = t.grads[0]
	for range steps {
		t.step(tb)
	}
	return t
}

// held is a parameter with the gradient of a step.
type held struct {
	v *tensor.Dense
	g *graphops.Rows
}

func (*held) Name() string                    { return "table" }
func (h *held) Value() gorgonia.Value         { return h.v }
func (h *held) Grad() (gorgonia.Value, error) { return h.g, nil }

func (t *embedded) step(tb testing.TB) {
	g := t.grads[t.next%len(t.grads)]
	g.Indices = t.rows[t.next%len(t.rows)]
	t.pairs[0].Grad = g
	t.next++
	require.NoError(tb, t.solver.ApplyGradients(t.pairs))
}

// BenchmarkRows is a step of a table of which 1,000 of 1,000,000 rows have gradients.
func BenchmarkRows(b *testing.B) {
	for _, r := range rowRules {
		for _, mode := range []solvers.RowMode{solvers.RowsLazy, solvers.RowsCatchUp} {
			b.Run(fmt.Sprintf("%s/%s", r.name, mode), func(b *testing.B) {
				t := newTable(b, solvers.WithRows(r.make(), mode), 1500)
				b.ReportAllocs()
				for b.Loop() {
					t.step(b)
				}
			})
		}
	}
}

// TestRowsAcceptance compares that with the update of the whole table, in turn.
func TestRowsAcceptance(t *testing.T) {
	if !*acceptance {
		t.Skip("pass -acceptance")
	}
	for _, r := range rowRules {
		whole := newSubject(t, r.make(), tensor.Float32, tensor.Shape{tableRows, tableWidth})
		for _, mode := range []solvers.RowMode{solvers.RowsLazy, solvers.RowsCatchUp} {
			some := newTable(t, solvers.WithRows(r.make(), mode), 1500)
			p := paired(func() { some.step(t) }, func() { whole.step() }, 1)
			t.Logf("%s, %s: %.0f µs, whole %.0f µs, ratio %.4f (%.4f to %.4f)", r.name, mode, p.a/1e3, p.b/1e3, p.ratio, p.low, p.high)
			bound := 0.01
			if r.name == "adabelief" && mode == solvers.RowsCatchUp { // whose missed steps depend on two numbers of each element
				bound = 0.1
			}
			if p.ratio >= bound {
				t.Errorf("the bound is %v", bound)
			}
			model := []gorgonia.ValueGrad{some.pairs[0].Param}
			require.Zero(t, testing.AllocsPerRun(20, func() { require.NoError(t, some.solver.Step(model)) }))
		}
	}
}
