package updater

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/internal/safetensors"
	"optimop/solvers"
)

// averaging are configs of gradient descent that average, and the averages of weights that go down by 1 in each of three steps, from 4.
var averaging = map[string]struct {
	cfg  Config
	want float64
}{
	"use_ema":          {Config{UseEMA: true, EMAMomentum: new(.5)}, 1.75},
	"of the optimizer": {Config{Optimizer: map[string]any{"class": "sgd", "use_ema": true, "ema_momentum": .5}}, 1.75},
	"ema":              {Config{Optimizer: ema(solvers.NewSGD())}, 1.75},
	"outermost":        {Config{Optimizer: ema(solvers.SWA(solvers.NewSGD()))}, 1.75},
	"swa":              {Config{Optimizer: solvers.SWA(solvers.NewSGD(), func(o *solvers.SWAOptions) { o.StartAveraging, o.AveragePeriod = 1, 1 })}, 1.5},
	"moving": {Config{Optimizer: solvers.MovingAverage(solvers.NewSGD(),
		func(o *solvers.MovingAverageOptions) { o.AverageDecay = .5 })}, 1.875},
	"dynamic scale": {Config{UseEMA: true, EMAMomentum: new(.5), DynamicLossScale: &DynamicLossScale{}}, 1.75},
}

func ema(r solvers.Rule) *solvers.Solver {
	return solvers.EMA(r, func(o *solvers.EMAOptions) { o.EMAMomentum = .5 })
}

// While averages are in nothing trains; afterwards all is as if they had never been, bit for bit.
func TestUseAverages(t *testing.T) {
	for name, c := range averaging {
		for _, host := range hosts {
			for _, dt := range floatTypes {
				trainer := func() (*linear, *Updater, G.VM) {
					l := newLinear(dt, initial{"s", 4.0}, initial{"w", []float64{4, 5}})
					cfg := c.cfg
					cfg.LearningRate = new(1.0)
					u, err := New(l.loss, l.vars, cfg, host...)
					require.NoError(t, err, name)
					return l, u, must(u.NewMachine())
				}
				grads := []any{1.0, []float64{1, 1}}
				l, u, vm := trainer()
				require.False(t, must(u.Averages()))
				_, err := u.UseAverages()
				require.ErrorContains(t, err, "updater: UseAverages: solvers: none of the parameters has an average of its weights yet", name)
				for range 3 {
					l.run(t, vm, grads...)
				}
				require.True(t, must(u.Averages()))
				before := states(t, u)

				restore, err := u.UseAverages()
				require.NoError(t, err, name)
				require.Equal(t, []float64{c.want}, elements(l.vars[0]), name)
				require.Equal(t, []float64{c.want, c.want + 1}, elements(l.vars[1]), name)
				require.True(t, must(u.Averages()))
				swapped := append(elements(l.vars[0]), elements(l.vars[1])...)
				_, second := u.UseAverages()
				for what, err := range map[string]error{
					"a step": vm.RunAll(), "UseAverages": second, "AssignAverages": u.AssignAverages(),
					"WithAverages": u.WithAverages(func() error { panic("not run") }), "SaveFile": u.SaveFile(filepath.Join(t.TempDir(), "state")),
				} {
					require.ErrorContains(t, err, "the parameters hold averages of the weights", what)
				}
				require.Equal(t, swapped, append(elements(l.vars[0]), elements(l.vars[1])...), name)

				require.NoError(t, restore())
				require.Equal(t, before, states(t, u), name)
				require.NoError(t, restore(), "again")
				vm.Reset()
				l.run(t, vm, grads...)
				straight, other, vm2 := trainer()
				for range 4 {
					straight.run(t, vm2, grads...)
				}
				require.Equal(t, states(t, other), states(t, u), name)
			}
		}
	}
}

// states are all bits of variables and states.
func states(t *testing.T, u *Updater) (all []safetensors.Tensor) {
	t.Helper()
	s, err := u.snapshot()
	require.NoError(t, err)
	return s.tensors
}

// Of several optimizers one averages: the other variables stay as they are, and so does one that only a custom update concerns.
func TestUseAveragesOfSomeVariables(t *testing.T) {
	for _, text := range []string{
		`{"learning_rate": 1, "updater_opts": [
			{"match": "/mean|custom/", "optimizer": {"class": "sgd", "use_ema": true, "ema_momentum": 0.5}, "learning_rate_multiplier": 2}]}`,
		`{"learning_rate": 1, "use_ema": true, "ema_momentum": 0.5, "updater_opts": [
			{"match": "/mean|custom/", "learning_rate_multiplier": 2}, {"match": "plain", "use_ema": false}]}`,
	} {
		l := newLinear(tensor.Float64, initial{"plain", 4.0}, initial{"mean", 4.0}, initial{"custom", 4.0})
		all := append(l.vars, input(l.loss.Graph(), "idle", 9))
		u, err := New(l.loss, all, config(t, text), CustomUpdate(l.vars[2], func(old Expr) Expr { return old.Add(one) }))
		require.NoError(t, err)
		values := func() (x []float64) {
			for _, v := range all {
				x = append(x, elements(v)...)
			}
			return x
		}
		vm := must(u.NewMachine())
		l.run(t, vm, 1.0, 1.0)
		l.run(t, vm, 1.0, 1.0)
		require.Equal(t, []float64{2, 0, 6, 9}, values())
		require.NoError(t, u.WithAverages(func() error {
			require.Equal(t, []float64{2, 1, 6, 9}, values())
			require.ErrorContains(t, vm.RunAll(), "hold averages")
			return nil
		}))
		require.Equal(t, []float64{2, 0, 6, 9}, values())

		// Only variables that are trained count.
		require.NoError(t, u.SetTrainableVars(G.Nodes{all[0], all[2]}))
		require.False(t, must(u.Averages()))
		require.ErrorContains(t, u.AssignAverages(), "updater: AssignAverages: solvers: none of the parameters has an average")
		require.NoError(t, u.SetTrainableVars(l.vars))
		require.NoError(t, u.AssignAverages())
		require.Equal(t, []float64{2, 1, 6, 9}, values())
		require.NoError(t, u.InitOptimizerVars())
		require.False(t, must(u.Averages()), "a reset takes the averages away")
	}
}

// Updaters of On share values, averages and the lock.
func TestUseAveragesOn(t *testing.T) {
	square := func(w G.Value) (loss, node *G.Node) {
		g := G.NewGraph()
		node = G.NewVector(g, G.Float64, G.WithShape(2), G.WithName("w"), G.WithValue(w))
		return must(G.Sum(must(G.Square(node)))), node
	}
	w := tensor.New(tensor.WithBacking([]float64{8, -4}))
	loss, node := square(w)
	u, err := New(loss, G.Nodes{node}, config(t, `{"optimizer": {"class": "sgd", "use_ema": true, "ema_momentum": 0.5}, "learning_rate": 0.25}`))
	require.NoError(t, err)
	vm := must(u.NewMachine())
	runs(t, vm, 1)
	loss2, node2 := square(w)
	u2, err := u.On(loss2, G.Nodes{node2})
	require.NoError(t, err)
	require.True(t, must(u2.Averages()), "before its optim op is built")
	require.NoError(t, u2.WithAverages(func() error { require.Equal(t, []float64{4, -2}, floats(node)); return nil }))
	vm2 := must(u2.NewMachine())
	eval := must(graphops.NewEvalMachine(loss2))
	runs(t, vm2, 1)
	require.Equal(t, []float64{2, -1}, floats(node))
	for _, some := range []*Updater{u, u2} {
		restore, err := some.UseAverages()
		require.NoError(t, err)
		require.NoError(t, eval.RunAll())
		require.Equal(t, []float64{3*3 + 1.5*1.5}, floats(loss2))
		for _, vm := range []G.VM{vm, vm2} {
			require.ErrorContains(t, vm.RunAll(), "hold averages")
			vm.Reset()
		}
		for _, other := range []*Updater{u, u2} {
			require.ErrorContains(t, other.SaveFile(filepath.Join(t.TempDir(), "state")), "updater: SaveFile: solvers: the parameters hold averages")
			_, err = other.UseAverages()
			require.Error(t, err)
		}
		require.NoError(t, restore())
		require.Equal(t, []float64{2, -1}, floats(node2))
	}
	runs(t, vm, 1)
	runs(t, vm2, 1)
	require.Equal(t, []float64{.5, -.25}, floats(node))
}

// What is saved after AssignAverages are the averages, and what goes on from there is the same.
func TestAssignAverages(t *testing.T) {
	const text = `{"optimizer": {"class": "ranger", "use_ema": true, "ema_momentum": 0.75}, "learning_rate": 0.1}`
	path := filepath.Join(t.TempDir(), "state")
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, config(t, text)))
	vm := must(u.NewMachine())
	runs(t, vm, 7)
	average := append(floats(u.Slot(w, "average")), floats(u.Slot(b, "average"))...)
	require.NotEqual(t, average, append(floats(w), floats(b)...))
	require.NoError(t, u.AssignAverages())
	require.Equal(t, average, append(floats(w), floats(b)...))
	require.Equal(t, 7, must(u.GlobalStep()))
	require.NoError(t, u.SaveFile(path))
	_, loss2, w2, b2 := model()
	u2 := must(New(loss2, G.Nodes{w2, b2}, config(t, text)))
	require.NoError(t, u2.LoadFile(path))
	require.Equal(t, average, append(floats(w2), floats(b2)...))
	runs(t, vm, 3)
	runs(t, must(u2.NewMachine()), 3)
	require.Equal(t, states(t, u), states(t, u2))
}

// WithAverages ends as it should whatever the function does, and what it cannot do leaves everything as it was.
func TestWithAverages(t *testing.T) {
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": {"class": "adam", "use_ema": true}}`)))
	vm := must(u.NewMachine())
	runs(t, vm, 3)
	before := states(t, u)
	failed := errors.New("no data")
	require.Equal(t, failed, u.WithAverages(func() error { return failed }))
	require.PanicsWithValue(t, "no memory", func() { _ = u.WithAverages(func() error { panic("no memory") }) })
	require.ErrorContains(t, u.WithAverages(nil), "the function is nil")
	require.Equal(t, before, states(t, u))
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, u.WithAverages(func() error {
		require.ErrorContains(t, u.SaveFile(path), "hold averages")
		_, err := os.Stat(path)
		require.ErrorIs(t, err, os.ErrNotExist)
		return nil
	}))
	require.NoError(t, u.SaveFile(path))

	plain := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "adam"}`)))
	runs(t, must(plain.NewMachine()), 1)
	require.False(t, must(plain.Averages()))
	for _, u := range []*Updater{plain, {}} {
		want := map[bool]string{true: "no rule of the solver averages weights", false: "make the updater with New"}[u == plain]
		_, err := u.UseAverages()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, u.WithAverages(func() error { panic("not run") }), want)
		require.ErrorContains(t, u.AssignAverages(), want)
	}
	_, err := new(Updater).Averages()
	require.ErrorContains(t, err, "updater: Averages: make the updater with New")
}
