package bench

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

var table = flag.Bool("table", false, "run TestRuleTable")

// ruleCase says what is special about a rule, for the table. A rule has its default options; after a colon there are others.
type ruleCase struct {
	// more is how many bytes for each parameter the rule must move beyond parameter, gradient and slots read and written once:
	// for sums over all elements that must be known before the first new value. Negative for slots that are written only.
	more    float64
	why     string // of more
	columns int    // measured on a matrix of so many, as it treats those in its own way
	free    string // not judged, and why: the bound is for elementwise rules without powers and tanh, and their norms
	options map[string]any
}

var ruleCases = map[string]ruleCase{
	"adafactor":            {more: 12, why: "means of g² and norm of w; then norm of the step, from g", columns: 4096, free: "sums along axes"},
	"adagrad_da":           {more: -4, why: "w is computed from the slots alone"},
	"barzilai_borwein":     {more: 8, why: "both sums read w, g and two slots, which are then only written", free: "two sums decide on the rate"},
	"clip_by_average_norm": {more: 4, why: "norm of g"},
	"clip_by_global_norm":  {more: 4, why: "norm of g"},
	"clip_by_norm":         {more: 4, why: "norm of g"},
	"conditional_gradient": {more: 4, why: "norm of g"},
	"gradient_noise":       {free: "a random number for each element"},
	"ftrl:power":           {free: "a power of each element", options: map[string]any{"learning_rate_power": -0.7}},
	"l1_ball":              {free: "some fifty sums, one after the other"},
	"l2_ball":              {more: 8, why: "norm of w − g, from w and g"},
	"lamb":                 {more: 16, why: "norms of w and of the step, from w, g and two slots"},
	"max_norm":             {free: "sums along axes"},
	"min_max_norm":         {free: "sums along axes"},
	"muon":                 {why: "a vector, which it gives to Adam"},
	"muon:matrix":          {columns: 1 << 18, free: "matrix products"},
	"normalized_sgd":       {more: 4, why: "norm of g"},
	"novograd":             {more: 4, why: "norm of g"},
	"remove_not_finite":    {more: 8, why: "whether all of g and of w − g are finite, from w and g"},
	"simplex":              {free: "some fifty sums, one after the other"},
	"step_clipping":        {why: "no threshold by default, so no norm"},
	"unit_norm":            {free: "sums along axes"},
	"variable_clipping":    {more: 8, why: "norm of w − g, from w and g"},
	"zero_by_global_norm":  {more: 4, why: "norm of g"},
}

// ruleNames are the rules by their own names, with the cases of other options. Families repeat them.
func ruleNames() (names []string) {
	for _, n := range solvers.Names() {
		if !strings.Contains(n, "/") {
			names = append(names, n)
		}
	}
	for name := range ruleCases {
		if strings.Contains(name, ":") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
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
	if c.columns > 0 {
		shape = tensor.Shape{n / c.columns, c.columns}
	}
	rule, _, _ := strings.Cut(name, ":")
	s, err := solvers.FromConfig(rule, c.options)
	require.NoError(tb, err)
	u = newSubject(tb, s, tensor.Float32, shape)
	return u, shape.TotalSize(), bound(tb, u, c.more)
}

// BenchmarkRule is every registered rule over one tensor. Compare its GB/s with those of BenchmarkAdam/f32/…/impl=c.
func BenchmarkRule(b *testing.B) {
	n := min(ruleSize, *largest)
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
		u, size, bytes := newRule(t, name, 1<<18)
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

// ruleBound is how much longer than Adam in C a rule may take for each byte that it must move, of arrays of ruleSize parameters.
const (
	ruleBound = 1.6
	ruleSize  = 10 * million
)

// measureRules measures every rule against Adam in C, and says how many parameters there were and what must be moved.
func measureRules(t *testing.T, p *pool, each func(name string, size int, bytes float64, r pairs)) {
	n := min(ruleSize, *largest)
	c := newAdamArrays[float32](n).step(p, inC[float32](t))
	for _, name := range ruleNames() {
		u, size, bytes := newRule(t, name, n)
		each(name, size, bytes, paired(u.step, c, bytes/adamBytes[float32](n)))
	}
}
