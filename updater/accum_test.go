package updater

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// feed binds a scalar's next value.
func feed(t *testing.T, n *G.Node, x float64) {
	t.Helper()
	require.NoError(t, G.Let(n, x))
}

// The numbers of RETURNN's accumulation, in its updater.
func TestAccumulation(t *testing.T) {
	for name, c := range map[string]struct {
		text      string
		grads     []float64
		sums, at  []float64
		tolerance float64
	}{
		"sgd": {`{"learning_rate": 0.1, "accum_grad_multiple_step": 3}`, []float64{1, 2, 3, 4, 5, 6, 7},
			[]float64{1, 3, 6, 4, 9, 15, 7}, []float64{0, 0, -.6, -.6, -.6, -2.1, -2.1}, 1e-15},
		"adam": {`{"optimizer": "adam", "learning_rate": 0.1, "accum_grad_multiple_step": 2}`, []float64{1, -3, 2, 2},
			[]float64{1, -2, 2, 4}, []float64{0, .0999999842, .0999999842, .0633896341}, 1e-7},
		"mean": {`{"learning_rate": 0.1, "gradient_accumulation_steps": 2}`, []float64{1, -3, 2, 2},
			[]float64{1, -2, 2, 4}, []float64{0, .1, .1, -.1}, 1e-15},
		"one": {`{"learning_rate": 0.1, "accum_grad_multiple_step": 1}`, []float64{1, -3}, nil, []float64{-.1, .2}, 1e-15},
	} {
		for _, opts := range [][]Option{nil, {Expanded()}} {
			g := G.NewGraph()
			w := input(g, "w", 0)
			loss, in := weighted(g, w, 0)
			u := must(New(loss, G.Nodes{w}, config(t, c.text), opts...))
			vm := must(u.NewMachine())
			for i, x := range c.grads {
				feed(t, in, x)
				runs(t, vm, 1)
				require.InDelta(t, c.at[i], floats(w)[0], c.tolerance, name)
				if c.sums != nil {
					require.Equal(t, c.sums[i], floats(u.Slot(w, "sum"))[0], name)
				}
				require.Equal(t, i+1, must(u.GlobalStep()))
			}
		}
	}
}

// A run that only accumulates leaves parameters and the state of their optimizers bit for bit as they are,
// while variables of other groups are trained.
func TestOnlyAccumulating(t *testing.T) {
	g := G.NewGraph()
	names := []string{"every", "second", "third"}
	var vars G.Nodes
	var loss *G.Node
	for i, name := range names {
		v := input(g, name, math.Pi, float64(i))
		vars = append(vars, v)
		l := must(G.Sum(must(G.Square(v))))
		if loss != nil {
			l = must(G.Add(loss, l))
		}
		loss = l
	}
	u := must(New(loss, vars, config(t, `{"optimizer": "adam", "decouple_constraints": true, "gradient_noise": 0.5, "gradient_clip_global_norm": 3,
		"updater_opts": [{"match": "*", "l2": 0.01}, {"match": "second", "accum_grad_multiple_step": 2}, {"match": "third", "gradient_accumulation_steps": 3},
			{"match": "third", "optimizer": {"class": "momentum", "momentum": 0.5}}]}`)))
	vm := must(u.NewMachine())
	counts := map[string]int{}
	for step := range 12 {
		before := snapshot(t, u, vars...)
		runs(t, vm, 1)
		after := snapshot(t, u, vars...)
		for i, name := range names {
			changed := map[string]bool{}
			for key := range before {
				own := key == name || strings.HasPrefix(key, name+"/")
				if sum := u.Slot(vars[i], "sum"); own && (sum == nil || key != sum.Name()) {
					changed[key] = bits(before[key]) != bits(after[key])
				}
			}
			require.Greater(t, len(changed), 1)
			for key, is := range changed {
				require.Equal(t, (step+1)%(i+1) == 0, is, "%s in step %d", key, step)
			}
			if (step+1)%(i+1) == 0 {
				counts[name]++
			}
		}
	}
	require.Equal(t, map[string]int{"every": 12, "second": 6, "third": 4}, counts)
}

// bits is a number that differs where a bit of the numbers does.
func bits(x []float64) (h uint64) {
	for _, v := range x {
		h = h*31 + math.Float64bits(v)
	}
	return h
}

// The accumulation that others can use by itself.
func TestAccumGradMultipleStep(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		g := G.NewGraph()
		value := func(x float64) any {
			if dt == tensor.Float32 {
				return float32(x)
			}
			return x
		}
		w := G.NewScalar(g, dt, G.WithName("w"), G.WithValue(value(0)))
		grad := G.NewScalar(g, dt, G.WithName("g"), G.WithValue(value(0)))
		store := graphops.NewStore()
		steps, err := store.Counter("step")
		require.NoError(t, err)
		step, err := steps.Node(g)
		require.NoError(t, err)
		sum, up, err := AccumGradMultipleStep(store, grad, w, step, 3)
		require.NoError(t, err)
		op, err := graphops.Commit([]graphops.Update{up, {Target: step, Value: graphops.ScalarOf(step).Add(one)}}, graphops.From(store))
		require.NoError(t, err)
		vm := must(graphops.NewMachine(op, sum))
		for i, want := range []float64{1, 3, 6, 4, 9, 15, 7} {
			require.NoError(t, G.Let(grad, value(float64(i+1))))
			runs(t, vm, 1)
			require.Equal(t, value(want), sum.Value().Data())
			require.Equal(t, value(want), must(store.Lookup("w/accum_grad").Value()).Data())
		}
		long := G.NewVector(g, dt, G.WithShape(2), G.WithName("long"))
		other := G.NewScalar(g, tensor.Int, G.WithName("other"))
		for _, bad := range []struct {
			store         *graphops.Store
			grad, v, step *G.Node
			n             int
			want          string
		}{
			{nil, grad, w, step, 3, "an argument is nil"}, {store, nil, w, step, 3, "an argument is nil"}, {store, grad, nil, step, 3, "an argument is nil"},
			{store, grad, w, nil, 3, "an argument is nil"}, {store, grad, w, step, 0, "n is 0"}, {store, grad, w, step, -1, "n is -1"},
			{store, long, w, step, 3, "shape"}, {store, other, w, step, 3, "AccumGradMultipleStep"}, {store, grad, w, long, 3, "AccumGradMultipleStep"},
			{store, long, long, step, 0, "n is 0"},
		} {
			_, _, err := AccumGradMultipleStep(bad.store, bad.grad, bad.v, bad.step, bad.n)
			require.ErrorContains(t, err, bad.want)
		}
	}
}

// The state of the optimizers is new before every n-th run of an epoch.
func TestResetUpdaterVarsModStep(t *testing.T) {
	g := G.NewGraph()
	w := input(g, "w", 0)
	loss, _ := weighted(g, w, 1)
	u := must(New(loss, G.Nodes{w}, config(t, `{"optimizer": {"class": "momentum", "momentum": 0.5}, "learning_rate": 1, "reset_updater_vars_mod_step": 3}`)))
	vm := must(u.NewMachine())
	for i, want := range []float64{1, 1.5, 1.75, 1, 1.5, 1, 1.5, 1.75, 1} {
		if i == 5 {
			require.NoError(t, u.StartEpoch())
		}
		before := floats(w)[0]
		runs(t, vm, 1)
		require.Equal(t, want, before-floats(w)[0], i)
		if i == 1 {
			must(u.CreateOptimOp())
			vm = must(u.NewMachine())
		}
	}
	require.Equal(t, 9, must(u.GlobalStep()))
	plain := must(New(loss, G.Nodes{w}, Config{}))
	require.NoError(t, plain.StartEpoch())
	require.Empty(t, plain.OptimizerVars())
}
