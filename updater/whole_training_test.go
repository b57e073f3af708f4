package updater

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// Three batches on ΣW² from [[1,2],[3,4]], with the buffers of afterwards. The numbers are of an independent simulation.
func TestWholeTraining(t *testing.T) {
	quarter := func(x float64) []float64 { return []float64{x, 2 * x, 3 * x, 4 * x} }
	for name, c := range map[string]struct {
		rule    solvers.Rule
		want    [][]float64
		buffers [][]float64
	}{
		"Scale(0.75)":        {scale(.75), [][]float64{quarter(-.5), quarter(.25), quarter(-.125)}, nil},
		"Scale(0.1)":         {scale(.1), [][]float64{quarter(.8), quarter(.64), quarter(.512)}, nil},
		"Momentum(0.1, 0.5)": {momentum(.1, .5), [][]float64{quarter(.8), quarter(.54), quarter(.302)}, [][]float64{quarter(.238)}},
		"Composite":          {solvers.Chain(basicMomentum(.5), scale(.1)), [][]float64{quarter(.8), quarter(.54), quarter(.302)}, [][]float64{quarter(2.38)}},
		"Momentum(0.1, 0.9)": {momentum(.1, .9), [][]float64{quarter(.8), quarter(.46), quarter(.062)}, [][]float64{quarter(.398)}},
		"AdaDelta()": {adaDelta(.95, 1e-6), [][]float64{
			{.9955278752, 1.995527867, 2.995527865, 3.995527865}, {.9910086803, 1.991003704, 2.991002051, 3.991001226}, {.9864644623, 1.986447747, 2.986442193, 3.986439419}},
			[][]float64{{.5652240334, 2.271424129, 5.118624221, 9.106824312}, {2.905089661e-6, 2.912568456e-6, 2.915057226e-6, 2.916300827e-6}}},
		"AdaDelta(0.5, 1e-7)": {adaDelta(.5, 1e-7), [][]float64{
			{.9995527864, 1.999552786, 2.999552786, 3.999552786}, {.9990364657, 1.999036427, 2.999036414, 3.999036408}, {.9984676254, 1.998467486, 2.998467439, 3.998467416}},
			[][]float64{{3.495253492, 13.99050462, 31.48575575, 55.98100687}, {2.53436408e-7, 2.535039378e-7, 2.53526439e-7, 2.535376881e-7}}},
		"BasicRMSProp()": {rmsProp(1, .9, 1e5), [][]float64{
			{-2.16227766, -1.16227766, -.1622776602, .8377223398}, {.7335432907, .4895634862, .01773846194, .1560337169}, {-.2505701855, -.2248824212, -.003002936227, .02231428526}},
			[][]float64{{2.222394388, 1.878189132, 2.925606115, 5.446378947}}},
		"RMSProp": {rmsProp(.1, .5, 1e5), [][]float64{
			{.8585786438, 1.858578644, 2.858578644, 3.858578644}, {.7494138445, 1.746033736, 2.745011786, 3.744518881}, {.6518567292, 1.643288454, 2.640778109, 3.639580852}},
			[][]float64{{2.360399508, 11.55158219, 27.74165127, 50.93147245}}},
		"AdaGrad()": {adaGrad(.002), [][]float64{
			{.998000001, 1.998, 2.998, 3.998}, {.9965872043, 1.996586495, 2.996586259, 3.99658614}, {.9954343659, 1.995432725, 2.995432178, 3.995431905}},
			[][]float64{{11.95676023, 47.91344653, 107.8701328, 191.8268191}}},
		"AdaGrad(0.1)": {adaGrad(.1), [][]float64{
			{.90000005, 1.900000025, 2.900000017, 3.900000012}, {.8331035996, 1.831125091, 2.830497815, 3.830190005}, {.7804562684, 1.77582156, 2.774359376, 3.773643353}},
			[][]float64{{10.01624679, 43.85207677, 101.6868719, 183.5214223}}},
		"Adam() SEED": {oldAdam(.002, oldDecay), [][]float64{
			{.9980000003, 1.998, 2.998, 3.998}, {.9960001058, 1.996000053, 2.996000035, 3.996000026}, {.9940003868, 1.994000192, 2.994000128, 3.994000096}},
			[][]float64{{3}, {.5408400648, 1.082840098, 1.624840138, 2.16684018}, {.01194010083, .04785612883, .1077481648, .1916162088}}},
		"Adam() HEAD": {newAdam(.002, 1), [][]float64{
			{.9980000003, 1.998, 2.998, 3.998}, {.9960001059, 1.996000053, 2.996000035, 3.996000026}, {.9940003871, 1.994000192, 2.994000128, 3.994000096}},
			[][]float64{{3}, {.5408400212, 1.082840011, 1.624840007, 2.166840005}, {.01194010083, .04785612883, .1077481648, .1916162088}}},
		"Adam(0.1) SEED": {oldAdam(.1, oldDecay), [][]float64{
			{.9000000158, 1.900000008, 2.900000005, 3.900000004}, {.8004122511, 1.800166495, 2.800102712, 3.800073997}, {.7015862974, 1.700623398, 2.700381523, 3.700273841}},
			[][]float64{{3}, {.4840824884, 1.026033379, 1.568020666, 2.110014967}, {.009791403201, .04335597376, .1008966969, .1824134737}}},
		"NesterovMomentum": {nesterov(.1, .5), [][]float64{quarter(.7), quarter(.44), quarter(.248)}, [][]float64{quarter(.208)}},
		"clipped":          {solvers.Chain(solvers.NewStepClipping(4), scale(.1)), [][]float64{{.9269703257, 1.853940651, 2.780910977, 3.707881303}}, nil},
	} {
		for _, dt := range bothTypes {
			tol := tolerance(dt, 2e-9)
			w, cost := square(dt)
			a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: c.rule})
			for i, want := range c.want {
				require.NoError(t, a.ProcessBatch(nil))
				if dt == tensor.Float32 { // parameters near 0 are differences of larger numbers
					require.InDeltaSlice(t, want, numbers(w.Value()), 1e-5, name)
				} else {
					closeTo(t, want, numbers(w.Value()), tol, name, dt, i)
				}
			}
			buffers := FilterStates(a.Solver().Store().States(), RoleBuffer)
			buffers = buffers[:len(buffers)-1] // the global step
			require.Len(t, buffers, len(c.buffers), name)
			for i, st := range buffers {
				closeTo(t, c.buffers[i], numbers(must(st.Value())), tolerance(dt, 5e-8), name, st.Name())
			}
		}
	}
}

// Hyperparameters that change between batches count from the next one on, and so do all others.
func TestChangedHyperparameters(t *testing.T) {
	g := []float64{6, 8}
	at := func(rate, want float64) []float64 { return []float64{want, want * 8 / 6} }
	for name, c := range map[string]struct {
		rule   solvers.Rule
		hyper  string
		values []float64
		want   []float64
	}{
		"Momentum":      {momentum(.1, .5), "learning_rate", []float64{.1, .2, .2}, []float64{.6, 1.5, 1.95}},
		"Composite":     {solvers.Chain(basicMomentum(.5), scale(.1)), "learning_rate", []float64{.1, .2, .2}, []float64{.6, 1.8, 2.1}},
		"BasicMomentum": {basicMomentum(.5), "momentum", []float64{.5, .9, 0}, []float64{6, 11.4, 6}},
	} {
		for _, dt := range bothTypes {
			s := newStepTest(t, dt, c.rule, param{[]int{2}, []float64{3, 4}})
			for i, v := range c.values {
				require.NoError(t, s.Solver().Set(c.hyper, v))
				closeTo(t, at(v, c.want[i]), s.step(g)[0], tolerance(dt, 1e-12), name, i)
			}
		}
	}
	// every hyperparameter of every rule makes a difference from the next batch on, and only then
	for name, c := range map[string]struct {
		rule  func() solvers.Rule
		other map[string]float64
	}{
		"Scale":            {func() solvers.Rule { return scale(1) }, map[string]float64{"learning_rate": .5}},
		"BasicMomentum":    {func() solvers.Rule { return basicMomentum(.5) }, map[string]float64{"momentum": .9}},
		"Momentum":         {func() solvers.Rule { return momentum(1, .5) }, map[string]float64{"learning_rate": .5, "momentum": .9}},
		"AdaDelta":         {func() solvers.Rule { return adaDelta(.95, 1e-6) }, map[string]float64{"rho": .5, "epsilon": 1e-3}},
		"RMSProp":          {func() solvers.Rule { return rmsProp(1, .9, 1e5) }, map[string]float64{"learning_rate": .5, "rho": .5}},
		"StepClipping":     {func() solvers.Rule { return solvers.NewStepClipping(1) }, map[string]float64{"threshold": 2}},
		"VariableClipping": {func() solvers.Rule { return variableClipping(1) }, map[string]float64{"threshold": 2}},
		"AdaGrad":          {func() solvers.Rule { return adaGrad(.002) }, map[string]float64{"learning_rate": .5, "epsilon": 1}},
		"Adam": {func() solvers.Rule { return newAdam(.002, 1) },
			map[string]float64{"learning_rate": .5, "beta1": .5, "beta2": .5, "epsilon": 1, "decay_factor": .5}},
	} {
		two := func(hyper string, v float64) (first, second []float64) {
			s := newStepTest(t, G.Float64, c.rule(), param{[]int{2}, []float64{3, 4}})
			first = s.step(g)[0]
			if hyper != "" {
				require.NoError(t, s.Solver().Set(hyper, v))
			}
			return first, s.step([]float64{2, -3})[0]
		}
		_, plain := two("", 0)
		for hyper, v := range c.other {
			_, changed := two(hyper, v)
			require.NotEqual(t, plain, changed, "%s: %s", name, hyper)
		}
	}
}

// Each buffer has its parameter, its role, and zeros at the start; two parameters of one shape have two.
func TestBuffers(t *testing.T) {
	for name, c := range map[string]struct {
		rule   solvers.Rule
		slots  []string
		hypers []string
	}{
		"Momentum": {momentum(.1, .5), []string{"momentum/momentum"}, []string{"momentum/learning_rate", "momentum/momentum"}},
		"AdaDelta": {adaDelta(.95, 1e-6), []string{"adadelta/accum", "adadelta/accum_update"}, nil},
		"AdaGrad":  {adaGrad(.002), []string{"adagrad/accumulator"}, nil},
		"Adam":     {newAdam(.002, 1), []string{"blocksadam/mean", "blocksadam/variance"}, nil},
		"two":      {solvers.Chain(basicMomentum(.5), scale(1), basicMomentum(.5)), []string{"basicmomentum/velocity", "basicmomentum#2/velocity"}, nil},
	} {
		g := G.NewGraph()
		w, v := state(g, "w", G.Float64, []int{2}, 1, 2), state(g, "v", G.Float64, []int{2}, 3, 4)
		a, err := NewGradientDescent(Descent{Gradients: []ParameterGradient{{w, of(w)}, {v, of(v)}}, StepRule: c.rule})
		require.NoError(t, err)
		var names []string
		for _, st := range FilterStates(a.Solver().Store().States(), RoleBuffer) {
			for _, x := range numbers(must(st.Value())) {
				require.Zero(t, x, st.Name())
			}
			if st.Param() != "" { // not the time of Adam, nor the global step
				names = append(names, strings.TrimPrefix(st.Name(), st.Param()+"/"))
				require.Equal(t, tensor.Shape{2}, must(st.Value()).Shape())
			}
		}
		require.Len(t, names, 2*len(c.slots), name)
		require.ElementsMatch(t, slices.Concat(c.slots, c.slots), names, name)
		var hypers []string
		for _, st := range FilterStates(a.Solver().Store().States(), RoleHyperparameter) {
			require.Empty(t, st.Param())
			hypers = append(hypers, st.Name())
		}
		if c.hypers != nil {
			require.ElementsMatch(t, c.hypers, hypers)
		}
		require.NoError(t, a.Initialize())
		require.NoError(t, a.ProcessBatch(nil))
		require.NotEqual(t, must(a.Solver().Store().Lookup("w/"+names[0]).Value()), must(a.Solver().Store().Lookup("v/"+names[0]).Value()))
	}
}

// l2_norm, with the numbers of Blocks.
func TestL2Norm(t *testing.T) {
	for _, dt := range bothTypes {
		g := G.NewGraph()
		ns := []Expr{of(state(g, "a", dt, []int{1}, 2)), of(state(g, "b", dt, []int{2}, 3, 4)), num(3), of(state(g, "c", dt, []int{2}, 1, 2)), of(state(g, "d", dt, []int{2, 2}, 1, 2, 3, 4))}
		total := state(g, "total", G.Float64, nil, 0)
		for _, c := range []struct {
			of   []Expr
			want float64
		}{{ns[:1], 4}, {ns[1:2], 25}, {ns[2:4], 14}, {ns[2:5], 44}} {
			norm := solvers.L2Norm(c.of...)
			a := initialized(t, graphops.Update{Target: total, Value: norm})
			require.NoError(t, a.ProcessBatch(nil))
			require.InDelta(t, math.Sqrt(c.want), numbers(total.Value())[0], 1e-15)
			a = initialized(t, graphops.Update{Target: total, Value: norm.Square()})
			require.NoError(t, a.ProcessBatch(nil))
			require.InDelta(t, c.want, numbers(total.Value())[0], 1e-13)
		}
	}
}

// Both conventions of Adam are one rule, and saved state continues the training, bit for bit.
func TestAdamConventionsAndResuming(t *testing.T) {
	run := func(rule solvers.Rule, batches int) (*GradientDescent, *G.Node) {
		w, cost := square(G.Float64)
		a := descent(t, Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: rule})
		for range batches {
			require.NoError(t, a.ProcessBatch(nil))
		}
		return a, w
	}
	_, w := run(newAdam(.002, 1), 5)
	_, v := run(oldAdam(.002, 1), 5)
	closeTo(t, numbers(w.Value()), numbers(v.Value()), 1e-15)

	whole, want := run(newAdam(.1, .9), 5)
	require.NoError(t, whole.Solver().Err())
	half, w := run(newAdam(.1, .9), 2)
	var file strings.Builder
	require.NoError(t, half.Solver().Save(&file))
	rest, v := run(newAdam(.3, .9), 0)
	require.NoError(t, rest.Solver().Load(strings.NewReader(file.String())))
	require.NoError(t, G.Let(v, w.Value()))
	for range 3 {
		require.NoError(t, rest.ProcessBatch(nil))
	}
	require.Equal(t, numbers(want.Value()), numbers(v.Value()))
}
