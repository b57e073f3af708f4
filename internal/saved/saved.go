// Package saved turns Gorgonia's values into tensors of files, and back.
package saved

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/safetensors"
)

// FromValue copies a value, whatever its layout, in the order of its elements.
func FromValue(name string, v gorgonia.Value) (safetensors.Tensor, error) {
	t, err := Zero(v.Dtype(), v.Shape())
	if err != nil {
		return t, errors.Wrap(err, name)
	}
	t.Name = name
	return t, errors.Wrap(graphops.Copy(Value(t), v), name)
}

// Zero is a tensor of zeros, without a name.
func Zero(dt tensor.Dtype, shape tensor.Shape) (safetensors.Tensor, error) {
	t := safetensors.Tensor{Shape: []int(shape.Clone())}
	n := shape.TotalSize()
	switch dt {
	case tensor.Float64:
		t.Data = make([]float64, n)
	case tensor.Float32:
		t.Data = make([]float32, n)
	case tensor.Int64:
		t.Data = make([]int64, n)
	default:
		return t, errors.Errorf("it is %v; it must be float32, float64 or int64", dt)
	}
	return t, nil
}

// Value is a value in the memory of a tensor.
func Value(t safetensors.Tensor) gorgonia.Value {
	if len(t.Shape) > 0 {
		return tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(t.Data))
	}
	switch d := t.Data.(type) {
	case []float64:
		return (*gorgonia.F64)(&d[0])
	case []float32:
		return (*gorgonia.F32)(&d[0])
	case []int64:
		return (*gorgonia.I64)(&d[0])
	}
	return nil
}

// Copy is a value with the elements of another, row by row in memory of its own.
func Copy(v gorgonia.Value) (gorgonia.Value, error) {
	t, err := FromValue("the value", v)
	if err != nil {
		return nil, err
	}
	return Value(t), nil
}
