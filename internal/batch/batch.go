// Package batch makes of the data of a batch, which a program has as tensors, numbers or slices, the values of a graph's inputs.
package batch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

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
