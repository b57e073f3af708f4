package graphops

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// momentum is a plan or commit of n parameters with a slot each, and the values of its leaves: nil for states.
func momentum(n int, dt tensor.Dtype, commit bool) (*Plan, *G.Node, []G.Value) {
	g, s := G.NewGraph(), NewStore()
	rate := .1
	lr := must(must(s.Hyper("lr", &rate, func(float64) error { return nil })).Node(g))
	step := must(must(s.Counter("step")).Node(g))
	us := []Update{{step, ScalarOf(step).Add(Const(1))}}
	for i := range n {
		shape := []int{3, 1 + i%3}
		w, d := input(g, dt, fmt.Sprint("w", i), shape, 1), input(g, dt, fmt.Sprint("d", i), shape, 1)
		m := must(must(s.Slot(fmt.Sprint("m", i), w.Name(), dt, shape, 0)).Node(g))
		m1 := Of(m).Mul(Const(.9)).Add(Of(d))
		us = append(us, Update{m, m1}, Update{w, Of(w).Sub(m1.Mul(ScalarOf(lr)))})
	}
	if commit {
		op := must(Commit(us, From(s)))
		return must(commitOf(op)).plan, op, nil
	}
	p := must(Compile(us, From(s)))
	values := make([]G.Value, len(p.Leaves()))
	for i, leaf := range p.Leaves() {
		if s.of(leaf) == nil {
			values[i] = leaf.Value()
		}
	}
	return p, nil, values
}

// A plan that ran once allocates nothing when it runs again, whatever the layout of its values.
func TestPlanAllocatesNothing(t *testing.T) {
	for _, dt := range dtypes {
		p, _, values := momentum(1100, dt, false)
		require.Greater(t, len(values), 3000)
		for i, v := range values {
			if d, ok := v.(*tensor.Dense); ok && i%7 == 0 && d.Shape()[1] == 3 {
				values[i] = must(dense(dt, []int{3, 5}).Slice(nil, G.S(1, 4)))
			}
		}
		require.NoError(t, p.Run(values))
		require.Zero(t, testing.AllocsPerRun(10, func() {
			if err := p.Run(values); err != nil {
				panic(err)
			}
		}))
	}
}

// A commit allocates its value, which the readers of an earlier run may still hold, and nothing else.
func TestCommitAllocatesItsValue(t *testing.T) {
	p, n, _ := momentum(100, tensor.Float32, true)
	op := must(commitOf(n))
	var in []G.Value
	for _, k := range children(n) {
		v := k.Value()
		if v == nil { // a visible node
			v = G.NewF64(0)
		}
		in = append(in, v)
	}
	require.Len(t, in[op.skip:], len(p.leaves))
	first := must(op.Do(in...))
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		if _, err := op.Do(in...); err != nil {
			panic(err)
		}
	}), 1.0)
	require.Equal(t, 1.0, must(ScalarValue(first)))
	require.Equal(t, 13.0, must(ScalarValue(must(op.Do(in...)))))
}

func nothing() error { return nil }

// A Zeroer that is used again sees what is new, and allocates nothing.
func TestZeroerAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var z Zeroer
	all := filled(tensor.Float64, []int{60}, 1)
	view := func() G.Value {
		lo := r.IntN(59)
		return must(all.Slice(G.S(lo, lo+1+r.IntN(min(4, 60-lo)))))
	}
	var values, keep []G.Value
	for i := range 500 {
		require.NoError(t, all.Memset(1.0))
		if i%10 == 0 {
			values, keep = make([]G.Value, r.IntN(9)), make([]G.Value, r.IntN(9))
		}
		want := valueFloats(all)
		for k := range keep {
			keep[k] = view()
		}
		for k := range values {
			values[k] = view()
			overlaps := false
			lo, hi := must(memoryOf(values[k])).Bytes()
			for _, v := range keep {
				l, h := must(memoryOf(v)).Bytes()
				overlaps = overlaps || l < hi && lo < h
			}
			if first, _ := must(memoryOf(all)).Bytes(); !overlaps {
				clear(want[(lo-first)/8 : (hi-first)/8])
			}
		}
		require.NoError(t, z.After(nothing, values, keep))
		require.Equal(t, want, valueFloats(all))
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = z.After(nothing, values, keep) }))
	for i := range z.clear[:cap(z.clear)] {
		require.Nil(t, z.clear[:cap(z.clear)][i].Ptr)
	}
}

func BenchmarkPlan(b *testing.B) {
	p, _, values := momentum(1000, tensor.Float32, false)
	require.NoError(b, p.Run(values))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Run(values); err != nil {
			b.Fatal(err)
		}
	}
}
