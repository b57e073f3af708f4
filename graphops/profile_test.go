package graphops

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A profile counts each operation of the machine, and changes no number.
func TestProfile(t *testing.T) {
	train := func(profiled bool) (rows []ProfileRow, w []float64) {
		g := G.NewGraph()
		x := G.NewMatrix(g, G.Float64, G.WithShape(3, 2), G.WithName("x"), G.WithValue(tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6}))))
		n := G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("w"), G.WithValue(tensor.New(tensor.WithBacking([]float64{.5, -1}))))
		cost := G.Must(G.Sum(G.Must(G.Tanh(G.Must(G.Square(G.Must(G.Mul(x, n))))))))
		grads, err := Gradients(cost, G.Nodes{n})
		require.NoError(t, err)
		op, err := Commit([]Update{{n, Of(n).Sub(Of(grads[0]).Mul(Const(.01)))}}, After(cost))
		require.NoError(t, err)
		vm, err := NewMachine(op)
		require.NoError(t, err)
		require.NoError(t, vm.RunAll())
		var p *Profile
		if profiled {
			p, err = NewProfile(vm)
			require.NoError(t, err)
			for _, r := range p.Rows() {
				require.Zero(t, r.Calls)
			}
		}
		for range 3 {
			require.NoError(t, vm.RunAll())
		}
		if profiled {
			rows = p.Rows()
		}
		return rows, n.Value().Data().([]float64)
	}
	rows, w := train(true)
	_, plain := train(false)
	require.Equal(t, plain, w)
	require.Greater(t, len(rows), 6)
	var all time.Duration
	for _, r := range rows {
		require.Equal(t, 3, r.Calls, r.Op)
		require.Positive(t, r.Time, r.Op)
		all += r.Time
	}
	require.Contains(t, rows[0].Op, "A × ")
	require.True(t, slices.ContainsFunc(rows, func(r ProfileRow) bool { return r.Op == "optim op(update)" && r.Node == r.Op }))
	require.Less(t, all, time.Minute)
	g := G.NewGraph()
	G.Must(G.Square(G.NewScalar(g, G.Float64)))
	_, err := NewProfile(G.NewTapeMachine(g))
	require.ErrorContains(t, err, "has no profile")
}

func TestInputs(t *testing.T) {
	g := G.NewGraph()
	a, b, c := G.NewScalar(g, G.Float64, G.WithName("a")), G.NewScalar(g, G.Float64, G.WithName("b")), G.NewScalar(g, G.Float64, G.WithName("c"))
	sum := G.Must(G.Add(G.Must(G.Mul(b, G.NewConstant(2.))), a))
	require.Equal(t, G.Nodes{a, b}, Inputs(sum))
	require.Equal(t, G.Nodes{a, b, c}, Inputs(c, sum, sum))
	require.Empty(t, Inputs())
	require.Equal(t, G.Nodes{sum, c}, Of(sum).Add(ScalarOf(c)).Sub(Of(sum)).Leaves())
	require.Empty(t, Expr{}.Leaves())
	require.Empty(t, Const(1).Leaves())
}
