package exchange

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"optimop/internal/safetensors"
	"optimop/solvers"
)

// changed is a file of the folder with something else in it.
func changed(t *testing.T, name string, change func(x map[string]*safetensors.Tensor, metadata map[string]string)) []byte {
	t.Helper()
	b, err := os.ReadFile(folder + name + ".safetensors")
	require.NoError(t, err)
	tensors, metadata, err := safetensors.Read(bytes.NewReader(b))
	require.NoError(t, err)
	byName := map[string]*safetensors.Tensor{}
	for i := range tensors {
		byName[tensors[i].Name] = &tensors[i]
	}
	change(byName, metadata)
	tensors = slices.DeleteFunc(tensors, func(x safetensors.Tensor) bool { return x.Name == "" })
	var out bytes.Buffer
	require.NoError(t, safetensors.Write(&out, tensors, metadata))
	return out.Bytes()
}

// What does not fit is an error, and changes nothing, hyperparameters included.
func TestRefuses(t *testing.T) {
	type tensors = map[string]*safetensors.Tensor
	adam := map[string]any{"class": "torch/adam"}
	for name, c := range map[string]struct {
		file   string
		config map[string]any
		change func(x tensors, metadata map[string]string)
		want   string
	}{
		"missing":    {"torch_adam", adam, func(x tensors, _ map[string]string) { x["state.1.exp_avg"].Name = "" }, "state.1.exp_avg is missing"},
		"unexpected": {"torch_adam", adam, func(x tensors, _ map[string]string) { x["state.1.step"].Name = "state.2.step" }, "unexpected: state.2.step"},
		"no step":    {"torch_adam", adam, func(x tensors, _ map[string]string) { x["state.0.step"].Name, x["state.1.step"].Name = "", "" }, "step is missing"},
		"steps":      {"torch_adam", adam, func(x tensors, _ map[string]string) { x["state.1.step"].Data = []float32{2} }, "here they count together"},
		"half a step": {"torch_adam", adam, func(x tensors, _ map[string]string) {
			x["state.0.step"].Data = []float32{.5}
			x["state.1.step"].Data = []float32{.5}
		}, "is no count"},
		"shape": {"torch_adam", adam, func(x tensors, _ map[string]string) { x["state.0.exp_avg"].Shape = []int{6} }, "shape"},
		"length": {"torch_adam", adam, func(x tensors, _ map[string]string) {
			*x["state.0.exp_avg"] = safetensors.Tensor{Name: "state.0.exp_avg", Shape: []int{1}, Data: []float64{1}}
		}, "1 elements, not 6"},
		"no names":       {"torch_adam", adam, func(_ tensors, m map[string]string) { delete(m, "names") }, "no names of parameters"},
		"a name":         {"torch_adam", adam, func(_ tensors, m map[string]string) { m["names"] = `{"0":"w","2":"b"}` }, "no index 1"},
		"other name":     {"torch_adam", adam, func(_ tensors, m map[string]string) { m["names"] = `{"0":"w","1":"c"}` }, `no m of "c"`},
		"same name":      {"torch_adam", adam, func(_ tensors, m map[string]string) { m["names"] = `{"0":"w","1":"w"}` }, "named twice"},
		"no parameters":  {"torch_adam", adam, func(_ tensors, m map[string]string) { m["names"] = `{}` }, "no parameters"},
		"groups":         {"torch_adam", adam, func(_ tensors, m map[string]string) { m["param_groups"] = `[{"lr":1},{"lr":2}]` }, "several values of learning_rate"},
		"no groups":      {"torch_adam", adam, func(_ tensors, m map[string]string) { m["param_groups"] = `{` }, "param_groups"},
		"range":          {"torch_adam", adam, func(_ tensors, m map[string]string) { m["param_groups"] = `[{"lr":0.5,"betas":[0.9,2]}]` }, "beta2"},
		"maximize":       {"torch_adam", adam, func(_ tensors, m map[string]string) { m["param_groups"] = `[{"maximize":true}]` }, "maximizes"},
		"nesterov":       {"torch_nesterov", torch["momentum"], nil, "nesterov is true there"},
		"amsgrad":        {"torch_amsgrad", adam, nil, "unexpected: state.0.max_exp_avg_sq"},
		"no amsgrad":     {"torch_adam", torch["amsgrad"], nil, "max_exp_avg_sq is missing"},
		"rate inside":    {"torch_momentum", keras["momentum"], nil, "use torch/sgd"},
		"inside RMSprop": {"torch_rmsprop_all", keras["rmsprop_all"], nil, "use torch/rmsprop"},
		"corrected":      {"torch_amsgrad", map[string]any{"class": "adam", "ams_grad": true, "max_corrected": true}, nil, "before: use theirs"},
		"not torch's":    {"torch_adam", keras["lion"], nil, "torch has no lion"},
		"unknown":        {"torch_adam", map[string]any{"class": "cocob"}, nil, "no state of a known optimizer"},
	} {
		if c.change == nil {
			c.change = func(tensors, map[string]string) {}
		}
		requireRefused(t, changed(t, c.file, c.change), c.config, torchOf, c.want, name)
	}
	for name, c := range map[string]struct {
		file   string
		config map[string]any
		change func(x tensors, metadata map[string]string)
		want   string
	}{
		"missing":          {"keras_adam", keras["adam"], func(x tensors, _ map[string]string) { x["5"].Name = "" }, "variable 5, b/adam/v, is missing"},
		"iteration":        {"keras_adam", keras["adam"], func(x tensors, _ map[string]string) { x["0"].Name = "" }, "variable 0"},
		"unexpected":       {"keras_amsgrad", keras["adam"], nil, "unexpected: 6, 7"},
		"rate":             {"keras_adam", keras["adam"], func(x tensors, _ map[string]string) { x["1"].Data = []float64{-1} }, "learning_rate"},
		"shape":            {"keras_adam", keras["adam"], func(x tensors, _ map[string]string) { x["2"].Shape = []int{2, 3} }, "shape"},
		"rate outside":     {"keras_momentum", torch["momentum"], nil, "use keras/sgd"},
		"outside RMSprop":  {"keras_rmsprop_all", torch["rmsprop_all"], nil, "use keras/rmsprop"},
		"not of Keras":     {"keras_adam", torch["radam"], nil, "Keras has no radam"},
		"of no parameters": {"keras_adam", keras["adam"], func(_ tensors, m map[string]string) { m["names"] = "{}" }, "no parameters"},
	} {
		if c.change == nil {
			c.change = func(tensors, map[string]string) {}
		}
		requireRefused(t, changed(t, c.file, c.change), c.config, kerasOf, c.want, name)
	}
}

type readFunc func(b []byte, s *solvers.Solver) error

// torchOf reads bytes, and so does kerasOf.
func torchOf(b []byte, s *solvers.Solver) error { return ReadTorch(bytes.NewReader(b), s) }
func kerasOf(b []byte, s *solvers.Solver) error { return ReadKeras(bytes.NewReader(b), s) }

func requireRefused(t *testing.T, file []byte, config map[string]any, read readFunc, want, name string) {
	t.Helper()
	m := newModel(t, config, start())
	m.step(t, 1)
	before := m.states(t)
	require.ErrorContains(t, read(file, m.s), want, name)
	require.Equal(t, before, m.states(t), name)
}

// states are the bits of all states by name.
func (m *model) states(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, st := range m.s.Store().States() {
		v, err := st.Value()
		require.NoError(t, err)
		all[st.Name()] = fmt.Sprintf("%b", v.Data())
	}
	return all
}

// Two optimizers at once, and none.
func TestSubject(t *testing.T) {
	require.ErrorContains(t, torchOf(changed(t, "torch_adam", func(map[string]*safetensors.Tensor, map[string]string) {}), nil), "the solver is nil")
	m := newModel(t, map[string]any{"class": "chain", "rules": []any{map[string]any{"class": "adam"}, map[string]any{"class": "momentum"}}}, start())
	require.ErrorContains(t, WriteKeras(&bytes.Buffer{}, m.s, "w", "b"), "several optimizers: adam and momentum")
	m = newModel(t, keras["adam"], start())
	require.ErrorContains(t, WriteKeras(&bytes.Buffer{}, m.s), "no parameters")
	require.ErrorContains(t, WriteTorch(&bytes.Buffer{}, m.s), "no parameters")
	require.ErrorContains(t, WriteTorch(&bytes.Buffer{}, m.s, "w", "c"), `no m of "c"`)
	require.ErrorContains(t, WriteKeras(&bytes.Buffer{}, m.s, "w", "c"), `no m of "c"`)
	require.Error(t, torchOf(nil, m.s))
	require.Error(t, kerasOf(nil, m.s))
}

func TestConvert(t *testing.T) {
	single := []float32{0}
	require.ErrorContains(t, convert(single, []float64{1}, false, false), "float64 there, and float32 here")
	require.NoError(t, convert(single, []float64{1. / 3}, true, true))
	require.Equal(t, []float32{-1. / 3}, single)
	double := []float64{0}
	require.NoError(t, convert(double, []float32{.5}, true, false))
	require.Equal(t, []float64{-.5}, double)
	require.Error(t, convert(single, []float32{1, 2}, false, false))
	require.Error(t, convert([]int64{0}, []float64{1.5}, false, true))
}
