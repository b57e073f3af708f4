package bench

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
)

var largest = flag.Int("largest", 50e6, "leave out arrays of more parameters")

const million = 1_000_000

// count names a number of parameters.
func count(n int) string { return fmt.Sprintf("n=%dM", n/million) }

// BenchmarkAdam is Adam over one tensor: our solver's plan ("optimop", what an optim op runs), our Step ("step", which also
// sets the gradients to zero), Gorgonia's solver, and loops in Go and C. They run over the same memory where they can.
func BenchmarkAdam(b *testing.B) {
	b.Run("f32", func(b *testing.B) { benchmarkAdam[float32](b, million, 10*million, 50*million) })
	b.Run("f64", func(b *testing.B) { benchmarkAdam[float64](b, million, 10*million, 25*million) })
}

func benchmarkAdam[T float](b *testing.B, sizes ...int) {
	for _, n := range sizes {
		if n > *largest {
			continue
		}
		b.Run(count(n), func(b *testing.B) {
			u := newSubject(b, solvers.NewAdam(), dtypeOf[T](), tensor.Shape{n})
			a := arrays[T](b, u)
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
					run := func(impl string, step func(p *pool) func()) {
						b.Run("impl="+impl, func(b *testing.B) {
							withWorkers(workers, func(p *pool) { measure(b, n, adamBytes[T](n), step(p)) })
						})
					}
					run("optimop", func(*pool) func() { return u.step })
					b.Run("impl=step", func(b *testing.B) {
						withWorkers(workers, func(*pool) { benchmarkStep(b, u.solver, u, n, adamBytes[T](n)) })
					})
					if n <= 10*million && dtypeOf[T]() == tensor.Float32 && workers == 1 {
						b.Run("impl=gorgonia", func(b *testing.B) {
							withWorkers(workers, func(*pool) { benchmarkStep(b, gorgonia.NewAdamSolver(), u, n, adamBytes[T](n)) })
						})
					}
					run("go", func(p *pool) func() { return a.step(p, goAdam[T]) })
					b.Run("impl=c", func(b *testing.B) {
						loop := inC[T](b)
						withWorkers(workers, func(p *pool) { measure(b, n, adamBytes[T](n), a.step(p, loop)) })
					})
				})
			}
		})
	}
}

// measure times a step, and reports it for each of n parameters and as the rate at which it moves the bytes that it must.
func measure(b *testing.B, n int, bytes float64, step func()) {
	step()
	for b.Loop() {
		step()
	}
	report(b, n, bytes)
}

func report(b *testing.B, n int, bytes float64) {
	each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(each/float64(n), "ns/param")
	b.ReportMetric(bytes/each, "GB/s")
}

// refresh is after how many steps a benchmark of Step gives new gradients: Step sets them to zero, and the first moment must
// not fade to where arithmetic is slow.
const refresh = 256

func benchmarkStep(b *testing.B, s gorgonia.Solver, u *subject, n int, bytes float64) {
	model := u.model()
	defer fill(u.grads)
	fill(u.grads)
	require.NoError(b, s.Step(model))
	for i := 0; b.Loop(); i++ {
		if i%refresh == refresh-1 {
			b.StopTimer()
			fill(u.grads)
			b.StartTimer()
		}
		if err := s.Step(model); err != nil {
			b.Fatal(err)
		}
	}
	report(b, n, bytes)
}

func fill(grads []gorgonia.Value) {
	for _, g := range grads {
		fillValue(g)
	}
}

// BenchmarkMomentum is gradient descent with momentum over one tensor: with less arithmetic than Adam, it is bound by memory
// alone.
func BenchmarkMomentum(b *testing.B) {
	for _, n := range []int{million, 10 * million} {
		if n > *largest {
			continue
		}
		b.Run("f32/"+count(n), func(b *testing.B) {
			u := newSubject(b, solvers.NewMomentum(), tensor.Float32, tensor.Shape{n})
			a := adamArrays[float32]{w: u.params[0].Data().([]float32), m: slot[float32](b, u.solver, "w0/momentum/momentum"), g: u.grads[0].Data().([]float32)}
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
					const bytes = 20
					b.Run("impl=optimop", func(b *testing.B) {
						withWorkers(workers, func(*pool) { measure(b, n, bytes*float64(n), u.step) })
					})
					b.Run("impl=c", func(b *testing.B) {
						inC[float32](b)
						k := &[2]float32{0.9, 0.01}
						do := func(lo, hi int) { cMomentum32(a.w[lo:hi], a.m[lo:hi], a.g[lo:hi], k) }
						withWorkers(workers, func(p *pool) { measure(b, n, bytes*float64(n), func() { p.run(n, do) }) })
					})
				})
			}
		})
	}
}
