package bench

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

var table = flag.Bool("table", false, "run TestRuleTable")

// ruleCase says what is special about a rule, with its default options, for the table.
type ruleCase struct {
	// more is how many bytes for each parameter the rule must move beyond parameter, gradient and slots read and written once:
	// for sums over all elements that must be known before the first new value. Negative for slots that are written only.
	more   float64
	matrix bool   // measured on a matrix, as it treats those in its own way
	why    string // of more
}

var ruleCases = map[string]ruleCase{
	"adafactor":            {12, true, "means of g² and norm of w; then norm of the step, from g"},
	"barzilai_borwein":     {8, false, "both sums, from w, g and two slots, which are not read again"},
	"clip_by_global_norm":  {4, false, "norm of g"},
	"conditional_gradient": {4, false, "norm of g"},
	"lamb":                 {16, false, "norms of w and of the step, from w, g and two slots"},
	"muon":                 {0, false, "a vector, which it gives to Adam; of a matrix, the products take all the time"},
	"normalized_sgd":       {4, false, "norm of g"},
	"novograd":             {4, false, "norm of g"},
	"remove_not_finite":    {8, false, "whether all of g and of the new w are finite"},
	"variable_clipping":    {8, false, "norm of the new w, from w and g"},
}

// ruleNames are the rules by their own names. Families repeat them with other options.
func ruleNames() (names []string) {
	for _, n := range solvers.Names() {
		if !strings.Contains(n, "/") {
			names = append(names, n)
		}
	}
	return names
}

// bound is how many bytes a step must move: parameters and slots read and written, the gradient read, and more bytes for each
// parameter.
func bound(tb testing.TB, u *subject, more float64) float64 {
	tb.Helper()
	var bytes float64
	for i, p := range u.params {
		each := float64(p.Dtype().Size())
		bytes += float64(p.Shape().TotalSize()) * (3*each + more)
		require.Equal(tb, p.Shape(), u.grads[i].Shape())
	}
	for _, s := range u.solver.Store().States() {
		if s.Kind() != graphops.Slot {
			continue
		}
		v, err := s.Value()
		require.NoError(tb, err)
		bytes += 2 * float64(v.Shape().TotalSize()) * float64(v.Dtype().Size())
	}
	return bytes
}

// newRule makes a subject of a registered rule, with about n float32 parameters in one tensor.
func newRule(tb testing.TB, name string, n int) (u *subject, size int, bytes float64) {
	tb.Helper()
	c := ruleCases[name]
	shape := tensor.Shape{n}
	if c.matrix {
		shape = tensor.Shape{n / 4096, 4096}
	}
	s, err := solvers.FromConfig(name, nil)
	require.NoError(tb, err)
	u = newSubject(tb, s, tensor.Float32, shape)
	return u, shape.TotalSize(), bound(tb, u, c.more)
}

// BenchmarkRule is every registered rule over one tensor. Compare its GB/s with those of BenchmarkAdam/f32/…/impl=c.
func BenchmarkRule(b *testing.B) {
	n := min(10*million, *largest)
	for _, name := range ruleNames() {
		b.Run(fmt.Sprintf("rule=%s/f32/%s", name, count(n)), func(b *testing.B) {
			u, size, bytes := newRule(b, name, n)
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
					withWorkers(workers, func(*pool) { measure(b, size, bytes, u.step) })
				})
			}
		})
	}
}

// Every rule can be measured, and what is special is about rules that exist.
func TestRules(t *testing.T) {
	names := ruleNames()
	for name := range ruleCases {
		require.Contains(t, names, name)
	}
	for _, name := range names {
		u, size, bytes := newRule(t, name, 2*4096)
		require.GreaterOrEqual(t, bytes, float64(12*size), name)
		u.step()
	}
	_, size, bytes := newRule(t, "adam", 8192)
	require.InDelta(t, adamBytes[float32](size), bytes, 64)
}

// TestRuleTable prints what each rule costs, and the ratio to the time in which Adam in C would move as many bytes. Without
// -table it is skipped.
func TestRuleTable(t *testing.T) {
	if !*table {
		t.Skip("run with -table")
	}
	for _, workers := range []int{1, 2} {
		fmt.Printf("\n%-26s %8s %8s %8s %8s   workers=%d, float32\n", "rule", "B/param", "ns/param", "GB/s", "ratio", workers)
		withWorkers(workers, func(p *pool) {
			measureRules(t, p, func(name string, size int, bytes float64, r pairs) {
				n := float64(size)
				fmt.Printf("%-26s %8.1f %8.3f %8.1f %8.2f   %s\n", name, bytes/n, r.a/n, bytes/r.a, r.ratio, ruleCases[name].why)
			})
		})
	}
}

// ruleBound is how much longer than Adam in C a rule may take for each byte that it must move.
const ruleBound = 1.6

// measureRules measures every rule against Adam in C, and says how many parameters there were and what must be moved.
func measureRules(t *testing.T, p *pool, each func(name string, size int, bytes float64, r pairs)) {
	n := min(10*million, *largest)
	c := newAdamArrays[float32](n).step(p, inC[float32](t))
	for _, name := range ruleNames() {
		u, size, bytes := newRule(t, name, n)
		each(name, size, bytes, paired(u.step, c, bytes/adamBytes[float32](n)))
	}
}
