// Package batch gives the data of a batch, which a program has as tensors, numbers or slices, the form that a graph wants.
package batch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/internal/convert"
)

// Shape is the shape of a source: a tensor's or value's own, that of a number, or that of nested slices of equal lengths. It is
// an error where it is none of these.
func Shape(v any) (tensor.Shape, error) {
	if s, ok := v.(interface{ Shape() tensor.Shape }); ok {
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
			return nil, errors.Errorf("a nil %T", v)
		}
		return s.Shape(), nil
	}
	shape, at := tensor.Shape{}, reflect.ValueOf(v)
	for at.Kind() == reflect.Slice || at.Kind() == reflect.Array {
		n := at.Len()
		shape = append(shape, n)
		if n == 0 {
			return shape, nil
		}
		at = at.Index(0)
	}
	if !at.IsValid() || at.Kind() < reflect.Bool || at.Kind() > reflect.Float64 {
		return nil, errors.Errorf("a %T is no tensor, number or slice of numbers", v)
	}
	return shape, nil
}

// Shapes are the shapes of all sources that have one.
func Shapes(b map[string]any) map[string]tensor.Shape {
	out := map[string]tensor.Shape{}
	for name, v := range b {
		if s, err := Shape(v); err == nil {
			out[name] = s
		}
	}
	return out
}

// Describe names the sources with their shapes, for errors: "x (2, 3), y ()".
func Describe(b map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if s, err := Shape(b[name]); err == nil {
			parts = append(parts, fmt.Sprintf("%s %v", name, s))
		} else {
			parts = append(parts, fmt.Sprintf("%s %T", name, b[name]))
		}
	}
	return strings.Join(parts, ", ")
}

// Bind gives an input node a source as its value, which must have the node's shape. Tensors and values are taken as they are,
// without a copy, and must have its dtype. Numbers and slices are converted where nothing is lost; a single Go number is also
// rounded to float32.
func Bind(n *gorgonia.Node, v any) error {
	value, err := valueFor(n, v)
	if err == nil {
		err = gorgonia.Let(n, value)
	}
	return errors.Wrapf(err, "source %q", n.Name())
}

func valueFor(n *gorgonia.Node, v any) (any, error) {
	dt, shape := n.Dtype(), n.Shape()
	have, err := Shape(v)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(have, shape) {
		return nil, errors.Errorf("the shape is %v, not %v", have, shape)
	}
	if given, ok := v.(gorgonia.Value); ok {
		switch {
		case given.Dtype() != dt:
			return nil, errors.Errorf("the dtype is %v, not %v", given.Dtype(), dt)
		case !shape.IsScalar():
			return given, nil
		}
		v = given.Data() // Gorgonia cannot multiply tensors without axes
	}
	if len(shape) == 0 {
		return number(reflect.ValueOf(v), dt)
	}
	all := reflect.MakeSlice(reflect.SliceOf(dt.Type), 0, shape.TotalSize())
	if all, err = flatten(all, reflect.ValueOf(v), shape); err != nil {
		return nil, err
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(all.Interface())), nil
}

func number(v reflect.Value, dt tensor.Dtype) (any, error) {
	c, ok := exactly(v, dt.Type)
	if !ok && v.Kind() == reflect.Float64 && dt == tensor.Float32 {
		c, ok = v.Convert(dt.Type), true
	}
	if !ok {
		return nil, errors.Errorf("%v (%v) is no %v without a loss", v, v.Type(), dt)
	}
	return c.Interface(), nil
}

// flatten appends the numbers of nested slices, row by row.
func flatten(all, v reflect.Value, shape tensor.Shape) (reflect.Value, error) {
	if len(shape) == 0 {
		c, ok := exactly(v, all.Type().Elem())
		if !ok {
			return all, errors.Errorf("%v (%v) is no %v without a loss", v, v.Type(), all.Type().Elem())
		}
		return reflect.Append(all, c), nil
	}
	if v.Len() != shape[0] {
		return all, errors.Errorf("a slice of %d elements beside others of %d", v.Len(), shape[0])
	}
	for i := range v.Len() {
		var err error
		if all, err = flatten(all, v.Index(i), shape[1:]); err != nil {
			return all, err
		}
	}
	return all, nil
}

func exactly(v reflect.Value, want reflect.Type) (reflect.Value, bool) {
	if v.Type() == want { // also a NaN, which is not equal to itself
		return v, true
	}
	return convert.Number(v, want)
}
