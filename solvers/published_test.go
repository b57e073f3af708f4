package solvers

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers/schedule"
)

// f1 is the problem of four numbers whose gradients depend on the step: .1t, −.2, .05·(−1)ᵗ and .3/t.
func f1() *goldenFile {
	var grads [][][]float64
	for i := range 14 {
		t := float64(i + 1)
		grads = append(grads, [][]float64{{.1 * t, -.2, .05 * math.Pow(-1, t), .3 / t}})
	}
	return gradients([][]float64{{1, 2, -3, .5}}, grads...)
}

// dense and sparse are two vectors with constant gradients, sparse with a zero in each.
func dense() *goldenFile {
	return constant([]float64{1, 2}, []float64{.1, .2}, []float64{3, 4}, []float64{.03, .04})
}

func sparse(g0, g1 float64) *goldenFile {
	return constant([]float64{1, 2}, []float64{g0, 0}, []float64{3, 4}, []float64{0, g1})
}

func exponential(initial, steps float64) schedule.Schedule {
	return schedule.NewExponentialDecay(initial, steps, .5)
}

// follows gives hyperparameters of a solver schedules.
func follows(s *Solver, schedules map[string]schedule.Schedule) *Solver {
	for _, name := range slices.Sorted(maps.Keys(schedules)) {
		if err := s.Schedule(name, schedules[name]); err != nil {
			panic(err)
		}
	}
	return s
}

func plainBelief(options ...func(*AdaBelief)) Rule {
	return NewAdaBelief(append([]func(*AdaBelief){func(a *AdaBelief) { a.Rectify = false }}, options...)...)
}

// The rows of the Keras specification that need the arguments of the base class, a wrapper or schedules: the parameters after some
// of the steps, and slots after the last. The rows without are in testdata/golden.
func TestPublishedRows(t *testing.T) {
	based := func(r Rule, options ...func(*Base)) func() *Solver {
		return func() *Solver { return WithBase(addressable(r), options...) }
	}
	means := func(n int) func(*Base) { return func(b *Base) { b.GradientAccumulationSteps = n } }
	rates := map[string]schedule.Schedule{"learning_rate": exponential(1e-3, 50), "weight_decay": schedule.NewInverseTimeDecay(2e-3, 25, .25)}
	towards := func(a *AdaBelief) { a.Decay = "direction" }
	for name, c := range map[string]struct {
		f      *goldenFile
		solver func() *Solver
		w      map[int][]float64
		slots  map[string][]float64
		tol    float64 // of float64, default 2e-11
	}{
		"adabelief, clipnorm": {f: f1(), solver: based(plainBelief(), func(b *Base) { b.ClipNorm = .1 }), w: clippedBelief, slots: map[string][]float64{
			"adabelief/m": {.0571291170504, -.0216653452686, 6.64293029396e-5, .00979198836668},
			"adabelief/s": {2.77303025004e-5, 7.32826768325e-6, 8.8331791807e-7, 6.64256148383e-6}}},
		"adabelief, global_clipnorm": {f: f1(), solver: based(plainBelief(), func(b *Base) { b.GlobalClipNorm = .1 }), w: clippedBelief},
		"adabelief, clipvalue": {f: f1(), solver: based(plainBelief(), func(b *Base) { b.ClipValue = .1 }), w: map[int][]float64{
			1:  {.99888888889, 2.00111111111, -2.99888888889, .49888888889},
			2:  {.997720884153, 2.00227911585, -2.99894451932, .497720884153},
			3:  {.996495300177, 2.00350469982, -2.99858495145, .496495300177},
			5:  {.993869424344, 2.00613057566, -2.99842316943, .493975405723},
			6:  {.992468522629, 2.00753147737, -2.99847879448, .492716427153},
			7:  {.991008809576, 2.00899119042, -2.99832060701, .491473429746},
			10: {.986277786818, 2.01372221318, -2.99830558598, .487904361762}},
			slots: map[string][]float64{"adabelief/m": {.06513215599, -.06513215599, .001714004105, .0359328792043},
				"adabelief/s": {3.72200669118e-5, 3.72200669118e-5, 2.22869673694e-5, 2.25679959223e-5}}},
		"adabelief, accumulated": {f: f1(), solver: based(plainBelief(), means(2)), w: map[int][]float64{
			1: {1, 2, -3, .5},
			2: {.998888888889, 2.00111111111, -3, .498888888889}, 3: {.998888888889, 2.00111111111, -3, .498888888889},
			4: {.997796281339, 2.00227911585, -3, .49786460467}, 5: {.997796281339, 2.00227911585, -3, .49786460467},
			6: {.996669354613, 2.00350469982, -3, .49691184534}, 7: {.996669354613, 2.00350469982, -3, .49691184534},
			8: {.995494248599, 2.00478839362, -3, .496021737341}, 9: {.995494248599, 2.00478839362, -3, .496021737341},
			10: {.994264445289, 2.00613057566, -3, .495187841699}},
			slots: map[string][]float64{"base/gradient_accumulator": {0, 0, 0, 0}, "adabelief/m": {.2424065, -.081902, 0, .0323787380952},
				"adabelief/s": {.00115608455721, .000110799694319, 4.990009995e-14, 4.48609867297e-5}}},
		"adabelief, ema": {f: f1(), solver: based(plainBelief(), func(b *Base) {
			b.UseEMA, b.EMAMomentum, b.EMAOverwriteFrequency = true, .9, 3
		}), w: map[int][]float64{
			1:  {.99888888889, 2.00111111111, -2.99888888889, .498888888889},
			2:  {.997772012962, 2.00227911585, -2.99894451932, .497813670696},
			3:  {.998561486311, 2.00145559041, -2.99886350189, .498581151223},
			4:  {.997362878486, 2.00273928421, -2.99891913004, .49758946258},
			5:  {.996111188047, 2.00408146624, -2.99870171987, .496641043665},
			6:  {.997867925591, 2.00219857619, -2.99884283169, .498041640138},
			7:  {.996497867997, 2.00365828924, -2.99868464422, .497177644216},
			8:  {.995064050366, 2.00517677441, -2.99874026575, .496353747173},
			9:  {.997074202845, 2.00304038034, -2.99879790493, .497572399317},
			10: {.995505464882, 2.00467582055, -2.99885352278, .496823258616}},
			slots: map[string][]float64{"base/average": {.996917329048, 2.00320392437, -2.99880346672, .497497485247}}},
		"adabelief, loss scale": {f: f1(), solver: based(plainBelief(), func(b *Base) { b.LossScaleFactor = 128 }), w: map[int][]float64{
			1:  {.998888900126, 2.0011111083, -2.99888893384, .498888890137},
			2:  {.997772029098, 2.00227910978, -2.99894456223, .497813674028},
			3:  {.996620070494, 2.00350468998, -2.99858500786, .496779214848},
			5:  {.994169775827, 2.00613055653, -2.99842323186, .494839115416},
			6:  {.992860608933, 2.00753145262, -2.99847885487, .493933481804},
			7:  {.991490552419, 2.0089911593, -2.99832067325, .493069491525},
			10: {.986987881528, 2.01372215791, -2.99830565278, .49071089858}},
			slots: map[string][]float64{"adabelief/m": {.00323289528195, -.00101768993734, 1.33906570703e-5, .00035807519558},
				"adabelief/s": {9.96640375566e-8, 9.08702992528e-9, 1.36038808085e-9, 5.36148794626e-9}}},
		"adabelief, exponential decay": {f: f1(), solver: func() *Solver {
			return follows(New(plainBelief()), map[string]schedule.Schedule{"lr": exponential(1e-3, 5)})
		}, w: map[int][]float64{
			1:  {.99888888889, 2.00111111111, -2.99888888889, .498888888889},
			2:  {.997916591922, 2.00212791829, -2.998937318, .497952857085},
			3:  {.997043568338, 2.00305673726, -2.9986648165, .497168881418},
			5:  {.99553387471, 2.00467454047, -2.99857664804, .49596988729},
			6:  {.994879290629, 2.00537499133, -2.99860446057, .495517067948},
			7:  {.994282938424, 2.00601036834, -2.99853560547, .495140991879},
			10: {.992794267107, 2.00757567161, -2.99853100372, .49435451604}}},
		"adabelief, exponential decay, accumulated": {f: f1(), solver: func() *Solver {
			return follows(based(plainBelief(), means(2))(), map[string]schedule.Schedule{"lr": exponential(1e-3, 5)})
		}, w: map[int][]float64{
			1: {1, 2, -3, .5},
			2: {.999032721597, 2.0009672784, -3, .499032721596}, 3: {.999032721597, 2.0009672784, -3, .499032721596},
			5: {.998311869444, 2.00173787415, -3, .498356946031},
			6: {.997748406081, 2.00235066614, -3, .497880566367}, 7: {.997748406081, 2.00235066614, -3, .497880566367},
			10: {.996949955908, 2.0032225357, -3, .497303804868}}},
		"sgd, weight decay, clipnorm": {f: f1(), solver: based(sgd(.1), func(b *Base) { b.WeightDecay, b.ClipNorm = .01, .1 }), tol: 6e-10,
			w: map[int][]float64{
				1: {.9963509353, 2.003298129, -2.995675468, .4915528059}, 2: {.9891824504, 2.007466965, -2.994222826, .4864321526},
				3: {.9802460738, 2.010757628, -2.98990407, .4832966557}, 6: {.9499503239, 2.015921068, -2.981904857, .4783203043}}},
		"adam, accumulated": {f: f1(), solver: based(kerasAdam(.1), means(3)), tol: 6e-10, w: map[int][]float64{
			1: {1, 2, -3, .5}, 2: {1, 2, -3, .5}, 3: {.9000015811, 2.099998419, -2.90001897, .4000017248},
			6: {.8060313894, 2.199997301, -2.905281422, .3127624416}}},

		"adabelief, schedules": {f: dense(), tol: 2e-6, solver: func() *Solver { return follows(New(plainBelief(towards)), rates) },
			w: map[int][]float64{100: {.84216374, 1.8420818, 2.8420012, 3.841918}}},
		"adabelief, rectified, schedules": {f: dense(), tol: 6e-9, solver: func() *Solver { return follows(NewAdaBelief(towards), rates) },
			w: map[int][]float64{100: {.97778123, 1.97721301, 2.97795803, 3.97782756}}},
		"radam, schedules": {f: dense(), tol: 2e-6, solver: func() *Solver {
			return follows(must(FromConfig("addons/rectifiedadam", nil)), rates)
		}, w: map[int][]float64{100: {.993192, 1.992625, 2.993369, 3.993239}}},
		"lookahead of adabelief": {f: dense(), tol: 2e-6, solver: func() *Solver {
			return look(plainBelief(func(a *AdaBelief) { a.Beta1 = .95 }), 6, .45)
		}, w: map[int][]float64{100: {.88910455, 1.889104, 2.8891046, 3.8891046}}},
		"lookahead of adabelief, sparse": {f: sparse(.1, .04), tol: 2e-6, solver: func() *Solver {
			return look(plainBelief(func(a *AdaBelief) { a.Beta1 = .95 }), 6, .45)
		}, w: map[int][]float64{150: {.8114481, 2, 3, 3.8114486}}},

		"lamb, decays": {f: constant([]float64{1, 2}, []float64{.1, .1}, []float64{3, 4}, []float64{.01, .01}), solver: func() *Solver {
			s := NewLAMB(func(l *LAMB) { l.WeightDecay, l.Epsilon = .01, 1e-7 })
			return follows(s, map[string]schedule.Schedule{"lr": schedule.NewInverseTimeDecay(1e-3, 1, .5)})
		}, w: map[int][]float64{1: {.998426669128, 1.99841109158, 2.99648158719, 3.99644742751},
			2: {.997378778513, 1.9973528258, 2.99413830224, 3.994081392}, 3: {.996593358352, 1.99655962919, 2.99238199915, 3.99230803726}}},
		"novograd, sparse": {f: sparse(.1, .4), tol: 5e-8, solver: func() *Solver { return novograd() }, w: map[int][]float64{2: {.71, 2, 3, 3.71}}},
		"novograd, sparse, averaging": {f: sparse(.1, .4), tol: 5e-8, solver: func() *Solver {
			return novograd(func(n *NovoGrad) { n.GradAveraging = true })
		}, w: map[int][]float64{2: {.8, 2, 3, 3.8}}},
		"novograd, weight decay": {f: constant([]float64{1}, []float64{.1}, []float64{4}, []float64{.4}), tol: 5e-8, solver: func() *Solver { // of the rows with a gradient
			return novograd(func(n *NovoGrad) { n.WeightDecay = .1 })
		}, w: map[int][]float64{2: {.6821, 3.5954}}},
		"conditional gradient": {f: constant([]float64{1, 2}, []float64{.1, .1}), tol: 1e-8, solver: func() *Solver {
			return must(FromConfig("addons/conditionalgradient", map[string]any{"learning_rate": .5, "lambda_": .01}))
		}, w: map[int][]float64{1: {.5 - .005/math.Sqrt2, 1 - .005/math.Sqrt2}}},
		"adam, zeros": {f: gradients([][]float64{{1, 2, 3}}, [][]float64{{.1, 0, 0}}, [][]float64{{0, .2, 0}}, [][]float64{{-.3, 0, 0}}),
			solver: func() *Solver { return New(kerasAdam(1e-3)) }, w: map[int][]float64{3: {.9987724376, 1.998680664, 3}}, tol: 6e-10},
	} {
		t.Run(name, func(t *testing.T) {
			last := slices.Max(slices.Collect(maps.Keys(c.w)))
			everyHost(t, c.f, c.solver, last, func(what string, _ float64, s *Solver, step int, params []G.Value) {
				tol := 3e-5
				if params[0].Dtype() == tensor.Float64 {
					tol = max(2e-11, c.tol)
				}
				if c.w[step] != nil {
					require.InDeltaSlice(t, c.w[step], floats(params...), tol, what)
				}
				for slot, want := range c.slots {
					for i, x := range remembered(t, s, "w0/"+slot) {
						if step == last {
							require.InDelta(t, want[i], x, tol*max(1e-3, math.Abs(want[i])), "%s, %s[%d]", what, slot, i)
						}
					}
				}
			})
		})
	}
}

// clippedBelief is the same for both norms, as there is one tensor.
var clippedBelief = map[int][]float64{
	1:  {.998888888899, 2.00111111111, -2.99888888893, .49888888889},
	2:  {.997796044077, 2.00228010499, -2.9990247778, .497784475608},
	3:  {.996639056143, 2.00350122457, -2.99874186055, .496732024973},
	5:  {.994105928023, 2.00603526205, -2.99863128661, .494848699043},
	6:  {.992729577448, 2.00731973856, -2.99865227697, .49402093866},
	7:  {.991280881938, 2.0086007098, -2.99854788527, .493263432505},
	10: {.986507112802, 2.01234546973, -2.99849394554, .491353412173},
}

func novograd(options ...func(*NovoGrad)) *Solver {
	first := func(n *NovoGrad) { n.LearningRate, n.Epsilon = .1, 1e-8 }
	return NewNovoGrad(append([]func(*NovoGrad){first}, options...)...)
}

// Eight groups of three gradients, accumulated, are eight steps of their means.
func TestPublishedAccumulation(t *testing.T) {
	var micro, mean [][][]float64
	for e := range 8 {
		sum := []float64{0, 0}
		for k := range 3 {
			g := []float64{.1*float64(k+1) + .01*float64(e), .3 - .1*float64(k)}
			sum[0], sum[1] = sum[0]+g[0], sum[1]+g[1]
			micro = append(micro, [][]float64{g})
		}
		mean = append(mean, [][]float64{{sum[0] / 3, sum[1] / 3}})
	}
	for n, f := range map[int]*goldenFile{3: gradients([][]float64{{.9, .5}}, micro...), 0: gradients([][]float64{{.9, .5}}, mean...)} {
		steps := len(f.Problem.Gradients)
		everyHost(t, f, func() *Solver {
			return WithBase(NewAdaBelief(), func(b *Base) { b.WeightDecay, b.GradientAccumulationSteps = .05, n })
		}, steps, func(what string, tol float64, _ *Solver, step int, params []G.Value) {
			if step == steps {
				require.InDeltaSlice(t, []float64{.8984405274314343, .4986575053605724}, floats(params...), tol/10, what)
			}
		})
	}
}
