package schedule

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// observe feeds scores and gives the rate before and after each.
func observe(t *testing.T, c Controller, scores ...float64) []float64 {
	rates := []float64{c.Rate()}
	for _, s := range scores {
		rate, err := c.Observe(s)
		require.NoError(t, err)
		rates = append(rates, rate)
	}
	return rates
}

func TestNewbobByHand(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		set    func(n *Newbob)
		scores []float64
		want   []float64
	}{
		{"fall", nil, []float64{2, 1, 1}, []float64{1, 1, 1, .5}}, // (1−2)/1 ≤ −0.01 < (1−1)/1
		{"by the new score", func(n *Newbob) { n.Threshold = -.75 }, []float64{2, 1}, []float64{1, 1, 1}},
		{"by the old score", func(n *Newbob) { n.Threshold, n.DivByOld = -.75, true }, []float64{2, 1}, []float64{1, 1, .5}},
		{"grow", func(n *Newbob) { n.Growth = 3 }, []float64{2, 1, 1}, []float64{1, 1, 3, 1.5}},
		{"functions", func(n *Newbob) {
			n.DecayFunc = func(r float64) float64 { return r - .25 }
			n.GrowthFunc = func(r float64) float64 { return r + 1 }
		}, []float64{2, 1, 1, 1}, []float64{1, 1, 2, 1.75, 1.5}},
		{"floor", func(n *Newbob) { n.MinRate = .4 }, []float64{1, 1, 1}, []float64{1, 1, .5, .4}},
		{"floor of a function", func(n *Newbob) {
			n.MinRate, n.DecayFunc = .4, func(float64) float64 { return -1 }
		}, []float64{1, 1}, []float64{1, 1, .4}},
		{"to and from 0", nil, []float64{1, 0, 0, 1}, []float64{1, 1, 1, .5, .25}}, // −∞, 0 of 0, 1
		{"no scores", nil, []float64{1, nan, 1, math.Inf(1), 1, 1}, []float64{1, 1, 1, 1, 1, 1, .5}},
		{"relative to the rate", func(n *Newbob) { n.Rates, n.RelativeToRate = map[int]float64{2: .1}, true },
			[]float64{1, 1 / 1.005}, []float64{1, .1, .1}}, // −0.005/(0.1/1) = −0.05
		{"absolute", func(n *Newbob) { n.Form, n.Threshold = "absolute", -.5 }, []float64{9, 8.5, 8.25}, []float64{1, 1, 1, .5}},
		{"several", func(n *Newbob) { n.Form, n.NumEpochs, n.Threshold = "multi_epoch", 2, -.4 },
			[]float64{4, 2, 2, 2, 2}, []float64{1, 1, 1, 1, .5, .5}}, // before epoch 3: −1; 5: (0+0)/2
		{"between the thresholds", func(n *Newbob) {
			n.Form, n.NumEpochs, n.UpdateInterval, n.Threshold, n.Growth, n.GrowThreshold = "multi_epoch", 1, 1, -.1, 2, new(-.5)
		}, []float64{3, 2.5, 1, 1}, []float64{1, 1, 1, 2, 1}}, // −0.2, −1.5, 0
		{"hold", func(n *Newbob) { n.MinEpochsPerRate = 2 }, []float64{1, 1, 1, 1, 1}, []float64{1, 1, .5, .5, .25, .25}},
	} {
		n, err := NewNewbob(1, c.set)
		require.NoError(t, err)
		require.InDeltaSlice(t, c.want, observe(t, n, c.scores...), 1e-15, c.name)
	}
}

func TestPlateauOfNoScores(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, form := range []string{"torch", "keras"} {
		r, err := NewReduceOnPlateau(1, func(r *ReduceOnPlateau) { r.Form, r.Patience, r.Factor = form, 2, .5 })
		require.NoError(t, err)
		rates := observe(t, r, 3, nan, -inf, inf, 2)
		require.Equal(t, .5, rates[5])
		require.Equal(t, map[string][]float64{"torch": {1, 1, 1, 1, .5, .5}, "keras": {1, 1, 1, .5, .5, .5}}[form], rates)
		state, err := r.State()
		require.NoError(t, err)
		require.JSONEq(t, `{"rate": 0.5, "best": 2, "bad_epochs": 0, "cooldown": 0}`, string(state))
	}
}

func TestBadControllers(t *testing.T) {
	nan := math.NaN()
	for want, set := range map[string]func(r *ReduceOnPlateau){
		`option "factor" is 1; it must be 0 or more and below 1`: func(r *ReduceOnPlateau) { r.Factor = 1 },
		`option "factor" is NaN`:                                 func(r *ReduceOnPlateau) { r.Factor = nan },
		`option "patience" is -1`:                                func(r *ReduceOnPlateau) { r.Patience = -1 },
		`option "cooldown" is -1`:                                func(r *ReduceOnPlateau) { r.Cooldown = -1 },
		`option "threshold" is -1`:                               func(r *ReduceOnPlateau) { r.Threshold = -1 },
		`option "min_rate" is -1`:                                func(r *ReduceOnPlateau) { r.MinRate = -1 },
		`option "epsilon" is NaN`:                                func(r *ReduceOnPlateau) { r.Epsilon = nan },
		`option "mode" is "auto"`:                                func(r *ReduceOnPlateau) { r.Mode = "auto" },
		`option "threshold_mode" is ""`:                          func(r *ReduceOnPlateau) { r.ThresholdMode = "" },
		`option "form" is "optax"`:                               func(r *ReduceOnPlateau) { r.Form = "optax" },
	} {
		_, err := NewReduceOnPlateau(1, set)
		require.ErrorContains(t, err, want)
		r, err := NewReduceOnPlateau(1)
		require.NoError(t, err)
		set(r)
		rate, err := r.Observe(3)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1., rate)
	}
	for want, set := range map[string]func(n *Newbob){
		`option "form" is "newbob"`:         func(n *Newbob) { n.Form = "newbob" },
		`option "decay" is -1`:              func(n *Newbob) { n.Decay = -1 },
		`option "growth" is NaN`:            func(n *Newbob) { n.Growth = nan },
		`option "threshold" is NaN`:         func(n *Newbob) { n.Threshold = nan },
		`option "grow_threshold" is 0`:      func(n *Newbob) { n.GrowThreshold = new(0.) },
		`option "num_epochs" is 0`:          func(n *Newbob) { n.NumEpochs = 0 },
		`option "update_interval" is -1`:    func(n *Newbob) { n.UpdateInterval = -1 },
		`option "min_rate" is -1`:           func(n *Newbob) { n.MinRate = -1 },
		`option "min_epochs_per_rate"`:      func(n *Newbob) { n.MinEpochsPerRate = -1 },
		`option "rates" has an epoch`:       func(n *Newbob) { n.Rates = map[int]float64{0: 1} },
		`option "rates" has an epoch below`: func(n *Newbob) { n.Rates = map[int]float64{3: nan} },
	} {
		_, err := NewNewbob(1, set)
		require.ErrorContains(t, err, want)
		n, err := NewNewbob(1)
		require.NoError(t, err)
		set(n)
		rate, err := n.Observe(3)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1., rate)
	}
	for _, rate := range []float64{nan, -1, math.Inf(1)} {
		_, err := NewReduceOnPlateau(rate)
		require.ErrorContains(t, err, `option "rate"`)
		_, err = NewNewbob(rate)
		require.ErrorContains(t, err, `option "rate"`)
	}
}

// After an error of a function nothing has changed.
func TestNewbobFunctionsThatFail(t *testing.T) {
	for want, f := range map[string]func(float64) float64{
		"panicked: ouch":     func(float64) float64 { panic("ouch") },
		`option "rate" is`:   func(float64) float64 { return math.NaN() },
		`"rate" is +Inf`:     func(float64) float64 { return math.Inf(1) },
		`"rate" is -1; it m`: func(float64) float64 { return -1 },
	} {
		n, err := NewNewbob(1, func(n *Newbob) { n.GrowthFunc = f })
		require.NoError(t, err)
		observe(t, n, 3)
		before, err := n.State()
		require.NoError(t, err)
		rate, err := n.Observe(1)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1., rate)
		after, err := n.State()
		require.NoError(t, err)
		require.Equal(t, before, after)
		n.GrowthFunc = nil
		require.Equal(t, []float64{1, 1}, observe(t, n, 1))
	}
}

func TestBadStates(t *testing.T) {
	r, err := NewReduceOnPlateau(1)
	require.NoError(t, err)
	n, err := NewNewbob(1)
	require.NoError(t, err)
	for _, c := range []struct {
		controller Controller
		state      string
		want       string
	}{
		{r, ``, "no JSON object"}, {r, `[]`, "no JSON object"}, {r, `{} {}`, "something follows"},
		{r, `null`, `"rate" is -1`}, {r, `{}`, `"rate" is -1`}, {r, `{"rate": 1, "cooldown": -1}`, `"cooldown" is -1`},
		{r, `{"rate": 1, "bad_epochs": -1}`, `"bad_epochs" is -1`}, {r, `{"rate": "1"}`, "no JSON object that fits"},
		{n, `null`, `"rates" is a list of 0`}, {n, `{"rates": [1, 2], "scores": []}`, `"rates" is a list of 2`},
		{n, `{"rates": [-1], "scores": []}`, `"rates" is [-1]`}, {n, `{"rates": ["1"]}`, "no JSON object that fits"},
	} {
		before, err := c.controller.State()
		require.NoError(t, err)
		require.ErrorContains(t, c.controller.Restore([]byte(c.state)), c.want, c.state)
		after, err := c.controller.State()
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}
