package updater

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/batch"
	"optimop/solvers"
)

// logged collects what log/slog gets during the test.
func logged(t *testing.T, level slog.Level) *bytes.Buffer {
	t.Helper()
	var text bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level})))
	t.Cleanup(func() { slog.SetDefault(old) })
	return &text
}

func TestUnusedSources(t *testing.T) {
	g := G.NewGraph()
	n, x := state(g, "n", G.Float64, nil, 0), sourceNode(g, "x", G.Float64)
	text := logged(t, slog.LevelWarn)
	for _, mode := range []string{"raise", "warn", "ignore"} {
		a, err := NewUpdatesAlgorithm([]graphops.Update{{Target: n, Value: of(x)}}, func(o *AlgorithmOptions) {
			o.OnUnusedSources, o.Sources = mode, G.Nodes{x}
		})
		require.NoError(t, err)
		require.NoError(t, a.Initialize())
		err = a.ProcessBatch(map[string]any{"y": 1})
		require.ErrorContains(t, err, `not all sources were found: the batch lacks ["x"]. It has ["y"], the inputs are ["x"]`)
		for i := range 4 {
			err := a.ProcessBatch(map[string]any{"x": i, "z": 1, "y": "text"})
			if mode == "raise" {
				require.ErrorContains(t, err, `the batch has sources ["y" "z"] that are no inputs; the inputs are ["x"]`)
			} else {
				require.NoError(t, err)
				require.NoError(t, a.Initialize())
			}
		}
		want := 0
		if mode != "raise" {
			want = 1 // of "warn" alone
		}
		require.Equal(t, want, strings.Count(text.String(), "no inputs of the training algorithm"), mode)
	}
	require.Contains(t, text.String(), "unused=\"[y z]\"")
}

// Inputs that nobody can name, and several of one name.
func TestInputNames(t *testing.T) {
	g := G.NewGraph()
	n, nameless := state(g, "n", G.Float64, nil, 0), G.NewScalar(g, G.Float64)
	a := initialized(t, graphops.Update{Target: n, Value: of(nameless)})
	require.ErrorContains(t, a.ProcessBatch(map[string]any{"": 1, nameless.Name(): 1}), "not all sources")

	x, y := sourceNode(g, "x", G.Float64), sourceNode(g, "x", G.Float32)
	a = initialized(t, graphops.Update{Target: n, Value: graphops.ScalarOf(x).Add(graphops.ScalarOf(y))})
	require.NoError(t, a.ProcessBatch(map[string]any{"x": 2}))
	require.Equal(t, []float64{4}, all(n))

	// a source and a parameter of one name: the data are the source's, with other data beside them too
	x, p := sourceNode(g, "z", G.Float64), state(g, "z", G.Float32, nil, 3)
	a = initialized(t, graphops.Update{Target: n, Value: graphops.ScalarOf(x).Add(graphops.ScalarOf(p))})
	a.opts.OnUnusedSources = "ignore"
	require.NoError(t, a.ProcessBatch(map[string]any{"z": 2, "other": 1}))
	require.Equal(t, []float64{5}, all(n))
}

// What may be handed over as data, and what is refused.
func TestData(t *testing.T) {
	type data struct {
		dt    tensor.Dtype
		shape []int
		in    any
		want  []float64 // nil: refused
		err   string
	}
	row := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float64{1, 2, 3, 4}))
	view := must(row.Slice(nil, tensor.S(1)))
	flipped := row.Clone().(*tensor.Dense)
	require.NoError(t, flipped.T())
	for i, c := range []data{
		{G.Float32, nil, 1.5, []float64{1.5}, ""},
		{G.Float32, nil, .1, []float64{float64(float32(.1))}, ""},
		{G.Float32, nil, math.Inf(1), []float64{math.Inf(1)}, ""},
		{G.Float32, nil, 1e300, nil, "out of the range of float32"},
		{G.Float32, nil, 1 << 24, []float64{1 << 24}, ""},
		{G.Float32, nil, 1<<24 + 1, nil, "without loss"},
		{G.Float64, nil, int8(-3), []float64{-3}, ""},
		{G.Float64, nil, float32(.1), []float64{float64(float32(.1))}, ""},
		{G.Float64, nil, G.NewF32(2), []float64{2}, ""},
		{G.Float32, nil, G.NewF64(2), []float64{2}, ""},
		{G.Float64, nil, tensor.New(tensor.FromScalar(7.5)), []float64{7.5}, ""},
		{G.Float32, nil, tensor.New(tensor.FromScalar(7.5)), nil, "float64 tensor for a float32 input"},
		{G.Float64, nil, []float64{1}, nil, "shape (1)"},
		{G.Float64, nil, "1", nil, "string"},
		{G.Float64, nil, nil, nil, "nil"},
		{G.Float64, nil, (*tensor.Dense)(nil), nil, "nil"},
		{G.Float64, nil, (*G.F64)(nil), nil, "nil"},
		{G.Float64, nil, new(tensor.Dense), nil, "never made"},
		{G.Float64, nil, new(float64), nil, "*float64"},
		{G.Float64, nil, struct{}{}, nil, "struct"},
		{G.Float64, nil, map[string]int{}, nil, "map"},
		{G.Float64, nil, true, nil, "bool"},
		{G.Float64, nil, complex(1, 0), nil, "complex128"},
		{G.Float64, []int{2}, []any{}, nil, "shape (0)"},
		{G.Float64, []int{2, 2}, [][]int{nil, nil}, nil, "shape (2, 0)"},
		{G.Int, nil, 3, []float64{3}, ""},
		{G.Int, nil, 3.0, nil, "float64 for an input of dtype int"},
		{G.Float64, []int{2}, []float64{1, 2}, []float64{1, 2}, ""},
		{G.Float64, []int{2}, []float32{1, 2}, []float64{1, 2}, ""},
		{G.Float32, []int{2}, []float32{1, 2}, []float64{1, 2}, ""},
		{G.Float32, []int{2}, []int{1, 2}, []float64{1, 2}, ""},
		{G.Float32, []int{2}, []uint8{1, 255}, []float64{1, 255}, ""},
		{G.Float32, []int{2}, [2]int{1, 2}, []float64{1, 2}, ""},
		{G.Float32, []int{2}, []any{1, float32(2)}, []float64{1, 2}, ""},
		{G.Float32, []int{2}, []any{1, 2.0}, nil, "float64 data for a float32 input"},
		{G.Float32, []int{2}, []float64{1, 2}, nil, "float64 data for a float32 input"},
		{G.Float32, []int{2}, view, nil, "float64 tensor for a float32 input"},
		{G.Float64, []int{2}, view, []float64{2, 4}, ""},
		{G.Float64, []int{2}, []float64{1, 2, 3}, nil, "the data have shape (3), the input has (2)"},
		{G.Float64, []int{2}, 1.0, nil, "shape ()"},
		{G.Float64, []int{1}, 1.0, nil, "shape ()"},
		{G.Float64, []int{2}, []any{1, nil}, nil, "nil"},
		{G.Float64, []int{2}, []string{"a", "b"}, nil, "string"},
		{G.Float64, []int{2, 2}, [][]float64{{1, 2}, {3, 4}}, []float64{1, 2, 3, 4}, ""},
		{G.Float32, []int{2, 2}, [][]int{{1, 2}, {3, 4}}, []float64{1, 2, 3, 4}, ""},
		{G.Float64, []int{2, 2}, []any{[]int{1, 2}, []float64{3, 4}}, []float64{1, 2, 3, 4}, ""},
		{G.Float64, []int{2, 2}, [][]float64{{1, 2}, {3}}, nil, "differ in length"},
		{G.Float64, []int{2, 2}, []float64{1, 2, 3, 4}, nil, "shape (4)"},
		{G.Float64, []int{2, 2}, flipped, []float64{1, 3, 2, 4}, ""},
		{G.Float64, []int{2, 2}, tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{1, 2, 3, 4})), []float64{1, 2, 3, 4}, ""},
		{G.Float64, []int{2}, tensor.New(tensor.WithBacking([]int64{1 << 60, 1<<60 + 1})), nil, "without loss"},
		{G.Float64, []int{2, 2}, row.Clone().(tensor.Tensor), []float64{1, 2, 3, 4}, ""},
	} {
		g := G.NewGraph()
		var n *G.Node
		x := sourceNode(g, "x", c.dt, c.shape...)
		n = state(g, "n", G.Float64, nil, 0)
		var value Expr
		switch {
		case len(c.shape) == 0:
			value = graphops.ScalarOf(x)
		default:
			value = of(x).Sum()
		}
		a := initialized(t, graphops.Update{Target: n, Value: value})
		err := a.ProcessBatch(map[string]any{"x": c.in})
		if c.want == nil {
			require.ErrorContains(t, err, c.err, "case %d", i)
			require.ErrorContains(t, err, `source "x"`)
			require.Nil(t, x.Value(), "case %d", i)
			continue
		}
		require.NoError(t, err, "case %d", i)
		require.Equal(t, c.want, numbers(x.Value()), "case %d", i)
		require.Equal(t, c.dt, x.Value().Dtype())
	}
}

// Inputs of other dtypes: indices, labels, masks.
func TestOtherData(t *testing.T) {
	for i, c := range []struct {
		dt    tensor.Dtype
		shape []int
		in    any
		want  any // nil: refused
	}{
		{G.Int64, nil, int8(4), int64(4)},
		{G.Int32, nil, 4, int32(4)},
		{G.Byte, nil, 255, byte(255)},
		{G.Byte, nil, 256, nil},
		{G.Byte, nil, -1, nil},
		{G.Bool, nil, true, true},
		{G.Bool, nil, 1, nil},
		{tensor.Int16, nil, 1, nil},
		{G.Int, []int{2}, []int{3, 4}, []int{3, 4}},
		{G.Int, []int{2}, []int64{3, 4}, []int{3, 4}},
		{G.Int, []int{2}, tensor.New(tensor.WithBacking([]int{3, 4})), []int{3, 4}},
		{G.Int, []int{2}, []float64{3, 4}, nil},
		{G.Int64, []int{2}, []int64{3, 1 << 62}, []int64{3, 1 << 62}},
		{G.Int32, []int{2}, []int{3, 1 << 40}, nil},
		{G.Bool, []int{2}, []bool{true, false}, []bool{true, false}},
		{G.Byte, []int{2, 1}, [][]byte{{1}, {2}}, []byte{1, 2}},
	} {
		n := sourceNode(G.NewGraph(), "x", c.dt, c.shape...)
		s, err := batch.NewSource(n)
		require.NoError(t, err)
		if err = s.Accept(c.in); err == nil {
			err = s.Bind()
		}
		if c.want == nil {
			require.Error(t, err, "case %d", i)
			continue
		}
		require.NoError(t, err, "case %d", i)
		require.Equal(t, c.want, n.Value().Data(), "case %d", i)
		if d, ok := c.in.(*tensor.Dense); ok { // a copy
			d.Data().([]int)[0] = 9
			require.Equal(t, c.want, n.Value().Data())
		}
	}
}

// regression is Σ(x·w − y)² / 3 with guards, trained with momentum.
func regression(t *testing.T, dt tensor.Dtype) (a *GradientDescent, w *G.Node) {
	t.Helper()
	g := G.NewGraph()
	x, y := sourceNode(g, "x", dt, 3, 2), sourceNode(g, "y", dt, 3)
	w = state(g, "w", dt, []int{2}, .5, -.5)
	cost := G.Must(G.Mean(G.Must(G.Square(G.Must(G.Sub(G.Must(G.Mul(x, w)), y))))))
	G.WithName("cost")(cost)
	runs := state(g, "runs", dt, nil, 0)
	a, err := NewGradientDescent(Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: solvers.NewAdam(),
		Updates: []graphops.Update{{Target: runs, Value: of(runs).Add(num(1))}}, AlgorithmOptions: AlgorithmOptions{CheckFinite: true}})
	require.NoError(t, err)
	require.NoError(t, a.Observe(cost, runs))
	require.NoError(t, a.Initialize())
	return a, w
}

// wholeState is the bits of a training's state.
func wholeState(t *testing.T, a *GradientDescent) (out []float64) {
	t.Helper()
	for _, u := range a.Updates() {
		out = append(out, numbers(u.Target.Value())...)
	}
	for _, st := range a.Solver().Store().States() {
		out = append(out, numbers(must(st.Value()))...)
	}
	return out
}

// A batch that fails changes nothing, and the next is as if it had not been.
func TestFailingBatches(t *testing.T) {
	for _, dt := range bothTypes {
		good := func(i float64) map[string]any {
			return map[string]any{"x": tensorOf(dt, []int{3, 2}, i, 2, 3, 4, 5, 6), "y": tensorOf(dt, []int{3}, 1, i, 3)}
		}
		wrong, other := good(1), good(1)
		wrong["y"], other["y"] = []float64{1, 2}, tensorOf(map[tensor.Dtype]tensor.Dtype{G.Float64: G.Float32, G.Float32: G.Float64}[dt], []int{3}, 1, 2, 3)
		nan, inf := good(1), good(1)
		nan["y"], inf["x"] = tensorOf(dt, []int{3}, math.NaN(), 1, 2), tensorOf(dt, []int{3, 2}, math.Inf(1), 1, 2, 3, 4, 5)
		bad := []struct {
			batch map[string]any
			want  string
		}{
			{map[string]any{"x": good(1)["x"]}, "not all sources"}, {wrong, "shape"}, {nan, `the cost "cost" is not finite`}, {inf, "is not finite"},
		}
		if dt == G.Float32 {
			bad = append(bad, struct {
				batch map[string]any
				want  string
			}{other, "float64"})
		}
		plain, w := regression(t, dt)
		tried, v := regression(t, dt)
		for i := range 4 {
			require.NoError(t, plain.ProcessBatch(good(float64(i))))
			for _, c := range bad {
				before := wholeState(t, tried)
				require.ErrorContains(t, tried.ProcessBatch(c.batch), c.want)
				require.Equal(t, before, wholeState(t, tried), c.want)
			}
			require.NoError(t, tried.ProcessBatch(good(float64(i))))
			require.Equal(t, wholeState(t, plain), wholeState(t, tried))
			require.Equal(t, must(plain.Observed("cost")), must(tried.Observed("cost")))
			require.Equal(t, []float64{float64(i)}, numbers(must(tried.Observed("runs"))))
		}
		require.Equal(t, numbers(w.Value()), numbers(v.Value()))
	}
}

func TestObserve(t *testing.T) {
	g := G.NewGraph()
	n, x := state(g, "n", G.Float64, []int{2}, 1, 2), sourceNode(g, "x", G.Float64, 2)
	twice := G.Must(G.Square(n))
	G.WithName("square")(twice)
	a := initialized(t, graphops.Update{Target: n, Value: of(n).Mul(num(2))})
	_, err := a.Observed("n")
	require.ErrorContains(t, err, "not observed")
	require.ErrorContains(t, a.Observe(G.NewScalar(g, G.Float64)), "must have names")
	require.ErrorContains(t, a.Observe(nil), "no value")
	require.ErrorContains(t, a.Observe(twice, state(g, "square", G.Float64, nil, 1)), `must be unique; several nodes are called ["square"]`)
	view := G.Must(G.Reshape(n, tensor.Shape{1, 2}))
	G.WithName("view")(view)
	require.NoError(t, a.Observe(n, twice, n, view))
	require.NoError(t, a.Observe(x, twice))
	_, err = a.Observed("n")
	require.ErrorContains(t, err, "not observed") // before it is compiled
	require.NoError(t, a.Initialize())
	require.Equal(t, G.Nodes{x}, a.Inputs())
	_, err = a.Observed("n")
	require.ErrorContains(t, err, "before the first batch")
	batch := map[string]any{"x": []float64{7, 8}}
	require.NoError(t, a.ProcessBatch(batch))
	kept := must(a.Observed("n"))
	for name, want := range map[string][]float64{"n": {1, 2}, "square": {1, 4}, "x": {7, 8}, "view": {1, 2}} {
		require.Equal(t, want, numbers(must(a.Observed(name))), name)
	}
	require.NoError(t, a.ProcessBatch(batch))
	require.Equal(t, []float64{4, 16}, numbers(must(a.Observed("square"))))
	require.Equal(t, []float64{1, 2}, numbers(kept))
	require.Equal(t, []float64{4, 8}, all(n))

	later := G.Must(G.Sum(n)) // built after the commit, and good for the next one
	G.WithName("later")(later)
	require.NoError(t, a.Observe(later))
	require.NoError(t, a.Initialize())
	require.NoError(t, a.ProcessBatch(batch))
	require.Equal(t, []float64{12}, numbers(must(a.Observed("later"))))

	only, err := NewUpdatesAlgorithm(nil) // no update at all
	require.NoError(t, err)
	require.NoError(t, only.Initialize())
	require.NoError(t, only.ProcessBatch(nil))
	require.ErrorContains(t, only.ProcessBatch(batch), "no inputs")
	require.NoError(t, only.Observe(later))
	require.NoError(t, only.Initialize())
	require.NoError(t, only.ProcessBatch(nil))
	require.Equal(t, []float64{24}, numbers(must(only.Observed("later"))))
}
