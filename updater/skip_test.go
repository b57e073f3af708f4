package updater

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/graphops"
)

// skipping has three variables with gradients that can be fed, and a term of the loss of its own.
func skipping(t *testing.T, text string, opts ...Option) (u *Updater, vars, feeds G.Nodes, extra *G.Node) {
	g := G.NewGraph()
	extra = input(g, "extra", 0)
	loss := extra
	for _, name := range []string{"a", "b", "c"} {
		v := input(g, name, 1)
		l, in := weighted(g, v, 1)
		loss = must(G.Add(loss, l))
		vars, feeds = append(vars, v), append(feeds, in)
	}
	return must(New(loss, vars, config(t, text), opts...)), vars, feeds, extra
}

func requireSkipped(t *testing.T, u *Updater, total, row int, what string) {
	t.Helper()
	n, r, w, err := u.Skipped()
	require.NoError(t, err)
	require.Equal(t, total, n)
	require.Equal(t, row, r)
	require.Equal(t, what, w)
}

// A step with a number that is not finite is left out as a whole: nothing is written but what counts.
func TestSkip(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, opts := range [][]Option{nil, {Expanded()}} {
		u, vars, feeds, extra := skipping(t, `{"optimizer": "adam", "skip_non_finite_steps": true, "updater_opts": [{"match": "b", "optimizer": "momentum"}]}`, opts...)
		requireSkipped(t, u, 0, 0, "")
		vm := must(u.NewMachine())
		runs(t, vm, 2)
		requireSkipped(t, u, 0, 0, "")
		for i, c := range []struct {
			loss, a, b, c float64
			row           int
			what          string
		}{
			{0, 1, nan, 1, 1, "the loss"}, // c·w is NaN too
			{inf, 1, 1, 1, 2, "the loss"},
			{0, -inf, 1, nan, 3, "the loss"},
		} {
			before := snapshot(t, u, vars...)
			for k, x := range []float64{c.a, c.b, c.c} {
				feed(t, feeds[k], x)
			}
			feed(t, extra, c.loss)
			runs(t, vm, 1)
			requireSkipped(t, u, i+1, c.row, c.what)
			requireOnly(t, before, snapshot(t, u, vars...), "global_step", skippedTotal, skippedInRow, skippedFirst)
		}
		for _, in := range feeds {
			feed(t, in, 1)
		}
		feed(t, extra, 0)
		before := snapshot(t, u, vars...)
		runs(t, vm, 1)
		requireSkipped(t, u, 3, 0, "the loss")
		require.NotEqual(t, before["a"], floats(vars[0]))
		require.Equal(t, 6, must(u.GlobalStep()))
	}
}

// requireOnly demands that only what is named has changed.
func requireOnly(t *testing.T, before, after map[string][]float64, names ...string) {
	t.Helper()
	require.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	for key, x := range before {
		if !slices.Contains(names, key) {
			require.Equal(t, bits(x), bits(after[key]), key)
		}
	}
}

// roots is Σ √v, of finite value where the gradient is infinite: at 0.
func roots(t *testing.T, text string, opts ...Option) (u *Updater, vars G.Nodes) {
	g := G.NewGraph()
	var loss *G.Node
	for _, name := range []string{"a", "b", "c"} {
		v := input(g, name, 4)
		l := must(G.Sqrt(v))
		if loss != nil {
			l = must(G.Add(loss, l))
		}
		loss, vars = l, append(vars, v)
	}
	return must(New(loss, vars, config(t, text), opts...)), vars
}

// The first gradient that is not finite is named, and the k-th such step in a row fails, writes nothing, and can be repaired.
func TestSkipFails(t *testing.T) {
	u, vars := roots(t, `{"optimizer": "adam", "skip_non_finite_steps": true, "max_skipped_steps": 3, "accum_grad_multiple_step": 2}`)
	vm := must(u.NewMachine())
	runs(t, vm, 3)
	require.NoError(t, G.Let(vars[1], 0.))
	require.NoError(t, G.Let(vars[2], 0.))
	before := snapshot(t, u, vars...)
	runs(t, vm, 1) // would have been one that updates
	requireSkipped(t, u, 1, 1, "the gradient of b")
	requireOnly(t, before, snapshot(t, u, vars...), "global_step", skippedTotal, skippedInRow, skippedFirst)
	runs(t, vm, 1)
	requireSkipped(t, u, 2, 2, "the gradient of b")
	before = snapshot(t, u, vars...)
	for range 3 { // it fails as long as nobody does anything about it
		err := vm.RunAll()
		require.ErrorContains(t, err, "updater: the gradient of b is not finite, in step 3 in a row that had to be skipped")
		vm.Reset()
		requireOnly(t, before, snapshot(t, u, vars...))
	}
	require.NoError(t, G.Let(vars[1], 4.))
	require.ErrorContains(t, vm.RunAll(), "the gradient of c is not finite")
	vm.Reset()
	require.NoError(t, G.Let(vars[2], 4.))
	runs(t, vm, 1)
	requireSkipped(t, u, 2, 0, "the gradient of b")
	require.Equal(t, 6, must(u.GlobalStep()))
	require.NoError(t, G.Let(vars[2], 0.))
	runs(t, vm, 2)
	requireSkipped(t, u, 4, 2, "the gradient of c")
	require.NoError(t, u.InitOptimizerVars()) // these are no state of the optimizers
	requireSkipped(t, u, 4, 2, "the gradient of c")
}

// Skipped steps of an accumulation add nothing to the sum.
func TestSkipAccumulated(t *testing.T) {
	u, vars, feeds, extra := skipping(t, `{"learning_rate": 1, "skip_non_finite_steps": true, "accum_grad_multiple_step": 3}`)
	vm := must(u.NewMachine())
	want := 1.0
	for _, group := range [][3]float64{{1, 2, 4}, {1, math.NaN(), 4}, {math.NaN(), 2, 4}, {8, 16, 32}} {
		sum := 0.0
		for _, x := range group {
			feed(t, feeds[0], x)
			feed(t, extra, 0)
			runs(t, vm, 1)
			if !math.IsNaN(x) {
				sum += x
			}
		}
		want -= sum
		require.Equal(t, []float64{want}, floats(vars[0]))
	}
	requireSkipped(t, u, 2, 0, "the loss")
}

// The checks of numbers fail before anything is written.
func TestCheckNumerics(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		opts       []Option
	}{
		"ops":    {`{"optimizer": "adam", "debug_add_check_numerics_ops": true}`, "", nil},
		"fused":  {`{"optimizer": "adam", "debug_add_check_numerics_ops": true, "gradient_clip": 5, "summary_interval": 1}`, "", nil},
		"expand": {`{"optimizer": "adam", "debug_add_check_numerics_ops": true}`, "", []Option{Expanded()}},
		"output": {`{"optimizer": "adam", "debug_add_check_numerics_on_output": true}`, `updater: the loss is not finite`, nil},
	} {
		g := G.NewGraph()
		w := input(g, "w", 1)
		loss := must(G.Log(w))
		G.WithName("loss")(loss)
		u := must(New(loss, G.Nodes{w}, config(t, c.text), c.opts...))
		vm := must(u.NewMachine())
		runs(t, vm, 2)
		for _, x := range []float64{0, -1} {
			feed(t, w, x)
			before := snapshot(t, u, w)
			err := vm.RunAll()
			require.ErrorContains(t, err, c.want, name)
			var bad graphops.NotFiniteError
			if c.want == "" {
				require.True(t, errors.As(err, &bad), name)
				require.Same(t, loss, bad.Node)
			}
			vm.Reset()
			requireOnly(t, before, snapshot(t, u, w))
		}
		feed(t, w, 2)
		before := snapshot(t, u, w)
		runs(t, vm, 1)
		require.NotEqual(t, before, snapshot(t, u, w))
	}
}

// New values are checked where every gradient is finite, and outputs that no loss depends on.
func TestCheckNumericsElsewhere(t *testing.T) {
	u, vars, feeds, _ := skipping(t, `{"learning_rate": 1e300, "debug_add_check_numerics_ops": true}`)
	feed(t, feeds[1], 1e200)
	before := snapshot(t, u, vars...)
	require.ErrorContains(t, must(u.NewMachine()).RunAll(), `updater: the new value of "b" is not finite`)
	require.Equal(t, before["b"], floats(vars[1]))
	require.Equal(t, before["a"], floats(vars[0]))
	require.Equal(t, 0, must(u.GlobalStep()))

	g := G.NewGraph()
	w := input(g, "w", 1, 2)
	loss, _ := weighted(g, w, 1, 1)
	out := must(G.Exp(w))
	G.WithName("out")(out)
	for _, opts := range [][]Option{nil, {Expanded()}} {
		u := must(New(loss, G.Nodes{w}, config(t, `{"debug_add_check_numerics_on_output": true}`), append(opts, Outputs(out))...))
		vm := must(u.NewMachine())
		copy(w.Value().Data().([]float64), []float64{1, 2})
		runs(t, vm, 1)
		w.Value().Data().([]float64)[1] = 1000
		require.ErrorContains(t, vm.RunAll(), `updater: the output "out" is not finite`)
		require.Equal(t, 1000., floats(w)[1])
	}
}
