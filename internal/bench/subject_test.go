package bench

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// subject is a solver with parameters and gradients, ready to make steps: by its compiled plan, which is what the optim op of
// a graph runs in each step, and which leaves the gradients as they are.
type subject struct {
	solver *solvers.Solver
	params []gorgonia.Value
	grads  []gorgonia.Value
	plan   *graphops.Plan
	values []gorgonia.Value
}

// newSubject compiles a solver's update of parameters of these shapes, and does the first step, so that memory is there and
// was touched.
func newSubject(tb testing.TB, s *solvers.Solver, dt tensor.Dtype, shapes ...tensor.Shape) *subject {
	tb.Helper()
	runtime.GC() // of the last subject, which may be large
	u := &subject{solver: s}
	param := map[*gorgonia.Node]int{}
	loss, vars := model(tb, dt, shapes...)
	for i, shape := range shapes {
		param[vars[i]] = i
		u.params, u.grads = append(u.params, newValue(dt, shape)), append(u.grads, newValue(dt, shape))
		fillValue(u.grads[i])
	}
	updates, err := s.Updates(loss, vars...)
	require.NoError(tb, err)
	u.plan, err = graphops.Compile(updates, graphops.From(s.Store()))
	require.NoError(tb, err)
	free := slices.Clone(u.grads)
	for _, n := range u.plan.Leaves() {
		var v gorgonia.Value
		if i, ok := param[n]; ok {
			v = u.params[i]
		} else if n.Value() == nil { // not of the store, so a gradient: any of its shape will do
			i := slices.IndexFunc(free, func(g gorgonia.Value) bool { return g != nil && g.Shape().Eq(n.Shape()) })
			require.GreaterOrEqual(tb, i, 0, "leaf %v", n)
			v, free[i] = free[i], nil
		}
		u.values = append(u.values, v)
	}
	u.step()
	return u
}

// model is a loss that depends on parameters of these shapes.
func model(tb testing.TB, dt tensor.Dtype, shapes ...tensor.Shape) (loss *gorgonia.Node, vars gorgonia.Nodes) {
	tb.Helper()
	g := gorgonia.NewGraph()
	var terms gorgonia.Nodes
	for i, shape := range shapes {
		x := gorgonia.NewTensor(g, dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(fmt.Sprint("x", i)))
		w := gorgonia.NewTensor(g, dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(fmt.Sprint("w", i)))
		term, err := gorgonia.HadamardProd(w, x)
		require.NoError(tb, err)
		if !shape.IsScalar() {
			term, err = gorgonia.Sum(term)
			require.NoError(tb, err)
		}
		vars, terms = append(vars, w), append(terms, term)
	}
	for len(terms) > 1 { // in a tree, as deep recursions are slow
		var next gorgonia.Nodes
		for pair := range slices.Chunk(terms, 2) {
			if len(pair) == 2 {
				pair[0] = gorgonia.Must(gorgonia.Add(pair[0], pair[1]))
			}
			next = append(next, pair[0])
		}
		terms = next
	}
	return terms[0], vars
}

// step is one training step without the model: the part that this package measures.
func (u *subject) step() {
	if err := u.plan.Run(u.values); err != nil {
		panic(err)
	}
}

// slot is the memory of a slot.
func slot[T float](tb testing.TB, s *solvers.Solver, name string) []T {
	tb.Helper()
	st := s.Store().Lookup(name)
	require.NotNil(tb, st, name)
	v, err := st.Value()
	require.NoError(tb, err)
	return v.Data().([]T)
}

// arrays are the arrays of a subject that is Adam, of its first parameter, for other loops to run over the same memory: where
// it lies makes a difference.
func arrays[T float](tb testing.TB, u *subject) adamArrays[T] { return arraysOf[T](tb, u, 0) }

// arraysOf are those of another parameter.
func arraysOf[T float](tb testing.TB, u *subject, i int) adamArrays[T] {
	name := fmt.Sprintf("w%d/adam/", i)
	return adamArrays[T]{u.params[i].Data().([]T), slot[T](tb, u.solver, name+"m"), slot[T](tb, u.solver, name+"v"), u.grads[i].Data().([]T)}
}

func newValue(dt tensor.Dtype, shape tensor.Shape) gorgonia.Value {
	switch {
	case !shape.IsScalar():
		return tensor.New(tensor.Of(dt), tensor.WithShape(shape...))
	case dt == tensor.Float32:
		return gorgonia.NewF32(0)
	default:
		return gorgonia.NewF64(0)
	}
}

func fillValue(v gorgonia.Value) {
	switch x := v.(type) {
	case *gorgonia.F32:
		*x = 0.5
	case *gorgonia.F64:
		*x = 0.5
	default:
		switch d := v.Data().(type) {
		case []float32:
			fillGradient(d)
		case []float64:
			fillGradient(d)
		}
	}
}

// dtypeOf is Gorgonia's name of a type.
func dtypeOf[T float]() tensor.Dtype {
	if _, ok := any(T(0)).(float32); ok {
		return tensor.Float32
	}
	return tensor.Float64
}

// model is the subject as Gorgonia's solvers and Solver.Step take it.
func (u *subject) model() []gorgonia.ValueGrad {
	out := make([]gorgonia.ValueGrad, len(u.params))
	for i := range u.params {
		out[i] = &valueGrad{fmt.Sprint("w", i), u.params[i], u.grads[i]}
	}
	return out
}

type valueGrad struct {
	name        string
	value, grad gorgonia.Value
}

func (p *valueGrad) Name() string                  { return p.name }
func (p *valueGrad) Value() gorgonia.Value         { return p.value }
func (p *valueGrad) Grad() (gorgonia.Value, error) { return p.grad, nil }

// The plan that is measured does what Step does.
func TestSubject(t *testing.T) {
	for _, shapes := range [][]tensor.Shape{{{5}}, {{2, 3}, {}, {4}, {2, 3}}} {
		u, v := newSubject(t, solvers.NewAdam(), tensor.Float64, shapes...), newSubject(t, solvers.NewAdam(), tensor.Float64, shapes...)
		u.step()
		require.NoError(t, v.solver.Step(v.model()))
		require.Equal(t, u.params, v.params)
	}
	u := newSubject(t, solvers.NewAdam(), tensor.Float32, tensor.Shape{6})
	a := arrays[float32](t, u)
	require.Len(t, a.m, 6)
	require.NotZero(t, a.v[0])
}
