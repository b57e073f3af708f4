package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// pixelsOf counts the pixels of a PNG file that are mostly blue, as the curves are, and mostly red, as the marks are.
func pixelsOf(t *testing.T, file string) (blue, red int) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	size := img.Bounds().Size()
	require.Equal(t, image.Pt(576, 384), size)
	for x := range size.X {
		for y := range size.Y {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			switch {
			case c.B > c.R+80 && c.R == c.G:
				blue++
			case c.R > c.B+80 && c.B == c.G:
				red++
			}
		}
	}
	return blue, red
}

// The search finds a rate at which the model learns, and says so in the same words for the same seed.
func TestFindRate(t *testing.T) {
	for name, args := range map[string][]string{
		"solver":   {"-model", "logreg", "-solver", "sgd"},
		"config":   {"-model", "logreg", "-config", "configs/adam.yaml"},
		"expanded": {"-model", "logreg", "-solver", "momentum", "-host", "expanded"},
	} {
		file := filepath.Join(t.TempDir(), "find.png")
		out := runMNIST(t, append(args, "-lr-find", file)...)
		require.Equal(t, out, runMNIST(t, append(args, "-lr-find", file)...), name)
		require.NotContains(t, out, "epoch")
		require.Contains(t, out, " +-")
		blue, red := pixelsOf(t, file)
		require.Greater(t, blue, 300, name)
		require.Greater(t, red, 100, name)
		found := regexp.MustCompile(`suggested learning rate ([0-9.e-]+): a tenth of`).FindStringSubmatch(out)
		require.NotNil(t, found, out)
		if name == "config" {
			continue
		}
		r := readReport(t, append(args, "-lr", found[1], "-epochs", "5")...)
		require.Greater(t, r.TestAccuracy, .74, found[1])
	}
}

// After the search the trainer is what it was: it goes on to the weights of one that did not search.
func TestFindRateLeavesNothing(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "find.png")
	cfg := config{model: "mlp", host: hostGraph, file: "configs/adam.yaml", seed: 3, batch: 300, epochs: 1}
	tr, err := newTrainer(cfg, data)
	require.NoError(t, err)
	defer tr.close()
	before := allWeights(tr.model)
	require.NoError(t, tr.findRate(file, io.Discard))
	require.True(t, sameWeights(before, allWeights(tr.model)))
	for i := range tr.order {
		tr.order[i] = i
	}
	for part := range batches(tr.order[:1200], cfg.batch) {
		_, err := tr.train(part)
		require.NoError(t, err)
	}
	require.True(t, sameWeights(weights(t, cfg, data, 4), allWeights(tr.model)))
}

// The rates of a schedule are those that the training uses.
func TestPlotSchedule(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	const text = `{"learning_rate": {"class": "exponential_decay", "initial": 0.5, "decay_steps": 1, "decay_rate": 0.5}, "dynamic_learning_rate": ` +
		`{"interval": 2, "decay": 0.1}}`
	for name, c := range map[string]struct {
		file string
		want []float64
	}{
		"solver": {"", []float64{.4, .3, .2, .1}},
		"config": {configFile(t, "schedule.json", text), []float64{.5, .025, .125, .00625}},
	} {
		cfg := config{model: "logreg", solver: "sgd", host: hostGraph, file: c.file, rate: .4, batch: 1000, epochs: 2}
		tr, err := newTrainer(cfg, data)
		require.NoError(t, err)
		require.Equal(t, len(c.want), tr.steps)
		for step, want := range c.want {
			rate, err := tr.rateAt(step)
			require.NoError(t, err)
			require.InDelta(t, want, rate, 1e-12*want, name+strconv.Itoa(step))
		}
		tr.close()
		tr, err = newTrainer(cfg, data)
		require.NoError(t, err)
		for step, part := range [][]int{tr.order[:1000], tr.order[1000:], tr.order[:1000], tr.order[1000:]} {
			if tr.updater != nil {
				rate, err := tr.updater.LearningRate()
				require.NoError(t, err)
				require.InDelta(t, c.want[step], rate, 1e-12)
			}
			_, err := tr.train(part)
			require.NoError(t, err)
			if tr.solver != nil {
				rate, err := tr.solver.Get("learning_rate")
				require.NoError(t, err)
				require.InDelta(t, c.want[step], rate, 1e-12)
			}
		}
		tr.close()
		file := filepath.Join(t.TempDir(), "schedule.png")
		args := []string{"-model", "logreg", "-batch", "1000", "-plot-schedule", file}
		if c.file != "" {
			args = append(args, "-config", c.file)
		}
		require.NotContains(t, runMNIST(t, args...), "epoch")
		blue, red := pixelsOf(t, file)
		require.Greater(t, blue, 300, name)
		require.Zero(t, red)
	}
}

func TestCurve(t *testing.T) {
	file := filepath.Join(t.TempDir(), "curve.png")
	require.NoError(t, curve{x: []float64{1}, y: []float64{2}}.png(file)) // of one point
	pixelsOf(t, file)
	require.NoError(t, curve{x: []float64{.1, 1}, y: []float64{2, 2}, logX: true, mark: .01}.png(file)) // level, and a mark beside it
	blue, _ := pixelsOf(t, file)
	require.Greater(t, blue, 100)
	require.ErrorContains(t, curve{x: []float64{1, 2}, y: []float64{1, math.NaN()}}.png(file), "plotting")
	require.ErrorContains(t, curve{x: []float64{1}, y: []float64{2}}.png(filepath.Join(file, "x")), "writing the plot")
}

func TestPlotConflicts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plot.png")
	scheduled := configFile(t, "scheduled.json", `{"learning_rate": {"class": "constant", "value": 0.1}}`)
	for want, c := range map[string]struct {
		args []string
		code int
	}{
		"-lr conflicts with -lr-find":                 {[]string{"-lr-find", file, "-lr", "1"}, 2},
		"-plot-schedule conflicts with -lr-find":      {[]string{"-lr-find", file, "-plot-schedule", file}, 2},
		"-report conflicts with -lr-find":             {[]string{"-lr-find", file, "-report", file}, 2},
		"-summaries conflicts with -plot-schedule":    {[]string{"-plot-schedule", file, "-summaries", file}, 2},
		"-host step conflicts with -lr-find":          {[]string{"-lr-find", file, "-host", "step"}, 2},
		"-lr-find needs the name of a file":           {[]string{"-lr-find", ""}, 2},
		"-plot-schedule needs the name of a file":     {[]string{"-plot-schedule", ""}, 2},
		"-lr-find: there is no folder nowhere":        {[]string{"-lr-find", "nowhere/x.png"}, 2},
		"-plot-schedule configs is a folder":          {[]string{"-plot-schedule", "configs"}, 2},
		"FindLearningRate: learning_rate follows a s": {[]string{"-lr-find", file, "-config", scheduled}, 1},
		"no optimizer here has a hyperparameter":      {[]string{"-plot-schedule", file, "-config", configFile(t, "c.yaml", "optimizer: cocob")}, 1},
	} {
		var out bytes.Buffer
		err := run(append([]string{"-data", subset}, c.args...), &out, io.Discard)
		require.ErrorContains(t, err, want)
		require.Equal(t, c.code, exitCode(err), want)
		require.NoFileExists(t, file)
	}
	summing := configFile(t, "summing.yaml", "optimizer: adam\nsummary_interval: 10\n") // none are written
	runMNIST(t, "-model", "logreg", "-lr-find", file, "-config", summing)
}
