package solvers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// stepper feeds gradients to a solver, the parameters being put back to where they were each time, and returns the steps.
type stepper struct {
	t      *testing.T
	s      *Solver
	dt     tensor.Dtype
	shapes [][]int
	params [][]float64
}

func (r *stepper) step(grads ...[]float64) (steps [][]float64) {
	r.t.Helper()
	var model []G.ValueGrad
	for i, g := range grads {
		p := make([]float64, len(g))
		if r.params != nil {
			p = r.params[i]
		}
		shape := []int{len(g)}
		if r.shapes != nil {
			shape = r.shapes[i]
		}
		model = append(model, &pair{string(rune('a' + i)), value(r.dt, shape, p), value(r.dt, shape, g)})
	}
	require.NoError(r.t, r.s.Step(model))
	for i, m := range model {
		got := floats(m.Value())
		for k := range got {
			if r.params != nil {
				got[k] = r.params[i][k] - got[k]
			} else {
				got[k] = 0 - got[k]
			}
		}
		steps = append(steps, got)
	}
	return steps
}

// The step-rule scenarios of Blocks, with the numbers of its tests (S1 to S18) at their tolerances.
func TestBlocksScenarios(t *testing.T) {
	same := [][]float64{{6, 8}, {6, 8}, {6, 8}} // the gradient of Σa² at a = [3, 4]
	moving := [][]float64{{6, 8}, {4, 6}, {2, 3}}
	for name, c := range map[string]struct {
		make  func() *Solver
		grads [][]float64
		want  [][]float64
		tol   float64
	}{
		"S1":  {func() *Solver { return New(&BasicMomentum{Momentum: .5}) }, same, [][]float64{{6, 8}, {9, 12}, {10.5, 14}}, 1e-7},
		"S2":  {func() *Solver { return New(&Momentum{LearningRate: .1, Momentum: .5, RateInside: true}) }, same, [][]float64{{.6, .8}, {.9, 1.2}, {1.05, 1.4}}, 1e-7},
		"S3":  {func() *Solver { return New(&Adadelta{1, .5, 1e-7}) }, same, [][]float64{{.00044721, .00044721}, {.0005164, .0005164}, {.00056904, .00056904}}, 1e-5},
		"S5":  {func() *Solver { return NewBasicRMSprop(func(r *RMSprop) { r.Rho = .5 }) }, moving, [][]float64{{1.41421356, 1.41421356}, {.9701425, 1.02899151}, {.6172134, .64699664}}, 1e-6},
		"S6":  {func() *Solver { return NewBasicRMSprop(func(r *RMSprop) { r.Rho = .5 }) }, [][]float64{{2e-6, 2e-6}}, [][]float64{{.2, .2}}, 1e-6},
		"S8":  {func() *Solver { return NewBasicRMSprop(func(r *RMSprop) { r.Rho, r.LearningRate = .5, .1 }) }, moving, [][]float64{{.141421356, .141421356}, {.09701425, .102899151}, {.06172134, .064699664}}, 1e-6},
		"S17": {func() *Solver { return NewBlocksAdam() }, moving, [][]float64{{.002, .002}, {.0019407, .00196515}, {.00178724, .0018223}}, 1e-4},
		"S17 old betas": {func() *Solver { return NewBlocksAdamOldBetas() }, moving,
			[][]float64{{.001999999895, .001999999921}, {.001940704234, .00196515017}, {.001787241255, .001822303353}}, 1e-6},
		"S18": {func() *Solver { return New(&Adagrad{LearningRate: .002, Epsilon: 1e-6}) }, moving, [][]float64{{.002, .002}, {.0011094, .0012}, {.00053452, .0005747}}, 1e-4},
		"decay of 0.9, old betas": {func() *Solver { return NewBlocksAdamOldBetas(func(a *BlocksAdam) { a.DecayFactor = .9 }) }, append(same, same[0]),
			[][]float64{{.001999999895, .001999999921}, {.002852631473, .002852631499}, {.003457999895, .003457999921}, {.003787854276, .003787854302}}, 1e-6},
		"decay of 0.9": {func() *Solver { return NewBlocksAdam(func(a *BlocksAdam) { a.DecayFactor = .9 }) }, append(same, same[0]),
			[][]float64{{.001999999895, .001999999921}, {.001576039488, .001576039514}, {.001529789937, .001529789963}, {.001598927597, .001598927623}}, 1e-6},
		"rho 0 of Adadelta":         {func() *Solver { return New(&Adadelta{1, 0, 1e-6}) }, same[:2], [][]float64{{9.999999861e-4, 9.999999922e-4}, {1.414213533e-3, 1.414213546e-3}}, 1e-7},
		"rho 1 of Adadelta":         {func() *Solver { return New(&Adadelta{1, 1, 1e-6}) }, same, same, 1e-7},
		"rho 0 of BasicRMSprop":     {func() *Solver { return NewBasicRMSprop(func(r *RMSprop) { r.Rho = 0 }) }, same[:1], [][]float64{{1, 1}}, 1e-7},
		"rho 1 of BasicRMSprop":     {func() *Solver { return NewBasicRMSprop(func(r *RMSprop) { r.Rho = 1 }) }, same[:1], [][]float64{{6e5, 8e5}}, 1e-6},
		"zero gradients of Adagrad": {func() *Solver { return New(&Adagrad{LearningRate: .002, Epsilon: 1e-6}) }, [][]float64{{0, 0}, {1, 2}}, [][]float64{{0, 0}, {.001999998, .001999999}}, 1e-6},
		"momentum of the extras":    {func() *Solver { return New(&Momentum{LearningRate: 1, Momentum: .5, RateInside: true, Nesterov: true}) }, same[:2], [][]float64{{9, 12}, {10.5, 14}}, 1e-7},
		"nothing set":               {func() *Solver { return NewStepClipping(0) }, same, same, 1e-7},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			r := &stepper{t: t, s: c.make(), dt: dt}
			for i, g := range c.grads {
				for k, got := range r.step(g)[0] {
					require.InEpsilon(t, c.want[i][k]+1, got+1, c.tol, "%s, step %d", name, i+1)
					if c.want[i][k] != 0 {
						require.InEpsilon(t, c.want[i][k], got, max(c.tol, 1e-5), "%s, step %d", name, i+1)
					}
				}
			}
		}
	}
}

// S9, S15: clipping of all steps together; the threshold itself is not clipped.
func TestStepClipping(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		for _, c := range []struct {
			s    *Solver
			want []float64
		}{
			{NewStepClipping(4), []float64{12. / 5, 16. / 5}},
			{NewStepClipping(5), []float64{3, 4}},
			{Chain(NewStepClipping(4), New(&Scale{.1})), []float64{12. / 50, 16. / 50}},
			{Chain(New(&Scale{.1}), NewStepClipping(.25)), []float64{.15, .2}},
		} {
			r := &stepper{t: t, s: c.s, dt: dt}
			got := r.step([]float64{3}, []float64{4})
			require.InDeltaSlice(t, c.want, []float64{got[0][0], got[1][0]}, 1e-6)
		}
	}
	zero := &stepper{t: t, s: NewStepClipping(1), dt: tensor.Float64}
	require.Equal(t, [][]float64{{0}, {0}}, zero.step([]float64{0}, []float64{0}))
	bad := &stepper{t: t, s: NewStepClipping(1), dt: tensor.Float64}
	got := bad.step([]float64{math.NaN()}, []float64{1})
	require.True(t, math.IsNaN(got[0][0]) && math.IsNaN(got[1][0]))
	got = (&stepper{t: t, s: NewStepClipping(1), dt: tensor.Float64}).step([]float64{math.Inf(1)}, []float64{1})
	require.True(t, math.IsNaN(got[0][0]) && got[1][0] == 0)
}

// S11 to S14: the norm of the parameter after the step, over all elements or some axes.
func TestVariableClipping(t *testing.T) {
	alternate := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 1 - 2*float64(i%2)
		}
		return x
	}
	for name, c := range map[string]struct {
		threshold float64
		axes      []int
		shape     []int
		p, g      []float64
		want      []float64
	}{
		"S11a":     {5, nil, []int{2}, []float64{1, 1}, []float64{3, 2}, []float64{3, 2}},
		"S11b":     {5, nil, []int{1, 3}, []float64{-1, -1, -1}, []float64{3, 9, 2}, []float64{.78885438, 3.47213595, .34164079}},
		"S11c":     {5, nil, []int{1, 4, 1}, []float64{1, -1, 1, -1}, []float64{1, 2, 3, 2}, []float64{1, 2, 3, 2}},
		"S12":      {10, []int{1}, []int{2, 4}, append(alternate(4), -1, 1, -1, 1), []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{1, 2, 3, 4, 3.54858826, 4.79049022, 5.06478435, 6.30668631}},
		"S12 -1":   {10, []int{-1}, []int{2, 4}, append(alternate(4), -1, 1, -1, 1), []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{1, 2, 3, 4, 3.54858826, 4.79049022, 5.06478435, 6.30668631}},
		"S13":      {10, []int{1, 2}, []int{2, 2, 2, 1}, []float64{1, -1, -1, 1, -1, 1, 2, -1}, []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{1, 2, 3, 4, 3.6429394, 4.86911616, 5.86911616, 5.96440909}},
		"no value": {5, nil, []int{2}, []float64{1, 1}, []float64{1, 1}, []float64{1, 1}},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			s := NewVariableClipping(c.threshold, func(v *VariableClipping) { v.Axes = c.axes })
			r := &stepper{t: t, s: s, dt: dt, shapes: [][]int{c.shape}, params: [][]float64{c.p}}
			require.InDeltaSlice(t, c.want, r.step(c.g)[0], 2e-6, name)
		}
	}
	w := &pair{"w", value(tensor.Float64, []int{3}, []float64{1, 2, 3}), value(tensor.Float64, []int{3}, []float64{1, 2, 3})}
	require.ErrorContains(t, NewVariableClipping(10, func(v *VariableClipping) { v.Axes = []int{1, 2} }).Step([]G.ValueGrad{w}), "rank 1")
	m := &pair{"m", value(tensor.Float64, []int{1, 3}, []float64{1, 2, 3}), value(tensor.Float64, []int{1, 3}, []float64{1, 2, 3})}
	require.ErrorContains(t, NewVariableClipping(10, func(v *VariableClipping) { v.Axes = []int{1, -1} }).Step([]G.ValueGrad{m}), "do not fit")
	require.ErrorContains(t, NewVariableClipping(50, func(v *VariableClipping) { v.Axes = []int{0, 0} }).Err(), "twice")
	s, err := FromConfig("variable_clipping", map[string]any{"threshold": 10, "axes": []any{1.0}})
	require.NoError(t, err)
	require.Equal(t, []int{1}, s.rule.(*VariableClipping).Axes)
	_, err = FromConfig("variable_clipping", map[string]any{"axes": []any{1.5}})
	require.ErrorContains(t, err, "axes")
}

// S16, S20, S21: composition keeps the order, and Restrict leaves the others alone.
func TestComposition(t *testing.T) {
	var order []int
	mark := func(i int) Rule {
		return RuleFunc(func(_ *Builder, in []Step) ([]Step, error) { order = append(order, i); return in, nil })
	}
	w := &pair{"w", G.NewF64(1), G.NewF64(1)}
	require.NoError(t, Chain(mark(1), Chain(mark(2), mark(3)), mark(4)).Step([]G.ValueGrad{w}))
	require.Equal(t, []int{1, 2, 3, 4}, order[:4])

	grads := func() (gs [][]float64) {
		for i := range 6 {
			gs = append(gs, []float64{float64(i * i)})
		}
		return gs
	}
	r := &stepper{t: t, s: Restrict(New(&Scale{.1}), "b", "e"), dt: tensor.Float64}
	require.InDeltaSlice(t, []float64{0, .1, 4, 9, 1.6, 25}, flat(r.step(grads()...)), 1e-15)
	require.NoError(t, r.s.Set("learning_rate", 1)) // known before and after
	plus := RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
		return b.Each(in, func(s Step) Expr { return s.Delta.Add(two) })
	})
	r = &stepper{t: t, s: Restrict(plus, "b", "e"), dt: tensor.Float64}
	require.Equal(t, []float64{0, 3, 4, 9, 18, 25}, flat(r.step(grads()...)))
	r = &stepper{t: t, s: Restrict(plus), dt: tensor.Float64}
	require.Equal(t, []float64{0, 1, 4, 9, 16, 25}, flat(r.step(grads()...)))
	require.ErrorContains(t, Restrict(plus, "x").Step([]G.ValueGrad{w}), `no parameter is called "x"`)
	groups := Chain(Restrict(New(&Scale{.1}), "w"), Restrict(New(&Scale{.2}), "v"))
	require.NoError(t, groups.Set("scale#2/learning_rate", .4))
	v := &pair{"v", G.NewF64(0), G.NewF64(1)}
	w = &pair{"w", G.NewF64(0), G.NewF64(1)}
	require.NoError(t, groups.Step([]G.ValueGrad{v, w}))
	require.Equal(t, []float64{-.4, -.1}, floats(v.value, w.value))
}

func flat(xs [][]float64) (out []float64) {
	for _, x := range xs {
		out = append(out, x...)
	}
	return out
}

// S19: what is not finite is replaced, parameter by parameter.
func TestRemoveNotFinite(t *testing.T) {
	for scaler, want := range map[float64][]float64{.1: {.9, 1.8, .123}, 1: {0, 0, .123}} {
		s := NewRemoveNotFinite(func(r *RemoveNotFinite) { r.Scaler = scaler })
		r := &stepper{t: t, s: s, dt: tensor.Float64, params: [][]float64{{1}, {2}, {3}}}
		require.InDeltaSlice(t, want, flat(r.step([]float64{math.NaN()}, []float64{math.Inf(1)}, []float64{.123})), 1e-15)
	}
	chain := Chain(NewRemoveNotFinite(), NewAdam(), NewRemoveNotFinite())
	r := &stepper{t: t, s: chain, dt: tensor.Float32}
	require.Equal(t, [][]float64{{0, 0}}, r.step([]float64{math.NaN(), 1}))
	require.False(t, math.IsNaN(r.step([]float64{1, 1})[0][0]))
}

// Hyperparameters that change between steps.
func TestBlocksChangedHyperparameters(t *testing.T) {
	g := []float64{6, 8}
	r := &stepper{t: t, s: New(&Momentum{LearningRate: .1, Momentum: .5, RateInside: true}), dt: tensor.Float64}
	require.InDeltaSlice(t, []float64{.6, .8}, r.step(g)[0], 1e-14)
	require.NoError(t, r.s.Set("learning_rate", .2))
	require.InDeltaSlice(t, []float64{1.5, 2}, r.step(g)[0], 1e-14)
	require.InDeltaSlice(t, []float64{1.95, 2.6}, r.step(g)[0], 1e-14)
	r = &stepper{t: t, s: Chain(New(&BasicMomentum{Momentum: .5}), New(&Scale{.1})), dt: tensor.Float64}
	require.InDeltaSlice(t, []float64{.6, .8}, r.step(g)[0], 1e-14)
	require.NoError(t, r.s.Set("learning_rate", .2))
	require.InDeltaSlice(t, []float64{1.8, 2.4}, r.step(g)[0], 1e-14)
	require.InDeltaSlice(t, []float64{2.1, 2.8}, r.step(g)[0], 1e-14)
	r = &stepper{t: t, s: New(&BasicMomentum{Momentum: .5}), dt: tensor.Float64}
	r.step(g)
	require.NoError(t, r.s.Set("momentum", .9))
	require.InDeltaSlice(t, []float64{11.4, 15.2}, r.step(g)[0], 1e-14)
	require.NoError(t, r.s.Set("momentum", 0))
	require.InDeltaSlice(t, []float64{6, 8}, r.step(g)[0], 1e-14)
}

// l2_norm, norm_constraint and total_norm_constraint, with the numbers of Blocks and Lasagne.
func TestNorms(t *testing.T) {
	get := func(shape []int, x []float64, f func(Expr) (Expr, error)) []float64 {
		w := &pair{"w", value(tensor.Float64, shape, x), value(tensor.Float64, shape, x)}
		require.NoError(t, New(RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
			e, err := f(in[0].Delta)
			return []Step{replace(in[0], e)}, err
		})).Step([]G.ValueGrad{w}))
		return floats(w.value)
	}
	norm := func(axes ...int) func(Expr) (Expr, error) {
		return func(e Expr) (Expr, error) { return NormConstraint(e, 1, 1e-7, axes...) }
	}
	require.InDeltaSlice(t, []float64{.599999988, .0999999553, .799999984, .1999999106}, get([]int{2, 2}, []float64{3, .1, 4, .2}, norm()), 1e-9)
	require.InDeltaSlice(t, []float64{.9994448737, .0333148291, .9987523139, .0499376157}, get([]int{2, 2}, []float64{3, .1, 4, .2}, norm(1)), 1e-9)
	require.InDeltaSlice(t, []float64{.9999999817, 1.999999963, 2.999999945, 3.999999927, 2.274294113, 2.729152936, 3.184011759, 3.638870582},
		get([]int{2, 2, 2}, []float64{1, 2, 3, 4, 5, 6, 7, 8}, func(e Expr) (Expr, error) { return NormConstraint(e, 6, 1e-7) }), 1e-8)
	for _, shape := range []tensor.Shape{{3}, {1, 1, 1, 1, 1, 1}, {}} {
		g := G.NewGraph()
		n := G.NewTensor(g, tensor.Float64, len(shape), G.WithShape(shape...), G.WithName("x"))
		_, err := NormConstraint(graphops.Of(n), 1, 1e-7)
		require.ErrorContains(t, err, "dimensionality")
	}
	_, err := NormConstraint(Expr{}, 1, 1e-7)
	require.Error(t, err)
	var total []float64
	a, b := &pair{"a", G.NewF64(0), G.NewF64(9)}, &pair{"b", value(tensor.Float64, []int{3, 3}, make([]float64, 9)), value(tensor.Float64, []int{3, 3}, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8})}
	require.NoError(t, New(RuleFunc(func(bd *Builder, in []Step) ([]Step, error) {
		scaled, n := TotalNormConstraint(deltas(in), 5, 1e-7)
		bd.Variable("norm").Set(n)
		return []Step{replace(in[0], scaled[0]), replace(in[1], scaled[1])}, nil
	})).Step([]G.ValueGrad{a, b}))
	for _, x := range []float64{9, 0, 1, 2, 3, 4, 5, 6, 7, 8} {
		total = append(total, x*.2961744371)
	}
	require.InDeltaSlice(t, total, floats(a.value, b.value), 1e-8)
	norms := func(xs ...[]float64) float64 {
		var m []G.ValueGrad
		for i, x := range xs {
			m = append(m, &pair{string(rune('a' + i)), value(tensor.Float64, []int{len(x)}, x), value(tensor.Float64, []int{len(x)}, x)})
		}
		s := New(RuleFunc(func(b *Builder, in []Step) ([]Step, error) {
			b.Variable("norm").Set(L2Norm(deltas(in)...))
			return in, nil
		}))
		require.NoError(t, s.Step(m))
		return floats(must(s.store.Lookup("rulefunc/norm").Value()))[0]
	}
	require.Equal(t, 2.0, norms([]float64{2}))
	require.Equal(t, 5.0, norms([]float64{3}, []float64{4}))
	require.InDelta(t, math.Sqrt(14), norms([]float64{3}, []float64{1, 2}), 1e-15)
	require.InDelta(t, math.Sqrt(44), norms([]float64{3}, []float64{1, 2}, []float64{1, 2, 3, 4}), 1e-15)
}

// The tables of Lasagne's own tests: Σ [0.1, 0.2, 0.3]·X² from ones, after ten steps.
func TestLasagneTables(t *testing.T) {
	for name, c := range map[string]struct {
		options map[string]any
		want    []float64
	}{
		"sgd":               {map[string]any{"learning_rate": .1}, []float64{.81707280688755, .6648326359915, .5386151140949}},
		"momentum":          {map[string]any{"learning_rate": .1, "momentum": .5}, []float64{.6848486952183, .44803321781003, .27431190123502}},
		"nesterov_momentum": {map[string]any{"learning_rate": .1, "momentum": .5}, []float64{.67466543592725, .44108468114241, .2769002108997}},
		"adagrad":           {map[string]any{"learning_rate": .1}, []float64{.553733443030, .553731761027, .553731449542}},
		"rmsprop":           {map[string]any{"learning_rate": .01}, []float64{.832061354053, .832054649993, .832053408366}},
		"adadelta":          {nil, []float64{.95453237704725, .9545237471374, .95452214847397}},
		"adam":              {map[string]any{"learning_rate": .01}, []float64{.900349733818, .900349693658, .900349680271}},
		"adamax":            {map[string]any{"learning_rate": .01}, []float64{.90211749000754, .90211748762402, .90211748682951}},
		"amsgrad":           {map[string]any{"learning_rate": .01}, []float64{.900349733818, .900349693658, .900349680271}},
	} {
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			s, err := FromConfig("lasagne/"+name, c.options)
			require.NoError(t, err)
			a, b := &pair{"A", value(dt, []int{3}, []float64{1, 1, 1}), nil}, &pair{"B", value(dt, []int{3}, []float64{1, 1, 1}), nil}
			for range 10 {
				for _, p := range []*pair{a, b} {
					x := floats(p.value)
					p.grad = value(dt, []int{3}, []float64{.2 * x[0], .4 * x[1], .6 * x[2]})
				}
				require.NoError(t, s.Step([]G.ValueGrad{a, b}))
			}
			require.InDeltaSlice(t, c.want, floats(a.value), 1e-5, name)
			require.Equal(t, floats(a.value), floats(b.value), name)
		}
	}
}

// The two rows of RETURNN's table that the golden files cannot hold: a NaN, and a rule that hardly moves.
func TestReturnnTable(t *testing.T) {
	grads := [][]float64{{.1, -.2, .3, 0}, {-.05, -.1, .3, 0}, {.2, .4, -.1, .5}}
	run := func(name string, options map[string]any) (rows [][]float64) {
		s, err := FromConfig(name, options)
		require.NoError(t, err)
		w := &pair{"w", value(tensor.Float64, []int{4}, []float64{1, -2, .5, 0}), nil}
		for _, g := range grads {
			w.grad = value(tensor.Float64, []int{4}, g)
			require.NoError(t, s.Step([]G.ValueGrad{w}))
			rows = append(rows, floats(w.value))
		}
		return rows
	}
	for i, row := range run("returnn/amsgrad", map[string]any{"learning_rate": .1}) {
		require.InDeltaSlice(t, [][]float64{{.9, -1.9, .4}, {.86407894, -1.77427629, .265312571}, {.760859659, -1.80664166, .16988569}}[i], row[:3], 5e-9)
		require.True(t, math.IsNaN(row[3]))
	}
	for i, row := range run("returnn/adadelta", map[string]any{"learning_rate": .1, "epsilon": 1e-16}) {
		require.InDeltaSlice(t, [][]float64{{.999999996, -2, .499999996, 0}, {.999999998, -1.99999999, .499999991, 0}, {.999999992, -2, .499999993, -4.47213595e-09}}[i], row, 6e-9)
	}
}
