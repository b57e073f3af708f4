package graphops

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// codeError is what the tests' codes are explained with.
type codeError struct {
	name string
	code float64
}

func (e codeError) Error() string { return fmt.Sprintf("%s: code %v", e.name, e.code) }

func explain(name string) func(float64) error {
	return func(code float64) error { return codeError{name, code} }
}

// hosts run updates: as a commit, an expanded commit and a plan. Each gives a function that makes one run.
var hosts = map[string]func(us []Update, opts ...CommitOpt) (func() error, error){
	"fused": commitHost,
	"expanded": func(us []Update, opts ...CommitOpt) (func() error, error) {
		return commitHost(us, append(opts, Expanded())...)
	},
	"plan": func(us []Update, opts ...CommitOpt) (func() error, error) {
		p, err := Compile(us, opts...)
		return func() error {
			values := make([]G.Value, len(p.Leaves()))
			for i, n := range p.Leaves() {
				values[i] = n.Value()
			}
			return p.Run(values)
		}, err
	},
}

func commitHost(us []Update, opts ...CommitOpt) (func() error, error) {
	op, err := Commit(us, opts...)
	if err != nil {
		return nil, err
	}
	vm, err := NewMachine(op)
	if err != nil {
		return nil, err
	}
	return vm.RunAll, nil
}

// A gradient that is not finite: nothing is written, no counter either, whatever When says. The first code counts.
func TestRefuse(t *testing.T) {
	for name, host := range hosts {
		for _, dt := range dtypes {
			for _, when := range []bool{true, false} {
				g, s := G.NewGraph(), NewStore()
				w, d := input(g, dt, "w", []int{1000}, 1, 2, 3), input(g, dt, "d", []int{1000}, 1, 2, 3)
				codes := input(g, tensor.Float64, "codes", nil, 0)
				on := input(g, tensor.Float64, "on", nil, 0)
				m := must(must(s.Slot("m", "w", dt, w.Shape(), 0)).Node(g))
				steps := must(must(s.Counter("steps")).Node(g))
				finite := Of(d).Sum().IsFinite()
				run, err := host([]Update{
					{steps, ScalarOf(steps).Add(Const(1))}, {m, Of(m).Add(Of(d))}, {w, Of(w).Sub(Of(d))},
				}, From(s), Refuse(finite.Not(), explain("sum")), Refuse(ScalarOf(codes), explain("codes")),
					When(ScalarOf(on).Greater(Const(0)), w))
				require.NoError(t, err)
				require.NoError(t, run())
				if when {
					require.NoError(t, G.Let(on, 1.0))
				}
				require.NoError(t, run())
				before := floats(w, m, steps)
				require.Equal(t, 2.0, before[len(before)-1])
				refused := func(want codeError) {
					t.Helper()
					var e codeError
					require.ErrorAs(t, run(), &e, name)
					require.Equal(t, want.name, e.name)
					sameBits(t, []float64{want.code}, []float64{e.code})
					sameBits(t, before, floats(w, m, steps))
				}
				require.NoError(t, G.Let(codes, -2.5))
				refused(codeError{"codes", -2.5})
				require.NoError(t, G.Let(codes, math.NaN()))
				refused(codeError{"codes", math.NaN()})
				bad := dense(dt, d.Shape(), 1, math.Inf(1))
				require.NoError(t, G.Let(d, bad))
				refused(codeError{"sum", 1})
				require.NoError(t, G.Let(codes, 0.0))
				refused(codeError{"sum", 1})
				require.NoError(t, G.Let(d, dense(dt, d.Shape(), 1)))
				require.NoError(t, run())
				require.Equal(t, []float64{3}, floats(steps))
			}
		}
	}
}

func TestRefuseRefuses(t *testing.T) {
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", []int{2}, 1, 2)
	other := input(G.NewGraph(), tensor.Float64, "other", nil, 1)
	for _, c := range []struct {
		code    Expr
		explain func(float64) error
		want    string
	}{
		{Expr{}, explain(""), "zero Expr"},
		{Of(w), explain(""), "scalar code"},
		{Const(0), nil, "explains"},
		{ScalarOf(other), explain(""), "not on the graph"},
	} {
		nodes := len(g.AllNodes())
		for _, host := range hosts {
			_, err := host([]Update{{w, Of(w)}}, Refuse(c.code, c.explain))
			require.ErrorContains(t, err, c.want)
		}
		require.ErrorContains(t, Check([]Update{{w, Of(w)}}, Refuse(c.code, c.explain)), c.want)
		require.Len(t, g.AllNodes(), nodes)
	}
	for name, f := range map[string]func(float64) error{
		"no reason": func(float64) error { panic("no reason") },
		"code 3":    func(float64) error { return nil },
	} {
		run, err := hosts["plan"]([]Update{{w, Of(w)}}, Refuse(Const(3), f))
		require.NoError(t, err)
		require.ErrorContains(t, run(), name)
	}
}

// A plan with checks and functions allocates nothing when it runs again.
func TestRefuseAllocatesNothing(t *testing.T) {
	for _, dt := range dtypes {
		g := G.NewGraph()
		w, d := input(g, dt, "w", []int{1000}, 1, 2, 3), input(g, dt, "d", []int{1000}, 1, 2, 3)
		calls := 0
		p, err := Compile([]Update{{w, Of(w).Sub(Of(d))}}, Refuse(Of(d).Sum().IsFinite().Not(), explain("sum")),
			Refuse(Of(w).MaxAll().Greater(Const(1e9)), explain("max")), Before(func() error { calls++; return nil }))
		require.NoError(t, err)
		values := []G.Value{p.Leaves()[0].Value(), p.Leaves()[1].Value()}
		require.NoError(t, p.Run(values))
		require.Zero(t, testing.AllocsPerRun(10, func() {
			if err := p.Run(values); err != nil {
				panic(err)
			}
		}))
		require.Equal(t, 12, calls)
	}
}

// The slot is set back in every third run, at its start: that run sees the slot at 5 again.
func TestBeforeResetsSlots(t *testing.T) {
	for name, host := range hosts {
		for _, dt := range dtypes {
			for _, shape := range []tensor.Shape{{}, {2, 300}} {
				g, s := G.NewGraph(), NewStore()
				w := G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName("w"))
				newCell(w, 0)
				require.NoError(t, G.Let(w, newCell(w, 0).value))
				m := must(must(s.Slot("m", "w", dt, shape, 5)).Node(g))
				steps := must(must(s.Counter("steps")).Node(g))
				scaled := Of(m).Mul(Const(2))
				must(Expand(scaled)) // is computed before the function is called
				must(Expand(ScalarOf(steps).Add(Const(1))))
				var order []int
				run, err := host([]Update{{w, scaled}, {m, scaled}, {steps, ScalarOf(steps).Add(Const(1))}}, From(s),
					Before(nil), Before(func() error {
						order = append(order, 1)
						if must(ScalarValue(steps.Value())) == 3 {
							return s.Reset()
						}
						return nil
					}), Before(func() error { order = append(order, 2); return nil }))
				require.NoError(t, err)
				for i, want := range []float64{10, 20, 40, 10, 20, 40, 10} {
					require.NoError(t, run())
					require.Equal(t, []float64{want, want}, []float64{floats(w)[0], floats(m)[w.Shape().TotalSize()-1]}, "%s, run %d", name, i)
					require.Equal(t, []float64{float64(i%3 + 1)}, floats(steps))
				}
				require.Equal(t, []int{1, 2, 1, 2}, order[:4])
			}
		}
	}
}

// An error of the function fails the run; values are checked first.
func TestBeforeFails(t *testing.T) {
	for name, host := range hosts {
		g := G.NewGraph()
		w := input(g, tensor.Float64, "w", []int{2}, 1, 2)
		fail, called := error(nil), 0
		run, err := host([]Update{{w, Of(w).Mul(Const(2))}}, Before(func() error { called++; return fail }))
		require.NoError(t, err)
		fail = errHook
		require.ErrorIs(t, run(), errHook, name)
		require.Equal(t, []float64{1, 2}, floats(w))
		require.Equal(t, 1, called)
		fail = nil
		require.NoError(t, run())
		require.Equal(t, []float64{2, 4}, floats(w))
	}
	g := G.NewGraph()
	w := input(g, tensor.Float64, "w", nil, 1)
	p := must(Compile([]Update{{w, Of(w)}}, Before(func() error { panic("ouch") })))
	require.ErrorContains(t, p.Run([]G.Value{w.Value()}), "ouch")
	require.ErrorContains(t, p.Run([]G.Value{dense(tensor.Float64, []int{3})}), "shape")
}

// A commit that is inert, or that another commit stands in the way of, calls no function.
func TestBeforeOfInertCommit(t *testing.T) {
	for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
		g := G.NewGraph()
		w := input(g, tensor.Float64, "w", []int{2}, 1, 2)
		calls := 0
		opts = append(opts, Before(func() error { calls++; return nil }))
		op := must(Commit([]Update{{w, Of(w).Mul(Const(2))}}, opts...))
		again := must(Commit([]Update{{w, Of(w).Mul(Const(2))}}, opts...))
		require.ErrorContains(t, G.NewTapeMachine(g).RunAll(), "two optim ops")
		require.Zero(t, calls)
		require.NoError(t, Supersede(op))
		require.NoError(t, G.NewTapeMachine(g).RunAll())
		require.Equal(t, 1, calls)
		require.NoError(t, Supersede(again))
		require.NoError(t, G.NewTapeMachine(g).RunAll())
		require.Equal(t, 1, calls)
		require.Equal(t, []float64{2, 4}, floats(w))
	}
}

// What a function of Before keeps alive goes with the commit, though the graph keeps the commit's node. The function itself may be
// what supersedes it.
func TestSupersedeLetsGo(t *testing.T) {
	for _, opts := range [][]CommitOpt{nil, {Expanded()}} {
		g := G.NewGraph()
		w := input(g, tensor.Float64, "w", []int{2}, 1, 2)
		var op *G.Node
		kept := func() weak.Pointer[[9]int] {
			x := new([9]int)
			op = must(Commit([]Update{{w, Of(w).Mul(Const(2))}}, append(opts, Before(func() error { x[0]++; return Supersede(op) }))...))
			require.NoError(t, must(NewMachine(op)).RunAll())
			require.Equal(t, 1, x[0])
			return weak.Make(x)
		}()
		for i := 0; i < 10 && kept.Value() != nil; i++ {
			runtime.GC()
		}
		require.Nil(t, kept.Value())
		require.True(t, g.AllNodes().Contains(op))
	}
}
