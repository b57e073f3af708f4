package bench

import (
	"math"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type float interface{ float32 | float64 }

// adamLoop is one step of Adam over arrays: see cloop.Adam32 for k.
type adamLoop[T float] func(w, m, v, g []T, k *[7]T)

// These are the loops in C, and checkC says whether they are what they should be; nil without the tag cbench.
var (
	cAdam32     adamLoop[float32]
	cAdam64     adamLoop[float64]
	cMomentum32 func(w, m, g []float32, k *[2]float32)
	checkC      func() error
	cTarget     string // what they were compiled for
)

// inC finds the loop in C for a type, and makes sure that it was vectorised. It skips the benchmark without the tag cbench.
func inC[T float](tb testing.TB) adamLoop[T] {
	tb.Helper()
	if checkC == nil {
		tb.Skip("needs -tags cbench")
	}
	require.NoError(tb, vectorised())
	if f, ok := any(cAdam32).(adamLoop[T]); ok {
		return f
	}
	return any(cAdam64).(adamLoop[T])
}

var vectorised = sync.OnceValue(func() error { return checkC() })

// goAdam is the loop that a Go programmer writes. The conversions keep products and sums apart, on all architectures.
func goAdam[T float](w, m, v, g []T, k *[7]T) {
	b1, a1, b2, a2, c2, eps, lr := k[0], k[1], k[2], k[3], k[4], k[5], k[6]
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	for i := range w {
		x := g[i]
		mi := T(m[i]*b1) + T(x*a1)
		vi := T(v[i]*b2) + T(T(x*x)*a2)
		m[i], v[i] = mi, vi
		w[i] -= lr * mi / (T(math.Sqrt(float64(vi*c2))) + eps)
	}
}

// scalarsOf are Adam's scalars with its defaults, a few steps into training.
func scalarsOf[T float]() *[7]T {
	b1, b2, t := 0.9, 0.999, 10.0
	return &[7]T{T(b1), T(1 - b1), T(b2), T(1 - b2), T(1 / (1 - math.Pow(b2, t))), 1e-8, T(1e-3 / (1 - math.Pow(b1, t)))}
}

// adamArrays are the four arrays of Adam.
type adamArrays[T float] struct{ w, m, v, g []T }

func newAdamArrays[T float](n int) adamArrays[T] {
	a := adamArrays[T]{make([]T, n), make([]T, n), make([]T, n), make([]T, n)}
	fillGradient(a.g)
	return a
}

// step makes a closure that is one step by a loop and a pool.
func (a adamArrays[T]) step(p *pool, loop adamLoop[T]) func() {
	k := scalarsOf[T]()
	do := func(lo, hi int) { loop(a.w[lo:hi], a.m[lo:hi], a.v[lo:hi], a.g[lo:hi], k) }
	return func() { p.run(len(a.w), do) }
}

// stepMany is step over arrays of n elements each. The pool shares out the elements of all of them, one after the other.
func stepMany[T float](many []adamArrays[T], n int, p *pool, loop adamLoop[T]) func() {
	k := scalarsOf[T]()
	do := func(lo, hi int) { // those that begin there
		for i := (lo + n - 1) / n; i*n < hi; i++ {
			a := many[i]
			loop(a.w, a.m, a.v, a.g, k)
		}
	}
	return func() { p.run(len(many)*n, do) }
}

// adamBytes is what a step of Adam over n elements must move: it reads four arrays and writes three.
func adamBytes[T float](n int) float64 { return float64(7*n) * float64(unsafe.Sizeof(T(0))) }

// fillGradient writes numbers between -1 and 1 that are never so small that arithmetic with them is slow.
func fillGradient[T float](g []T) {
	x := uint32(1)
	for i := range g {
		x = x*1664525 + 1013904223
		g[i] = T(x>>8)/(1<<23) - 1 + 1.0/(1<<25)
	}
}

// withWorkers sets the number of workers of everything: the solvers' by GOMAXPROCS, the pool's by its size.
func withWorkers(workers int, do func(p *pool)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
	p := newPool(workers)
	defer p.stop()
	do(p)
}

// The loops that are compared compute the same.
func TestLoopsAgree(t *testing.T) {
	t.Run("f32", loopsAgree[float32])
	t.Run("f64", loopsAgree[float64])
}

func loopsAgree[T float](t *testing.T) {
	const n = 2*chunk + 5
	loop := inC[T](t)
	withWorkers(2, func(p *pool) {
		a, b := newAdamArrays[T](n), newAdamArrays[T](n)
		for range 3 {
			a.step(p, loop)()
			b.step(p, goAdam[T])()
		}
		require.Equal(t, a, b)
	})
}
