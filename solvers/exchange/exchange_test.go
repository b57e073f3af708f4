package exchange

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/internal/safetensors"
	"optimop/solvers"
)

const folder = "../../testdata/exchange/"

// The optimizers of testdata/exchange/generate.py.
var torch = map[string]map[string]any{
	"sgd":         {"class": "torch/sgd", "lr": .1},
	"momentum":    {"class": "torch/sgd", "lr": .1, "momentum": .9, "dampening": .25},
	"nesterov":    {"class": "torch/sgd", "lr": .1, "momentum": .9, "nesterov": true},
	"adam":        {"class": "torch/adam", "lr": .02, "beta1": .8, "beta2": .95, "weight_decay": .1},
	"amsgrad":     {"class": "torch/adam", "lr": .02, "amsgrad": true},
	"adamw":       {"class": "torch/adamw", "lr": .02},
	"rmsprop":     {"class": "torch/rmsprop", "lr": .02},
	"rmsprop_all": {"class": "torch/rmsprop", "lr": .02, "momentum": .5, "centered": true, "alpha": .9},
	"adagrad":     {"class": "torch/adagrad", "lr": .1, "lr_decay": .5},
	"adamax":      {"class": "torch/adamax", "lr": .02},
	"nadam":       {"class": "torch/nadam", "lr": .02},
	"radam":       {"class": "torch/radam", "lr": .02},
	"adadelta":    {"class": "torch/adadelta", "lr": .5},
}

var keras = map[string]map[string]any{
	"sgd":         {"class": "keras/sgd", "learning_rate": .1},
	"momentum":    {"class": "keras/sgd", "learning_rate": .1, "momentum": .9},
	"nesterov":    {"class": "keras/sgd", "learning_rate": .1, "momentum": .9, "nesterov": true},
	"adam":        {"class": "keras/adam", "learning_rate": .02, "beta_1": .8},
	"amsgrad":     {"class": "keras/adam", "learning_rate": .02, "amsgrad": true},
	"adamw":       {"class": "keras/adamw", "learning_rate": .02},
	"rmsprop":     {"class": "keras/rmsprop", "learning_rate": .02},
	"rmsprop_all": {"class": "keras/rmsprop", "learning_rate": .02, "momentum": .5, "centered": true},
	"adagrad":     {"class": "keras/adagrad", "learning_rate": .1},
	"adamax":      {"class": "keras/adamax", "learning_rate": .02},
	"nadam":       {"class": "keras/nadam", "learning_rate": .02},
	"lion":        {"class": "keras/lion", "learning_rate": .02},
	"lamb":        {"class": "keras/lamb", "learning_rate": .02},
	"adadelta":    {"class": "keras/adadelta", "learning_rate": .5},
	"adabelief":   {"class": "keras/adabelief", "learning_rate": .02, "amsgrad": true, "rectify": false},
	"base": {"class": "keras/adam", "learning_rate": .02, "use_ema": true, "ema_momentum": .9, "gradient_accumulation_steps": 2,
		"keras_strict": true},
}

// The steps of the generator, and after which the state was saved.
const lastStep, savedAt = 5, 3

// model is the two parameters w and b with gradients.
type model struct {
	s    *solvers.Solver
	vars [2]*G.Node
	grad [2]*tensor.Dense
}

func newModel(t testing.TB, config map[string]any, params [][]float64) *model {
	t.Helper()
	s, err := solvers.FromConfigMap(config)
	require.NoError(t, err)
	m, g := &model{s: s}, G.NewGraph()
	for i, shape := range []tensor.Shape{{3, 2}, {2}} {
		x := append([]float64{}, params[i]...)
		m.vars[i] = G.NewTensor(g, tensor.Float64, len(shape), G.WithShape(shape...), G.WithName([]string{"w", "b"}[i]),
			G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x))))
		m.grad[i] = tensor.New(tensor.WithShape(shape...), tensor.Of(tensor.Float64))
	}
	require.NoError(t, s.Build([]G.ValueGrad{m.vars[0], m.vars[1]}))
	return m
}

// step makes a step of the generator's.
func (m *model) step(t *testing.T, step int) {
	t.Helper()
	var pairs []solvers.Pair
	for i, v := range m.vars {
		for k := range m.grad[i].Float64s() {
			m.grad[i].Float64s()[k] = math.Cos(float64(step) * (1 + float64(i+k)))
		}
		pairs = append(pairs, solvers.Pair{Param: v, Grad: m.grad[i]})
	}
	require.NoError(t, m.s.ApplyGradients(pairs))
}

func start() [][]float64 {
	var w, b []float64
	for k := range 6 {
		w = append(w, math.Sin(1+float64(k)))
	}
	for k := range 2 {
		b = append(b, math.Sin(2+float64(k)))
	}
	return [][]float64{w, b}
}

func (m *model) requireParams(t *testing.T, want [][]float64, tolerance float64, name string) {
	t.Helper()
	for i, v := range m.vars {
		require.InDeltaSlice(t, want[i], v.Value().Data(), tolerance, name)
	}
}

type result struct{ Params, After [][]float64 }

func results(t *testing.T, library string) (all map[string]result) {
	b, err := os.ReadFile(folder + library + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &all))
	return all
}

// Training goes on here from where torch and Keras saved it as there, and what is written here is what they wrote.
func TestFilesOfTorchAndKeras(t *testing.T) {
	for _, library := range []struct {
		name    string
		configs map[string]map[string]any
		read    func(b []byte, s *solvers.Solver) error
		write   func(b *bytes.Buffer, s *solvers.Solver) error
	}{
		{"torch", torch, func(b []byte, s *solvers.Solver) error { return ReadTorch(bytes.NewReader(b), s) },
			func(b *bytes.Buffer, s *solvers.Solver) error { return WriteTorch(b, s, "w", "b") }},
		{"keras", keras, func(b []byte, s *solvers.Solver) error { return ReadKeras(bytes.NewReader(b), s) },
			func(b *bytes.Buffer, s *solvers.Solver) error { return WriteKeras(b, s, "w", "b") }},
	} {
		want := results(t, library.name)
		require.Len(t, want, len(library.configs))
		for name, config := range library.configs {
			file, err := os.ReadFile(folder + library.name + "_" + name + ".safetensors")
			require.NoError(t, err)
			name := library.name + " " + name
			tolerance := 1e-13
			if name == "torch nadam" {
				tolerance = 1e-8 // its mu_product is float32
			}
			result := want[name[len(library.name)+1:]]
			resumed := newModel(t, config, result.Params)
			require.NoError(t, library.read(file, resumed.s), name)
			for step := savedAt; step < lastStep; step++ {
				resumed.step(t, step)
			}
			resumed.requireParams(t, result.After, tolerance, name)

			own := newModel(t, config, start())
			for step := range savedAt {
				own.step(t, step)
			}
			own.requireParams(t, result.Params, tolerance, name)
			var b bytes.Buffer
			require.NoError(t, library.write(&b, own.s), name)
			requireSameTensors(t, file, b.Bytes(), name)

			fresh := newModel(t, config, result.Params)
			require.NoError(t, library.read(b.Bytes(), fresh.s), name)
			var again bytes.Buffer
			require.NoError(t, library.write(&again, fresh.s), name)
			if name != "torch sgd" && name != "torch momentum" && name != "torch nesterov" { // torch does not count their steps
				require.Equal(t, b.Bytes(), again.Bytes(), name)
			}
		}
	}
}

// requireSameTensors compares two files, up to rounding.
func requireSameTensors(t *testing.T, want, got []byte, name string) {
	t.Helper()
	w, _, err := safetensors.Read(bytes.NewReader(want))
	require.NoError(t, err)
	g, _, err := safetensors.Read(bytes.NewReader(got))
	require.NoError(t, err)
	byName := map[string]safetensors.Tensor{}
	for _, x := range g {
		byName[x.Name] = x
	}
	require.Len(t, g, len(w), name)
	for _, x := range w {
		y, ok := byName[x.Name]
		require.True(t, ok, "%s: %s", name, x.Name)
		require.ElementsMatch(t, x.Shape, y.Shape)
		a, _ := floats(x.Data)
		b, _ := floats(y.Data)
		tolerance := 1e-13
		if _, single := x.Data.([]float32); single {
			tolerance = 1e-7
		}
		require.InDeltaSlice(t, a, b, tolerance, "%s: %s", name, x.Name)
	}
}
