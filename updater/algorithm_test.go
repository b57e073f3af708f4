package updater

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

var bothTypes = []tensor.Dtype{tensor.Float64, tensor.Float32}

// tensorOf makes a value of a dtype; no shape makes a scalar.
func tensorOf(dt tensor.Dtype, shape []int, x ...float64) G.Value {
	if len(shape) == 0 {
		if dt == tensor.Float32 {
			return G.NewF32(float32(x[0]))
		}
		return G.NewF64(x[0])
	}
	if dt == tensor.Float64 {
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(append([]float64(nil), x...)))
	}
	y := make([]float32, len(x))
	for i := range x {
		y[i] = float32(x[i])
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(y))
}

// state makes a node with a value.
func state(g *G.ExprGraph, name string, dt tensor.Dtype, shape []int, x ...float64) *G.Node {
	return G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(tensorOf(dt, shape, x...)))
}

// input makes a node without one.
func sourceNode(g *G.ExprGraph, name string, dt tensor.Dtype, shape ...int) *G.Node {
	return G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(name))
}

// numbers are the elements of a value of any dtype.
func numbers(v G.Value) []float64 {
	switch d := v.Data().(type) {
	case float64:
		return []float64{d}
	case float32:
		return []float64{float64(d)}
	case int:
		return []float64{float64(d)}
	case int64:
		return []float64{float64(d)}
	case []float64:
		return append([]float64(nil), d...)
	case []float32:
		out := make([]float64, len(d))
		for i := range d {
			out[i] = float64(d[i])
		}
		return out
	}
	return nil
}

func of(n *G.Node) Expr { return graphops.Of(n) }

func num(x float64) Expr { return graphops.Const(x) }

// A1 to A3.
func TestUpdatesAlgorithm(t *testing.T) {
	for _, dt := range bothTypes {
		g := G.NewGraph()
		n, m := state(g, "n", dt, nil, 1), sourceNode(g, "m", dt)
		a, err := NewUpdatesAlgorithm([]graphops.Update{{Target: n, Value: of(n).Add(num(1))}})
		require.NoError(t, err)
		require.ErrorContains(t, a.ProcessBatch(nil), "before Initialize")
		require.NoError(t, a.Initialize())
		require.Empty(t, a.Inputs())
		require.NoError(t, a.ProcessBatch(map[string]any{}))
		require.Equal(t, []float64{2}, numbers(n.Value()))
		require.NoError(t, a.ProcessBatch(nil))
		require.Equal(t, []float64{3}, numbers(n.Value()))

		n2 := state(g, "n2", dt, nil, 1)
		a, err = NewUpdatesAlgorithm([]graphops.Update{{Target: n2, Value: of(m).Add(num(1))}})
		require.NoError(t, err)
		require.NoError(t, a.Initialize())
		require.Equal(t, G.Nodes{m}, a.Inputs())
		require.NoError(t, a.ProcessBatch(map[string]any{"m": 5}))
		require.Equal(t, []float64{6}, numbers(n2.Value()))
		require.NoError(t, a.ProcessBatch(map[string]any{"m": 3.0}))
		require.Equal(t, []float64{4}, numbers(n2.Value()))

		n3, m3 := state(g, "n3", dt, nil, 1), state(g, "m3", dt, nil, 0)
		a, err = NewUpdatesAlgorithm([]graphops.Update{{Target: n3, Value: of(n3).Add(num(1))}})
		require.NoError(t, err)
		mod := of(n3).Sub(of(n3).Div(num(2)).Floor().Mul(num(2)))
		a.AddUpdates(graphops.Update{Target: m3, Value: mod})
		require.Len(t, a.Updates(), 2)
		require.NoError(t, a.Initialize())
		require.NoError(t, a.ProcessBatch(map[string]any{}))
		require.Equal(t, []float64{2, 1}, append(numbers(n3.Value()), numbers(m3.Value())...))
		require.NoError(t, a.ProcessBatch(map[string]any{}))
		require.Equal(t, []float64{3, 0}, append(numbers(n3.Value()), numbers(m3.Value())...))
	}
}
