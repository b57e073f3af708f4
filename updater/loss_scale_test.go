package updater

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Gradients that vanish in float32 do not with a scale of the loss, a power of two changes no bit of others, and the loss that is read is
// not scaled.
func TestLossScaleFactor(t *testing.T) {
	for _, host := range hosts {
		for config, want := range map[string]float32{
			`{"optimizer": "lion", "learning_rate": 0.25}`:                            1,
			`{"optimizer": "lion", "learning_rate": 0.25, "loss_scale_factor": 1e30}`: .75,
		} {
			g := G.NewGraph()
			w := G.NewScalar(g, G.Float32, G.WithName("w"), G.WithValue(float32(1)))
			loss := w // times 1e-30 in all, by numbers whose product is less than float32 has, from the right
			for i, x := range []float32{1e30, 1e-30, 1e-30} {
				loss = G.Must(G.Mul(loss, G.NewScalar(g, G.Float32, G.WithName(string(rune('x'+i))), G.WithValue(x))))
			}
			u, err := New(loss, G.Nodes{w}, roundTrip(t, config), host...)
			require.NoError(t, err)
			vm, err := u.NewMachine()
			require.NoError(t, err)
			require.NoError(t, vm.RunAll())
			require.InDelta(t, want, w.Value().Data(), 1e-6, config)
		}
		run := func(config string) (got []float64) {
			l := newLinear(tensor.Float32, initial{"a", []float64{1, -2}}, initial{"b", 3.})
			u, err := New(l.loss, l.vars, roundTrip(t, config), host...)
			require.NoError(t, err)
			vm, err := u.NewMachine()
			require.NoError(t, err)
			for i := range 5 {
				l.run(t, vm, []float64{.3 * float64(i), 1}, -.7)
				got = append(got, append(l.all(), elements(l.loss)...)...)
			}
			record, ok, err := u.Summary()
			require.True(t, ok && err == nil)
			for _, v := range record.Values {
				got = append(got, v.Value)
			}
			return got
		}
		const rest = `"optimizer": "adam", "gradient_clip_global_norm": 0.5, "summary_interval": 1, "maximize_grad_norm": 0.5,
			"updater_opts": [{"match": "a", "l2": 0.1}]}`
		want := run(`{` + rest)
		require.Equal(t, want, run(`{"loss_scale_factor": 4096, `+rest))
		require.Equal(t, want, run(`{"dynamic_loss_scale": true, `+rest))
	}
}

// Keras' own row of its LossScaleOptimizer.
func TestDynamicLossScale(t *testing.T) {
	for _, host := range hosts {
		for _, dt := range floatTypes {
			l := newLinear(dt, initial{"w", 1.}, initial{"c", 0.})
			counts := CustomUpdate(l.vars[1], func(old Expr) Expr { return old.Add(graphops.Const(1)) })
			config := roundTrip(t, `{"learning_rate": 1, "dynamic_loss_scale": {"initial_scale": 8, "dynamic_growth_steps": 3}, "summary_interval": 1}`)
			u, err := New(l.loss, l.vars, config, append(host, counts)...)
			require.NoError(t, err)
			scale, err := u.LossScale()
			require.NoError(t, err)
			require.Equal(t, 8., scale)
			vm, err := u.NewMachine()
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), "run")
			inf := math.Inf(1)
			for i, row := range []struct{ scaled, w, scale, applied float64 }{{8, 0, 8, 1}, {8, -1, 8, 2}, {8, -2, 16, 3}, {inf, -2, 8, 3}, {4, -2.5, 8, 4},
				{8, -3.5, 8, 5}, {math.NaN(), -3.5, 4, 5}, {4, -4.5, 4, 6}, {4, -5.5, 4, 7}, {4, -6.5, 8, 8}} {
				l.run(t, vm, row.scaled/scale, 1.)
				scale, err = u.LossScale()
				require.NoError(t, err)
				require.Equal(t, []float64{row.w, row.applied, row.scale}, append(l.all(), scale), i)
				record, ok, err := u.Summary()
				require.True(t, ok && err == nil)
				for _, v := range record.Values {
					if v.Tag == "update_ratio/w" && (i == 3 || i == 6) {
						require.Zero(t, v.Value)
					}
				}
				if i == 4 { // on in another updater
					require.NoError(t, u.SaveFile(path))
					l = newLinear(dt, initial{"w", 0.}, initial{"c", 0.})
					counts = CustomUpdate(l.vars[1], func(old Expr) Expr { return old.Add(graphops.Const(1)) })
					u, err = New(l.loss, l.vars, config, append(host, counts)...)
					require.NoError(t, err)
					require.NoError(t, u.LoadFile(path))
					vm, err = u.NewMachine()
					require.NoError(t, err)
				}
			}
			total, row, what, err := u.Skipped()
			require.NoError(t, err)
			require.Equal(t, 2, total)
			require.Zero(t, row)
			require.Equal(t, "the gradient of w", what)
			require.NoError(t, u.InitOptimizerVars())
			scale, err = u.LossScale()
			require.NoError(t, err)
			require.Equal(t, 8., scale)
		}
	}
}

// A scale that makes gradients overflow is found out, and the runs that find it are skipped.
func TestDynamicLossScaleOverflows(t *testing.T) {
	l := newLinear(tensor.Float32, initial{"w", 1.})
	u, err := New(l.loss, l.vars, roundTrip(t, `{"learning_rate": 1e-11, "dynamic_loss_scale": {"initial_scale": 1e38, "backoff_factor": 1e-6, "min_scale": 2}}`))
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	for range 4 {
		l.run(t, vm, 1e10)
	}
	total, _, _, err := u.Skipped()
	require.NoError(t, err)
	require.Equal(t, 2, total) // 1e38 and 1e32
	require.InDelta(t, .8, l.all()[0], 1e-5)
	for range 10 {
		l.run(t, vm, math.Inf(1))
	}
	scale, err := u.LossScale()
	require.NoError(t, err)
	require.Equal(t, 2., scale)
	require.InDelta(t, .8, l.all()[0], 1e-5)
	l.run(t, vm, 1e10)
	require.InDelta(t, .7, l.all()[0], 1e-5)

	u, err = New(l.loss, l.vars, Config{DynamicLossScale: &DynamicLossScale{}, MaxSkippedSteps: 2})
	require.NoError(t, err)
	vm, err = u.NewMachine()
	require.NoError(t, err)
	l.run(t, vm, math.Inf(1))
	require.ErrorContains(t, vm.RunAll(), "the gradient of w is not finite, in step 2 in a row")
}
