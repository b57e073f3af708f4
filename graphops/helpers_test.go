package graphops

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"testing"

	"github.com/chewxy/hm"
	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

var dtypes = []tensor.Dtype{tensor.Float32, tensor.Float64}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// dense makes a tensor of numbers.
func dense(dt tensor.Dtype, shape []int, x ...float64) *tensor.Dense {
	d := tensor.New(tensor.Of(dt), tensor.WithShape(shape...))
	for i := range x {
		if dt == tensor.Float32 {
			d.Float32s()[i] = float32(x[i])
		} else {
			d.Float64s()[i] = x[i]
		}
	}
	return d
}

// input makes an input with a value; shape nil makes a scalar.
func input(g *G.ExprGraph, dt tensor.Dtype, name string, shape []int, x ...float64) *G.Node {
	n := G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(name))
	var v any = dense(dt, shape, x...)
	if shape == nil {
		if v = x[0]; dt == tensor.Float32 {
			v = float32(x[0])
		}
	}
	if err := G.Let(n, v); err != nil {
		panic(err)
	}
	return n
}

func floats(ns ...*G.Node) (out []float64) {
	for _, n := range ns {
		out = append(out, valueFloats(n.Value())...)
	}
	return out
}

func valueFloats(v G.Value) (out []float64) {
	switch x := v.(type) {
	case *G.F64:
		return []float64{float64(*x)}
	case *G.F32:
		return []float64{float64(*x)}
	case *G.I64:
		return []float64{float64(*x)}
	}
	var b binding
	a := must(b.bind(v, v.Dtype(), v.Shape()))
	for i := range a.Len {
		if v.Dtype() == tensor.Float32 {
			out = append(out, float64(sliceOf[float32](a.Ptr, a.Len)[i]))
		} else {
			out = append(out, sliceOf[float64](a.Ptr, a.Len)[i])
		}
	}
	return out
}

// run executes a machine once and resets it.
func run(t *testing.T, vm G.VM) {
	t.Helper()
	require.NoError(t, vm.RunAll())
	vm.Reset()
}

// sameBits fails where two lists differ in a bit; any NaN equals any NaN.
func sameBits(t *testing.T, want, got []float64, msg ...any) {
	t.Helper()
	require.Len(t, got, len(want), msg...)
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) && !(math.IsNaN(want[i]) && math.IsNaN(got[i])) {
			require.Equal(t, want, got, msg...)
		}
	}
}

// hook is an operation of a user's: it passes a float64 scalar on, or fails or panics.
type hook struct {
	id    int
	fail  error
	panic bool
	runs  int
}

func (o *hook) Arity() int    { return 1 }
func (o *hook) Type() hm.Type { return hm.NewFnType(tensor.Float64, tensor.Float64) }
func (o *hook) InferShape(...G.DimSizer) (tensor.Shape, error) {
	return tensor.ScalarShape(), nil
}
func (o *hook) Do(v ...G.Value) (G.Value, error) {
	o.runs++
	if o.fail != nil {
		return nil, o.fail
	}
	return G.NewF64(float64(*v[0].(*G.F64))), nil
}
func (o *hook) ReturnsPtr() bool      { return false }
func (o *hook) CallsExtern() bool     { return false }
func (o *hook) OverwritesInput() int  { return -1 }
func (o *hook) WriteHash(h hash.Hash) { fmt.Fprintf(h, "hook%d", o.id) }
func (o *hook) Hashcode() uint32      { h := fnv.New32a(); o.WriteHash(h); return h.Sum32() }
func (o *hook) String() string        { return "hook" }
func (o *hook) DiffWRT(int) []bool    { return []bool{true} }
func (o *hook) SymDiff(_ G.Nodes, _, grad *G.Node) (G.Nodes, error) {
	if o.panic {
		panic("no derivative today")
	}
	if o.fail != nil {
		return nil, o.fail
	}
	return G.Nodes{grad}, nil
}

var errHook = errors.New("boom")
