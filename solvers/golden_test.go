package solvers

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
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
		Gradients [][][]float64 // by step and parameter
	}
	Rows []struct {
		Name  string
		Rules []struct {
			Name    string
			Options map[string]any
		}
		Tolerance map[string]float64
		Values    [][][]float64 // by step and parameter
	}
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
func goldenHost(t *testing.T, f goldenFile, dt tensor.Dtype, s *Solver, inGraph bool, check func(step int, params []G.Value)) {
	params := make([]G.Value, len(f.Problem.Params))
	for i, p := range f.Problem.Params {
		params[i] = value(dt, p.Shape, p.Value)
	}
	if !inGraph {
		model := make([]G.ValueGrad, len(params))
		for step, grads := range f.Problem.Gradients {
			for i, p := range f.Problem.Params {
				model[i] = &pair{p.Name, params[i], value(dt, p.Shape, grads[i])}
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
	for step, grads := range f.Problem.Gradients {
		for i, p := range f.Problem.Params {
			require.NoError(t, G.Let(inputs[i], value(dt, p.Shape, grads[i])))
		}
		require.NoError(t, vm.RunAll())
		vm.Reset()
		require.Equal(t, float64(step+1), floats(op.Value())[0])
		check(step, values(vars))
	}
}

func TestGolden(t *testing.T) {
	for _, f := range readGolden(t) {
		for _, row := range f.Rows {
			for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
				for _, host := range []string{"step", "fused", "expanded"} {
					t.Run(f.Source+"/"+row.Name+"/"+dt.String()+"/"+host, func(t *testing.T) {
						var rules []Rule
						for _, r := range row.Rules {
							s, err := FromConfig(r.Name, r.Options)
							require.NoError(t, err)
							rules = append(rules, s)
						}
						var opts []Option
						if host == "expanded" {
							opts = append(opts, Expanded())
						}
						tol := row.Tolerance[dt.String()]
						require.NotZero(t, tol)
						goldenHost(t, f, dt, New(Chain(rules...), opts...), host != "step", func(step int, params []G.Value) {
							for i, p := range params {
								for k, got := range floats(p) {
									want := row.Values[step][i][k]
									require.LessOrEqual(t, math.Abs(got-want), tol*max(1, math.Abs(want)),
										"step %d, %s[%d]: got %v, want %v", step+1, f.Problem.Params[i].Name, k, got, want)
								}
							}
						})
					})
				}
			}
		}
	}
}

// Every registered rule has rows of at least 20 steps from two sources.
func TestGoldenCoverage(t *testing.T) {
	sources := map[string]map[string]bool{}
	for _, f := range readGolden(t) {
		for _, row := range f.Rows {
			for _, r := range row.Rules {
				if len(row.Values) >= 20 {
					if sources[r.Name] == nil {
						sources[r.Name] = map[string]bool{}
					}
					sources[r.Name][f.Source] = true
				}
			}
		}
	}
	for _, name := range Names() {
		require.GreaterOrEqual(t, len(sources[name]), 2, name)
	}
}
