package kernel

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/mat"
)

// BLAS multiplies matrices.
type BLAS interface {
	Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
	Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int)
}

// whole is a value that is computed as a whole before the passes that read it: the result of a rearranging operation, or an
// elementwise operand of one.
type whole struct {
	op    Op
	dims  []int
	args  []int // arrays
	needs []int // whole values that must come before
	pass  *pass // of an elementwise operand: computes it
	value Array
	done  bool
	sums  []float64
}

// Dims encodes the shapes of a rearranging operation: m, k, n of a matrix product; rows and columns of a matrix; the long
// shape and then the short one, which has as many axes, of SumAlong and BroadcastTo.
func Dims(n ...int) string {
	var b strings.Builder
	for i, x := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(x))
	}
	return b.String()
}

func parseDims(s string) (n []int) {
	for f := range strings.SplitSeq(s, ",") {
		x, _ := strconv.Atoi(f)
		n = append(n, x)
	}
	return n
}

// needWhole makes the value of node i available as a whole, and returns its index.
func (p *Program) needWhole(i int) int {
	if k, ok := p.wholeOf[i]; ok {
		return k
	}
	n := p.nodes[i]
	w := &whole{op: n.Op, value: newArray(n.Type, n.Len)}
	if n.Op.Rearranges() {
		w.dims = parseDims(n.Dims)
		for a := range n.Op.Arity() {
			arg := n.Args[a]
			if x := p.nodes[arg]; x.Op == Leaf {
				w.args = append(w.args, x.Leaf)
			} else {
				k := p.needWhole(arg)
				w.args = append(w.args, p.leaves+k)
				w.needs = append(w.needs, k)
			}
		}
	} else {
		w.pass = p.newPass(i, -1)
		w.pass.result = w.pass.use(p, i)
	}
	k := len(p.whole)
	p.whole = append(p.whole, w)
	p.wholeOf[i] = k
	return k
}

func newArray(t DType, n int) Array {
	if t == Float32 {
		return Of(make([]float32, n))
	}
	return Of(make([]float64, n))
}

// evaluate computes whole value k once per run.
func (p *Program) evaluate(in []Array, k int) {
	w := p.whole[k]
	if w.done {
		return
	}
	w.done = true
	for _, n := range w.needs {
		p.evaluate(in, n)
	}
	if w.pass != nil {
		p.prepare(in, w.pass)
		if w.value.Type == Float32 {
			fill[float32](p, p.f32, w, in)
		} else {
			fill[float64](p, p.f64, w, in)
		}
		return
	}
	if w.value.Len == 0 {
		return
	}
	if w.value.Type == Float32 {
		rearrange[float32](p, w, in)
	} else {
		rearrange[float64](p, w, in)
	}
}

// fill computes an elementwise operand.
func fill[T float](p *Program, regs []T, w *whole, in []Array) {
	broadcast(p, regs, w.pass)
	d := elements[T](w.value)
	for lo := 0; lo < w.pass.n; lo += strip {
		hi := min(lo+strip, w.pass.n)
		compute(regs, w.pass, in, lo, hi)
		copy(d[lo:hi], at(regs, in, w.pass.result, lo, hi))
	}
}

func rearrange[T float](p *Program, w *whole, in []Array) {
	d, a := elements[T](w.value), elements[T](in[w.args[0]])
	switch w.op {
	case MatMul:
		p.gemm(w.dims[0], w.dims[1], w.dims[2], in[w.args[0]], in[w.args[1]], w.value)
	case Transpose:
		r, c := w.dims[0], w.dims[1]
		for i := range r {
			for j := range c {
				d[j*r+i] = a[i*c+j]
			}
		}
	case SumAlong:
		if len(w.sums) != len(d) {
			w.sums = make([]float64, len(d))
		}
		clear(w.sums)
		short(w.dims, func(long, short int) { w.sums[short] += float64(a[long]) })
		for i, s := range w.sums {
			d[i] = T(s)
		}
	case BroadcastTo:
		short(w.dims, func(long, short int) { d[long] = a[short] })
	case SingularPair:
		singularPair(w.dims[0], w.dims[1], d, a)
	}
}

// short visits all elements of a long shape in order, with the index of their place in the short one.
func short(dims []int, visit func(long, short int)) {
	rank := len(dims) / 2
	long, to := dims[:rank], dims[rank:]
	n, step := 1, make([]int, rank)
	for i := rank - 1; i >= 0; i-- {
		if to[i] != 1 {
			step[i] = n
		}
		n *= to[i]
	}
	total := 1
	for _, x := range long {
		total *= x
	}
	index, at := make([]int, rank), 0
	for i := range total {
		visit(i, at)
		for k := rank - 1; k >= 0; k-- {
			index[k]++
			at += step[k]
			if index[k] < long[k] {
				break
			}
			at -= index[k] * step[k]
			index[k] = 0
		}
	}
}

func (p *Program) gemm(m, k, n int, a, b, c Array) {
	if k == 0 {
		clear(c.bytes())
		return
	}
	if c.Type == Float32 {
		p.blas.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, elements[float32](a), k, elements[float32](b), n, 0, elements[float32](c), n)
	} else {
		p.blas.Dgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, elements[float64](a), k, elements[float64](b), n, 0, elements[float64](c), n)
	}
}

// singularPair computes the outer product of the first pair of singular vectors, zero where the matrix is zero, NaN where
// the sum of its magnitudes is not finite.
func singularPair[T float](r, c int, d, a []T) {
	clear(d)
	x := mat.NewDense(r, c, nil)
	var sum float64
	for i, v := range a {
		x.RawMatrix().Data[i] = float64(v)
		sum += math.Abs(float64(v))
	}
	var svd mat.SVD
	if sum == 0 || sum-sum != 0 || !svd.Factorize(x, mat.SVDThin) {
		if sum-sum != 0 { // NaN and infinities have no singular vectors: say so
			for i := range d {
				d[i] = T(sum - sum)
			}
		}
		return
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	for i := range r {
		for j := range c {
			d[i*c+j] = T(u.At(i, 0) * v.At(j, 0))
		}
	}
}
