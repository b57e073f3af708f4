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
	work  *work // of that pass, or of random
	value Array

	random *normals // of TruncatedNormal

	done  bool
	sums  []float64
	index counter
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
	switch {
	case n.Op == TruncatedNormal:
		w.random = &normals{args: n.Args[:2], stream: Stream(n.Dims), value: w.value}
		w.work = newWork([]*pass{{store: -1, typ: n.Type, n: n.Len, random: w.random}})
	case n.Op.Rearranges():
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
	}
	k := len(p.whole)
	p.whole = append(p.whole, w)
	p.wholeOf[i] = k
	if !n.Op.Rearranges() {
		w.pass = &pass{store: -1, typ: n.Type, n: n.Len, stores: []passStore{{store: -1, node: i, array: p.leaves + k}}}
		p.finish(w.pass)
		w.work = newWork([]*pass{w.pass})
	}
	return k
}

func newArray(t DType, n int) Array {
	if t == Float32 {
		return Of(make([]float32, n))
	}
	return Of(make([]float64, n))
}

// evaluate computes whole value k once per run.
func (p *Program) evaluate(k int) {
	w := p.whole[k]
	if w.done {
		return
	}
	w.done = true
	for _, n := range w.needs {
		p.evaluate(n)
	}
	switch {
	case w.pass != nil:
		p.prepare(w.pass)
		p.lay(w.work)
		p.do(w.work)
	case w.random != nil:
		r := w.random
		r.random = NewRandom(p.scalar(r.args[0]), r.stream, p.scalar(r.args[1]))
		p.do(w.work)
	case w.value.Len == 0:
	case w.value.Type == Float32:
		rearrange[float32](p, w)
	default:
		rearrange[float64](p, w)
	}
}

func rearrange[T float](p *Program, w *whole) {
	d, a := Elements[T](w.value), Elements[T](p.arrays[w.args[0]])
	switch w.op {
	case MatMul:
		p.gemm(w.dims[0], w.dims[1], w.dims[2], p.arrays[w.args[0]], p.arrays[w.args[1]], w.value)
	case Transpose:
		Transposed(w.dims[0], w.dims[1], d, a)
	case SumAlong:
		if len(w.sums) != len(d) {
			w.sums = make([]float64, len(d))
		}
		clear(w.sums)
		w.index.lines(w.dims, func(long, short, n, step int) {
			if step == 0 {
				s := w.sums[short]
				for _, x := range a[long:][:n] {
					s += float64(x)
				}
				w.sums[short] = s
				return
			}
			to := w.sums[short:][:n]
			for i, x := range a[long:][:n] {
				to[i] += float64(x)
			}
		})
		for i, s := range w.sums {
			d[i] = T(s)
		}
	case BroadcastTo:
		w.index.lines(w.dims, func(long, short, n, step int) {
			line := d[long:][:n]
			if step == 1 {
				copy(line, a[short:])
				return
			}
			for i := range line {
				line[i] = a[short]
			}
		})
	case SingularPair:
		singularPair(w.dims[0], w.dims[1], d, a)
	}
}

// Transposed writes a matrix by columns. It goes by tiles, so that what it reads and writes stays in the cache.
func Transposed[T float](rows, columns int, dst, src []T) {
	const tile = 32
	for i0 := 0; i0 < rows; i0 += tile {
		for j0 := 0; j0 < columns; j0 += tile {
			for i := i0; i < min(i0+tile, rows); i++ {
				for j := j0; j < min(j0+tile, columns); j++ {
					dst[j*rows+i] = src[i*columns+j]
				}
			}
		}
	}
}

// counter walks over a long shape and the short one that it is summed to or repeated from.
type counter struct{ index, step []int }

// lines visits the lines along the last axis of the long shape, in order: where they begin there and in the short shape, how
// long they are, and whether they move on in the short shape too: by 0 or 1.
func (c *counter) lines(dims []int, visit func(long, short, n, step int)) {
	rank := len(dims) / 2
	long, to := dims[:rank], dims[rank:]
	c.index, c.step = resize(c.index, rank), resize(c.step, rank)
	n, total := 1, 1
	for i := rank - 1; i >= 0; i-- {
		c.index[i], c.step[i] = 0, 0
		if to[i] != 1 {
			c.step[i] = n
		}
		n *= to[i]
		total *= long[i]
	}
	if total == 0 {
		return
	}
	last := rank - 1
	for lo, at := 0, 0; lo < total; lo += long[last] {
		visit(lo, at, long[last], min(c.step[last], 1))
		for k := last - 1; k >= 0; k-- {
			c.index[k]++
			at += c.step[k]
			if c.index[k] < long[k] {
				break
			}
			at -= c.index[k] * c.step[k]
			c.index[k] = 0
		}
	}
}

func resize(s []int, n int) []int {
	if cap(s) < n {
		return make([]int, n)
	}
	return s[:n]
}

func (p *Program) gemm(m, k, n int, a, b, c Array) {
	if k == 0 {
		clear(c.bytes())
		return
	}
	if c.Type == Float32 {
		p.blas.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, Elements[float32](a), k, Elements[float32](b), n, 0, Elements[float32](c), n)
	} else {
		p.blas.Dgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, Elements[float64](a), k, Elements[float64](b), n, 0, Elements[float64](c), n)
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
