package graphops

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// What is found directly is what the long way finds, and each property of a value is looked at again: one that lost it is left
// to the long way.
func TestLeafDirect(t *testing.T) {
	for _, dt := range dtypes {
		n := input(G.NewGraph(), dt, "w", []int{2, 3}, 1, 2, 3, 4, 5, 6)
		l := newLeaf(n, nil)
		var a kernel.Array
		v := n.Value().(*tensor.Dense)
		require.True(t, l.direct(v, &a))
		var b binding
		want, err := b.bind(v, dt, tensor.Shape{2, 3})
		require.NoError(t, err)
		require.Equal(t, want, a)
		for name, change := range map[string]func(d *tensor.Dense){
			"reshaped":   func(d *tensor.Dense) { require.NoError(t, d.Reshape(3, 2)) },
			"flat":       func(d *tensor.Dense) { require.NoError(t, d.Reshape(6)) },
			"transposed": func(d *tensor.Dense) { require.NoError(t, d.T()) },
			"dim":        func(d *tensor.Dense) { d.Shape()[1] = 2 },
			"stride":     func(d *tensor.Dense) { d.Strides()[0] = 2 },
			"mask":       func(d *tensor.Dense) { d.ResetMask() },
			"short":      func(d *tensor.Dense) { d.Raw = d.Raw[:8] },
		} {
			d := dense(dt, []int{2, 3}, 1, 2, 3, 4, 5, 6)
			require.True(t, l.direct(d, &a), name)
			change(d)
			require.False(t, l.direct(d, &a), name)
		}
		other := tensor.Float32
		if dt == tensor.Float32 {
			other = tensor.Float64
		}
		for _, v := range []G.Value{nil, (*tensor.Dense)(nil), G.NewF64(1), dense(other, []int{2, 3}), tensor.New(tensor.Of(tensor.Int64), tensor.WithShape(2, 3))} {
			require.False(t, l.direct(v, &a), "%v", v)
		}
	}
}

// A slot is found once and for all, and yet the plan sees what is let to its node, and to the nodes of other graphs that are
// made later.
func TestSettledSlot(t *testing.T) {
	s := NewStore()
	st, err := s.Slot("w/m", "w", tensor.Float32, tensor.Shape{2}, 1)
	require.NoError(t, err)
	g := G.NewGraph()
	w := input(g, tensor.Float32, "w", []int{2}, 10, 20)
	m, err := st.Node(g)
	require.NoError(t, err)
	p, err := Compile([]Update{{m, Of(m).Add(Of(w))}}, From(s))
	require.NoError(t, err)
	values := make([]G.Value, len(p.Leaves()))
	at := -1
	for i, n := range p.Leaves() {
		if n == w {
			values[i] = w.Value()
		} else {
			at = i
		}
	}
	run := func(settled bool, want ...float32) {
		t.Helper()
		require.NoError(t, p.Run(values))
		v, err := st.Value()
		require.NoError(t, err)
		require.Equal(t, want, v.Data())
		require.Equal(t, settled, p.want[at].slot != nil)
	}
	run(true, 11, 21)
	require.NoError(t, G.Let(m, dense(tensor.Float32, []int{2}, 1, 2)))
	run(true, 11, 22)
	require.NoError(t, s.Reset())
	run(true, 11, 21)
	other, err := st.Node(G.NewGraph())
	require.NoError(t, err)
	run(false, 21, 41)
	require.NoError(t, G.Let(other, dense(tensor.Float32, []int{2}, 3, 4)))
	run(false, 13, 24)
}
