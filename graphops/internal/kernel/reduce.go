package kernel

import (
	"math"
	"math/bits"
)

// accumulator reduces strips of elements in float64. Its order of additions depends on the number of elements alone: eight
// lanes within a strip, then a binary tree over the strips, which also keeps the rounding error of long sums small.
type accumulator struct {
	op     Op
	strips uint64
	tree   [64]float64 // tree[k] holds the sum of 2^k strips where bit k of strips is set
	max    float64
	all    bool
}

func (r *accumulator) reset(op Op) {
	*r = accumulator{op: op, max: math.Inf(-1), all: true}
}

func add[T float](r *accumulator, x []T) {
	switch r.op {
	case MaxAll:
		for _, v := range x {
			r.max = max(r.max, float64(v))
		}
		return
	case All:
		for _, v := range x {
			r.all = r.all && v != 0
		}
		return
	}
	var lanes [8]float64
	for i, v := range x {
		f := float64(v)
		if r.op == SumSquares {
			f = float64(f * f)
		}
		lanes[i&7] += f
	}
	s := ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
	carry := bits.TrailingZeros64(^r.strips)
	for k := range carry {
		s = r.tree[k] + s
	}
	r.tree[carry] = s
	r.strips++
}

func (r *accumulator) result() float64 {
	switch r.op {
	case MaxAll:
		return r.max
	case All:
		return truth[float64](r.all)
	}
	var s float64
	for k := range r.tree {
		if r.strips>>k&1 == 1 {
			s = r.tree[k] + s
		}
	}
	return s
}
