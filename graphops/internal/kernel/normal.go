package kernel

import "math"

// normals fills an array with truncated normal numbers.
type normals struct {
	args   []int // scalar nodes: seed and draw
	stream uint64
	random Random // of this run
	value  Array
}

func (s *normals) fill(lo, hi int) {
	if s.value.Type == Float32 {
		fill(&s.random, Elements[float32](s.value), lo, hi)
	} else {
		fill(&s.random, Elements[float64](s.value), lo, hi)
	}
}

// fill computes the elements from lo, which is even, to hi. Two elements share the bits of a place.
func fill[T float](r *Random, x []T, lo, hi int) {
	for i := lo; i < hi; i += 2 {
		a, b, c, d := r.Words(i / 2)
		x[i] = T(TruncatedNormalOf(Uniform(a, b)))
		if i+1 < hi {
			x[i+1] = T(TruncatedNormalOf(Uniform(c, d)))
		}
	}
}

// within2 is the probability that a standard normal number lies between -2 and 2: erf(√2).
const within2 = 0.95449973610364158560

// TruncatedNormalOf turns a uniform number into a standard normal one that is limited to [-2, 2]: the quantile of a uniform number
// between Φ(-2) and Φ(2).
func TruncatedNormalOf(u float64) float64 {
	return max(-2, min(2, quantile(float64((u-0.5)*within2))))
}

// quantile is the normal quantile of 1/2 + q for |q| < 0.4999, by algorithm AS 241 (PPND16) of Wichura, "The percentage points of
// the normal distribution" (1988), to about 1e-16 of the result.
func quantile(q float64) float64 {
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return q * ratio(&middleOver, &middleUnder, r)
	}
	r := math.Sqrt(-math.Log(0.5-math.Abs(q))) - 1.6
	return math.Copysign(ratio(&sideOver, &sideUnder, r), q)
}

// ratio is that of two polynomials, with their constant terms first. The conversions keep compilers from fusing a product with a
// sum.
func ratio(over, under *[8]float64, x float64) float64 {
	y, z := over[7], under[7]
	for i := 6; i >= 0; i-- {
		y, z = float64(y*x)+over[i], float64(z*x)+under[i]
	}
	return y / z
}

var (
	middleOver = [8]float64{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
		4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3}
	middleUnder = [8]float64{1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
		2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}
	sideOver = [8]float64{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
		1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4}
	sideUnder = [8]float64{1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}
)
