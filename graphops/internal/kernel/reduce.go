package kernel

import (
	"math"
	"math/bits"
)

// A sum is added up in float64 in an order that depends on the number of elements alone: element i of a block goes to lane
// i mod lanes, the lanes of a block are added pairwise, the blocks of a chunk in a binary tree, and the chunks in another.
// That keeps the rounding error of long sums small, and the work can be shared out by chunks.
const (
	lanes = 32
	block = 4096
)

// tree adds numbers up pairwise: sums[k] holds the sum of 2^k of them where bit k of n is set.
type tree struct {
	n    uint64
	sums [40]float64
}

func (t *tree) add(s float64) {
	carry := bits.TrailingZeros64(^t.n)
	for k := range carry {
		s = t.sums[k] + s
	}
	t.sums[carry] = s
	t.n++
}

func (t *tree) total() (s float64) {
	for k := range bits.Len64(t.n) {
		if t.n>>k&1 == 1 {
			s = t.sums[k] + s
		}
	}
	return s
}

// sumLanes adds the lanes of a block pairwise.
func sumLanes(l *[lanes]float64) float64 {
	for h := lanes / 2; h > 0; h /= 2 {
		for i := range h {
			l[i] += l[i+h]
		}
	}
	return l[0]
}

// neutral is the reduction of nothing.
func neutral(op Op) float64 {
	switch op {
	case MaxAll:
		return math.Inf(-1)
	case All:
		return 1
	}
	return 0
}

// total reduces the parts of an array.
func total(op Op, parts []float64) float64 {
	if op == MaxAll || op == All {
		r := neutral(op)
		for _, x := range parts {
			r = extreme(op, r, x)
		}
		return r
	}
	var t tree
	for _, x := range parts {
		t.add(x)
	}
	return t.total()
}

// extreme is the reduction of two elements by MaxAll or All.
func extreme(op Op, r, x float64) float64 {
	if op == MaxAll {
		return max(r, x)
	}
	return truth[float64](r != 0 && x != 0)
}

// accumulator reduces one chunk.
type accumulator struct {
	op      Op
	lanes   [lanes]float64
	blocks  tree
	extreme float64
}

// sums reports whether the reduction is a sum, and not an extreme.
func (r *accumulator) sums() bool { return r.op == Sum || r.op == SumSquares }

func (r *accumulator) reset(op Op) { *r = accumulator{op: op, extreme: neutral(op)} }

// add reduces elements that begin at index lo of their chunk, within one block.
func add[T float](r *accumulator, lo int, x []T) {
	switch r.op {
	case Sum:
		for i, v := range x {
			r.lanes[(lo+i)%lanes] += float64(v)
		}
	case SumSquares:
		for i, v := range x {
			f := float64(v)
			r.lanes[(lo+i)%lanes] += float64(f * f)
		}
	default:
		for _, v := range x {
			r.extreme = extreme(r.op, r.extreme, float64(v))
		}
	}
}

// endBlock closes a block.
func (r *accumulator) endBlock() {
	if r.sums() {
		r.blocks.add(sumLanes(&r.lanes))
		r.lanes = [lanes]float64{}
	}
}

func (r *accumulator) result() float64 {
	if r.sums() {
		return r.blocks.total()
	}
	return r.extreme
}
