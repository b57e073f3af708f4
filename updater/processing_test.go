package updater

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"
)

// processingCase is a model of variables, and what some runs with given gradients make of it.
type processingCase struct {
	name, config string
	vars         []initial
	grads        [][]any     // per run, per variable
	want         [][]float64 // per run, the elements of all variables
	sums         []float64   // per run, the accumulator of the first variable; nil: it has none
}

func onlyW(x any) []initial { return []initial{{"w", x}} }

// each makes one run of each gradient of one variable.
func each(grads ...any) (all [][]any) {
	for _, g := range grads {
		all = append(all, []any{g})
	}
	return all
}

func column(rows ...float64) (all [][]float64) {
	for _, x := range rows {
		all = append(all, []float64{x})
	}
	return all
}

// With plain gradient descent from 0 at the learning rate 1, what a run makes of a variable is minus the gradient that was applied.
const plainly = `"learning_rate": 1, `

var origin = []float64{0, 0}

var processingCases = []processingCase{
	{"the sum of three", `"learning_rate": 0.1, "accum_grad_multiple_step": 3`, onlyW(0.0), each(1., 2., 3., 4., 5., 6., 7.),
		column(0, 0, -.6, -.6, -.6, -2.1, -2.1), []float64{1, 3, 6, 4, 9, 15, 7}},
	{"the sum of two with Adam", `"optimizer": "tf1/adam", "optimizer_epsilon": 1e-8, "learning_rate": 0.1, "accum_grad_multiple_step": 2`,
		onlyW(0.0), each(1., -3., 2., 2.), column(0, .0999999842, .0999999842, .0633896341), []float64{1, -2, 2, 4}},

	{"the chain of clips: value", plainly + `"gradient_clip": 3.5`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-3, -3.5}}, nil},
	{"the chain of clips: norm", plainly + `"gradient_clip": 3.5, "gradient_clip_norm": 4`, onlyW(origin), each([]float64{3, 4}),
		[][]float64{{-2.60316549, -3.03702641}}, nil},
	{"the chain of clips: average norm", plainly + `"gradient_clip": 3.5, "gradient_clip_norm": 4, "gradient_clip_avg_norm": 1`, onlyW(origin),
		each([]float64{3, 4}), [][]float64{{-1.30158275, -1.5185132}}, nil},
	{"the chain of clips: global norm", plainly + `"gradient_clip_global_norm": 2, "gradient_clip_avg_norm": 1, "gradient_clip_norm": 4,
		"gradient_clip": 3.5`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-.5206331, -.60740528}}, nil},

	{"clip_norm 1", plainly + `"gradient_clip_norm": 1`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-.6, -.8}}, nil},
	{"clip_avg_norm 1", plainly + `"gradient_clip_avg_norm": 1`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-1.2, -1.6}}, nil},
	{"clip_avg_norm 3", plainly + `"gradient_clip_avg_norm": 3`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-3, -4}}, nil},
	{"clip_global_norm 1", plainly + `"gradient_clip_global_norm": 1`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-.6, -.8}}, nil},
	{"clip_global_norm 10", plainly + `"gradient_clip_global_norm": 10`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-3, -4}}, nil},
	{"clip_global_norm 1 of two scalars", plainly + `"gradient_clip_global_norm": 1`, []initial{{"a", 0.0}, {"b", 0.0}}, [][]any{{3., 4.}},
		[][]float64{{-.6, -.8}}, nil},
	{"norms of 0", plainly + `"gradient_clip_norm": 1, "gradient_clip_avg_norm": 1, "gradient_clip_global_norm": 1`, onlyW(origin),
		each([]float64{0, 0}, []float64{3, 4}), [][]float64{{0, 0}, {-.12, -.16}}, nil},

	{"the norm of the last of two", plainly + `"accum_grad_multiple_step": 2, "gradient_clip_global_norm": 1`, onlyW(origin),
		each([]float64{30, 40}, []float64{.3, .4}), [][]float64{{0, 0}, {-30.3, -40.4}}, []float64{30, 30.3}},
	{"the norm of the last of two, the larger one", plainly + `"accum_grad_multiple_step": 2, "gradient_clip_global_norm": 1`, onlyW(origin),
		each([]float64{.3, .4}, []float64{30, 40}), [][]float64{{0, 0}, {-.606, -.808}}, []float64{.3, 30.3}},

	{"to zero above 5", plainly + `"grad_norm_to_clip_to_zero": 5`, onlyW(origin), each([]float64{3, 4}), [][]float64{{-3, -4}}, nil},
	{"to zero above 4.9", plainly + `"grad_norm_to_clip_to_zero": 4.9`, onlyW(origin), each([]float64{3, 4}), [][]float64{{0, 0}}, nil},

	{"dynamic_learning_rate", `"learning_rate": 1, "dynamic_learning_rate": {"interval": 3, "decay": 0.5}`, onlyW(0.0),
		each(1., 1., 1., 1., 1., 1., 1.), column(-1, -1.5, -1.75, -2.75, -3.25, -3.5, -4.5), nil},

	{"l2, decoupled", `"learning_rate": 0.1, "decouple_constraints": true, "updater_opts": [{"match": "w", "l2": 0.01}]`, onlyW(1.0), each(1.),
		column(.88), nil},
	{"l2, in the loss", `"learning_rate": 0.1, "updater_opts": [{"match": "w", "l2": 0.01}]`, onlyW(1.0), each(1.), column(.898), nil},

	{"a NaN in the global norm", plainly + `"gradient_clip_global_norm": 1, "gradient_nan_inf_filter": true`,
		[]initial{{"a", []float64{1, 2}}, {"b", 3.0}}, [][]any{{[]float64{nan, 1}, 1.}, {[]float64{0, 0}, .5}},
		[][]float64{{1, 2, 3}, {1, 2, 2.5}}, nil},
	{"an infinite global norm", plainly + `"gradient_clip_global_norm": 1`, []initial{{"a", []float64{1, 2}}, {"b", 3.0}},
		[][]any{{[]float64{math.Inf(1), 1}, 1.}}, [][]float64{{nan, nan, nan}}, nil},
	{"a NaN that is filtered", plainly + `"gradient_nan_inf_filter": true`, []initial{{"a", []float64{1, 2}}, {"b", 3.0}},
		[][]any{{[]float64{nan, 1}, 1.}}, [][]float64{{1, 1, 2}}, nil},
}

func TestProcessing(t *testing.T) {
	for _, c := range processingCases {
		for _, dt := range floatTypes {
			for _, opts := range hosts {
				c.check(t, dt, opts)
			}
		}
	}
}

func (c processingCase) check(t *testing.T, dt tensor.Dtype, opts []Option) {
	l := newLinear(dt, c.vars...)
	u, err := New(l.loss, l.vars, config(t, "{"+c.config+"}"), opts...)
	require.NoError(t, err, c.name)
	vm := must(u.NewMachine())
	for i, g := range c.grads {
		l.run(t, vm, g...)
		var got []float64
		for _, v := range l.vars {
			got = append(got, elements(v)...)
		}
		near(t, printed(dt), c.want[i], got, "%s in %v, run %d", c.name, dt, i+1)
		if c.sums != nil {
			near(t, printed(dt), c.sums[i:i+1], elements(u.Slot(l.vars[0], "sum"))[:1], "%s in %v, accumulator in run %d", c.name, dt, i+1)
		}
	}
	require.Equal(t, len(c.grads), must(u.GlobalStep()), c.name)
}

// The effective learning rate can be read in each run, and before it.
func TestProcessingRate(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", 0.0})
	u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 1, "dynamic_learning_rate": {"interval": 3, "decay": 0.5}}`)))
	rate := must(u.LearningRateNode())
	vm := must(u.NewMachine(rate))
	for _, want := range []float64{1, .5, .25, 1, .5, .25, 1} {
		require.Equal(t, want, must(u.LearningRate()))
		l.run(t, vm, 1.0)
		require.Equal(t, []float64{want}, elements(rate))
	}
}
