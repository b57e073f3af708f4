package updater

import (
	"bytes"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/internal/safetensors"
	"optimop/solvers"
	"optimop/solvers/schedule"
)

// practised is a small updater after some runs.
func practised(t testing.TB, text string, n int) (*Updater, G.Nodes) {
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, config(t, text)))
	runs(t, must(u.NewMachine()), n)
	return u, G.Nodes{w, b}
}

const adamConfig = `{"optimizer": "adam", "learning_rate": 0.1}`

// What a file says beside the values comes back, and the bytes depend on nothing else.
func TestSnapshotMetadata(t *testing.T) {
	text := `{"optimizer": "adam", "learning_rate": {"class": "exponential_decay", "initial": 0.1, "decay_steps": 10, "decay_rate": 0.5}}`
	u, _ := practised(t, text, 3)
	s := must(u.Snapshot())
	s.Position = Position{Epoch: 2, Batch: 7, Seed: math.MaxUint64}
	s.Notes = map[string]string{"who": "me", "ü": ""}
	var a, b bytes.Buffer
	require.NoError(t, s.Write(&a))
	require.NoError(t, s.Write(&b))
	require.Equal(t, a.Bytes(), b.Bytes())
	back := must(ReadSnapshot(&b))
	require.Equal(t, s.Position, back.Position)
	require.Equal(t, s.Notes, back.Notes)
	require.Equal(t, 3, back.GlobalStep())
	require.Equal(t, u.cfg, config(t, back.Config()))
	require.Contains(t, back.Schedules(), "exponential_decay")
	require.Contains(t, back.Versions(), `"go":"go1.`) // a test has no versions of modules
	require.ElementsMatch(t, s.Names(), back.Names())
	require.Equal(t, floats(u.settings[0].node), back.Value("w").Data())
	require.Nil(t, back.Value("none"))
	cfg := config(t, back.Config()) // all that a new updater needs
	_, loss, w, bias := model()
	again := must(New(loss, G.Nodes{w, bias}, cfg))
	require.NoError(t, again.Restore(back, SameConfig()))
	require.Equal(t, snapshot(t, u), snapshot(t, again))

	_, loss, w, bias = model()
	own := must(New(loss, G.Nodes{w, bias}, Config{Optimizer: solvers.NewAdam()}))
	require.NoError(t, own.Solver().Schedule("beta1", schedule.Func(func(Expr) Expr { return one.Div(one.Add(one)) })))
	s = must(own.Snapshot())
	require.Empty(t, s.Config())
	require.JSONEq(t, `{"adam/beta1": null}`, s.Schedules())
}

// A snapshot stays what it was while the training goes on, and can be restored more than once.
func TestSnapshotStays(t *testing.T) {
	u, vars := practised(t, adamConfig, 2)
	s, before := must(u.Snapshot()), snapshot(t, u, vars...)
	for range 2 {
		runs(t, must(u.NewMachine()), 3)
		require.NotEqual(t, before, snapshot(t, u, vars...))
		require.NoError(t, u.Restore(s))
		require.Equal(t, before, snapshot(t, u, vars...))
	}
	s.Value("w").Data().([]float64)[0] = 99 // a copy
	require.NoError(t, u.Restore(s))
	require.Equal(t, before, snapshot(t, u, vars...))
}

func TestPartial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	saved, from := practised(t, adamConfig, 3)
	require.NoError(t, saved.SaveFile(path))
	_, loss, w, b := model()
	all := must(New(loss, G.Nodes{w}, config(t, adamConfig))) // b is not trained: unexpected
	require.ErrorContains(t, all.LoadFile(path), "b is unexpected; b/adam/m is unexpected; b/adam/v is unexpected")
	require.NoError(t, all.LoadFile(path, AllowPartial()))
	require.Equal(t, floats(from[0]), floats(w))
	require.Equal(t, []float64{3}, floats(b))
	require.Equal(t, floats(saved.Slot(from[0], "v")), floats(all.Slot(w, "v")))

	_, loss, w, b = model()
	more := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": {"class": "adam", "ams_grad": true}}`))) // slots that the file has not
	require.ErrorContains(t, more.LoadFile(path), "is missing")
	require.NoError(t, more.LoadFile(path, AllowPartial()))
	require.Equal(t, floats(from[0]), floats(w))

	g := G.NewGraph()
	w = input(g, "w", 1, 2, 3) // of another shape: refused also then
	other := must(New(must(G.Sum(w)), G.Nodes{w}, Config{}))
	require.ErrorContains(t, other.LoadFile(path, AllowPartial()), "w has shape [2] there, and [3] here")
	x := input(G.NewGraph(), "x", 1)
	none := must(New(must(G.Square(x)), G.Nodes{x}, Config{}))
	require.ErrorContains(t, none.LoadFile(path, AllowPartial(), ParametersOnly()), "none of the names is known here")
}

func TestMapNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	saved, from := practised(t, adamConfig, 3)
	require.NoError(t, saved.SaveFile(path))
	g := G.NewGraph()
	w, b := input(g, "net/w", 0, 0), input(g, "net/b", 0)
	u := must(New(must(G.Add(must(G.Sum(w)), b)), G.Nodes{w, b}, config(t, adamConfig)))
	require.ErrorContains(t, u.LoadFile(path), "net/w is missing; net/b is missing")
	require.NoError(t, u.LoadFile(path, MapNames("^([wb])(/|$)", "net/$1$2")))
	require.Equal(t, floats(from[0]), floats(w))
	require.Equal(t, floats(saved.Slot(from[1], "m")), floats(u.Slot(b, "m")))
	require.NoError(t, u.LoadFile(path, MapNames("^([wb])(/|$)", "$1 $2"), MapNames("^(.) ", "net/$1")))
	require.ErrorContains(t, u.LoadFile(path, MapNames("^[wb]$", "net/w")), `MapNames makes two things "net/w"`)
	require.ErrorContains(t, u.LoadFile(path, MapNames("(", "")), "MapNames")
}

// Weights go from float64 to float32 and back.
func TestConvert(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first := stateful(t, tensor.Float64, 1)
	first.train(t, 0, 4)
	require.NoError(t, first.u.SaveFile(path))
	second := stateful(t, tensor.Float32, 2)
	before := second.values(t)
	require.ErrorContains(t, second.u.LoadFile(path), "w is float64 there, and float32 here")
	require.Equal(t, before, second.values(t))
	require.NoError(t, second.u.LoadFile(path, Convert()))
	for i, v := range second.vars {
		require.InDeltaSlice(t, elements(first.vars[i]), elements(v), 1e-6)
	}
	require.NoError(t, second.u.SaveFile(path))
	third := stateful(t, tensor.Float64, 3)
	require.NoError(t, third.u.LoadFile(path, Convert()))
	require.Equal(t, elements(second.vars[0]), elements(third.vars[0]))

	u, _ := practised(t, adamConfig, 1)
	path = edited(t, u, func(x map[string]*safetensors.Tensor, _ map[string]string) {
		x["w"].Data = []float64{1e300, 1}
		x["b"].Data = []float64{math.Inf(1)}
		x["global_step"].Data = []float64{1} // counters stay counters
	})
	w := inputOf(G.NewGraph(), tensor.Float32, "w", []float64{0, 0})
	b := inputOf(w.Graph(), tensor.Float32, "b", 0.0)
	small := must(New(must(G.Add(must(G.Sum(w)), b)), G.Nodes{w, b}, config(t, adamConfig)))
	err := small.LoadFile(path, Convert())
	require.ErrorContains(t, err, "w: 1e+300 is too large for float32; global_step is float64 there, and int64 here")
	require.Equal(t, []float64{0, 0}, elements(w))
}

// A file of another config is loaded with a warning, or refused.
func TestSameConfig(t *testing.T) {
	u, _ := practised(t, adamConfig, 1)
	s := must(u.Snapshot())
	_, loss, w, b := model()
	other := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "adam", "learning_rate": 0.2, "gradient_noise": 0.1}`)))
	log := logged(t, slog.LevelWarn)
	require.ErrorContains(t, other.Restore(s, SameConfig()), "another config: gradient_noise, learning_rate")
	require.Empty(t, log.String())
	require.ErrorContains(t, other.Restore(s), "gradientnoise/seed is missing")
	require.Contains(t, log.String(), "another config")
	require.NoError(t, other.Restore(s, AllowPartial()))
	rate, err := other.LearningRate()
	require.NoError(t, err)
	require.Equal(t, .1, rate) // the file's
}

func TestChecksum(t *testing.T) {
	u, vars := practised(t, adamConfig, 2)
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, u.SaveFile(path))
	data := must(os.ReadFile(path))
	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))
	before := snapshot(t, u, vars...)
	require.ErrorContains(t, u.LoadFile(path), "the file is damaged: its checksum is wrong")
	require.Equal(t, before, snapshot(t, u, vars...))
	require.NoError(t, u.LoadFile(path, Unchecked()))
	require.NotEqual(t, before, snapshot(t, u, vars...))
}

// Weights go to a graph that only predicts, of another batch size.
func TestLoadVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	n := stateful(t, tensor.Float64, 1)
	n.train(t, 0, 3)
	require.NoError(t, n.u.SaveFile(path))
	g := G.NewGraph()
	w := G.NewMatrix(g, tensor.Float64, G.WithShape(3, 2), G.WithName("w")) // no value yet
	b := G.NewMatrix(g, tensor.Float64, G.WithShape(4, 2), G.WithName("b"), G.WithInit(G.Ones()))
	x := G.NewMatrix(g, tensor.Float64, G.WithShape(1, 3), G.WithName("x"), G.WithValue(tensor.New(tensor.WithShape(1, 3), tensor.WithBacking([]float64{1, 2, 3}))))
	must(G.Mul(x, w))
	require.ErrorContains(t, LoadVariables(path, G.Nodes{w}), "b is unexpected")
	require.Nil(t, w.Value())
	require.NoError(t, LoadVariables(path, G.Nodes{w, b}))
	require.Equal(t, elements(n.vars[0]), elements(w))
	require.Equal(t, elements(n.vars[1]), elements(b))
	require.NoError(t, LoadVariables(path, G.Nodes{w}, AllowPartial()))

	f := G.NewMatrix(g, tensor.Float32, G.WithShape(3, 2), G.WithName("w"))
	require.ErrorContains(t, LoadVariables(path, G.Nodes{f}, AllowPartial()), "w is float64 there, and float32 here")
	require.NoError(t, LoadVariables(path, G.Nodes{f}, AllowPartial(), Convert()))
	require.InDeltaSlice(t, elements(w), elements(f), 1e-6)
	other := G.NewMatrix(g, tensor.Float64, G.WithShape(3, 2), G.WithName("other"))
	require.ErrorContains(t, LoadVariables(path, G.Nodes{w, other, other}), `two variables are called "other"`)
	require.ErrorContains(t, LoadVariables(path, G.Nodes{nil}), "nil is no named input")
	require.ErrorContains(t, LoadVariables(path, G.Nodes{other}, AllowPartial()), "none of the names")
	require.Nil(t, other.Value())
	require.NoError(t, LoadVariables(path, G.Nodes{other, b}, MapNames("^w$", "other")))
	require.Equal(t, elements(w), elements(other))
	ints := G.NewMatrix(g, tensor.Int, G.WithShape(3, 2), G.WithName("w"))
	require.ErrorContains(t, LoadVariables(path, G.Nodes{ints}), "it is int")
}

// Algorithms go on bit for bit, too.
func TestAlgorithmFiles(t *testing.T) {
	type algorithm interface {
		TrainingAlgorithm
		SaveFile(string) error
		LoadFile(string, ...LoadOpt) error
		Snapshot() (*Snapshot, error)
	}
	for _, dt := range bothTypes {
		makeOne := func() algorithm { return descent(t, meanModel(dt, 3)) }
		makeBatched := func() algorithm {
			f, _ := build(dt)
			b := must(NewBatched(f))
			require.NoError(t, b.Initialize())
			must(b.Model(rowsOf(dt, 0, 3)))
			return b
		}
		for _, make := range []func() algorithm{makeOne, makeBatched} {
			path := filepath.Join(t.TempDir(), "state")
			steps := func(a algorithm, from, to int) {
				for i := from; i < to; i++ {
					rows := 3
					if _, ok := a.(*Batched); ok && i%3 == 1 {
						rows = 2
					}
					require.NoError(t, a.ProcessBatch(rowsOf(dt, float64(i), rows)))
				}
			}
			bytesOf := func(a algorithm) string {
				var out bytes.Buffer
				require.NoError(t, must(a.Snapshot()).Write(&out))
				return out.String()
			}
			whole, first, second := make(), make(), make()
			steps(whole, 0, 7)
			steps(first, 0, 4)
			require.NoError(t, first.SaveFile(path))
			steps(second, 2, 3)
			require.NoError(t, second.LoadFile(path))
			require.Equal(t, bytesOf(first), bytesOf(second))
			steps(second, 4, 7)
			require.Equal(t, bytesOf(whole), bytesOf(second))
			names := slices.Sorted(maps.Keys(must(second.Snapshot()).kinds))
			require.Subset(t, names, []string{"w", "mean", "runs", "w/adam/m", "adam/step", "global_step", "adam/learning_rate"})
		}
	}
	f, _ := build(tensor.Float64)
	b := must(NewBatched(f))
	require.ErrorContains(t, b.SaveFile(filepath.Join(t.TempDir(), "x")), "there is no model yet")
	require.ErrorContains(t, b.Restore(&Snapshot{}), "there is no model yet")
}
