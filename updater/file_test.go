package updater

import (
	"bytes"
	"fmt"
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
	"optimop/internal/safetensors"
)

// statefulNet is a net with dropout in its loss and in a meta loss, and everything that has state.
type statefulNet struct {
	u    *Updater
	vm   G.VM
	vars G.Nodes
	x    *G.Node
}

const everything = `{
	"optimizer": {"class": "adam", "beta1": {"class": "interval_decay", "initial": 0.9, "interval": 3, "decay": 0.9}},
	"learning_rate": {"class": "exponential_decay", "initial": 0.05, "decay_steps": 3, "decay_rate": 0.8},
	"dynamic_learning_rate": {"interval": 4, "decay": 0.5}, "accum_grad_multiple_step": 3, "gradient_noise": 0.1, "gradient_clip_global_norm": 2,
	"decouple_constraints": true, "decouple_constraints_factor": 0.5, "skip_non_finite_steps": true, "reset_updater_vars_mod_step": 5, "seed": %d,
	"updater_opts": [{"match": "b", "optimizer": {"class": "rmsprop", "momentum": 0.5}, "accum_grad_multiple_step": 0}, {"match": "w", "l2": 0.1}]}`

// stateful makes it, with values and seeds of its own.
func stateful(t testing.TB, dt tensor.Dtype, seed int64) *statefulNet {
	g := G.NewGraph()
	value := func(shape ...int) G.NodeConsOpt {
		x := make([]float64, tensor.Shape(shape).TotalSize())
		for i := range x {
			x[i] = math.Sin(float64(seed) + float64(i))
		}
		if dt == tensor.Float64 {
			return G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x)))
		}
		y := make([]float32, len(x))
		for i := range x {
			y[i] = float32(x[i])
		}
		return G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(y)))
	}
	n := &statefulNet{x: G.NewMatrix(g, dt, G.WithShape(4, 3), G.WithName("x"), value(4, 3))}
	w := G.NewMatrix(g, dt, G.WithShape(3, 2), G.WithName("w"), value(3, 2))
	b := G.NewMatrix(g, dt, G.WithShape(4, 2), G.WithName("b"), value(4, 2))
	n.vars = G.Nodes{w, b}
	out := must(G.Tanh(must(G.Add(must(G.Mul(n.x, w)), b))))
	loss := must(G.Sum(must(G.Square(must(graphops.Dropout(out, .5, must(graphops.NewGenerator(graphops.NewStore(), "dropout", seed))))))))
	meta := must(G.Sum(must(graphops.Dropout(w, .25, must(graphops.NewGenerator(graphops.NewStore(), "other", seed+1))))))
	var err error
	n.u, err = New(loss, n.vars, config(t, fmt.Sprintf(everything, seed)), WithMetaLoss("meta", meta, .5))
	require.NoError(t, err)
	n.vm = must(n.u.NewMachine())
	return n
}

// train makes runs, each with numbers of its step. One in the middle cannot be used, and one begins an epoch.
func (n *statefulNet) train(t testing.TB, from, to int) {
	for step := from; step < to; step++ {
		for i := range 12 {
			v := math.Cos(float64(step * (i + 1)))
			if step == 4 {
				v = math.NaN()
			}
			switch x := n.x.Value().Data().(type) {
			case []float64:
				x[i] = v
			case []float32:
				x[i] = float32(v)
			}
		}
		if step == 2 {
			require.NoError(t, n.u.StartEpoch())
		}
		require.NoError(t, n.vm.RunAll())
		n.vm.Reset()
	}
}

// values are all bits of the training.
func (n *statefulNet) values(t testing.TB) string {
	items, err := n.u.items()
	require.NoError(t, err)
	var text strings.Builder
	for _, it := range items {
		v, err := it.tensor()
		require.NoError(t, err)
		fmt.Fprintf(&text, "%s %v %b\n", v.Name, v.Shape, v.Data)
	}
	return text.String()
}

// Training that is saved and goes on elsewhere gives the weights of that which was not interrupted, bit for bit.
func TestExactResume(t *testing.T) {
	const steps = 14
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		whole := stateful(t, dt, 1)
		whole.train(t, 0, steps)
		want := whole.values(t)
		total, _, _, err := whole.u.Skipped()
		require.NoError(t, err)
		require.Equal(t, 1, total)
		for _, at := range []int{0, 1, 2, 3, 5, 7, 9, 13} {
			path := filepath.Join(t.TempDir(), "state")
			first := stateful(t, dt, 1)
			first.train(t, 0, at)
			require.NoError(t, first.u.SaveFile(path))
			second := stateful(t, dt, 77) // of other values and seeds
			second.train(t, 0, 3)
			require.NoError(t, second.u.LoadFile(path))
			require.Equal(t, first.values(t), second.values(t))
			second.train(t, at, steps)
			require.Equal(t, want, second.values(t), at)
		}
		other := stateful(t, dt, 2)
		other.train(t, 0, steps)
		require.NotEqual(t, want, other.values(t))
	}
}

func TestParametersOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first, second := stateful(t, tensor.Float64, 1), stateful(t, tensor.Float64, 2)
	first.train(t, 0, 5)
	second.train(t, 0, 3)
	require.NoError(t, first.u.SaveFile(path))
	before := snapshot(t, second.u)
	require.NoError(t, second.u.LoadFile(path, ParametersOnly(), nil))
	require.Equal(t, before, snapshot(t, second.u))
	require.Equal(t, floats(first.vars[0]), floats(second.vars[0]))
	require.Equal(t, floats(first.vars[1]), floats(second.vars[1]))
	_, loss, w, b := model() // other shapes
	u := must(New(loss, G.Nodes{w, b}, Config{}))
	err := u.LoadFile(path, ParametersOnly())
	require.ErrorContains(t, err, "w has shape [3 2] there, and [2] here; b has shape [4 2] there, and [] here")
}

// edited saves a small updater's state and changes what the file holds.
func edited(t *testing.T, u *Updater, edit func(map[string]*safetensors.Tensor, map[string]string)) string {
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, u.SaveFile(path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	tensors, meta, err := safetensors.Read(bytes.NewReader(data))
	require.NoError(t, err)
	byName := map[string]*safetensors.Tensor{}
	for i := range tensors {
		byName[tensors[i].Name] = &tensors[i]
	}
	edit(byName, meta)
	tensors = slices.DeleteFunc(tensors, func(x safetensors.Tensor) bool { return x.Name == "" })
	require.NoError(t, safetensors.Seal(tensors, meta))
	var out bytes.Buffer
	require.NoError(t, safetensors.Write(&out, tensors, meta))
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// All that is wrong is listed at once, and nothing is changed.
func TestLoadFileRefuses(t *testing.T) {
	type tensors = map[string]*safetensors.Tensor
	for name, c := range map[string]struct {
		edit func(x tensors, meta map[string]string)
		want []string
	}{
		"forms": {func(x tensors, _ map[string]string) {
			x["w"].Shape = []int{2, 1}
			x["b"].Data = []float32{1}
			x["adam/learning_rate"].Data = []float64{-1}
			x["w/adam/v"].Name = "w/adam/vau"
			x["b/adam/m"].Name = ""
		}, []string{"w has shape [2 1] there, and [2] here", "b is float32 there, and float64 here", "adam/learning_rate is -1", "w/adam/v is missing",
			"b/adam/m is missing", "w/adam/vau is unexpected", "nothing was loaded"}},
		"dtype of a counter": {func(x tensors, _ map[string]string) { x["global_step"].Data = []float64{1} },
			[]string{"global_step is float64 there, and int64 here"}},
		"negative counter": {func(x tensors, _ map[string]string) { x["global_step"].Data = []int64{-1} },
			[]string{"global_step is -1"}},
		"huge counter": {func(x tensors, _ map[string]string) { x["global_step"].Data = []int64{math.MaxInt64} },
			[]string{"global_step is"}},
		"range":  {func(x tensors, _ map[string]string) { x["adam/beta1"].Data = []float64{1.5} }, []string{"adam/beta1 is 1.5"}},
		"nan":    {func(x tensors, _ map[string]string) { x["adam/beta2"].Data = []float64{math.NaN()} }, []string{"adam/beta2 is NaN"}},
		"format": {func(_ tensors, meta map[string]string) { meta["format"] = "pt" }, []string{`its format is "pt"`}},
		"kinds":  {func(_ tensors, meta map[string]string) { meta["kinds"] = "[]" }, []string{"the metadata"}},
	} {
		_, loss, w, b := model()
		u := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "adam"}`)))
		vm := must(u.NewMachine())
		runs(t, vm, 2)
		path := edited(t, u, c.edit)
		runs(t, vm, 1)
		before := snapshot(t, u, w, b)
		err := u.LoadFile(path)
		for _, want := range c.want {
			require.ErrorContains(t, err, want, name)
		}
		require.Equal(t, before, snapshot(t, u, w, b), name)
		runs(t, vm, 1)
	}
}

func TestDamagedFiles(t *testing.T) {
	n := stateful(t, tensor.Float64, 1)
	n.train(t, 0, 3)
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, n.u.SaveFile(path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	before := n.values(t)
	for name, bad := range map[string][]byte{
		"empty": {}, "short": data[:7], "header": data[:100], "cut": data[:len(data)-1], "long": append(bytes.Clone(data), 0),
		"length": append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, data[8:]...), "json": append(append(bytes.Clone(data[:8]), 'x'), data[9:]...),
	} {
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		require.ErrorContains(t, n.u.LoadFile(path), "updater: LoadFile: ", name)
		require.Equal(t, before, n.values(t), name)
	}
	require.ErrorContains(t, n.u.LoadFile(filepath.Join(t.TempDir(), "none")), "no such file")
	require.Error(t, n.u.LoadFile(t.TempDir()))
	require.Equal(t, before, n.values(t))
}

// A file that cannot be written leaves the old one, and nothing beside it.
func TestUnwritable(t *testing.T) {
	n := stateful(t, tensor.Float64, 1)
	dir := t.TempDir()
	require.ErrorContains(t, n.u.SaveFile(filepath.Join(dir, "none", "state")), "updater: SaveFile: ")
	path := filepath.Join(dir, "state")
	require.NoError(t, n.u.SaveFile(path))
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	n.train(t, 0, 1)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700)) // a directory cannot be replaced by a file
	require.Error(t, n.u.SaveFile(filepath.Join(dir, "taken")))
	twin, loss := input(n.u.graph(), "w", 1), n.u.losses[0].loss
	require.NoError(t, n.u.AddLoss(must(G.Add(loss, must(G.Square(twin)))), twin))
	require.ErrorContains(t, n.u.SaveFile(path), `it is called "w#2"`)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, old, now)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// Variables are saved by their names.
func TestSaveFileNeedsNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	g := G.NewGraph()
	nameless := G.NewScalar(g, G.Float64, G.WithValue(1.))
	u := must(New(must(G.Square(nameless)), G.Nodes{nameless}, Config{}))
	require.ErrorContains(t, u.SaveFile(path), "has no name of its own")
	empty := G.NewScalar(g, G.Float64, G.WithName("empty"))
	u = must(New(must(G.Square(empty)), G.Nodes{empty}, Config{}))
	require.ErrorContains(t, u.SaveFile(path), `variable "empty" has no value`)
	clash := input(g, "sgd/learning_rate", 1)
	u = must(New(must(G.Square(clash)), G.Nodes{clash}, Config{}))
	require.ErrorContains(t, u.SaveFile(path), `two things are called "sgd/learning_rate"`)
	require.NoFileExists(t, path)
}

// Whatever a file says, it is loaded whole, or nothing is changed.
func FuzzLoadFile(f *testing.F) {
	u, _ := practised(f, `{"optimizer": {"class": "adam"}, "accum_grad_multiple_step": 2}`, 3)
	s := must(u.Snapshot())
	s.Position.Epoch, s.Notes = 2, map[string]string{"a": "b"}
	var out bytes.Buffer
	require.NoError(f, s.Write(&out))
	data := out.Bytes()
	for _, data := range [][]byte{data, data[:len(data)-1], []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}")} {
		f.Add(data, uint8(0))
		f.Add(data, uint8(15))
	}
	quiet(f)
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		read, err := readSnapshot(bytes.NewReader(data), false) // or the checksum would keep all away
		if err != nil {
			return
		}
		var opts []LoadOpt
		for i, o := range []LoadOpt{ParametersOnly(), AllowPartial(), Convert(), MapNames("[a-m]", "$0$0")} {
			if which>>i&1 != 0 {
				opts = append(opts, o)
			}
		}
		require.NoError(t, u.Restore(s))
		before := snapshot(t, u)
		if err := u.Restore(read, opts...); err != nil {
			require.Equal(t, before, snapshot(t, u))
			return
		}
		var out bytes.Buffer
		require.NoError(t, must(u.Snapshot()).Write(&out))
		require.NoError(t, u.Restore(must(ReadSnapshot(&out)), SameConfig()))
	})
}
