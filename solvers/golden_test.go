package solvers

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// goldenFile is the schema of testdata/golden.
type goldenFile struct {
	Source  string
	Problem struct {
		Params []struct {
			Name  string
			Shape []int
			Value []float64
		}
		Gradients [][][]float64 // by step and parameter; with Repeat, one step that is repeated
		Repeat    int
		Gradient  string // "quadratic": Scale·w instead
		Scale     []float64
	}
	Rows []goldenRow
}

// goldenRule is a rule by name, or one of goldenWrappers with the rule within.
type goldenRule struct {
	Name    string
	Options map[string]any
	Within  *goldenRule
	Values  string // the slot of the wrapper that the row has the values of; absent: the parameters
}

type goldenRow struct {
	Name      string
	Rules     []goldenRule
	Tolerance map[string]float64
	Values    [][][]float64 // by step and parameter
	At        []int         // the steps of Values, from 1; absent: all
	Elements  []int         // the elements that Values has; absent: all
}

// steps is the number of the last step, and want gives the values after a step, or nil.
func (r *goldenRow) steps() int {
	if r.At != nil {
		return r.At[len(r.At)-1]
	}
	return len(r.Values)
}

func (r *goldenRow) want(step int) [][]float64 {
	if r.At == nil {
		return r.Values[step]
	}
	if i := slices.Index(r.At, step+1); i >= 0 {
		return r.Values[i]
	}
	return nil
}

func (r *goldenRow) solver(t *testing.T, opts ...Option) *Solver {
	var rules []Rule
	for _, rule := range r.Rules {
		rules = append(rules, rule.make(t))
	}
	return New(Chain(rules...), opts...)
}

// goldenWrappers make solvers of a rule.
var goldenWrappers = map[string]func(Rule) *Solver{
	"lookahead":      func(r Rule) *Solver { return Lookahead(r) },
	"moving_average": func(r Rule) *Solver { return MovingAverage(r) },
	"swa":            func(r Rule) *Solver { return SWA(r) },
	"ema":            func(r Rule) *Solver { return EMA(r) },
}

func (r *goldenRule) make(t *testing.T) *Solver {
	if r.Within == nil {
		s, err := FromConfig(r.Name, r.Options)
		require.NoError(t, err)
		return s
	}
	s := goldenWrappers[r.Name](r.Within.make(t))
	require.NoError(t, setOptions(r.Name, s.rules[:1], r.Options, 0))
	require.NoError(t, s.validate())
	return s
}

// shown are the values that the row has, of parameters and their names.
func (r *goldenRow) shown(t *testing.T, s *Solver, f *goldenFile, params []G.Value) []G.Value {
	slot := r.Rules[0].Values
	if slot == "" {
		return params
	}
	out := make([]G.Value, len(params))
	for i, p := range f.Problem.Params {
		st := s.Store().Lookup(p.Name + "/" + s.rules[0].name + "/" + slot)
		require.NotNil(t, st)
		out[i] = must(st.Value())
	}
	return out
}

func readGolden(t *testing.T) (files []goldenFile) {
	names, err := filepath.Glob("../testdata/golden/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		var f goldenFile
		require.NoError(t, json.Unmarshal(b, &f), name)
		files = append(files, f)
	}
	return files
}

// gradients of a step, given the parameters before it.
func (f *goldenFile) gradients(step int, params []G.Value) [][]float64 {
	switch {
	case f.Problem.Repeat > 0:
		return f.Problem.Gradients[0]
	case f.Problem.Gradient == "":
		return f.Problem.Gradients[step]
	}
	grad := floats(params[0])
	for i := range grad {
		grad[i] *= f.Problem.Scale[i]
	}
	return [][]float64{grad}
}

// value makes a scalar or tensor of numbers.
func value(dt tensor.Dtype, shape []int, x []float64) G.Value {
	if dt == tensor.Float32 {
		f := make([]float32, len(x))
		for i := range x {
			f[i] = float32(x[i])
		}
		if len(shape) == 0 {
			return G.NewF32(f[0])
		}
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(f))
	}
	if len(shape) == 0 {
		return G.NewF64(x[0])
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(slices.Clone(x)))
}

// pair is a ValueGrad of the user's own.
type pair struct {
	name        string
	value, grad G.Value
}

func (p *pair) Name() string           { return p.name }
func (p *pair) Value() G.Value         { return p.value }
func (p *pair) Grad() (G.Value, error) { return p.grad, nil }

// goldenHost runs the steps of a file's problem with a solver and hands the parameters to check after each.
func goldenHost(t *testing.T, f *goldenFile, dt tensor.Dtype, s *Solver, inGraph bool, steps int, check func(step int, params []G.Value)) {
	params := make([]G.Value, len(f.Problem.Params))
	for i, p := range f.Problem.Params {
		params[i] = value(dt, p.Shape, p.Value)
	}
	if !inGraph {
		model := make([]G.ValueGrad, len(params))
		for step := range steps {
			for i, grad := range f.gradients(step, params) {
				p := f.Problem.Params[i]
				model[i] = &pair{p.Name, params[i], value(dt, p.Shape, grad)}
			}
			require.NoError(t, s.Step(model))
			check(step, params)
		}
		return
	}
	g := G.NewGraph()
	var vars, inputs G.Nodes
	var loss *G.Node
	for i, p := range f.Problem.Params { // the gradient of Σ w·d is d
		w := G.NewTensor(g, dt, len(p.Shape), G.WithShape(p.Shape...), G.WithName(p.Name))
		d := G.NewTensor(g, dt, len(p.Shape), G.WithShape(p.Shape...), G.WithName("gradient of "+p.Name))
		require.NoError(t, G.Let(w, params[i]))
		vars, inputs = append(vars, w), append(inputs, d)
		term := must(G.HadamardProd(w, d))
		if len(p.Shape) > 0 {
			term = must(G.Sum(term))
		}
		if loss == nil {
			loss = term
		} else {
			loss = must(G.Add(loss, term))
		}
	}
	op, err := s.Minimize(loss, vars...)
	require.NoError(t, err)
	vm := must(graphops.NewMachine(op))
	for step := range steps {
		for i, grad := range f.gradients(step, values(vars)) {
			require.NoError(t, G.Let(inputs[i], value(dt, f.Problem.Params[i].Shape, grad)))
		}
		require.NoError(t, vm.RunAll())
		vm.Reset()
		require.Equal(t, float64(step+1), floats(op.Value())[0])
		check(step, values(vars))
	}
}

func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for _, f := range readGolden(t) {
		for _, row := range f.Rows {
			for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
				for _, host := range []string{"step", "fused", "expanded"} {
					t.Run(f.Source+"/"+row.Name+"/"+dt.String()+"/"+host, func(t *testing.T) {
						var opts []Option
						if host == "expanded" {
							opts = append(opts, Expanded())
						}
						tol := row.Tolerance[dt.String()]
						require.NotZero(t, tol)
						s := row.solver(t, opts...)
						goldenHost(t, &f, dt, s, host != "step", row.steps(), func(step int, params []G.Value) {
							params = row.shown(t, s, &f, params)
							for i, want := range row.want(step) {
								got := floats(params[i])
								if row.Elements != nil {
									got = at(got, row.Elements)
								}
								require.Len(t, got, len(want))
								for k := range want {
									if diff := math.Abs(got[k] - want[k]); !(diff <= tol*max(1, math.Abs(want[k]))) {
										t.Fatalf("step %d, %s[%d]: got %v, want %v", step+1, f.Problem.Params[i].Name, k, got[k], want[k])
									}
								}
							}
						})
					})
				}
			}
		}
	}
}

func at(x []float64, elements []int) (out []float64) {
	for _, i := range elements {
		out = append(out, x[i])
	}
	return out
}

// Every rule that is registered under a name of its own has rows of at least 20 steps, from two sources. Rules count by their
// type: NewNesterov's is Momentum. The presets of libraries that still run have rows of these libraries' own defaults.
func TestGoldenCoverage(t *testing.T) {
	sources, presets := map[string]map[string]bool{}, map[string]bool{}
	for _, f := range readGolden(t) {
		for _, row := range f.Rows {
			presets[row.Rules[0].Name] = true
			for _, r := range row.solver(t).rules {
				name, _, _ := strings.Cut(r.name, "#")
				if sources[name] == nil {
					sources[name] = map[string]bool{}
				}
				if row.steps() >= 20 {
					sources[name][f.Source] = true
				}
			}
		}
	}
	sources["gradientnoise"] = map[string]bool{"its numbers, see TestGradientNoiseNumbers": true, "their moments, see TestGradientNoiseMoments": true}
	sources["barzilaiborwein"]["gorgonia, see TestGorgoniaParity"] = true
	for _, p := range own {
		name := New(p.factory()).rules[0].name
		require.GreaterOrEqual(t, len(sources[name]), 2, "%s: %v", name, sources[name])
	}
	for _, family := range []string{"torch", "optax", "keras", "tf1", "keras2", "addons"} {
		for _, p := range families[family] {
			require.True(t, presets[family+"/"+p.name], "%s/%s has no golden row", family, p.name)
		}
	}
}
