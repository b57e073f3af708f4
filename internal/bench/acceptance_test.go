package bench

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
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

// line is one line of the table: a ratio and its bound, which is an upper one unless it says otherwise. Zero is for no bound,
// for lines that are there to understand the others.
type line struct {
	name    string
	r       pairs
	n       int
	bound   float64
	atLeast bool
	why     string // there is no bound
}

func (l line) ok() bool { return l.bound == 0 || l.r.ratio <= l.bound != l.atLeast }

func (l line) print() {
	verdict := fmt.Sprintf("≤ %-5v ok", l.bound)
	if l.bound == 0 {
		verdict = "  not judged"
		if l.why != "" {
			verdict += ": " + l.why
		}
	}
	if l.atLeast {
		verdict = strings.Replace(verdict, "≤", "≥", 1)
	}
	if !l.ok() {
		verdict = strings.Replace(verdict, "ok", "MISSED", 1)
	}
	fmt.Printf("%-60s %9.3f %9.3f %8.2f (%.2f–%.2f) %s\n", l.name, l.r.a/float64(l.n), l.r.b/float64(l.n), l.r.ratio, l.r.low, l.r.high, verdict)
}

// TestAcceptance judges the speed of the update. Without -acceptance it is skipped. It fails if a bound is missed; run it on a
// quiet machine.
func TestAcceptance(t *testing.T) {
	if !*acceptance {
		t.Skip("run with -acceptance")
	}
	inC[float32](t)
	fmt.Printf("solver: %s; C: compiled for %s\n", cmp.Or(os.Getenv("OPTIMOP_KERNEL"), "its fastest machine"), cTarget)
	fmt.Println("ns are per parameter; \"its bytes by C\" is the time that C's Adam takes for as many bytes, 28 for each of its parameters")
	fmt.Printf("%-60s %9s %9s %8s\n", "a / b", "a, ns", "b, ns", "a/b (quartiles) and bound")
	var all, missed int
	judge := func(l line) {
		l.print()
		if l.bound != 0 {
			all++
		}
		if !l.ok() {
			missed++
		}
	}
	for _, workers := range []int{1, 2} {
		withWorkers(workers, func(p *pool) {
			acceptAdam[float32](t, p, workers, judge, million, 10*million, 50*million)
			acceptAdam[float64](t, p, workers, judge, million, 10*million, 25*million)
			acceptChain(t, p, workers, judge)
			acceptMany(t, p, workers, judge)
			acceptScalars(t, workers, judge)
			acceptGorgonia(t, p, workers, judge)
		})
	}
	acceptScalarCode(t, judge)
	acceptAlgorithm(t, judge)
	for _, workers := range []int{1, 2} {
		withWorkers(workers, func(p *pool) {
			measureRules(t, p, func(name string, size int, _ float64, r pairs) {
				l := line{name: fmt.Sprintf("rule %s / its bytes by C, %d workers", name, workers), r: r, n: size, bound: ruleBound, why: ruleCases[name].free}
				if l.why == "" && *largest < ruleSize {
					l.why = "the bound is for " + count(ruleSize)
				}
				if l.why != "" {
					l.bound = 0
				}
				judge(l)
			})
		})
	}
	require.Zero(t, missed, "bounds missed, of %d", all)
}

// acceptAdam: Adam takes at most 1.25 of the time of one pass in C, over the same memory.
func acceptAdam[T float](t *testing.T, p *pool, workers int, judge func(line), sizes ...int) {
	for _, n := range sizes {
		if n <= *largest {
			u := newSubject(t, solvers.NewAdam(), dtypeOf[T](), tensor.Shape{n})
			r := paired(u.step, arrays[T](t, u).step(p, inC[T](t)), 1)
			judge(line{name: fmt.Sprintf("Adam / C, %v, %s, %d workers", dtypeOf[T](), count(n), workers), r: r, n: n, bound: 1.25})
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
			judge(line{name: fmt.Sprintf("chain / its bytes by C, %s, %d workers", count(n), workers), r: r, n: n, bound: 1.6})
		}
	}
}

// acceptMany: a thousand small tensors take at most twice as long as one of as many parameters. What C takes for them shows how
// much of that is the memory, which is not fetched ahead from one array to the next.
func acceptMany(t *testing.T, p *pool, workers int, judge func(line)) {
	const n = 1000
	many := newSubject(t, solvers.NewAdam(), tensor.Float32, repeated(million/n, tensor.Shape{n})...)
	single := newSubject(t, solvers.NewAdam(), tensor.Float32, tensor.Shape{million})
	var each []adamArrays[float32]
	for i := range many.params {
		each = append(each, arraysOf[float32](t, many, i))
	}
	manyC, singleC := stepMany(each, n, p, inC[float32](t)), arrays[float32](t, single).step(p, inC[float32](t))
	for _, c := range []struct {
		name  string
		a, b  func()
		bound float64
	}{
		{"1000 tensors of 1000 / one of 1M", many.step, single.step, 2},
		{"1000 tensors of 1000 / C over them", many.step, manyC, 0},
		{"C over 1000 tensors of 1000 / C over one of 1M", manyC, singleC, 0},
	} {
		judge(line{name: fmt.Sprintf("%s, %d workers", c.name, workers), r: paired(c.a, c.b, 1), n: million, bound: c.bound})
	}
}

// acceptScalars: a scalar parameter costs at most 200 ns in a step of many. Graphs of more of them take minutes to build.
func acceptScalars(t *testing.T, workers int, judge func(line)) {
	const n = 1000
	u := newSubject(t, solvers.NewAdam(), tensor.Float32, repeated(n, tensor.Shape{})...)
	var xs []float64
	for range *repetitions {
		xs = append(xs, each(u.step, 100)/n)
	}
	x := quantile(xs, 0.5)
	r := pairs{x, 1, x, quantile(xs, 0.25), quantile(xs, 0.75)}
	judge(line{name: fmt.Sprintf("one of 1000 scalars / 1 ns, %d workers", workers), r: r, n: 1, bound: 200})
}

// acceptGorgonia: Step is at least 15 times as fast as that of Gorgonia's solver, which always has one worker. Both set the
// gradients to zero.
func acceptGorgonia(t *testing.T, p *pool, workers int, judge func(line)) {
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
	judge(line{name: fmt.Sprintf("gorgonia's Adam / Step, f32, %s, %d workers", count(n), workers), r: r, n: n, bound: 15, atLeast: true})
	fill(u.grads)
	r = paired(step(u.solver), newAdamArrays[float32](n).step(p, inC[float32](t)), 1)
	judge(line{name: fmt.Sprintf("Step / C, f32, %s, %d workers", count(n), workers), r: r, n: n, why: "it also sets gradients to zero"})
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
	judge(line{name: "scalar Go after a step / without", r: r, n: len(s.x), bound: 1.3})
}
