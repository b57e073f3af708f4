package bench

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
)

var (
	acceptance  = flag.Bool("acceptance", false, "run TestAcceptance")
	repetitions = flag.Int("repetitions", 11, "pairs of measurements for each ratio")
)

// pairs is what came out of a paired measurement: medians, in nanoseconds for one step.
type pairs struct{ a, b, ratio, low, high float64 }

// least is for how long a step is repeated for one measurement, so that neither the clock nor the waking of threads counts.
const least = 10 * time.Millisecond

// paired measures two steps in turn, the one right after the other, and gives the median of the ratio of each pair, divided by
// scale. What the machine does to one of a pair it mostly does to the other; times that are seconds apart cannot be compared.
// low and high are the quartiles.
func paired(a, b func(), scale float64) pairs {
	na, nb := repeats(a), repeats(b)
	var as, bs, ratios []float64
	for i := range *repetitions {
		var x, y float64
		if i%2 == 0 {
			x, y = each(a, na), each(b, nb)
		} else { // the other way round, as the first may find the caches different
			y, x = each(b, nb), each(a, na)
		}
		as, bs, ratios = append(as, x), append(bs, y), append(ratios, x/y/scale)
	}
	return pairs{quantile(as, 0.5), quantile(bs, 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75)}
}

func repeats(step func()) int {
	step()
	once := timed(step)
	return int(least/max(once, time.Nanosecond)) + 1
}

// each is the time of one of n steps. Where there are several, arrays are small enough to live in the cache: an untimed one
// fetches them.
func each(step func(), n int) float64 {
	if n > 1 {
		step()
	}
	return float64(timed(func() {
		for range n {
			step()
		}
	}).Nanoseconds()) / float64(n)
}

func quantile(x []float64, q float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[int(q*float64(len(x)-1)+0.5)]
}

// line is one line of the table: a ratio and its bound, which is an upper one unless it says otherwise.
type line struct {
	name    string
	r       pairs
	n       int
	bound   float64
	atLeast bool
}

func (l line) ok() bool { return l.r.ratio <= l.bound != l.atLeast }

func (l line) print() {
	sign, verdict := "≤", "ok"
	if l.atLeast {
		sign = "≥"
	}
	if !l.ok() {
		verdict = "MISSED"
	}
	fmt.Printf("%-52s %9.3f %9.3f %8.2f (%.2f–%.2f) %s %-5v %s\n", l.name, l.r.a/float64(l.n), l.r.b/float64(l.n), l.r.ratio, l.r.low, l.r.high, sign, l.bound, verdict)
}

// TestAcceptance judges the speed of the update. Without -acceptance it is skipped. It fails if a bound is missed; run it on a
// quiet machine.
func TestAcceptance(t *testing.T) {
	if !*acceptance {
		t.Skip("run with -acceptance")
	}
	inC[float32](t)
	fmt.Printf("%-52s %9s %9s %8s\n", "a / b", "a, ns", "b, ns", "a/b (quartiles) and bound")
	var all, missed int
	judge := func(l line) {
		l.print()
		if all++; !l.ok() {
			missed++
		}
	}
	for _, workers := range []int{1, 2} {
		withWorkers(workers, func(p *pool) {
			acceptAdam[float32](t, p, workers, judge, million, 10*million, 50*million)
			acceptAdam[float64](t, p, workers, judge, million, 10*million, 25*million)
			acceptChain(t, p, workers, judge)
			acceptMany(t, workers, judge)
			acceptGorgonia(t, workers, judge)
		})
	}
	acceptScalarCode(t, judge)
	for _, workers := range []int{1, 2} {
		withWorkers(workers, func(p *pool) {
			measureRules(t, p, func(name string, size int, _ float64, r pairs) {
				judge(line{fmt.Sprintf("rule %s / its bytes by C, %d workers", name, workers), r, size, ruleBound, false})
			})
		})
	}
	require.Zero(t, missed, "of %d bounds", all)
}

// acceptAdam: Adam takes at most 1.25 of the time of one pass in C, over the same memory.
func acceptAdam[T float](t *testing.T, p *pool, workers int, judge func(line), sizes ...int) {
	for _, n := range sizes {
		if n <= *largest {
			u := newSubject(t, solvers.NewAdam(), dtypeOf[T](), tensor.Shape{n})
			r := paired(u.step, arrays[T](t, u).step(p, inC[T](t)), 1)
			judge(line{fmt.Sprintf("Adam / C, %v, %s, %d workers", dtypeOf[T](), count(n), workers), r, n, 1.25, false})
		}
	}
}

// acceptChain: a user's chain of rules takes at most 1.6 of the time in which Adam in C would move its bytes.
func acceptChain(t *testing.T, p *pool, workers int, judge func(line)) {
	for _, n := range []int{million, 10 * million, 50 * million} {
		if n <= *largest {
			u := newSubject(t, newChain(), tensor.Float32, tensor.Shape{n})
			c := newAdamArrays[float32](n).step(p, inC[float32](t))
			r := paired(u.step, c, chainBytes*float64(n)/adamBytes[float32](n))
			judge(line{fmt.Sprintf("chain / its bytes by C, %s, %d workers", count(n), workers), r, n, 1.6, false})
		}
	}
}

// acceptMany: a thousand small tensors take at most twice as long as one of as many parameters.
func acceptMany(t *testing.T, workers int, judge func(line)) {
	many := newSubject(t, solvers.NewAdam(), tensor.Float32, repeated(1000, tensor.Shape{1000})...)
	single := newSubject(t, solvers.NewAdam(), tensor.Float32, tensor.Shape{million})
	r := paired(many.step, single.step, 1)
	judge(line{fmt.Sprintf("1000 tensors of 1000 / one of 1M, %d workers", workers), r, million, 2, false})
}

// acceptGorgonia: Step is at least 15 times as fast as that of Gorgonia's solver, which always has one worker. Both set the
// gradients to zero.
func acceptGorgonia(t *testing.T, workers int, judge func(line)) {
	n := min(10*million, *largest)
	u := newSubject(t, solvers.NewAdam(), tensor.Float32, tensor.Shape{n})
	step := func(s gorgonia.Solver) func() {
		model := u.model()
		return func() {
			if err := s.Step(model); err != nil {
				panic(err)
			}
		}
	}
	fill(u.grads)
	r := paired(step(gorgonia.NewAdamSolver()), step(u.solver), 1)
	judge(line{fmt.Sprintf("gorgonia's Adam / Step, f32, %s, %d workers", count(n), workers), r, n, 15, true})
}

// acceptScalarCode: ordinary Go code runs as fast after a step as otherwise.
func acceptScalarCode(t *testing.T, judge func(line)) {
	s := newScalarCode(t)
	defer s.lock()()
	spent := func(after bool) float64 {
		s.spent = 0
		for range 200 {
			s.once(after)
		}
		return float64(s.spent.Nanoseconds()) / 200
	}
	var as, bs, ratios []float64
	for range *repetitions {
		a, b := spent(true), spent(false)
		as, bs, ratios = append(as, a), append(bs, b), append(ratios, a/b)
	}
	r := pairs{quantile(as, 0.5), quantile(bs, 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75)}
	judge(line{"scalar Go after a step / without", r, len(s.x), 1.3, false})
}
