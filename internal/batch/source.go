package batch

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/convert"
)

// Source is an input of a graph that each batch gives another value.
type Source struct {
	Node  *gorgonia.Node
	Name  string
	Named bool // by the user
	dt    tensor.Dtype
	shape tensor.Shape
	own   gorgonia.Value // where data are copied to
	data  gorgonia.Value // of this batch, in the node's dtype and shape
	ours  bool           // data is memory of the algorithm's
}

// NewSource makes a source of an input, which must have a type, and elements: a machine of Gorgonia takes the program down with it
// when one of its operations looks at the first of none.
func NewSource(n *gorgonia.Node) (*Source, error) {
	if n.Type() == nil {
		return nil, errors.New("the input has no type")
	}
	if slices.Contains(n.Shape(), 0) {
		return nil, errors.Errorf("the input has the shape %v and so no elements to compute with: leave out batches without examples", n.Shape())
	}
	s := &Source{Node: n, dt: n.Dtype(), shape: n.Shape()}
	s.Name, s.Named = GivenName(n)
	return s, nil
}

// GivenName is the name that the user gave a node. Gorgonia prints something for a nameless input.
func GivenName(n *gorgonia.Node) (name string, ok bool) {
	name = n.Name()
	if n.Op() == nil && name == fmt.Sprintf("%s()", gorgonia.Op(nil)) || name == "" {
		return "", false
	}
	return name, true
}

// Accept checks and converts the data of a batch: a dense tensor, a Gorgonia scalar, a Go number or slices. It writes nothing to the graph.
func (s *Source) Accept(data any) (err error) {
	s.data, s.ours = nil, false
	if isNil(data) {
		return errors.New("the data are nil")
	}
	switch d := data.(type) {
	case *tensor.Dense:
		if d.Dtype().Type == nil {
			return errors.New("the tensor was never made: use tensor.New")
		}
		if d.Dtype() == s.dt && !s.shape.IsScalar() && copies(s.dt) {
			s.data = d
			return s.checkShape(d.Shape())
		}
		return s.convertDense(d)
	case tensor.Tensor:
		return errors.Errorf("a %T cannot be used: it must be a dense tensor", data)
	case gorgonia.Value: // a scalar
		return s.convert(reflect.ValueOf(d.Data()), nil)
	}
	v := reflect.ValueOf(data)
	shape, err := shapeOf(v)
	if err != nil {
		return err
	}
	return s.convert(v, shape)
}

func isNil(data any) bool {
	v := reflect.ValueOf(data)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// copies reports whether graphops.Copy can copy tensors of a dtype.
func copies(dt tensor.Dtype) bool {
	return dt == tensor.Float64 || dt == tensor.Float32 || dt == tensor.Int64
}

func (s *Source) checkShape(shape tensor.Shape) error {
	if len(shape) != len(s.shape) || !slices.Equal(shape, s.shape) {
		return errors.Errorf("the data have shape %v, the input has %v", shape, s.shape)
	}
	return nil
}

// Bind gives the node what was accepted: in memory of the source's own, so that the data may be changed afterwards.
func (s *Source) Bind() error {
	v := s.data
	s.data = nil
	if !s.ours {
		if s.own == nil {
			s.own = tensor.New(tensor.Of(s.dt), tensor.WithShape(s.shape...))
		}
		if err := graphops.Copy(s.own, v); err != nil {
			return err
		}
		v = s.own
	}
	return gorgonia.Let(s.Node, v)
}

// convertDense converts a tensor of another dtype, or one that cannot be copied as it is.
func (s *Source) convertDense(d *tensor.Dense) error {
	if err := s.checkShape(d.Shape()); err != nil {
		return err
	}
	if d.Dtype().Kind() == reflect.Float64 && s.dt == tensor.Float32 {
		return errors.New("a float64 tensor for a float32 input: convert it")
	}
	if d.IsScalar() {
		return s.convert(reflect.ValueOf(d.Data()), nil)
	}
	flat, all := reflect.MakeSlice(reflect.SliceOf(s.dt.Type), 0, d.Shape().TotalSize()), reflect.ValueOf(d.Data())
	it := d.Iterator()
	for i, err := it.Next(); err == nil; i, err = it.Next() {
		x, err := s.element(all.Index(i), false)
		if err != nil {
			return err
		}
		flat = reflect.Append(flat, x)
	}
	return s.take(flat)
}

// convert converts Go data, whose shape is known.
func (s *Source) convert(v reflect.Value, shape tensor.Shape) error {
	if err := s.checkShape(shape); err != nil {
		return err
	}
	if len(shape) == 0 {
		x, err := s.element(v, true)
		if err != nil {
			return err
		}
		return s.takeScalar(x)
	}
	if v.Type() == reflect.SliceOf(s.dt.Type) && copies(s.dt) {
		s.data = tensor.New(tensor.WithShape(s.shape...), tensor.WithBacking(v.Interface()))
		return nil
	}
	flat, err := s.flatten(reflect.MakeSlice(reflect.SliceOf(s.dt.Type), 0, shape.TotalSize()), v)
	if err != nil {
		return err
	}
	return s.take(flat)
}

// flatten appends the elements of nested slices.
func (s *Source) flatten(flat, v reflect.Value) (_ reflect.Value, err error) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
		x, err := s.element(v, false)
		if err != nil {
			return flat, err
		}
		return reflect.Append(flat, x), nil
	}
	if v.Kind() == reflect.Slice && v.Type().Elem() == s.dt.Type {
		return reflect.AppendSlice(flat, v.Convert(flat.Type())), nil
	}
	for i := range v.Len() {
		if flat, err = s.flatten(flat, v.Index(i)); err != nil {
			return flat, err
		}
	}
	return flat, nil
}

// take makes a tensor of converted elements.
func (s *Source) take(flat reflect.Value) error {
	s.data, s.ours = tensor.New(tensor.WithShape(s.shape...), tensor.WithBacking(flat.Interface())), true
	return nil
}

func (s *Source) takeScalar(x reflect.Value) error {
	s.ours = true
	switch v := x.Interface().(type) {
	case float64:
		s.data = gorgonia.NewF64(v)
	case float32:
		s.data = gorgonia.NewF32(v)
	case int:
		s.data = gorgonia.NewI(v)
	case int64:
		s.data = gorgonia.NewI64(v)
	case int32:
		s.data = gorgonia.NewI32(v)
	case uint8:
		s.data = gorgonia.NewU8(v)
	case bool:
		s.data = gorgonia.NewB(v)
	default:
		return errors.Errorf("Gorgonia has no scalars of dtype %v", s.dt)
	}
	return nil
}

// element converts one number to the input's dtype where nothing is lost. single is for numbers that are no part of an array: a
// float64 among them is what Go makes of any number with a point, and is rounded to float32.
func (s *Source) element(v reflect.Value, single bool) (x reflect.Value, err error) {
	if !v.IsValid() {
		return v, errors.New("the data are nil")
	}
	want := s.dt.Type
	wantFloat, isFloat := isFloatKind(want.Kind()), isFloatKind(v.Kind())
	switch {
	case v.Kind() == want.Kind():
		return v.Convert(want), nil
	case isFloat && !wantFloat:
		return v, errors.Errorf("a %v for an input of dtype %v", v.Type(), s.dt)
	case isFloat && want.Kind() == reflect.Float64:
		return v.Convert(want), nil
	case isFloat && !single:
		return v, errors.Errorf("float64 data for a float32 input: convert them")
	case isFloat:
		if f := v.Float(); math.Abs(f) > math.MaxFloat32 && !math.IsInf(f, 0) {
			return v, errors.Errorf("%v is out of the range of float32", f)
		}
		return v.Convert(want), nil
	}
	x, ok := convert.Number(v, want)
	if !ok {
		return v, errors.Errorf("%v of type %v cannot be made %v without loss", v, v.Type(), s.dt)
	}
	return x, nil
}

func isFloatKind(k reflect.Kind) bool { return k == reflect.Float32 || k == reflect.Float64 }

// shapeOf is the shape of nested slices, whose lengths must agree.
func shapeOf(v reflect.Value) (shape tensor.Shape, err error) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
		return nil, nil
	}
	var inner tensor.Shape
	for i := range v.Len() {
		sub, err := shapeOf(v.Index(i))
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.Equal(sub, inner) {
			return nil, errors.Errorf("the slices differ in length: %v and %v", inner, sub)
		}
		inner = sub
		if elem := v.Type().Elem().Kind(); elem != reflect.Slice && elem != reflect.Array && elem != reflect.Interface {
			break // numbers are all alike
		}
	}
	return append(tensor.Shape{v.Len()}, inner...), nil
}
