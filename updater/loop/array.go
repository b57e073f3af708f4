package loop

import (
	"reflect"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// array is a copy of a value in float64. Sums over many batches in float32 would lose what each batch adds.
type array struct {
	shape tensor.Shape
	data  []float64
}

func scalar(v float64) array { return array{data: []float64{v}} }

func arraysOf(values []gorgonia.Value) (out []array, err error) {
	for _, v := range values {
		a, err := arrayOf(v)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// arrayOf copies the elements of a value row by row, whatever its layout.
func arrayOf(v gorgonia.Value) (array, error) {
	if v == nil {
		return array{}, errors.New("there is no value")
	}
	shape := v.Shape().Clone()
	if shape.TotalSize() == 0 { // Gorgonia cannot look at such data
		return array{shape: shape}, nil
	}
	if d, ok := v.(*tensor.Dense); ok && !shape.IsScalar() && (d.Dtype() == tensor.Float32 || d.Dtype() == tensor.Float64) {
		flat := tensor.New(tensor.Of(d.Dtype()), tensor.WithShape(shape...))
		if err := graphops.Copy(flat, d); err != nil {
			return array{}, err
		}
		a := array{shape, make([]float64, flat.DataSize())}
		switch elements := flat.Data().(type) {
		case []float64:
			copy(a.data, elements)
		case []float32:
			for i, e := range elements {
				a.data[i] = float64(e)
			}
		}
		return a, nil
	}
	elements := reflect.ValueOf(v.Data())
	if elements.Kind() != reflect.Slice {
		e, err := number(elements)
		return array{shape, []float64{e}}, err
	}
	a := array{shape, make([]float64, elements.Len())}
	for i := range a.data {
		var err error
		if a.data[i], err = number(elements.Index(i)); err != nil {
			return array{}, err
		}
	}
	if len(a.data) != shape.TotalSize() {
		return array{}, errors.Errorf("a view of a tensor of %v cannot be read", v.Dtype())
	}
	return a, nil
}

// number makes a float64 of a number, and 0 and 1 of false and true.
func number(v reflect.Value) (float64, error) {
	switch {
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			return 1, nil
		}
		return 0, nil
	case v.IsValid() && v.CanConvert(reflect.TypeFor[float64]()):
		return v.Convert(reflect.TypeFor[float64]()).Float(), nil
	}
	return 0, errors.Errorf("%v is no number", v)
}

func (a array) like(b array) bool { return slices.Equal(a.shape, b.shape) }

func (a array) scaled(by float64) array {
	out := array{a.shape, make([]float64, len(a.data))}
	for i, v := range a.data {
		out.data[i] = v * by
	}
	return out
}

// value is what a record has: a float64, or a tensor of its own memory.
func (a array) value() any {
	if len(a.shape) == 0 {
		return a.data[0]
	}
	return tensor.New(tensor.WithShape(a.shape...), tensor.WithBacking(slices.Clone(a.data)))
}
