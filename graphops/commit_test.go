package graphops

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func sliceOf[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

// The examples of simultaneous updates, for tensors and scalars, fused and expanded.
func TestCommitIsSimultaneous(t *testing.T) {
	one, five := Const(1), Const(5)
	cases := []struct {
		name    string
		start   []float64
		updates func(x, y, z *G.Node) []Update
		want    [][]float64
	}{
		{"swap", []float64{1, 2, 0}, func(x, y, _ *G.Node) []Update {
			return []Update{{x, Of(y)}, {y, Of(x)}}
		}, [][]float64{{2, 1, 0}, {1, 2, 0}}},
		{"chained", []float64{2, 1, -1}, func(x, y, z *G.Node) []Update {
			return []Update{{x, Of(x).Sub(Of(y))}, {y, Of(z)}, {z, Of(z).Sub(one)}}
		}, [][]float64{{1, -1, -2}, {2, -2, -3}}},
		{"5x", []float64{4, 4, 2}, func(x, y, z *G.Node) []Update {
			x5 := five.Mul(Of(x))
			return []Update{{x, x5}, {y, x5.Add(Of(y))}, {z, x5.Add(Of(y)).Pow(Of(z))}}
		}, [][]float64{{20, 24, 576}}},
		{"5x, order turned", []float64{4, 4, 2}, func(x, y, z *G.Node) []Update {
			x5 := five.Mul(Of(x))
			return []Update{{z, x5.Add(Of(y)).Pow(Of(z))}, {y, x5.Add(Of(y))}, {x, x5}}
		}, [][]float64{{20, 24, 576}}},
		{"itself", []float64{7, 1, 2}, func(x, y, z *G.Node) []Update {
			return []Update{{x, Of(x)}, {y, Of(z)}, {z, Of(y)}}
		}, [][]float64{{7, 2, 1}}},
		{"ring of three", []float64{1, 2, 3}, func(x, y, z *G.Node) []Update {
			return []Update{{x, Of(y)}, {y, Of(z)}, {z, Of(x)}}
		}, [][]float64{{2, 3, 1}, {3, 1, 2}}},
	}
	for _, c := range cases {
		for _, dt := range dtypes {
			for _, shape := range [][]int{nil, {3}, {1, 1}, {2, 300}} {
				for _, expanded := range []bool{false, true} {
					g := G.NewGraph()
					mk := func(name string, v float64) *G.Node {
						n := input(g, dt, name, shape, v)
						if d, ok := n.Value().(*tensor.Dense); ok {
							require.NoError(t, Copy(d, filled(dt, shape, v)))
						}
						return n
					}
					x, y, z := mk("x", c.start[0]), mk("y", c.start[1]), mk("z", c.start[2])
					opts := []CommitOpt{}
					if expanded {
						opts = append(opts, Expanded())
					}
					op, err := Commit(c.updates(x, y, z), opts...)
					require.NoError(t, err)
					vm := G.NewTapeMachine(g)
					for i, want := range c.want {
						run(t, vm)
						for k, n := range []*G.Node{x, y, z} {
							for _, got := range floats(n) {
								require.Equal(t, want[k], got, "%s %v %v expanded=%v run %d", c.name, dt, shape, expanded, i)
							}
						}
						require.Equal(t, []float64{float64(i + 1)}, floats(op))
					}
				}
			}
		}
	}
}

// filled is a tensor of equal elements.
func filled(dt tensor.Dtype, shape []int, v float64) *tensor.Dense {
	n := tensor.Shape(shape).TotalSize()
	return dense(dt, shape, slices.Repeat([]float64{v}, n)...)
}

func TestCommitRefuses(t *testing.T) {
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", []int{2}, 1, 2)
	u := input(g, tensor.Float64, "u", []int{3}, 1, 2, 3)
	f := input(g, tensor.Float32, "f", []int{2}, 1, 2)
	s := input(g, tensor.Float64, "s", nil, 1)
	ints := G.NewVector(g, tensor.Int, G.WithShape(2), G.WithName("i"), G.WithValue(tensor.New(tensor.WithBacking([]int{1, 2}))))
	flag := G.NewScalar(g, tensor.Bool, G.WithName("flag"), G.WithValue(true))
	sq := must(G.Square(w))
	g2 := G.NewGraph()
	other := input(g2, tensor.Float64, "other", []int{2}, 1, 2)
	var read G.Value
	stmt := G.Read(w, &read)
	cond := Const(1).Less(ScalarOf(s))
	cases := []struct {
		name    string
		updates []Update
		opts    []CommitOpt
		want    string
	}{
		{"nothing", nil, nil, "nothing to update"},
		{"nil target", []Update{{nil, Of(w)}}, nil, "nil target"},
		{"zero Expr", []Update{{w, Expr{}}}, nil, "zero Expr"},
		{"zero Expr inside", []Update{{w, Of(w).Add(Expr{})}}, nil, "zero Expr"},
		{"nil node", []Update{{w, Of(nil)}}, nil, "nil node"},
		{"twice", []Update{{w, Of(w)}, {w, Of(sq)}}, nil, `"w" is updated twice`},
		{"no input", []Update{{sq, Of(w)}}, nil, "only its inputs"},
		{"shape", []Update{{w, Of(u)}}, nil, "shape"},
		{"shapes of operands", []Update{{w, Of(w).Add(Of(u))}}, nil, "shapes"},
		{"dtype", []Update{{w, Of(f)}}, nil, "float32"},
		{"dtypes of operands", []Update{{w, Of(w).Mul(Of(f))}}, nil, "dtypes differ"},
		{"scalar into vector", []Update{{w, Const(1)}}, nil, "is a scalar"},
		{"integers", []Update{{ints, Of(ints)}}, nil, "int"},
		{"truth value", []Update{{flag, Const(1)}}, nil, "bool"},
		{"ScalarOf a vector", []Update{{w, Of(w).Mul(ScalarOf(u))}}, nil, "not a scalar"},
		{"ScalarOf a truth value", []Update{{w, Of(w).Mul(ScalarOf(flag))}}, nil, "bool"},
		{"another graph", []Update{{w, Of(other)}}, nil, "not on the graph"},
		{"a statement", []Update{{w, Of(stmt)}}, nil, "statement"},
		{"statement as target", []Update{{stmt, Of(w)}}, nil, "only its inputs"},
		{"no condition", []Update{{w, Of(w).Select(Of(w), Of(w))}}, nil, "condition"},
		{"And of numbers", []Update{{w, Of(w).And(Of(w)).Select(Of(w), Of(w))}}, nil, "condition"},
		{"When a number", []Update{{w, Of(w)}}, []CommitOpt{When(ScalarOf(s))}, "condition"},
		{"When elementwise", []Update{{w, Of(w)}}, []CommitOpt{When(Of(w).Less(Const(1)))}, "condition"},
		{"When of a stranger", []Update{{w, Of(w)}}, []CommitOpt{When(cond, u)}, "not updated"},
		{"When broken", []Update{{w, Of(w)}}, []CommitOpt{When(Expr{}, w)}, "zero Expr"},
		{"After nil", []Update{{w, Of(w)}}, []CommitOpt{After(nil)}, "After"},
		{"After another graph", []Update{{w, Of(w)}}, []CommitOpt{After(other)}, "After"},
		{"After a statement", []Update{{w, Of(w)}}, []CommitOpt{After(stmt)}, "After"},
	}
	before := len(g.AllNodes())
	for _, c := range cases {
		for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
			_, err := Commit(c.updates, append(opts, c.opts...)...)
			require.ErrorContains(t, err, c.want, c.name)
		}
	}
	require.Len(t, g.AllNodes(), before)
	_, err := Expand(Const(1).Add(Const(2)))
	require.ErrorContains(t, err, "no node")
	_, err = Expand(Of(w).Add(Of(other)))
	require.ErrorContains(t, err, "different graphs")
}

// When a condition does not hold, nothing of its targets is touched, and the rest is.
func TestWhen(t *testing.T) {
	for _, expanded := range []bool{false, true} {
		g := G.NewGraph()
		w := input(g, tensor.Float64, "w", []int{2}, 1, 2)
		n := input(g, tensor.Float64, "n", nil, 0)
		step := ScalarOf(n).Add(Const(1))
		opts := []CommitOpt{When(step.Sub(step.Div(Const(3)).Floor().Mul(Const(3))).Equal(Const(0)), w)}
		if expanded {
			opts = append(opts, Expanded())
		}
		op := must(Commit([]Update{{w, Of(w).Mul(Const(2))}, {n, step}}, opts...))
		vm := must(NewMachine(op))
		for i := range 7 {
			run(t, vm)
			k := math.Pow(2, float64((i+1)/3))
			require.Equal(t, []float64{k, 2 * k, float64(i + 1)}, floats(w, n))
		}
		g = G.NewGraph()
		w, n = input(g, tensor.Float64, "w", []int{2}, 1, 2), input(g, tensor.Float64, "n", nil, 0)
		op = must(Commit([]Update{{w, Of(w).Div(ScalarOf(n))}}, When(Of(w).Div(ScalarOf(n)).IsFinite().All())))
		vm = must(NewMachine(op))
		run(t, vm)
		require.Equal(t, []float64{1, 2, 0}, floats(w, op))
		require.NoError(t, G.Let(n, 2.0))
		run(t, vm)
		require.Equal(t, []float64{.5, 1, 1}, floats(w, op))
	}
}

// Targets and what is read may be views, in any layout; memory that two targets share is refused.
func TestMemory(t *testing.T) {
	views := map[string]func() *tensor.Dense{
		"transposed": func() *tensor.Dense {
			d := dense(tensor.Float64, []int{3, 2}, 1, 2, 3, 4, 5, 6)
			require.NoError(t, d.T())
			return d
		},
		"columns": func() *tensor.Dense {
			d := dense(tensor.Float64, []int{2, 5}, 0, 1, 3, 5, 0, 0, 2, 4, 6, 0)
			return must(d.Slice(nil, G.S(1, 4))).(*tensor.Dense)
		},
		"column major": func() *tensor.Dense {
			return tensor.New(tensor.WithShape(2, 3), tensor.AsFortran([]float64{1, 3, 5, 2, 4, 6}))
		},
		"rows": func() *tensor.Dense {
			d := dense(tensor.Float64, []int{4, 3}, 0, 0, 0, 1, 3, 5, 2, 4, 6, 0, 0, 0)
			return must(d.Slice(G.S(1, 3))).(*tensor.Dense)
		},
	}
	for name, view := range views {
		for _, expanded := range []bool{false, true} {
			g := G.NewGraph()
			w := G.NewMatrix(g, tensor.Float64, G.WithShape(2, 3), G.WithName("w"), G.WithValue(view()))
			d := input(g, tensor.Float64, "d", []int{2, 3}, 10, 20, 30, 40, 50, 60)
			opts := []CommitOpt{}
			if expanded {
				opts = append(opts, Expanded())
			}
			require.Equal(t, []float64{1, 3, 5, 2, 4, 6}, floats(w), name)
			op := must(Commit([]Update{{w, Of(w).Add(Of(d))}, {d, Of(w)}}, opts...))
			run(t, must(NewMachine(op)))
			require.Equal(t, []float64{11, 23, 35, 42, 54, 66, 1, 3, 5, 2, 4, 6}, floats(w, d), name)
		}
	}
	back := []float64{1, 2, 3, 4, 5, 6}
	part := func(lo, hi int) *tensor.Dense {
		return tensor.New(tensor.WithShape(hi-lo), tensor.WithBacking(back[lo:hi]))
	}
	g := G.NewGraph()
	a := G.NewVector(g, tensor.Float64, G.WithShape(4), G.WithName("a"), G.WithValue(part(0, 4)))
	b := G.NewVector(g, tensor.Float64, G.WithShape(4), G.WithName("b"), G.WithValue(part(2, 6)))
	op := must(Commit([]Update{{a, Of(b)}, {b, Of(a)}}))
	require.ErrorContains(t, must(NewMachine(op)).RunAll(), `"a" and "b" share memory`)
	require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, back)
	// one target that reads memory which overlaps it
	op2 := must(Commit([]Update{{a, Of(b).Mul(Const(10))}}))
	run(t, must(NewMachine(op2)))
	require.Equal(t, []float64{30, 40, 50, 60, 5, 6}, back)
	// through views that the graph makes
	g = G.NewGraph()
	x, y := input(g, tensor.Float64, "x", []int{2, 2}, 1, 2, 3, 4), input(g, tensor.Float64, "y", []int{4}, 5, 6, 7, 8)
	vx, vy := must(G.Reshape(x, tensor.Shape{4})), must(G.Reshape(y, tensor.Shape{2, 2}))
	op = must(Commit([]Update{{x, Of(vy)}, {y, Of(vx)}}))
	run(t, must(NewMachine(op)))
	require.Equal(t, []float64{5, 6, 7, 8, 1, 2, 3, 4}, floats(x, y))
	// without elements
	g = G.NewGraph()
	none := G.NewVector(g, tensor.Float32, G.WithShape(0), G.WithName("none"))
	require.NoError(t, G.Let(none, tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(0))))
	s := input(g, tensor.Float64, "s", nil, 1)
	op = must(Commit([]Update{{none, Of(none).Mul(Const(2))}, {s, Of(none).Sum()}}))
	run(t, must(NewMachine(op)))
	require.Equal(t, []float64{0}, floats(s))
}

// An error at run time names the node and changes nothing.
func TestRunErrors(t *testing.T) {
	g := G.NewGraph()
	w, v := input(g, tensor.Float64, "w", []int{2}, 1, 2), input(g, tensor.Float64, "v", []int{2}, 3, 4)
	n := G.NewScalar(g, tensor.Int64, G.WithName("n"), G.WithValue(int64(1)))
	lr := input(g, tensor.Float32, "lr", nil, 1)
	op := must(Commit([]Update{{w, Of(v).Mul(ScalarOf(lr))}, {v, Of(w)}, {n, ScalarOf(n).Mul(ScalarOf(lr))}}))
	vm := must(NewMachine(op))
	state := func() []float64 { return floats(w, v, n, op) }
	run(t, vm)
	require.Equal(t, []float64{3, 4, 1, 2, 1, 1}, state())
	for _, c := range []struct {
		node  *G.Node
		value any
		want  string
	}{
		{lr, float32(1.5), "1.5, which is not a whole number"},
		{lr, float32(math.NaN()), "not a whole number"},
		{lr, 1.0, `"lr": its value is float64`},
		{lr, true, `"lr"`},
	} {
		before, old := state(), c.node.Value()
		require.NoError(t, G.Let(c.node, c.value))
		require.ErrorContains(t, vm.RunAll(), c.want)
		require.NoError(t, G.Let(c.node, old))
		require.Equal(t, before, state())
	}
	run(t, vm)
	require.Equal(t, []float64{1, 2, 3, 4, 1, 2}, state())
	p := must(Compile([]Update{{w, Of(v)}}))
	require.ErrorContains(t, p.Run(nil), "0 values for 2 leaves")
	require.ErrorContains(t, p.Run([]G.Value{w.Value(), nil}), `"v": no value`)
	require.ErrorContains(t, p.Run([]G.Value{w.Value(), (*G.F64)(nil)}), `"v"`)
	require.ErrorContains(t, p.Run([]G.Value{w.Value(), dense(tensor.Float64, []int{3})}), "shape")
	require.NoError(t, p.Run([]G.Value{w.Value(), v.Value()}))
}

func TestVisibleNodes(t *testing.T) {
	g := G.NewGraph()
	w, d := input(g, tensor.Float64, "w", []int{2}, 1, 2), input(g, tensor.Float64, "d", []int{2}, 3, 4)
	must(Commit([]Update{{w, Of(w).Sub(Of(d))}, {d, Of(d)}}, Label(func(n *G.Node) string {
		if n == w {
			return "sgd"
		}
		return ""
	})))
	require.Len(t, g.ByName("sgd(w)"), 1)
	require.Equal(t, G.Nodes{w, d}, children(g.ByName("sgd(w)")[0]))
	require.Contains(t, g.ToDot(), "sgd")
}

// States that are aside are written, read as expressions, conditional, and no operands; in both hosts.
func TestAside(t *testing.T) {
	for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
		g, s, aside := G.NewGraph(), NewStore(), NewStore()
		w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(1.0))
		step := must(must(s.Counter("step")).Node(g))
		st := must(aside.Slot("sum", "", tensor.Float64, nil, 10))
		sum := must(st.Node(g))
		even := ScalarOf(step).Div(Const(2)).Floor().Mul(Const(2)).Equal(ScalarOf(step))
		op := must(Commit([]Update{{w, Of(w).Add(Const(1))}, {step, ScalarOf(step).Add(Const(1))}, {sum, ScalarOf(sum).Add(ScalarOf(w))}},
			append(opts, From(s), Aside(aside), When(even, sum))...))
		if opts == nil {
			require.NotContains(t, children(op), sum)
		}
		vm := must(NewMachine(op))
		for _, want := range []float64{11, 11, 14} {
			require.NoError(t, vm.RunAll())
			require.Equal(t, want, float64(*must(st.Value()).(*G.F64)))
		}
		require.NoError(t, G.Let(sum, 5.0)) // another value is taken over
		require.NoError(t, vm.RunAll())
		require.NoError(t, vm.RunAll())
		require.Equal(t, 10.0, float64(*must(st.Value()).(*G.F64)))
	}
}
