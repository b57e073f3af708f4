package updater

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// linear is the loss Σ w·g of variables w and inputs g, which are the gradients of the next run.
type linear struct {
	loss        *G.Node
	vars, grads G.Nodes
}

// initial is a variable's name and value: a float64 makes a scalar, a []float64 a vector.
type initial struct {
	name  string
	value any
}

func newLinear(dt tensor.Dtype, vars ...initial) *linear {
	l, g := &linear{}, G.NewGraph()
	for _, v := range vars {
		w, by := inputOf(g, dt, v.name, v.value), inputOf(g, dt, "g_"+v.name, v.value)
		term := must(G.HadamardProd(w, by))
		if !term.IsScalar() {
			term = must(G.Sum(term))
		}
		if l.loss != nil {
			term = must(G.Add(l.loss, term))
		}
		l.loss, l.vars, l.grads = term, append(l.vars, w), append(l.grads, by)
	}
	return l
}

func inputOf(g *G.ExprGraph, dt tensor.Dtype, name string, value any) *G.Node {
	if v, ok := value.([]float64); ok {
		return G.NewVector(g, dt, G.WithShape(len(v)), G.WithName(name), G.WithValue(in(dt, value)))
	}
	return G.NewScalar(g, dt, G.WithName(name), G.WithValue(in(dt, value)))
}

// in is a value of a dtype that Gorgonia takes.
func in(dt tensor.Dtype, value any) any {
	v, isVector := value.([]float64)
	switch {
	case !isVector && dt == tensor.Float32:
		return float32(value.(float64))
	case !isVector:
		return value
	case dt == tensor.Float64:
		return tensor.New(tensor.WithBacking(slices.Clone(v)))
	}
	small := make([]float32, len(v))
	for i, x := range v {
		small[i] = float32(x)
	}
	return tensor.New(tensor.WithBacking(small))
}

// run trains once with gradients.
func (l *linear) run(t *testing.T, vm G.VM, grads ...any) {
	t.Helper()
	for i, g := range grads {
		require.NoError(t, G.Let(l.grads[i], in(l.grads[i].Dtype(), g)))
	}
	require.NoError(t, vm.RunAll())
	vm.Reset()
}

// elements are those of a node of either dtype.
func elements(n *G.Node) (all []float64) {
	switch v := n.Value().Data().(type) {
	case float64:
		return []float64{v}
	case float32:
		return []float64{float64(v)}
	case []float64:
		return slices.Clone(v)
	case []float32:
		for _, x := range v {
			all = append(all, float64(x))
		}
	}
	return all
}

// precision is what numbers that were printed with nine digits can differ by, in a dtype: relatively, and besides.
type precision struct{ relative, besides float64 }

// In float32 the values of about 1 that a parameter is the difference of are rounded, too.
func printed(dt tensor.Dtype) precision {
	if dt == tensor.Float32 {
		return precision{1e-6, 1e-6}
	}
	return precision{relative: 6e-9}
}

func near(t *testing.T, p precision, want, got []float64, what ...any) {
	t.Helper()
	require.Len(t, got, len(want), what...)
	for i, x := range want {
		if math.IsNaN(x) {
			require.True(t, math.IsNaN(got[i]), what...)
		} else {
			require.InDelta(t, x, got[i], p.relative*math.Abs(x)+p.besides, what...)
		}
	}
}

// hosts are the options of the two forms that the optim op has.
var hosts = [][]Option{nil, {Expanded()}}

var floatTypes = []tensor.Dtype{tensor.Float64, tensor.Float32}
