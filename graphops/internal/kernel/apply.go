package kernel

import "math"

type float interface{ float32 | float64 }

// apply computes d[i] = op(a[i], b[i], c[i]). Each element is rounded to T by the store, so that no compiler can fuse a
// multiplication with a later addition. d may be one of the operands.
func apply[T float](op Op, d, a, b, c []T) {
	switch op.Arity() {
	case 1:
		unary(op, d, a)
	case 2:
		if op >= Less {
			compare(op, d, a, b)
		} else {
			binary(op, d, a, b)
		}
	case 3:
		for i := range d {
			if a[i] != 0 {
				d[i] = b[i]
			} else {
				d[i] = c[i]
			}
		}
	}
}

func unary[T float](op Op, d, a []T) {
	a = a[:len(d)]
	switch op {
	case Neg:
		for i := range d {
			d[i] = -a[i]
		}
	case Square:
		for i := range d {
			d[i] = a[i] * a[i]
		}
	case Sqrt: // the float32 root of a float32 is the rounded float64 root
		for i := range d {
			d[i] = T(math.Sqrt(float64(a[i])))
		}
	case Abs:
		for i := range d {
			d[i] = T(math.Abs(float64(a[i])))
		}
	case Sign:
		for i := range d {
			switch {
			case a[i] > 0:
				d[i] = 1
			case a[i] < 0:
				d[i] = -1
			default:
				d[i] = a[i] // keeps the zero's sign and NaN
			}
		}
	case Floor:
		mapped(d, a, math.Floor)
	case Exp:
		mapped(d, a, math.Exp)
	case Log:
		mapped(d, a, math.Log)
	case Tanh:
		mapped(d, a, math.Tanh)
	case Cos:
		mapped(d, a, math.Cos)
	case IsFinite:
		for i := range d {
			d[i] = truth[T](a[i]-a[i] == 0)
		}
	case Not:
		for i := range d {
			d[i] = truth[T](a[i] == 0)
		}
	}
}

func mapped[T float](d, a []T, f func(float64) float64) {
	for i := range d {
		d[i] = T(f(float64(a[i])))
	}
}

func binary[T float](op Op, d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	switch op {
	case Add:
		for i := range d {
			d[i] = a[i] + b[i]
		}
	case Sub:
		for i := range d {
			d[i] = a[i] - b[i]
		}
	case Mul:
		for i := range d {
			d[i] = a[i] * b[i]
		}
	case Div:
		for i := range d {
			d[i] = a[i] / b[i]
		}
	case Min:
		for i := range d {
			d[i] = min(a[i], b[i])
		}
	case Max:
		for i := range d {
			d[i] = max(a[i], b[i])
		}
	case Pow:
		for i := range d {
			d[i] = T(math.Pow(float64(a[i]), float64(b[i])))
		}
	}
}

func compare[T float](op Op, d, a, b []T) {
	a, b = a[:len(d)], b[:len(d)]
	for i := range d {
		x, y := a[i], b[i]
		var t bool
		switch op {
		case Less:
			t = x < y
		case LessEqual:
			t = x <= y
		case Greater:
			t = x > y
		case GreaterEqual:
			t = x >= y
		case Equal:
			t = x == y
		case NotEqual:
			t = x != y
		case And:
			t = x != 0 && y != 0
		case Or:
			t = x != 0 || y != 0
		}
		d[i] = truth[T](t)
	}
}

func truth[T float](b bool) T {
	if b {
		return 1
	}
	return 0
}
