package updater

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// searched is a statefulNet whose learning rate has no schedule.
func searched(t *testing.T, dt tensor.Dtype) *statefulNet {
	n := stateful(t, dt, 1)
	text := strings.Replace(fmt.Sprintf(everything, 1),
		`"learning_rate": {"class": "exponential_decay", "initial": 0.05, "decay_steps": 3, "decay_rate": 0.8}`, `"learning_rate": 0.05`, 1)
	text = strings.Replace(text, `"dynamic_learning_rate": {"interval": 4, "decay": 0.5},`, "", 1)
	require.NotContains(t, text, "decay_steps")
	require.NotContains(t, text, "dynamic")
	meta := n.u.MetaLosses()[0]
	n.u = must(New(n.u.losses[0].loss, n.vars, config(t, text), WithMetaLoss(meta.Name, meta.Loss, meta.Scale)))
	n.vm = must(n.u.NewMachine())
	return n
}

func (n *statefulNet) rates() (all []float64) {
	for _, o := range n.u.pipe.optimizers {
		all = append(all, must(o.Solver.Get(o.has(learningRate))))
	}
	return all
}

// However the search ends, everything is as it was, and training goes on as if there had been none.
func TestFindLearningRateRestores(t *testing.T) {
	const at, steps = 7, 14
	for name, c := range map[string]struct {
		last func() (float64, error) // in the sixth step
		err  string
	}{
		"whole":    {func() (float64, error) { return 0, nil }, ""},
		"diverged": {func() (float64, error) { return 1e9, nil }, ""},
		"nan":      {func() (float64, error) { return math.NaN(), nil }, ""},
		"failed":   {func() (float64, error) { return 0, errors.New("no power") }, "updater: FindLearningRate: step 6, with the rate 0.1166: no power"},
		"panicked": {func() (float64, error) { panic("no memory") }, "the step panicked: no memory"},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			whole := searched(t, dt)
			whole.train(t, 0, steps)
			n := searched(t, dt)
			n.train(t, 0, at)
			require.NoError(t, n.u.SetLearningRate(.05)) // the same again
			before, rates, first := n.values(t), n.rates(), n.u.pipe.decay.LearningRate
			require.Len(t, rates, 2)
			seen := map[string]bool{before: true}
			calls := 0
			r, err := n.u.FindLearningRate(func() (float64, error) {
				n.train(t, calls+1, calls+2) // a skipped step and the start of an epoch are among these
				calls++
				seen[n.values(t)] = true
				now := n.rates()
				require.Equal(t, now[0], now[1])
				require.NotEqual(t, rates[0], now[0])
				require.Equal(t, first, n.u.pipe.decay.LearningRate)
				if calls == 6 {
					return c.last()
				}
				return 10 - float64(calls), nil
			}, func(o *RangeTestOptions) { o.Steps, o.Min, o.Max, o.Smoothing = 7, .01, .19059, 0 }, nil)
			if c.err != "" {
				require.ErrorContains(t, err, c.err, name)
				require.Nil(t, r)
			} else {
				require.NoError(t, err, name)
			}
			require.Len(t, seen, calls+1, name)
			require.Equal(t, before, n.values(t), name)
			require.Equal(t, rates, n.rates())
			require.Equal(t, first, n.u.pipe.decay.LearningRate)
			n.train(t, at, steps)
			require.Equal(t, whole.values(t), n.values(t), name)
		}
	}
}

// A rate of an optimizer that no variable uses any more comes back, too, and so do variables whose memory was changed or has no name.
func TestFindLearningRateRestoresAll(t *testing.T) {
	g := G.NewGraph()
	w, b := input(g, "w", 1), G.NewScalar(g, G.Float64, G.WithValue(2.))
	loss := must(G.Add(must(G.Square(w)), must(G.Square(b))))
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "adam", "updater_opts": [{"match": "param", "optimizer": "sgd"}]}`)))
	require.NoError(t, u.SetTrainableVars(G.Nodes{b}))
	vm := must(u.NewMachine())
	require.Len(t, u.pipe.optimizers, 2)
	old := []float64{.003, .004}
	for i, o := range u.pipe.optimizers {
		require.NoError(t, o.Solver.Set(learningRate, old[i]))
	}
	r, err := u.FindLearningRate(func() (float64, error) {
		for _, o := range u.pipe.optimizers {
			require.Less(t, must(o.Solver.Get(learningRate)), .003)
		}
		runs(t, vm, 1)
		l := floats(loss)[0]
		require.NoError(t, G.Let(b, floats(b)[0]*.9))
		return l, nil
	}, func(o *RangeTestOptions) { o.Max, o.Steps = .002, 3 })
	require.NoError(t, err)
	require.Len(t, r.Losses, 3)
	require.Less(t, r.Losses[2], r.Losses[1])
	require.Equal(t, []float64{2}, floats(b))
	for i, o := range u.pipe.optimizers {
		require.Equal(t, old[i], must(o.Solver.Get(learningRate)))
	}
	require.ErrorContains(t, u.SaveFile(filepath.Join(t.TempDir(), "state")), "has no name of its own")
}

// A rate that only some optimizers take is set for none.
func TestRatesOfAllOrNone(t *testing.T) {
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"learning_rate": 0.5, "updater_opts": [{"match": "b", "optimizer": "adam"}]}`)))
	must(u.OptimOp())
	require.NoError(t, u.Solver().Schedule("adam/learning_rate", schedule.NewConstant(1)))
	before := snapshot(t, u, w, b)
	require.Equal(t, []float64{.5}, before["sgd/learning_rate"])
	require.ErrorContains(t, u.SetLearningRate(2), "adam/learning_rate follows a schedule")
	require.Equal(t, before, snapshot(t, u, w, b))
	u.ResetOptimOp()
	must(u.OptimOp())
	_, err := u.FindLearningRate(func() (float64, error) { return 1, nil })
	require.ErrorContains(t, err, "adam/learning_rate follows a schedule")
	require.Equal(t, before, snapshot(t, u, w, b))
}

// The rates, the losses and their averages; where the search ends and what it suggests.
func TestRangeTest(t *testing.T) {
	inf := math.Inf(1)
	exp := func(o *RangeTestOptions) { o.Min, o.Max, o.Steps, o.Smoothing = .25, 64, 5, 0 }
	linear := func(o *RangeTestOptions) { o.Min, o.Max, o.Steps, o.Smoothing, o.Linear = 1, 3, 5, .5, true }
	for name, c := range map[string]struct {
		set    func(*RangeTestOptions)
		losses []float64
		want   RangeTest
	}{
		"whole": {exp, []float64{8, 7, 3, 2, 5}, RangeTest{Rates: []float64{.25, 1, 4, 16, 64}, Losses: []float64{8, 7, 3, 2, 5},
			Smoothed: []float64{8, 7, 3, 2, 5}, Minimum: 16, Steepest: 1, Suggestion: 1.6}},
		"linear": {linear, []float64{4, 1, 1, 1, 1}, RangeTest{Rates: []float64{1, 1.5, 2, 2.5, 3}, Losses: []float64{4, 1, 1, 1, 1},
			Smoothed: []float64{4, 2, 1.25 / .875, 1.125 / .9375, 1.0625 / .96875}, Minimum: 3, Steepest: 1, Suggestion: .3}},
		"diverged": {exp, []float64{8, 2, 8.1}, RangeTest{Rates: []float64{.25, 1}, Losses: []float64{8, 2}, Smoothed: []float64{8, 2},
			Diverged: 4, Minimum: 1, Steepest: .25, Suggestion: .1}},
		"just not": {exp, []float64{8, 2, 8, 8, 8}, RangeTest{Rates: []float64{.25, 1, 4, 16, 64}, Losses: []float64{8, 2, 8, 8, 8},
			Smoothed: []float64{8, 2, 8, 8, 8}, Minimum: 1, Steepest: .25, Suggestion: .1}},
		"negative": {exp, []float64{-1, -2, 4, 4.1}, RangeTest{Rates: []float64{.25, 1, 4}, Losses: []float64{-1, -2, 4}, Smoothed: []float64{-1, -2, 4},
			Diverged: 16, Minimum: 1, Steepest: .25, Suggestion: .1}},
		"never fell": {exp, []float64{1, 2, inf}, RangeTest{Rates: []float64{.25, 1}, Losses: []float64{1, 2}, Smoothed: []float64{1, 2}, Diverged: 4}},
		"nan":        {exp, []float64{1, math.NaN()}, RangeTest{Rates: []float64{.25}, Losses: []float64{1}, Smoothed: []float64{1}, Diverged: 1}},
	} {
		_, loss, w, b := model()
		u := must(New(loss, G.Nodes{w, b}, Config{}))
		vm := must(u.NewMachine())
		calls := 0
		r, err := u.FindLearningRate(func() (float64, error) {
			runs(t, vm, 1)
			calls++
			return c.losses[calls-1], nil
		}, c.set)
		require.NoError(t, err, name)
		require.Equal(t, len(c.losses), calls, name)
		require.Equal(t, c.want.Losses, r.Losses, name)
		require.Equal(t, c.want.Rates[0], r.Rates[0], name)
		for _, x := range [][2][]float64{{c.want.Rates, r.Rates}, {c.want.Smoothed, r.Smoothed},
			{{c.want.Diverged, c.want.Minimum, c.want.Steepest, c.want.Suggestion}, {r.Diverged, r.Minimum, r.Steepest, r.Suggestion}}} {
			require.Len(t, x[1], len(x[0]), name)
			for i := range x[0] {
				require.InDelta(t, x[0][i], x[1][i], 1e-13*math.Abs(x[0][i]), name)
			}
		}
	}
}

// Gradient descent on w² is stable below the rate 1, where the loss is lowest; a tenth of that trains, a little more diverges.
func TestFindLearningRateOnQuadratic(t *testing.T) {
	for _, c := range []struct {
		smoothing float64
		linear    bool
		low, high float64 // where the minimum may be
	}{{0, false, 1, 1.21}, {.9, false, 1, 10}, {0, true, 1, 1.11}} {
		g := G.NewGraph()
		w := input(g, "w", 8)
		loss := must(G.Square(w))
		u := must(New(loss, G.Nodes{w}, Config{}))
		vm := must(u.NewMachine())
		step := func() (float64, error) {
			defer vm.Reset()
			err := vm.RunAll()
			return floats(loss)[0], err
		}
		r, err := u.FindLearningRate(step, func(o *RangeTestOptions) { o.Smoothing, o.Linear = c.smoothing, c.linear })
		require.NoError(t, err)
		require.NotZero(t, r.Diverged)
		require.Less(t, len(r.Rates), 100)
		require.GreaterOrEqual(t, r.Minimum, c.low)
		require.LessOrEqual(t, r.Minimum, c.high)
		require.Positive(t, r.Steepest)
		require.Less(t, r.Steepest, r.Minimum)
		require.Equal(t, 64., r.Losses[0])
		for rate, stable := range map[float64]bool{r.Suggestion: true, 1.05: false} {
			require.NoError(t, u.SetLearningRate(rate))
			require.NoError(t, G.Let(w, 8.))
			for range 100 {
				must(step())
			}
			require.Equal(t, stable, math.Abs(floats(w)[0]) < 1e-3, rate)
		}
	}
}

func TestFindLearningRateRefuses(t *testing.T) {
	plain, noRate := `{"optimizer": "adam"}`, `{"optimizer": "cocob"}`
	scheduled := func(u *Updater) { require.NoError(t, u.Solver().Schedule("learning_rate", schedule.NewConstant(1))) }
	for want, c := range map[string]struct {
		config string
		before func(*Updater)
		set    func(*RangeTestOptions)
	}{
		"learning_rate follows a schedule":                  {`{"learning_rate": {"class": "linear", "initial": 1, "end": 0, "steps": 9}}`, nil, nil},
		"dynamic_learning_rate would change":                {`{"dynamic_learning_rate": {"interval": 4, "decay": 0.5}}`, nil, nil},
		"no optimizer here has a hyperparameter":            {noRate, nil, nil},
		"sgd/learning_rate follows a schedule":              {`{}`, scheduled, nil},
		"the rates go from 0 to 10":                         {plain, nil, func(o *RangeTestOptions) { o.Min = 0 }},
		"the rates go from 10 to 10":                        {plain, nil, func(o *RangeTestOptions) { o.Min = 10 }},
		"the rates go from NaN to 10":                       {plain, nil, func(o *RangeTestOptions) { o.Min = math.NaN() }},
		"the rates go from 1e-07 to +Inf":                   {plain, nil, func(o *RangeTestOptions) { o.Max = math.Inf(1) }},
		"there are 1 steps":                                 {plain, nil, func(o *RangeTestOptions) { o.Steps = 1 }},
		"Smoothing is 1":                                    {plain, nil, func(o *RangeTestOptions) { o.Smoothing = 1 }},
		"Smoothing is NaN":                                  {plain, nil, func(o *RangeTestOptions) { o.Smoothing = math.NaN() }},
		"Divergence is 1":                                   {plain, nil, func(o *RangeTestOptions) { o.Divergence = 1 }},
		"step 1, with the rate 1e-07: the step ran no opti": {plain, nil, nil},
	} {
		_, loss, w, b := model()
		u := must(New(loss, G.Nodes{w, b}, config(t, c.config)))
		must(u.OptimOp())
		if c.before != nil {
			c.before(u)
			u.ResetOptimOp()
		}
		before := snapshot(t, u, w, b)
		_, err := u.FindLearningRate(func() (float64, error) { return 1, nil }, c.set)
		require.ErrorContains(t, err, want)
		require.Equal(t, before, snapshot(t, u, w, b), want)
	}
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, Config{}))
	vm := must(u.NewMachine())
	_, err := u.FindLearningRate(nil)
	require.ErrorContains(t, err, "the step is nil")
	_, err = u.FindLearningRate(func() (float64, error) { return math.NaN(), vm.RunAll() })
	require.ErrorContains(t, err, "the loss of the first step is NaN")
	require.Equal(t, []float64{1, -1, 3}, append(floats(w), floats(b)...))
	_, err = new(Updater).FindLearningRate(func() (float64, error) { return 1, nil })
	require.ErrorContains(t, err, "make it with New")
}

func TestRangeTestDraw(t *testing.T) {
	size := func(d *schedule.Drawing) { d.Width, d.Height = 9, 3 }
	for _, c := range []struct {
		r    RangeTest
		want []string
	}{
		{RangeTest{Rates: []float64{.001, .01, .1, 1, 10}, Smoothed: []float64{4, 4, 2, 0, 3}, Suggestion: .1}, []string{
			"         4 |**", "           |  * *", "         0 |   *", "           +--^--", "            0.001 10"}},
		{RangeTest{Rates: []float64{.001, .01}, Smoothed: []float64{1, 1}, Suggestion: .0005}, []string{
			"         1 |", "           |", "         1 |**", "           +--", "            0.001 0.01"}},
	} {
		var b strings.Builder
		require.NoError(t, c.r.Draw(&b, size, nil))
		require.Equal(t, strings.Join(c.want, "\n")+"\n", b.String())
	}
	for want, r := range map[string]RangeTest{
		"there are 1 rates and 1 losses": {Rates: []float64{1}, Smoothed: []float64{1}},
		"there are 1 rates and 2 losses": {Rates: []float64{1}, Smoothed: []float64{1, 2}},
		"a smoothed loss is NaN":         {Rates: []float64{1, 2}, Smoothed: []float64{1, math.NaN()}},
	} {
		var b strings.Builder
		require.ErrorContains(t, r.Draw(&b), want)
		require.Empty(t, b.String())
	}
	ok := RangeTest{Rates: []float64{1, 2}, Smoothed: []float64{1, 2}}
	require.ErrorContains(t, ok.Draw(&strings.Builder{}, func(d *schedule.Drawing) { d.Width = 1 }), "1 by 10")
	closed, err := os.Open(os.DevNull) // for reading
	require.NoError(t, err)
	defer closed.Close()
	require.ErrorContains(t, ok.Draw(closed), "updater: Draw: ")
}

// Averages that stand in for the weights are neither saved nor searched with, nor overwritten by a file.
func TestAveragesSwappedIn(t *testing.T) {
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, Config{Optimizer: solvers.EMA(solvers.NewSGD())}))
	vm := must(u.NewMachine())
	runs(t, vm, 3)
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, u.SaveFile(path))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	weights := floats(w)
	require.NoError(t, u.Solver().WithAverages(func() error {
		averages := floats(w)
		require.NotEqual(t, weights, averages)
		_, finding := u.FindLearningRate(func() (float64, error) { return 1, nil })
		for name, err := range map[string]error{"SaveFile": u.SaveFile(path), "LoadFile": u.LoadFile(path), "FindLearningRate": finding} {
			require.ErrorContains(t, err, "updater: "+name+": solvers: the parameters hold averages")
		}
		require.Equal(t, averages, floats(w))
		return nil
	}, w, b))
	require.Equal(t, weights, floats(w))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, saved, now)
	require.NoError(t, u.LoadFile(path))
	_, err = u.FindLearningRate(func() (float64, error) { return 1, vm.RunAll() })
	require.NoError(t, err)
	require.Equal(t, weights, floats(w))
}

// A value that a step binds to a state's node is forgotten with the rest; one that does not fit is an error, and all else comes back.
func TestFindLearningRateAfterLet(t *testing.T) {
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "momentum"}`)))
	vm := must(u.NewMachine())
	runs(t, vm, 2)
	before := snapshot(t, u, w, b)
	find := func(v any) error {
		_, err := u.FindLearningRate(func() (float64, error) {
			err := vm.RunAll()
			if err == nil {
				err = G.Let(u.Slot(w, "momentum"), v)
			}
			return 1, err
		}, func(o *RangeTestOptions) { o.Steps = 2 })
		return err
	}
	require.NoError(t, find(tensor.New(tensor.WithBacking([]float64{5, 6}))))
	require.Equal(t, before, snapshot(t, u, w, b))
	require.ErrorContains(t, find(tensor.New(tensor.WithBacking([]float32{5, 6}))), "momentum")
	require.Equal(t, before["w"], floats(w))
	require.Equal(t, before["b"], floats(b))
	require.Equal(t, 2, must(u.GlobalStep()))
	st := u.Solver().Store().Lookup("w/momentum/momentum")
	require.NotNil(t, st)
	require.Equal(t, graphops.Slot, st.Kind())
}
