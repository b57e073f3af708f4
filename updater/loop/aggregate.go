package loop

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ratio is Σ numerator / Σ denominator. The denominators are scalars or have the shape of the numerators.
type ratio struct {
	num, den fold
	weigh    func(values []array, examples float64) (num, den array)
}

func (r *ratio) Add(values []gorgonia.Value, examples float64) error {
	arrays, err := arraysOf(values)
	if err != nil {
		return err
	}
	num, den := r.weigh(arrays, examples)
	if len(den.shape) > 0 && !num.like(den) {
		return errors.Errorf("a sum of shape %v over one of shape %v", num.shape, den.shape)
	}
	r.num.join, r.den.join = add, add
	if err := r.num.add(num); err != nil {
		return err
	}
	return r.den.add(den)
}

func add(old, new float64) float64 { return old + new }

func (r *ratio) Value() (any, error) {
	num, den := r.num.array, r.den.array
	out := array{num.shape, make([]float64, len(num.data))}
	for i, v := range num.data {
		d := den.data[0]
		if len(den.shape) > 0 {
			d = den.data[i]
		}
		out.data[i] = v / d
	}
	return out.value(), nil
}

// fold joins the batches' values elementwise, from left to right.
type fold struct {
	join  func(old, new float64) float64
	array array
	any   bool
}

func (f *fold) Add(values []gorgonia.Value, _ float64) error {
	a, err := arrayOf(values[0])
	if err != nil {
		return err
	}
	return f.add(a)
}

func (f *fold) add(a array) error {
	if !f.any {
		f.array, f.any = a, true
		return nil
	}
	if !f.array.like(a) {
		return errors.Errorf("a value of shape %v after one of shape %v", a.shape, f.array.shape)
	}
	for i, v := range a.data {
		f.array.data[i] = f.join(f.array.data[i], v)
	}
	return nil
}

func (f *fold) Value() (any, error) { return f.array.value(), nil }

// last keeps the last value.
type last struct{ array array }

func (l *last) Add(values []gorgonia.Value, _ float64) (err error) {
	l.array, err = arrayOf(values[0])
	return err
}

func (l *last) Value() (any, error) { return l.array.value(), nil }

// concatenation keeps all values.
type concatenation struct {
	first array
	n     int
	data  []float64
}

func (c *concatenation) Add(values []gorgonia.Value, _ float64) error {
	a, err := arrayOf(values[0])
	if err != nil {
		return err
	}
	if c.n == 0 {
		c.first = a
	} else if !c.first.like(a) {
		return errors.Errorf("a value of shape %v after one of shape %v", a.shape, c.first.shape)
	}
	c.n++
	c.data = append(c.data, a.data...)
	return nil
}

func (c *concatenation) Value() (any, error) {
	return array{append(tensor.Shape{c.n}, c.first.shape...), c.data}.value(), nil
}

// mapped applies a function to the elements of a result.
type mapped struct {
	Aggregator
	f func(float64) float64
}

func (m *mapped) Value() (any, error) {
	v, err := m.Aggregator.Value()
	if err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case float64:
		return m.f(x), nil
	case *tensor.Dense:
		for i, e := range x.Float64s() {
			x.Float64s()[i] = m.f(e)
		}
		return x, nil
	}
	return nil, errors.Errorf("a %T has no elements to apply a function to", v)
}
