package solvers

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// rowsOf2 is a gradient of rows 1 and 1 of a table of 4 by 2.
func rowsOf2(dt tensor.Dtype) *graphops.Rows {
	return must(graphops.NewRows(dt, tensor.Shape{4, 2}, []int{1, 1}, value(dt, []int{2, 2}, []float64{1, 2, 3, -4}).(*tensor.Dense)))
}

// What is wrong with a gradient of rows is named, and nothing changes.
func TestStepRefusesBadRows(t *testing.T) {
	broken := func(change func(r *graphops.Rows)) *graphops.Rows {
		r := rowsOf2(tensor.Float64)
		change(r)
		return r
	}
	for want, g := range map[string]G.Value{
		"index -1, element 1 of the indices, is out of range: there are 4 rows": broken(func(r *graphops.Rows) { r.Indices = []int{1, -1} }),
		"index 4, element 0 of the indices, is out of range: there are 4 rows":  broken(func(r *graphops.Rows) { r.Indices = []int{4, 1} }),
		"the values of rows have shape (2, 3)":                                  broken(func(r *graphops.Rows) { r.Values = value(tensor.Float64, []int{2, 3}, ones(6)).(*tensor.Dense) }),
		"the values of rows have shape (2, 2); for 1 rows":                      broken(func(r *graphops.Rows) { r.Indices = []int{1} }),
		"there are 2 indices and no values":                                     broken(func(r *graphops.Rows) { r.Values = nil }),
		`parameter "w" is float64, its gradient float32`:                        rowsOf2(tensor.Float32),
		`parameter "w" has shape (4, 2), its gradient (3, 2)`:                   must(graphops.NewRows(tensor.Float64, tensor.Shape{3, 2}, nil, nil)),
		`parameter "w" has no gradient yet`:                                     (*graphops.Rows)(nil),
	} {
		for _, mode := range []RowMode{RowsDense, RowsLazy, RowsCatchUp, RowsSlots} {
			s := WithRows(NewAdam(), mode)
			w := &pair{"w", random(tensor.Float64, 1, 4, 2), g}
			before := floats(w.value)
			require.ErrorContains(t, s.Step([]G.ValueGrad{w}), want, "%s", mode)
			require.Equal(t, before, floats(w.value))
			w.grad = rowsOf2(tensor.Float64)
			require.NoError(t, s.Step([]G.ValueGrad{w}))
			if slot := s.store.Lookup("adam/step"); slot != nil {
				require.Equal(t, []float64{1}, floats(must(slot.Value())))
			}
		}
	}
}

// A step without any row counts, and changes no row but of those that move by their momentum.
func TestStepWithoutRows(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		for mode, moves := range map[RowMode]bool{RowsDefault: true, RowsDense: true, RowsLazy: false, RowsSlots: false} {
			s := WithRows(NewAdam(), mode)
			w := &pair{"w", random(dt, 1, 4, 2), rowsOf2(dt)}
			require.NoError(t, s.Step([]G.ValueGrad{w}))
			require.Equal(t, make([]float64, 4), floats(w.grad.(*graphops.Rows).Values)) // set to zero, as gradients are
			before := floats(w.value)
			w.grad = must(graphops.NewRows(dt, tensor.Shape{4, 2}, nil, nil))
			require.NoError(t, s.Step([]G.ValueGrad{w}))
			require.Equal(t, moves, before[2] != floats(w.value)[2], "%s", mode)
			require.Equal(t, []float64{2}, floats(must(s.store.Lookup("adam/step").Value())))
		}
	}
}

// Every optimizer either updates rows alone, and leaves the others and their slots alone, or says why it cannot; as dense it does what it
// does with whole gradients. A change between rows and whole gradients is legal.
func TestRowsOfEveryOptimizer(t *testing.T) {
	whole := map[string]bool{"adafactor": true, "muon": true, "ranger": true, "ranger_adabelief": true}
	for _, p := range own {
		if !New(p.factory()).Optimizes() {
			continue
		}
		for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
			lazy := WithRows(p.factory(), RowsLazy)
			w := &pair{"w", random(dt, 1, 4, 2), rowsOf2(dt)}
			before := floats(w.value)
			err := lazy.Step([]G.ValueGrad{w})
			if whole[p.name] {
				require.Error(t, err, p.name)
				require.Equal(t, before, floats(w.value))
			} else {
				require.NoError(t, err, p.name)
				after := floats(w.value)
				require.Equal(t, append(before[:2:2], before[4:]...), append(after[:2:2], after[4:]...), p.name)
				require.NotEqual(t, before[2:4], after[2:4], p.name)
			}
			rows, dense := WithRows(p.factory(), RowsDense), New(p.factory())
			a, b := &pair{"w", random(dt, 1, 4, 2), nil}, &pair{"w", random(dt, 1, 4, 2), nil}
			for k := range 4 {
				d := must(rowsOf2(dt).Dense())
				a.grad, b.grad = rowsOf2(dt), d
				if k == 2 {
					a.grad = d.Clone().(*tensor.Dense)
				}
				require.NoError(t, rows.Step([]G.ValueGrad{a}), p.name)
				require.NoError(t, dense.Step([]G.ValueGrad{b}), p.name)
			}
			require.Equal(t, floats(b.value), floats(a.value), p.name)
		}
	}
}

// In the expanded host a gradient is a whole tensor, in a graph and in Step.
func TestRowsExpanded(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		step := rowsStep{Indices: []int{1, 1}, Values: [][]float64{{1, 2}, {3, -4}}}
		all := map[string][]float64{}
		for host, train := range rowsHosts {
			for name, s := range map[string]*Solver{
				"expanded": New(WithRows(NewAdam(), RowsLazy), Expanded()), "dense": WithRows(NewAdam(), RowsDense),
			} {
				train(t, s, dt, []int{4, 2}, []float64{1, 2, 3, 4, 5, 6, 7, 8}, []rowsStep{{Dense: [][]float64{{1, 1}, {1, 1}, {1, 1}, {1, 1}}}, step, step},
					func(_ int, w []float64) { all[host+name] = w })
			}
		}
		for key, w := range all {
			require.Equal(t, all["stepdense"], w, key)
		}
	}
}

// Norms are of the rows as they come, before duplicates are added up; rows of one parameter go with the whole gradient of another.
func TestClipsOfRows(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		for name, c := range map[string]struct {
			clip Rule
			want []float64 // of row 1, and of the other parameter
		}{
			"norm":        {NewClipByNorm(1), []float64{-4 / 5.477225575, 2 / 5.477225575, -1}},
			"value":       {NewClipByValue(1.5), []float64{-2.5, 0, -1.5}},
			"global norm": {NewClipByGlobalNorm(1), []float64{-4 / 6.244997998, 2 / 6.244997998, -3 / 6.244997998}},
		} {
			s := Chain(c.clip, NewSGD(func(s *SGD) { s.LearningRate = 1 }))
			w, x := &pair{"w", value(dt, []int{4, 2}, make([]float64, 8)), rowsOf2(dt)}, &pair{"x", value(dt, []int{1}, []float64{0}), value(dt, []int{1}, []float64{3})}
			require.NoError(t, s.Step([]G.ValueGrad{w, x}))
			require.InDeltaSlice(t, c.want, append(floats(w.value)[2:4:4], floats(x.value)...), 1e-6, name)
		}
	}
}

// From the second step on, a step with rows needs no memory.
func TestRowsAllocateNothing(t *testing.T) {
	for _, mode := range []RowMode{RowsDefault, RowsDense, RowsLazy, RowsSlots, RowsDecay, RowsCatchUp} {
		s := Chain(NewClipByGlobalNorm(1), WithRows(NewAdamW(), mode))
		w := &pair{"w", random(tensor.Float32, 1, 4, 2), rowsOf2(tensor.Float32)}
		model := []G.ValueGrad{w}
		for range 2000 { // so that what is remembered has grown
			require.NoError(t, s.Step(model))
		}
		require.Zero(t, testing.AllocsPerRun(10, func() { require.NoError(t, s.Step(model)) }), mode)
	}
}
