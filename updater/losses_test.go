package updater

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Several losses are one commit, of the sum of their gradients.
func TestAddLoss(t *testing.T) {
	g := G.NewGraph()
	w, b, lone := input(g, "w", 1, 2), input(g, "b", 3), input(g, "lone", 5)
	first, _ := weighted(g, w, 1, -2)
	second, _ := weighted(g, b, 4)
	second = must(G.Add(second, must(G.Sum(must(G.Square(w))))))
	third, _ := weighted(g, lone, 7)
	u := must(New(first, G.Nodes{w}, config(t, `{"optimizer": {"class": "momentum", "momentum": 0.5}, "learning_rate": 0.1,
		"updater_opts": [{"match": "w", "tags": "t", "gradient_clip_global_norm": 1000, "global_norm_tag": "t"}], "summary_interval": 1}`)))
	old := must(u.NewMachine())
	require.NoError(t, u.AddLoss(second, b, w))
	require.NoError(t, u.AddLoss(third, lone))
	vm := must(u.NewMachine(second))
	require.ErrorContains(t, old.RunAll(), "superseded")
	var m, x = [4]float64{}, [4]float64{1, 2, 3, 5}
	for range 4 {
		grad := [4]float64{1 + 2*x[0], -2 + 2*x[1], 4, 7}
		for i, d := range grad {
			m[i] = .5*m[i] + d
			x[i] -= .1 * m[i]
		}
		runs(t, vm, 1)
		require.InDeltaSlice(t, x[:], append(append(floats(w), floats(b)...), floats(lone)...), 1e-12)
		r, ok, err := u.Summary()
		require.NoError(t, err)
		require.True(t, ok)
		for _, v := range r.Values {
			if v.Tag == "global_norm_for_tag_t" {
				require.InDelta(t, math.Hypot(grad[0], grad[1]), v.Value, 1e-12)
			}
		}
	}
	require.Equal(t, 4, must(u.GlobalStep()))
	require.NoError(t, u.SetTrainableVars(G.Nodes{b, w})) // of the first loss, which b has no gradient of
	runs(t, must(u.NewMachine()), 1)
	require.InDelta(t, x[2]-.1*(.5*m[2]+4), floats(b)[0], 1e-12)
}

func TestMetaLosses(t *testing.T) {
	g := G.NewGraph()
	w, b := input(g, "w", 1, 2), input(g, "b", 3)
	loss, _ := weighted(g, w, 1, -2)
	tikhonov := must(G.Sum(must(G.Square(w))))
	synthetic, _ := weighted(g, b, 4)
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"learning_rate": 0.1, "decouple_constraints": true, "updater_opts": [{"match": "*", "l2": 0.05}]}`),
		WithMetaLoss("tikhonov", tikhonov, .5), WithMetaLoss("synthetic", synthetic, -1)))
	require.Equal(t, []MetaLoss{{"tikhonov", tikhonov, .5}, {"synthetic", synthetic, -1}}, u.MetaLosses())
	vm := must(u.NewMachine(tikhonov, synthetic))
	x := [3]float64{1, 2, 3}
	for range 3 {
		sum := x[0]*x[0] + x[1]*x[1]
		runs(t, vm, 1)
		require.InDelta(t, sum, floats(tikhonov)[0], 1e-12) // of before the step
		for i, d := range [3]float64{1 + x[0], -2 + x[1], -4} {
			x[i] = x[i]*(1-.1) - .1*d // decays once a run, where RETURNN's second pass decays again
		}
		require.InDeltaSlice(t, x[:], append(floats(w), floats(b)...), 1e-12)
	}
	require.Equal(t, 3, must(u.GlobalStep()))
	for want, o := range map[string]Option{
		`meta loss "m": the loss is nil`:                          WithMetaLoss("m", nil, 1),
		`meta loss "m": variable "w" is not on the graph`:         WithMetaLoss("m", input(G.NewGraph(), "l", 1), 1),
		`meta loss "m": solvers: the loss has shape (2)`:          WithMetaLoss("m", w, 1),
		`meta loss "m": solvers: the loss depends on none of the`: WithMetaLoss("m", input(g, "l", 1), 1),
	} {
		_, err := New(loss, G.Nodes{w, b}, Config{}, o)
		require.ErrorContains(t, err, want)
	}
}

func TestCustomUpdates(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		g := G.NewGraph()
		w, average, count := input(g, "w", 1, 2), input(g, "average", 0, 8), input(g, "count", 4)
		loss, _ := weighted(g, w, 1, -2)
		u := must(New(loss, G.Nodes{w, average, count}, config(t, `{"optimizer": "adam", "learning_rate": 1000, "decouple_constraints": true,
			"updater_opts": [{"match": "*", "l2": 0.5}, {"match": "w", "learning_rate_multiplier": 0.001, "l2": 0}], "skip_non_finite_steps": true}`),
			append(opts, CustomUpdate(average, ExponentialAverage(w, .25)),
				CustomUpdate(count, func(old Expr) Expr { return old.Add(graphops.Const(13)) }))...))
		vm := must(u.NewMachine())
		runs(t, vm, 1)
		require.InDeltaSlice(t, []float64{0, 3}, floats(w), 1e-6)
		require.Equal(t, []float64{.25, 6.5}, floats(average)) // towards what w was before the step
		require.Equal(t, []float64{17}, floats(count))         // neither learning rate nor decay
		require.Nil(t, u.Slot(count, "m"))
		runs(t, vm, 1)
		require.InDeltaSlice(t, []float64{.1875, 5.625}, floats(average), 1e-6)
		require.Equal(t, []float64{30}, floats(count))
		require.Len(t, u.Optimizers(), 1)
	}
}

// The custom update of a variable can be the only thing that there is to do (RETURNN's test_CustomUpdate).
func TestAllCustom(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		g := G.NewGraph()
		w := input(g, "w", 4)
		loss := must(G.Square(w))
		u := must(New(loss, G.Nodes{w}, config(t, `{"optimizer": "adam", "learning_rate": 1000, "debug_add_check_numerics_ops": true, "summary_interval": 1}`),
			append(opts, CustomUpdate(w, func(old Expr) Expr { return old.Add(graphops.Const(13)) }))...))
		vm := must(u.NewMachine())
		runs(t, vm, 1)
		require.Equal(t, []float64{17}, floats(w))
		require.Equal(t, []float64{16}, floats(loss))
		require.Equal(t, 1, must(u.GlobalStep()))
		require.Empty(t, u.Optimizers())
		require.Empty(t, u.SlotNames())
		require.NoError(t, u.InitOptimizerVars())
		runs(t, vm, 1)
		require.Equal(t, []float64{30}, floats(w))
		require.Equal(t, 2, must(u.GlobalStep()))
	}
	g := G.NewGraph()
	w, b := input(g, "w", 4), input(g, "b", 4)
	loss := must(G.Square(w))
	same := func(old Expr) Expr { return old }
	for want, o := range map[string][]Option{
		"CustomUpdate: the variable or the function is nil": {CustomUpdate(nil, same)},
		"variable or the function is nil":                   {CustomUpdate(w, nil)},
		`"b" is not among the trainable variables`:          {CustomUpdate(b, same)},
		`CustomUpdate: "w" has two`:                         {CustomUpdate(w, same), CustomUpdate(w, same)},
	} {
		_, err := New(loss, G.Nodes{w}, Config{}, o...)
		require.ErrorContains(t, err, want)
	}
	u := must(New(loss, G.Nodes{w, b}, Config{}, CustomUpdate(b, same)))
	require.ErrorContains(t, u.SetTrainableVars(G.Nodes{w}), `"b" is not among the trainable variables`)
}

// An extra update sees the variable's own, after clips, and comes in the runs in which that does.
func TestExtraUpdates(t *testing.T) {
	for _, opts := range [][]Option{nil, {Expanded()}} {
		g := G.NewGraph()
		w, b, free := input(g, "w", 1, 2), input(g, "b", 3), input(g, "free", 5)
		first, _ := weighted(g, w, 1, -20)
		second, _ := weighted(g, b, 4)
		var seen []*G.Node
		u := must(New(must(G.Add(first, second)), G.Nodes{w, b, free}, config(t, `{"learning_rate": 0.1, "updater_opts": [{"match": "w", "gradient_clip": 5,
			"accum_grad_multiple_step": 2}]}`), append(opts,
			CustomUpdate(free, func(old Expr) Expr { return old.Mul(graphops.Const(2)) }),
			ExtraUpdate("w", func(x Extra) Expr {
				seen = append(seen, x.Var)
				return x.New.Sub(x.Old).Add(x.Gradient)
			}),
			ExtraUpdate("b", func(x Extra) Expr { return x.New.Max(graphops.Const(2.5)) }),
			ExtraUpdate("free", func(x Extra) Expr { return x.New.Add(x.Old) }))...))
		vm := must(u.NewMachine())
		runs(t, vm, 1)
		require.Equal(t, []*G.Node{w}, seen)
		require.Equal(t, []float64{1, 2}, floats(w))
		require.InDelta(t, 2.6, floats(b)[0], 1e-12)
		require.Equal(t, []float64{15}, floats(free))
		runs(t, vm, 1)
		require.InDeltaSlice(t, []float64{.9 * 2, -.9 * 5}, floats(w), 1e-12) // the gradients 2 and −40 cut to −5
		require.Equal(t, []float64{2.5}, floats(b))
	}
	_, loss, w, b := model()
	same := func(x Extra) Expr { return x.New }
	for want, o := range map[string][]Option{
		`ExtraUpdate: the function of "w" is nil`:                     {ExtraUpdate("w", nil)},
		`ExtraUpdate: no variable is called "x"; there are ["w" "b"]`: {ExtraUpdate("x", same)},
		`ExtraUpdate: "w" has two`:                                    {ExtraUpdate("w", same), ExtraUpdate("w", same)},
		`the extra update of w panicked: no`:                          {ExtraUpdate("w", func(Extra) Expr { panic("no") })},
		`the extra update of b`:                                       {ExtraUpdate("b", func(Extra) Expr { return Expr{} })},
		`the extra update of w: `:                                     {ExtraUpdate("w", func(x Extra) Expr { return x.New.Add(graphops.Of(b)) })},
	} {
		u, err := New(loss, G.Nodes{w, b}, Config{}, o...)
		if err == nil {
			_, err = u.OptimOp()
		}
		require.ErrorContains(t, err, want)
	}
}

// batches makes the loss Σ(x·w)²/n of n rows on a graph of its own; w is in the given memory.
func batches(w *tensor.Dense, n int) (loss, v, x *G.Node) {
	g := G.NewGraph()
	v = G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("w"), G.WithValue(w))
	x = G.NewMatrix(g, G.Float64, G.WithShape(n, 2), G.WithName("x"))
	return must(G.Mean(must(G.Square(must(G.Mul(x, v)))))), v, x
}

// The short last batch of an epoch has a graph of its own, and everything in common.
func TestOn(t *testing.T) {
	shared := tensor.New(tensor.WithBacking([]float64{1, -1}))
	loss, v, x := batches(shared, 3)
	c := config(t, `{"optimizer": "adam", "accum_grad_multiple_step": 2, "reset_updater_vars_mod_step": 6,
		"learning_rate": {"class": "exponential_decay", "initial": 0.5, "decay_steps": 2, "decay_rate": 0.5}}`)
	c.UpdaterOpts = []VarOptions{{Vars: G.Nodes{v}, GradientClip: new(100.0)}}
	u := must(New(loss, G.Nodes{v}, c))
	last, v2, x2 := batches(shared, 1)
	short := must(u.On(last, G.Nodes{v2}))
	require.Same(t, u.Solver(), short.Solver())
	require.Equal(t, u.Table(), short.Table())
	vm, vm2 := must(u.NewMachine()), must(short.NewMachine())
	want := []float64{1, -1}
	var m, s, sum [2]float64
	power := [2]float64{1, 1}
	for step := range 14 {
		if step == 3 {
			require.NoError(t, u.StartEpoch()) // also for the other
		}
		rows := [][2]float64{{1, float64(step)}, {-1, 2}, {.5, -float64(step)}}
		run, in := vm, x
		if step%3 == 2 {
			rows, run, in = rows[:1], vm2, x2
		}
		var flat []float64
		var grad [2]float64
		for _, r := range rows {
			flat = append(flat, r[:]...)
			y := r[0]*want[0] + r[1]*want[1]
			grad[0], grad[1] = grad[0]+2*y*r[0]/float64(len(rows)), grad[1]+2*y*r[1]/float64(len(rows))
		}
		require.NoError(t, G.Let(in, tensor.New(tensor.WithShape(len(rows), 2), tensor.WithBacking(flat))))
		runs(t, run, 1)
		if step == 0 || step >= 3 && (step-3)%6 == 0 {
			m, s, sum, power = [2]float64{}, [2]float64{}, [2]float64{}, [2]float64{1, 1}
		}
		rate := .5 * math.Pow(.5, float64(step)/2)
		for i := range sum {
			if step%2 == 0 {
				sum[i] = 0
			}
			sum[i] += grad[i]
		}
		if step%2 == 1 {
			power[0], power[1] = power[0]*.9, power[1]*.999
			for i, d := range sum {
				d = max(-100, min(100, d))
				m[i], s[i] = .9*m[i]+.1*d, .999*s[i]+.001*d*d
				want[i] -= rate * math.Sqrt(1-power[1]) / (1 - power[0]) * m[i] / (math.Sqrt(s[i]) + 1e-8)
			}
		}
		require.InDeltaSlice(t, want, floats(v), 1e-6, step)
		require.Equal(t, floats(v), floats(v2))
		require.Equal(t, step+1, must(short.GlobalStep()))
		require.Equal(t, must(u.LearningRate()), must(short.LearningRate()))
	}
	require.NotNil(t, short.Slot(v2, "m"))
	require.Nil(t, short.Slot(v, "m"))
	require.Equal(t, floats(u.Slot(v, "m")), floats(short.Slot(v2, "m")))
	must(u.CreateOptimOp()) // the first can be built anew after the second was made
	runs(t, vm2, 1)
}
