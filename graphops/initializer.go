package graphops

import (
	"math"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
	"optimop/internal/spelling"
	"optimop/internal/suggest"
)

// Initializer says what a variable holds before the first step, and after Store.Reset. The zero Initializer makes zeros. Random
// numbers are a function of Seed, of the variable's name and of the element's index, by the generator of TruncatedNormal.
type Initializer struct {
	// Name is one of these; case, "_" and "-" make no difference:
	//
	//	"zeros", "ones"                          also ""
	//	"constant"                               Value
	//	"uniform", "random_uniform"              between Low and High, exclusive
	//	"normal", "random_normal"                of Mean and StandardDeviation
	//	"truncated_normal"                       the same, without what lies beyond ±2 deviations
	Name                    string
	Value                   float64
	Low, High               float64
	Mean, StandardDeviation float64
	Seed                    float64
}

var initializers = []string{"zeros", "ones", "constant", "uniform", "random_uniform", "normal", "random_normal", "truncated_normal"}

// Validate says what is wrong with an initializer: an unknown name, a number that is not finite, High below Low, a deviation
// below zero. A constant may be any number.
func (i Initializer) Validate() error {
	for _, x := range []float64{i.Low, i.High, i.Mean, i.StandardDeviation, i.Seed} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return errors.Errorf("initializer %q: %v is not finite", i.Name, x)
		}
	}
	switch {
	case i.High < i.Low:
		return errors.Errorf("initializer %q: high, %v, is below low, %v", i.Name, i.High, i.Low)
	case i.StandardDeviation < 0:
		return errors.Errorf("initializer %q: the standard deviation is %v", i.Name, i.StandardDeviation)
	case i.kind() == "":
		return errors.Errorf("no initializer is called %q%s", i.Name, suggest.For(i.Name, initializers))
	}
	return nil
}

// kind is the name in the way in which fill knows it, "" if it is unknown.
func (i Initializer) kind() string {
	switch name := spelling.Fold(i.Name); name {
	case "", "zeros":
		return "zeros"
	case "ones", "constant", "truncatednormal", "uniform", "normal":
		return name
	case "randomuniform", "randomnormal":
		return name[len("random"):]
	}
	return ""
}

// constant is the one number of all elements, if there is one.
func (i Initializer) constant() (v float64, ok bool) {
	switch i.kind() {
	case "zeros":
		return 0, true
	case "ones":
		return 1, true
	}
	return i.Value, i.kind() == "constant"
}

// random makes the two numbers that share the bits of a place.
func (i Initializer) random() func(a, b, c, d uint32) (x, y float64) {
	switch i.kind() {
	case "uniform":
		return func(a, b, c, d uint32) (x, y float64) {
			return i.Low + float64((i.High-i.Low)*kernel.Uniform(a, b)), i.Low + float64((i.High-i.Low)*kernel.Uniform(c, d))
		}
	case "normal": // Box and Muller
		return func(a, b, c, d uint32) (x, y float64) {
			radius := i.StandardDeviation * math.Sqrt(-2*math.Log(kernel.Uniform(a, b)))
			sin, cos := math.Sincos(2 * math.Pi * kernel.Uniform(c, d))
			return i.Mean + float64(radius*cos), i.Mean + float64(radius*sin)
		}
	}
	return func(a, b, c, d uint32) (x, y float64) {
		x, y = kernel.TruncatedNormalOf(kernel.Uniform(a, b)), kernel.TruncatedNormalOf(kernel.Uniform(c, d))
		return i.Mean + float64(i.StandardDeviation*x), i.Mean + float64(i.StandardDeviation*y)
	}
}

// fill writes the initial numbers of a variable of that name into its value.
func (i Initializer) fill(v gorgonia.Value, name string) error {
	m, err := memoryOf(v)
	if err != nil {
		return err
	}
	if v.Dtype() == tensor.Float32 {
		initialize(i, name, kernel.Elements[float32](m.Array))
	} else {
		initialize(i, name, kernel.Elements[float64](m.Array))
	}
	return nil
}

func initialize[T float32 | float64](i Initializer, name string, to []T) {
	if v, ok := i.constant(); ok {
		for k := range to {
			to[k] = T(v)
		}
		return
	}
	r, numbers := kernel.NewRandom(i.Seed, kernel.Stream(name), 0), i.random()
	for k := 0; k < len(to); k += 2 {
		x, y := numbers(r.Words(k / 2))
		to[k] = T(x)
		if k+1 < len(to) {
			to[k+1] = T(y)
		}
	}
}
