package updater

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

var nan = math.NaN()

// The table of RETURNN's optimizers: parameters after each of three runs, and the state after the last.
// The counter of steps stands for the powers of β₁ and β₂, which begin at the first power. RMSProp without momentum
// keeps no buffer for it; what would be there is the last step.
var optimizerTable = []struct {
	name, config string
	runs         [][]float64
	state        map[string][]float64
}{
	{"sgd", `"optimizer": "sgd"`,
		[][]float64{{0.99, -1.98, 0.47, 0}, {0.995, -1.97, 0.44, 0}, {0.975, -2.01, 0.45, -0.05}},
		map[string][]float64{"momentum": {0.02, 0.04, -0.01, 0.05}}}, // Keras has a velocity, in units of w
	{"normalizedsgd", `"optimizer": "normalizedsgd"`,
		[][]float64{{0.973273876, -1.94654775, 0.419821627, 0}, {0.988891252, -1.915313, 0.32611737, 0},
			{0.959402861, -1.97428978, 0.340861566, -0.0737209781}}, nil},
	{"momentum(0.9)", `"optimizer": "momentum", "momentum": 0.9`,
		[][]float64{{0.99, -1.98, 0.47, 0}, {0.986, -1.952, 0.413, 0}, {0.9624, -1.9668, 0.3717, -0.05}},
		map[string][]float64{"momentum": {0.236, 0.148, 0.413, 0.5}}},
	{"momentum(0.9,use_nesterov)", `"optimizer": {"class": "momentum", "momentum": 0.9, "use_nesterov": true}`,
		[][]float64{{0.981, -1.962, 0.443, 0}, {0.9824, -1.9268, 0.3617, 0}, {0.94116, -1.98012, 0.33453, -0.095}},
		map[string][]float64{"momentum": {0.236, 0.148, 0.413, 0.5}}},
	{"adam eps=1e-8", `"optimizer": "adam", "optimizer_epsilon": 1e-8`,
		[][]float64{{0.900000316, -1.90000016, 0.400000105, 0}, {0.873366688, -1.80678233, 0.30000018, 0},
			{0.807555618, -1.82741801, 0.23943043, -0.0638813195}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {5.247751e-05, 0.00020991004, 0.00018973009, 0.00025},
			"beta1_power": {0.6561}, "beta2_power": {0.996005996}}},
	{"adam eps=1e-16", `"optimizer": "adam", "optimizer_epsilon": 1e-16`,
		[][]float64{{0.9, -1.9, 0.4, 0}, {0.873366296, -1.80678204, 0.3, 0}, {0.807555136, -1.82741774, 0.239430206, -0.0638813599}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {5.247751e-05, 0.00020991004, 0.00018973009, 0.00025},
			"beta1_power": {0.6561}, "beta2_power": {0.996005996}}},
	{"nadam eps=1e-8", `"optimizer": {"class": "nadam", "eps": 1e-8}, "optimizer_epsilon": 1e-16`,
		[][]float64{{0.810000601, -1.8100003, 0.3100002, 0}, {0.819322371, -1.69281217, 0.167368728, 0},
			{0.704320316, -1.76715642, 0.127521752, -0.121374507}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {5.247751e-05, 0.00020991004, 0.00018973009, 0.00025},
			"beta1_power": {0.6561}, "beta2_power": {0.996005996}}},
	{"amsgrad eps=1e-16", `"optimizer": "amsgrad", "optimizer_epsilon": 1e-16`,
		[][]float64{{0.9, -1.9, 0.4, 0}, {0.86407894, -1.77427629, 0.265312571, 0}, {0.760859659, -1.80664166, 0.16988569, -0.1}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {0.00052276, 0.00209104, 0.00187309, 0.0025},
			"vhat": {0.00052276, 0.00209104, 0.00187309, 0.0025}}},
	{"amsgrad decay=True eps=1e-16", `"optimizer": {"class": "amsgrad", "decay": true}, "optimizer_epsilon": 1e-16`,
		[][]float64{{0.9, -1.9, 0.4, 0}, {0.874599975, -1.81109991, 0.304761606, 0},
			{0.815006295, -1.82978606, 0.24966687, -0.0577350269}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {0.00052276, 0.00209104, 0.00187309, 0.0025},
			"vhat": {0.00052276, 0.00209104, 0.00187309, 0.0025}}},
	{"amsgrad eps=0 (class default)", `"optimizer": "amsgrad"`,
		[][]float64{{0.9, -1.9, 0.4, nan}, {0.86407894, -1.77427629, 0.265312571, nan}, {0.760859659, -1.80664166, 0.16988569, nan}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {0.00052276, 0.00209104, 0.00187309, 0.0025},
			"vhat": {0.00052276, 0.00209104, 0.00187309, 0.0025}}},
	{"neuraloptimizer1", `"optimizer": "neuraloptimizer1"`,
		[][]float64{{0.99, -1.98, 0.47, 0}, {0.9905, -1.97, 0.44, 0}, {0.9705, -2.01, 0.441, -0.05}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}}},
	{"gradvariancescaled eps=1e-8", `"optimizer": "gradvariancescaled", "optimizer_epsilon": 1e-8`,
		[][]float64{{0.99999, -1.99998, 0.49997, 0}, {1.00000887, -1.99990756, 0.499903, 0},
			{0.999981807, -1.99995768, 0.499978985, -4.99999975e-05}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {4.21138521e-05, 0.000185893088, 0.000151709914, 0.0002025}}},
	{"adagrad", `"optimizer": "adagrad"`,
		[][]float64{{0.969848866, -1.94654775, 0.43117528, 0}, {0.984755985, -1.92072786, 0.374480609, 0},
			{0.933541233, -1.99256998, 0.393050143, -0.0845154255}},
		map[string][]float64{"accumulator": {0.1525, 0.31, 0.29, 0.35}}},
	{"adadelta eps=1e-8", `"optimizer": {"class": "adadelta", "epsilon": 1e-8}, "optimizer_epsilon": 1e-16`,
		[][]float64{{0.999955279, -1.99995528, 0.499955279, 0}, {0.999984146, -1.99992641, 0.499909988, 0},
			{0.999923455, -1.9999871, 0.499928338, -4.47213417e-05}},
		map[string][]float64{"accum": {0.00257, 0.01028, 0.00883625, 0.0125},
			"accum_update": {3.14003807e-08, 3.14008248e-08, 2.04523125e-08, 9.999992e-09}}},
	{"adadelta eps=1e-16", `"optimizer": "adadelta", "optimizer_epsilon": 1e-16`,
		[][]float64{{0.999999996, -2, 0.499999996, 0}, {0.999999998, -1.99999999, 0.499999991, 0},
			{0.999999992, -2, 0.499999993, -4.47213595e-09}},
		map[string][]float64{"accum": {0.00257, 0.01028, 0.00883625, 0.0125},
			"accum_update": {3.14009728e-16, 3.14009728e-16, 2.04523589e-16, 1e-16}}},
	{"rmsprop eps=1e-16", `"optimizer": "rmsprop", "optimizer_epsilon": 1e-16`,
		[][]float64{{0.989464926, -1.97896484, 0.468534161, 0}, {0.995016542, -1.96788515, 0.435547205, 0},
			{0.971672739, -2.01409967, 0.447129863, -0.05758168}},
		map[string][]float64{"rms": {0.734035, 0.74914, 0.74539, 0.754},
			"last step": {0.0233438031, 0.0462145255, -0.0115826576, 0.05758168}}},
	{"rmsprop momentum=0.9 eps=1e-16", `"optimizer": "rmsprop", "momentum": 0.9, "optimizer_epsilon": 1e-16`,
		[][]float64{{0.989464926, -1.97896484, 0.468534161, 0}, {0.985534975, -1.9489535, 0.40722795, 0},
			{0.958654216, -1.96815783, 0.363635018, -0.05758168}},
		map[string][]float64{"rms": {0.734035, 0.74914, 0.74539, 0.754},
			"momentum": {0.0268807589, 0.0192043221, 0.0435929324, 0.05758168}}},
	{"rmsprop centered eps=1e-16", `"optimizer": {"class": "rmsprop", "centered": true}, "optimizer_epsilon": 1e-16`,
		[][]float64{{0.989464341, -1.97896019, 0.468518572, 0}, {0.995016012, -1.96787516, 0.435466635, 0},
			{0.971663347, -2.01409644, 0.447062568, -0.0576773784}},
		map[string][]float64{"rms": {0.734035, 0.74914, 0.74539, 0.754},
			"last step": {0.0233526644, 0.0462212832, -0.0115959328, 0.0576773784}, "mg": {0.0236, 0.0148, 0.0413, 0.05}}},
	{"ftrl", `"optimizer": "ftrl"`,
		[][]float64{{0.0163862763, -0.256239242, 0.0684371548, 0}, {0.0312933961, -0.230419353, 0.0117424838, 0},
			{-0.0199213558, -0.302261474, 0.0303120177, -0.0845154255}},
		map[string][]float64{"accum": {0.1525, 0.31, 0.29, 0.35}, "linear": {0.0777953814, 1.68292066, -0.163235211, 0.5}}},
	{"adamax(keras) eps=1e-7", `"optimizer": "adamax"`,
		[][]float64{{0.9000001, -1.90000005, 0.400000033, 0}, {0.878926416, -1.82624212, 0.300000067, 0},
			{0.835384002, -1.83989525, 0.249149725, -0.0369003616}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "u": {0.2, 0.4, 0.2997, 0.5}}},
	{"nadamkeras eps=1e-7 (with step counting)", `"optimizer": "nadamkeras"`,
		[][]float64{{0.894354928, -1.89435487, 0.394354857, 0}, {0.935465849, -1.84196258, 0.315986448, 0},
			{0.835655713, -1.93602389, 0.332322309, -0.112859152}},
		map[string][]float64{"m": {0.0236, 0.0148, 0.0413, 0.05}, "v": {5.247751e-05, 0.00020991004, 0.00018973009, 0.00025},
			"mu_product": {0.0912142874}}},
}

func TestOptimizerTable(t *testing.T) {
	grads := [][]float64{{.1, -.2, .3, 0}, {-.05, -.1, .3, 0}, {.2, .4, -.1, .5}}
	for _, c := range optimizerTable {
		for _, dt := range floatTypes {
			for _, opts := range hosts {
				l := newLinear(dt, initial{"w", []float64{1, -2, .5, 0}})
				w := l.vars[0]
				u, err := New(l.loss, l.vars, config(t, `{"preset": "returnn", "learning_rate": 0.1, `+c.config+`}`), opts...)
				require.NoError(t, err, c.name)
				vm := must(u.NewMachine())
				var last []float64
				for i, g := range grads {
					last = elements(w)
					l.run(t, vm, g)
					near(t, printed(dt), c.runs[i], elements(w), "%s in %v, run %d", c.name, dt, i+1)
				}
				for i, x := range elements(w) {
					last[i] -= x
				}
				checkState(t, u, w, dt, c.state, last, c.name)
			}
		}
	}
}

// checkState compares the state of the one optimizer with what the table has.
func checkState(t *testing.T, u *Updater, w *G.Node, dt tensor.Dtype, want map[string][]float64, last []float64, name string) {
	t.Helper()
	number := func(state string) float64 {
		names, err := u.Solver().RuleNames(u.Optimizers()[0].Solver)
		require.NoError(t, err)
		st := u.Solver().Store().Lookup(names[len(names)-1] + "/" + state)
		require.NotNil(t, st, name)
		return must(graphops.ScalarValue(must(st.Value())))
	}
	var slots []string
	for state, x := range want {
		var got []float64
		switch state {
		case "beta1_power":
			got = []float64{math.Pow(.9, number("step")+1)}
		case "beta2_power":
			got = []float64{math.Pow(.999, number("step")+1)}
		case "mu_product":
			got = []float64{number(state)}
		case "last step":
			near(t, precision{1e-6, 1e-6}, x, last, "%s: %s", name, state)
			continue
		default:
			slots = append(slots, state)
			require.NotNil(t, u.Slot(w, state), "%s: %s", name, state)
			got = elements(u.Slot(w, state))
		}
		p := printed(dt)
		if dt == tensor.Float32 {
			p = precision{relative: 5e-6}
		}
		near(t, p, x, got, "%s: %s in %v", name, state, dt)
	}
	slices.Sort(slots)
	require.Equal(t, slots, u.SlotNames(), name)
}
