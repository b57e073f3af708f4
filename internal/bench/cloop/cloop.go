//go:build cbench

package cloop

/*
#cgo CFLAGS: -O3 -march=native
#include "loops.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"time"
	"unsafe"
)

// AVX2 chooses the loops that are compiled for AVX2, also where the processor has wider registers. Set it before any use.
var AVX2 bool

// Adam32 is one step of Adam over float32. k holds β₁, 1−β₁, β₂, 1−β₂, 1/(1−β₂ᵗ), ε and α/(1−β₁ᵗ).
func Adam32(w, m, v, g []float32, k *[7]float32) {
	if n := length(len(w), len(m), len(v), len(g)); n > 0 {
		if AVX2 {
			C.adam32_avx2(f32(w), f32(m), f32(v), f32(g), n, f32(k[:]))
		} else {
			C.adam32(f32(w), f32(m), f32(v), f32(g), n, f32(k[:]))
		}
	}
}

// Adam64 is Adam32 over float64.
func Adam64(w, m, v, g []float64, k *[7]float64) {
	if n := length(len(w), len(m), len(v), len(g)); n > 0 {
		if AVX2 {
			C.adam64_avx2(f64(w), f64(m), f64(v), f64(g), n, f64(k[:]))
		} else {
			C.adam64(f64(w), f64(m), f64(v), f64(g), n, f64(k[:]))
		}
	}
}

// Momentum32 is one step of gradient descent with momentum over float32. k holds μ and α.
func Momentum32(w, m, g []float32, k *[2]float32) {
	if n := length(len(w), len(m), len(g)); n > 0 {
		if AVX2 {
			C.momentum32_avx2(f32(w), f32(m), f32(g), n, f32(k[:]))
		} else {
			C.momentum32(f32(w), f32(m), f32(g), n, f32(k[:]))
		}
	}
}

// length is that of the shortest array; C would not notice where one ends.
func length(n int, others ...int) C.size_t { return C.size_t(slices.Min(append(others, n))) }

func f32(s []float32) *C.float  { return (*C.float)(unsafe.Pointer(unsafe.SliceData(s))) }
func f64(s []float64) *C.double { return (*C.double)(unsafe.Pointer(unsafe.SliceData(s))) }

// slowest is the most that Adam over a million float32 may cost, in nanoseconds for each. Vectorised it is 0.2 on machines of
// 2020 and later, and scalar 2.
const slowest = 0.5

// Check reports an error if Adam32 is so slow that it cannot have been vectorised: whoever compares with it would then believe
// to beat C tenfold. It takes the best of many runs, since others may use the machine.
func Check() error {
	const n = 1 << 20
	var a [4][]float32
	for i := range a {
		a[i] = make([]float32, n)
		for j := range a[i] {
			a[i][j] = 0.5
		}
	}
	k := [7]float32{0.9, 0.1, 0.999, 0.001, 1, 1e-8, 1e-3}
	best := time.Duration(1 << 62)
	for range 50 {
		start := time.Now()
		Adam32(a[0], a[1], a[2], a[3], &k)
		best = min(best, time.Since(start))
	}
	if each := float64(best.Nanoseconds()) / n; each > slowest {
		return fmt.Errorf("cloop: Adam in C costs %.2f ns per parameter, over %v: the compiler has not vectorised it", each, slowest)
	}
	return nil
}
