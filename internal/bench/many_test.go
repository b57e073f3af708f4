package bench

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"gorgonia.org/tensor"

	"optimop/solvers"
)

// repeated is a list of equal shapes.
func repeated(times int, shape tensor.Shape) []tensor.Shape {
	out := make([]tensor.Shape, times)
	for i := range out {
		out[i] = shape
	}
	return out
}

const scalars = 10_000

// BenchmarkMany is Adam over many small tensors, next to as many parameters in one; and over scalars, with and without which
// the time of one large tensor differs by what the scalars cost.
func BenchmarkMany(b *testing.B) {
	big := tensor.Shape{million}
	for _, c := range []struct {
		name   string
		shapes []tensor.Shape
	}{
		{"tensors=1000x1000", repeated(1000, tensor.Shape{1000})},
		{"tensors=1x1M", []tensor.Shape{big}},
	} {
		b.Run(c.name, func(b *testing.B) {
			u := newSubject(b, solvers.NewAdam(), tensor.Float32, c.shapes...)
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
					withWorkers(workers, func(*pool) { measure(b, million, adamBytes[float32](million), u.step) })
				})
			}
		})
	}
	b.Run("scalars=10000", func(b *testing.B) {
		without := newSubject(b, solvers.NewAdam(), tensor.Float32, big)
		with := newSubject(b, solvers.NewAdam(), tensor.Float32, append(repeated(scalars, tensor.Shape{}), big)...)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
				withWorkers(workers, func(*pool) {
					var extra time.Duration
					for b.Loop() {
						extra += timed(with.step) - timed(without.step)
					}
					b.ReportMetric(float64(extra.Nanoseconds())/float64(b.N)/scalars, "ns/scalar")
				})
			})
		}
	})
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// BenchmarkScalarCode is a loop of ordinary floating-point Go right after a step of the solver, and without one. Code with wide
// registers that does not clean up after itself (VZEROUPPER) makes all later code on the same thread several times slower, where
// nobody would look for the cause.
func BenchmarkScalarCode(b *testing.B) {
	for _, after := range []bool{false, true} {
		b.Run(fmt.Sprint("after_step=", after), func(b *testing.B) {
			s := newScalarCode(b)
			defer s.lock()()
			for b.Loop() {
				s.once(after)
			}
			b.ReportMetric(float64(s.spent.Nanoseconds())/float64(b.N*len(s.x)), "ns/elem")
		})
	}
}

type scalarCode struct {
	u       *subject
	x       []float32
	scratch [64 << 10]byte
	spent   time.Duration
}

func newScalarCode(tb testing.TB) *scalarCode {
	return &scalarCode{u: newSubject(tb, solvers.NewAdam(), tensor.Float32, tensor.Shape{4096}), x: make([]float32, 4096)}
}

// lock keeps step and loop on one thread, without workers.
func (s *scalarCode) lock() (unlock func()) {
	runtime.LockOSThread()
	procs := runtime.GOMAXPROCS(1)
	return func() {
		runtime.GOMAXPROCS(procs)
		runtime.UnlockOSThread()
	}
}

// once does the loop, and times nothing else. The step is made in any case, so that the caches are alike; without after, the
// wide registers are then cleaned up by the runtime, which uses them to clear memory and does so properly.
func (s *scalarCode) once(after bool) {
	s.u.step()
	if !after {
		clear(s.scratch[:])
	}
	s.spent += timed(func() {
		for i, x := range s.x {
			s.x[i] = x*0.99 + 0.01
		}
	})
}
