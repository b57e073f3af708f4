package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

const subset = "../../testdata/mnist"

// runMNIST runs the program on the small subset and returns what it printed.
func runMNIST(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(append([]string{"-data", subset}, args...), &out, io.Discard))
	return regexp.MustCompile(`, [0-9.]+ s, [0-9]+ images/s`).ReplaceAllString(out.String(), "")
}

func readReport(t *testing.T, args ...string) report {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	runMNIST(t, append(args, "-report", file)...)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// Each model learns: from 2,000 images, far better than chance.
func TestModelsLearn(t *testing.T) {
	for model, want := range map[string]struct {
		epochs         string
		loss, accuracy float64
	}{
		"logreg":  {"5", 0.70, 0.74},
		"mlp":     {"4", 0.30, 0.84},
		"convnet": {"2", 0.90, 0.80},
	} {
		t.Run(model, func(t *testing.T) {
			r := readReport(t, "-model", model, "-epochs", want.epochs)
			last := r.Epochs[len(r.Epochs)-1]
			require.Less(t, last.TrainLoss, want.loss)
			require.Greater(t, r.TestAccuracy, want.accuracy)
			require.Equal(t, last.TestAccuracy, r.TestAccuracy)
			require.Positive(t, last.Seconds)
			require.Positive(t, last.ImagesPerSecond)
			for i, e := range r.Epochs {
				require.Equal(t, i+1, e.Epoch)
			}
		})
	}
}

// The same seed gives the same digits, another seed others; progress on a file is plain lines.
func TestSeeds(t *testing.T) {
	one := runMNIST(t, "-epochs", "1")
	require.Equal(t, one, runMNIST(t, "-epochs", "1"))
	require.NotEqual(t, one, runMNIST(t, "-epochs", "1", "-seed", "2"))
	require.Regexp(t, `^mlp on 2000 images, tested on 500: .*\nepoch 1: train loss \d\.\d{4}, test accuracy \d\d\.\d\d %\ntest accuracy \d\d\.\d\d %\n$`, one)
}

// oneEpoch trains and tests, and returns the epoch's line.
func oneEpoch(t *testing.T, tr *trainer) (line epochResult) {
	t.Helper()
	tr.shuffled = 0 // each loop begins with the first epoch
	l := tr.training(1, func(int) *progress { return &progress{} }, func(r epochResult) error { line = r; return nil })
	require.NoError(t, l.Run(t.Context()))
	return line
}

// weights trains a fresh MLP and returns its weights.
func weights(t *testing.T, cfg config, data *dataset, steps int) []float32 {
	tr, err := newTrainer(cfg, data)
	require.NoError(t, err)
	defer tr.close()
	for i := range steps {
		lo := i * cfg.batch % len(tr.order)
		part := tr.order[lo:min(lo+cfg.batch, len(tr.order))]
		_, err := tr.train(part)
		require.NoError(t, err)
	}
	return allWeights(tr.model)
}

func allWeights(m *model) (out []float32) {
	for _, w := range m.weights {
		out = append(out, w.Float32s()...)
	}
	return out
}

func sameWeights(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// 100 steps of the MLP, a short batch among them, give the same weights bit for bit in every host.
func TestHostsAgree(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	for _, solver := range []string{"sgd", "momentum", "adam", "adamw"} {
		t.Run(solver, func(t *testing.T) {
			cfg := config{model: "mlp", solver: solver, seed: 3, batch: 60, epochs: 3} // 34 batches an epoch, the last of 20
			var all [][]float32
			for _, host := range hosts {
				cfg.host = host
				all = append(all, weights(t, cfg, data, 100))
			}
			require.False(t, sameWeights(all[0], weights(t, cfg, data, 0)))
			require.True(t, sameWeights(all[0], all[1]), hosts[1])
			require.True(t, sameWeights(all[0], all[2]), hosts[2])
		})
	}
}

// The same on a LispMachine that is made anew for each step.
func TestLispMachineAgrees(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	for _, solver := range []string{"sgd", "momentum", "adam", "adamw"} {
		var all [][]float32
		for _, lisp := range []bool{false, true} {
			m := newModel(architectures["mlp"], 5)
			g, err := m.graph(50)
			require.NoError(t, err)
			l := &learner{graph: g, y: make([]float32, 50*classes)}
			require.NoError(t, l.addLoss())
			s, err := solvers.FromConfig(solver, nil)
			require.NoError(t, err)
			op, err := s.Minimize(l.loss, g.vars...)
			require.NoError(t, err)
			vm, err := graphops.NewMachine(op)
			require.NoError(t, err)
			for step := range 100 {
				numbers := make([]int, 50)
				for i := range numbers {
					numbers[i] = (step*50 + i) % data.train.len()
				}
				data.train.gather(numbers, l.x, l.y)
				if lisp {
					fresh := gorgonia.NewLispMachine(l.loss.Graph(), gorgonia.ExecuteFwdOnly())
					require.NoError(t, fresh.RunAll())
					require.NoError(t, fresh.Close())
				} else {
					require.NoError(t, vm.RunAll())
				}
			}
			all = append(all, allWeights(m))
		}
		require.True(t, sameWeights(all[0], all[1]), solver)
	}
}

// Every image is trained on and every test image is evaluated, exactly once, whatever the batch size.
func TestEveryImageOnce(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	var want []int
	for _, batch := range []int{500, 1, 7, 64, 499, 1999} {
		cfg := config{model: "logreg", solver: "sgd", host: hostGraph, seed: 1, batch: batch, epochs: 1}
		tr, err := newTrainer(cfg, data)
		require.NoError(t, err)
		digits, err := tr.predict(data.test)
		require.NoError(t, err)
		require.Len(t, digits, 500)
		if want == nil {
			want = digits
		}
		require.Equal(t, want, digits, batch)
		if batch > 1 {
			oneEpoch(t, tr)
			require.Equal(t, (2000+batch-1)/batch, tr.step)
		}
		seen := map[int]int{}
		for part := range batches(tr.order, batch) {
			require.LessOrEqual(t, len(part), batch)
			for _, n := range part {
				seen[n]++
			}
		}
		require.Len(t, seen, 2000)
		tr.close()
	}
}

func TestBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown -model "gpt"`:          {"-model", "gpt"},
		`unknown -host "cloud"`:         {"-host", "cloud"},
		`did you mean "adam"?`:          {"-solver", "adma"},
		"no learning_rate":              {"-solver", "clip_by_global_norm"},
		"-lr must be a positive number": {"-lr", "-1"},
		"-epochs must be at least 1":    {"-epochs", "0"},
		"-batch must be at least 1":     {"-batch", "0"},
		"unexpected argument":           {"train"},
		"flag provided but not defined": {"-learning-rate", "1"},
		"invalid value":                 {"-epochs", "many"},
		"there is no folder":            {"-report", "nowhere/report.json"},
		"is a folder":                   {"-report", "."},
		"MNIST file missing":            {"-data", "nowhere"},
	} {
		err := run(append([]string{"-data", subset}, args...), io.Discard, io.Discard)
		require.ErrorContains(t, err, want)
		require.NotZero(t, exitCode(err))
	}
	var help bytes.Buffer
	require.NoError(t, run([]string{"-h"}, &help, io.Discard))
	require.Contains(t, help.String(), "-solver")
}

// A training that diverges ends with an error that says where.
func TestDivergence(t *testing.T) {
	err := run([]string{"-data", subset, "-solver", "sgd", "-lr", "1e30", "-epochs", "1"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "a smaller -lr may help")
	require.Equal(t, 1, exitCode(err))
}

// Without a go command the module's images cannot be found; the small subset stands in, and the user is told.
func TestFallback(t *testing.T) {
	t.Setenv("PATH", "")
	var notes bytes.Buffer
	data, err := openData("", &notes)
	require.NoError(t, err)
	require.Equal(t, 2000, data.train.len())
	require.Equal(t, 500, data.test.len())
	require.Contains(t, notes.String(), "small subset")
}

// Damaged files are refused by name.
func TestBadFiles(t *testing.T) {
	copyOf := func() string {
		dir := t.TempDir()
		names, err := filepath.Glob(subset + "/*.gz")
		require.NoError(t, err)
		require.Len(t, names, 4)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600))
		}
		return dir
	}
	zipped := func(words ...int32) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		require.NoError(t, binary.Write(z, binary.BigEndian, words))
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	for want, damage := range map[string]struct {
		file string
		text []byte
	}{
		"is not a gzip file":     {"train-images-idx3-ubyte.gz", []byte("hello")},
		"magic number 0x801":     {"train-images-idx3-ubyte.gz", zipped(labelMagic, 2000, side, side)},
		"is not possible":        {"t10k-images-idx3-ubyte.gz", zipped(imageMagic, -5, side, side)},
		"want 28×28":             {"t10k-images-idx3-ubyte.gz", zipped(imageMagic, 500, 20, side)},
		"reading the header":     {"train-labels-idx1-ubyte.gz", zipped(labelMagic)},
		"labels-idx1-ubyte.gz h": {"train-labels-idx1-ubyte.gz", zipped(labelMagic, 4, 0)},
		"not a digit":            {"t10k-labels-idx1-ubyte.gz", append(zipped(labelMagic, 500), zipped(slices.Repeat([]int32{0x0b0b0b0b}, 125)...)...)},
	} {
		dir := copyOf()
		require.NoError(t, os.WriteFile(filepath.Join(dir, damage.file), damage.text, 0o600))
		err := run([]string{"-data", dir}, io.Discard, io.Discard)
		require.ErrorContains(t, err, want)
	}
	require.NotEmpty(t, subsetData(searchRoots()))
	require.Empty(t, subsetData([]string{t.TempDir()}))
	require.NotEmpty(t, moduleData(searchRoots()))
	require.Empty(t, moduleData([]string{t.TempDir()}))
}
