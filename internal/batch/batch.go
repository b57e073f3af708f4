// Package batch makes of the data of a batch, which a program has as tensors, numbers or slices, the values of a graph's inputs.
package batch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/tensor"
)

// Shape is the shape of what a batch has for a source; none of texts and the like.
func Shape(data any) (tensor.Shape, bool) {
	if isNil(data) {
		return nil, false
	}
	switch d := data.(type) {
	case interface{ Shape() tensor.Shape }:
		return d.Shape().Clone(), true
	case string:
		return nil, false
	}
	shape, err := shapeOf(reflect.ValueOf(data))
	return shape, err == nil
}

// Shapes are the shapes of all sources that have one.
func Shapes(b map[string]any) map[string]tensor.Shape {
	out := map[string]tensor.Shape{}
	for name, data := range b { // into another map
		if s, ok := Shape(data); ok {
			out[name] = s
		}
	}
	return out
}

// Build calls a function that makes a model of shapes. Its panics, such as those of gorgonia.Must, are errors.
func Build[M any](f func(map[string]tensor.Shape) (M, error), shapes map[string]tensor.Shape) (m M, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("the function panicked: %v", p)
		}
	}()
	return f(shapes)
}

// Describe names the sources with their shapes, for errors: "x (2, 3), y ()".
func Describe(b map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if s, ok := Shape(b[name]); ok {
			parts = append(parts, fmt.Sprintf("%s %v", name, s))
		} else {
			parts = append(parts, fmt.Sprintf("%s %T", name, b[name]))
		}
	}
	return strings.Join(parts, ", ")
}
