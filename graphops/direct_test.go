package graphops

import (
	"math"

	"github.com/pkg/errors"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// direct evaluates expressions as their documentation says, one element after the other, and shares no code with the kernel.
// Truth values are 0 and 1.
type direct struct {
	leaf func(*expr) []float64
	memo map[*expr][]float64
}

// orderly reports whether the value of an operation depends on the order of additions.
func orderly(op kernel.Op) bool {
	return op == kernel.Sum || op == kernel.SumSquares || op == kernel.SumAlong || op == kernel.MatMul
}

func (d *direct) eval(e *expr) []float64 {
	if v, ok := d.memo[e]; ok {
		return v
	}
	v := d.compute(e)
	for i := range v {
		v[i] = rounded(e, v[i])
	}
	d.memo[e] = v
	return v
}

// rounded is x in the dtype of e.
func rounded(e *expr, x float64) float64 {
	if !e.scalar && e.dt == tensor.Float32 {
		return float64(float32(x))
	}
	return x
}

func (d *direct) compute(e *expr) []float64 {
	if e.op == kernel.Leaf {
		return d.leaf(e)
	}
	if e.op == kernel.Const {
		return []float64{e.value}
	}
	args := make([][]float64, 3)
	for i, a := range e.args {
		args[i] = d.eval(a)
	}
	switch {
	case orderly(e.op):
		v, _ := d.sums(e)
		return v
	case e.op == kernel.MaxAll:
		most := math.Inf(-1)
		for _, x := range args[0] {
			most = max(most, x)
		}
		return []float64{most}
	case e.op == kernel.All:
		for _, x := range args[0] {
			if x == 0 {
				return []float64{0}
			}
		}
		return []float64{1}
	}
	n := 1
	if !e.scalar {
		n = e.shape.TotalSize()
	}
	v := make([]float64, n)
	for i := range v {
		switch e.op {
		case kernel.Transpose:
			r, c := e.shape[0], e.shape[1]
			v[i] = args[0][i%c*r+i/c]
		case kernel.BroadcastTo:
			v[i] = args[0][shortIndex(i, e.shape, e.args[0].shape)]
		default:
			var x [3]float64
			for k, a := range e.args {
				if x[k] = args[k][min(i, len(args[k])-1)]; a.scalar {
					x[k] = rounded(e, args[k][0])
				}
			}
			v[i] = scalarOp(e.op, x[0], x[1], x[2])
		}
	}
	return v
}

// shortIndex is the place, in a shape with axes of length 1, of element i of a long shape.
func shortIndex(i int, long, short tensor.Shape) (at int) {
	step := 1
	for k := len(long) - 1; k >= 0; k-- {
		at += min(i%long[k], short[k]-1) * step
		i, step = i/long[k], step*short[k]
	}
	return at
}

// sums gives the result of an operation that adds, and the sums of the magnitudes of what it adds.
func (d *direct) sums(e *expr) (v, magnitudes []float64) {
	a, n := d.eval(e.args[0]), 1
	if !e.scalar {
		n = e.shape.TotalSize()
	}
	v, magnitudes = make([]float64, n), make([]float64, n)
	add := func(i int, x float64) {
		v[i] += x
		magnitudes[i] += math.Abs(x)
	}
	if e.op == kernel.MatMul {
		b := d.eval(e.args[1])
		r, m, c := e.shape[0], e.args[0].shape[1], e.shape[1]
		for i := range r {
			for j := range c {
				for k := range m {
					add(i*c+j, a[i*m+k]*b[k*c+j])
				}
			}
		}
		return v, magnitudes
	}
	for i, x := range a {
		switch e.op {
		case kernel.Sum:
			add(0, x)
		case kernel.SumSquares:
			add(0, x*x)
		default:
			add(shortIndex(i, e.args[0].shape, e.shape), x)
		}
	}
	return v, magnitudes
}

// accept takes the values of an operation that adds, if they are close to the right ones. Where a sum may overflow or vanish
// in another order they are taken as they are, and so is the BLAS's product of 0 and NaN.
func (d *direct) accept(e *expr, got []float64) error {
	want, magnitudes := d.sums(e)
	for i := range want {
		eps, most := 1e-12, 1e290
		if !e.scalar && e.dt == tensor.Float32 {
			eps, most = 1e-4, 1e36
		}
		if diff := math.Abs(want[i] - got[i]); magnitudes[i] < most && !(diff <= eps*magnitudes[i]+1e-36) {
			return errors.Errorf("element %d of a %v is %v, not about %v", i, e.op, got[i], want[i])
		}
		if e.op != kernel.MatMul && math.IsNaN(magnitudes[i]) && !math.IsNaN(got[i]) {
			return errors.Errorf("element %d of a %v with NaN is %v", i, e.op, got[i])
		}
	}
	d.memo[e] = got
	return nil
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// scalarOp is a primitive of float64s. That of float32s is its rounded value: float64 has more than twice the digits.
func scalarOp(op kernel.Op, x, y, z float64) float64 {
	switch op {
	case kernel.Neg:
		return -x
	case kernel.Square:
		return x * x
	case kernel.Sqrt:
		return math.Sqrt(x)
	case kernel.Abs:
		return math.Abs(x)
	case kernel.Sign:
		if x == 0 || math.IsNaN(x) {
			return x
		}
		return math.Copysign(1, x)
	case kernel.Floor:
		return math.Floor(x)
	case kernel.Exp:
		return math.Exp(x)
	case kernel.Log:
		return math.Log(x)
	case kernel.Tanh:
		return math.Tanh(x)
	case kernel.Cos:
		return math.Cos(x)
	case kernel.IsFinite:
		return truth(!math.IsNaN(x) && !math.IsInf(x, 0))
	case kernel.Not:
		return 1 - x
	case kernel.Add:
		return x + y
	case kernel.Sub:
		return x - y
	case kernel.Mul:
		return x * y
	case kernel.Div:
		return x / y
	case kernel.Min:
		return min(x, y) // where math.Min(-Inf, NaN) is -Inf
	case kernel.Max:
		return max(x, y)
	case kernel.Pow:
		return math.Pow(x, y)
	case kernel.Less:
		return truth(x < y)
	case kernel.LessEqual:
		return truth(x <= y)
	case kernel.Greater:
		return truth(x > y)
	case kernel.GreaterEqual:
		return truth(x >= y)
	case kernel.Equal:
		return truth(x == y)
	case kernel.NotEqual:
		return truth(x != y)
	case kernel.And:
		return x * y
	case kernel.Or:
		return max(x, y)
	case kernel.Select:
		if x == 1 {
			return y
		}
		return z
	}
	panic(op)
}
