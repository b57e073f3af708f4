package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"optimop/solvers"
)

var sampleConfigs = []string{"configs/adam.yaml", "configs/adabelief.yaml", "configs/two_optimizers.yaml", "configs/ranger.yaml"}

// configFile writes a config and returns the file's name.
func configFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// Each sample trains the same weights, bit for bit, in both hosts. The short last batch is one of an epoch's 34 runs of
// one updater.
func TestSampleConfigs(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	for _, file := range sampleConfigs {
		t.Run(file, func(t *testing.T) {
			var all [2][]float32
			for i, host := range []string{hostGraph, hostExpanded} {
				tr, err := newTrainer(config{model: "mlp", host: host, file: file, seed: 3, batch: 60, epochs: 3}, data)
				require.NoError(t, err)
				defer tr.close()
				var losses []float64
				for range 3 {
					losses = append(losses, oneEpoch(t, tr).TrainLoss)
				}
				require.Less(t, losses[2], 0.9*losses[0])
				require.Len(t, tr.learners, 2)
				step, err := tr.updater.GlobalStep()
				require.NoError(t, err)
				require.Equal(t, 3*34, step)
				all[i] = allWeights(tr.model)
			}
			require.True(t, sameWeights(all[0], all[1]))
		})
	}
}

// The patterns of the samples fit the variables that their comments name.
func TestSampleTables(t *testing.T) {
	for file, lines := range map[string][]string{
		"configs/adam.yaml":           {`w0 float32 (784, 300) {"class":"adam"}`, `b2 float32 (10) {"class":"adam"}`},
		"configs/adabelief.yaml":      {`w2 float32 (100, 10) {"class":"adabelief"`, `b2 float32 (10) b* {"class":"adabelief"`},
		"configs/ranger.yaml":         {`w0 float32 (784, 300) {"class":"ranger"`, `b2 float32 (10) {"class":"ranger"`},
		"configs/two_optimizers.yaml": {`w1 float32 (300, 100) /^[wb][01]$/ {"class":"momentum"`, `b2 float32 (10) {"class":"adam"}`},
	} {
		out := strings.Split(runMNIST(t, "-config", file, "-epochs", "1"), "\n")
		require.Contains(t, out[0], file+" in the graph host, learning rate ")
		require.Len(t, out, 1+7+1+1+1, "the table comes once")
		for _, want := range lines {
			found := false
			for _, l := range out[1:8] {
				found = found || strings.HasPrefix(strings.Join(strings.Fields(l), " "), want)
			}
			require.True(t, found, want)
		}
	}
	require.Contains(t, runMNIST(t, "-config", "configs/adabelief.yaml", "-epochs", "1", "-model", "logreg"), "×0", "b is a bias, too")
}

// The program leaves the learning rate to the config: the weights are those of a solver whose rate stays as it is.
func TestConfigRate(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	file := configFile(t, "adam.json", `{"optimizer": "adam", "learning_rate": 0.002}`)
	cfg := config{model: "mlp", host: hostGraph, file: file, seed: 3, batch: 60, epochs: 1}
	configured := weights(t, cfg, data, 40)

	tr, err := newTrainer(config{model: "mlp", host: hostGraph, solver: "adam", seed: 3, batch: 60, epochs: 1}, data)
	require.NoError(t, err)
	defer tr.close()
	tr.solver = solvers.NewAdam(func(a *solvers.Adam) { a.LearningRate = 0.002 })
	for i := range 40 {
		lo := i * cfg.batch % len(tr.order)
		part := tr.order[lo:min(lo+cfg.batch, len(tr.order))]
		l, err := tr.learner(len(part))
		require.NoError(t, err)
		data.train.gather(part, l.x, l.y)
		_, err = l.step() // tr.train would set the rate
		require.NoError(t, err)
	}
	require.True(t, sameWeights(configured, allWeights(tr.model)))
}

func TestConfigConflicts(t *testing.T) {
	adam := configFile(t, "adam.json", `{"optimizer": "adam"}`)
	summing := configFile(t, "summing.yaml", "optimizer: adam\nsummary_interval: 10\n")
	logging := configFile(t, "logging.yaml", "optimizer: adam\nlog_grad_norm: true\n")
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, csvFile), []byte("step\n"), 0o600))
	for want, args := range map[string][]string{
		"-solver conflicts with -config":                      {"-config", adam, "-solver", "adam"},
		"-lr conflicts with -config":                          {"-config", adam, "-lr", "0.1"},
		"-host step conflicts with -config":                   {"-config", adam, "-host", "step"},
		"-config needs the name of a file":                    {"-config", ""},
		"-summaries needs -config":                            {"-summaries", t.TempDir()},
		"asks for none; give it a summary_interval":           {"-config", adam, "-summaries", t.TempDir()},
		"summing.yaml asks for summaries":                     {"-config", summing},
		"logging.yaml asks for summaries":                     {"-config", logging},
		"each run needs a new folder":                         {"-config", summing, "-summaries", full},
		"-summaries: mkdir " + adam:                           {"-config", summing, "-summaries", adam},
		"-config: open nowhere.yaml":                          {"-config", "nowhere.yaml"},
		"-config: configs: updater: config":                   {"-config", "configs"},
		`two_optimizers.yaml: graph host, batch 100: updater`: {"-config", "configs/two_optimizers.yaml", "-model", "logreg"},
	} {
		err := run(append([]string{"-data", subset}, args...), io.Discard, io.Discard)
		require.ErrorContains(t, err, want)
		require.Equal(t, 2, exitCode(err), want)
	}
	text, err := os.ReadFile(filepath.Join(full, csvFile))
	require.NoError(t, err)
	require.Equal(t, "step\n", string(text), "the earlier run's file stays")
}

// What is wrong with a file is told with the file and the key.
func TestBadConfigs(t *testing.T) {
	for text, key := range map[string]string{
		"optimizer: {class: adam, beta3: 0.9}":                                "optimizer.beta3",
		"optimizer: {class: adma}":                                            `did you mean "adam"?`,
		"optimizer: {class: adam, learning_rate: 1}":                          "optimizer.learning_rate",
		"optimiser: adam":                                                     `did you mean "optimizer"?`,
		"optimizer: adam\nupdater_opts: [{match: \"w*\", gradient_clip: -1}]": "updater_opts[0].gradient_clip",
		"optimizer: adam\nupdater_opts: [{match: \"x*\", l2: 0.1}]":           `updater_opts[0].match: "x*" fits none of the variables ["w0"`,
		"optimizer: [adam":                                                    "bad YAML",
		`{"optimizer": "adam", "learning_rate": "fast"}`:                      "learning_rate: want a number",
	} {
		file := configFile(t, "bad.yaml", text)
		err := run([]string{"-data", subset, "-config", file}, io.Discard, io.Discard)
		require.ErrorContains(t, err, key)
		require.ErrorContains(t, err, file)
		require.Equal(t, 2, exitCode(err), text)
	}
}

// The numbers of every run that has some, a short batch among them, are in all three files.
func TestSummaries(t *testing.T) {
	for interval, steps := range map[int][]int{ // 6 and 13 are short batches
		1: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
		6: {0, 6, 12},
	} {
		dir := filepath.Join(t.TempDir(), "run", "1")
		file := configFile(t, "adam.yaml", "optimizer: adam\nsummary_interval: "+strconv.Itoa(interval))
		out := runMNIST(t, "-config", file, "-summaries", dir, "-epochs", "2", "-batch", "300")
		require.Contains(t, out, "learning rate 0.001,")

		text, err := os.ReadFile(filepath.Join(dir, csvFile))
		require.NoError(t, err)
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		require.NoError(t, err)
		require.Equal(t, []string{"step", "loss", "learning_rate", "global_grad_norm", "grad_norm/w0"}, rows[0][:5])
		text, err = os.ReadFile(filepath.Join(dir, linesFile))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		require.Len(t, lines, len(steps))
		require.Len(t, rows, len(steps)+1)
		for i, step := range steps {
			var line map[string]float64
			require.NoError(t, json.Unmarshal([]byte(lines[i]), &line))
			require.Equal(t, float64(step), line["step"])
			require.Equal(t, 0.001, line["learning_rate"])
			require.Positive(t, line["update_ratio/w2"])
			for k, tag := range rows[0] {
				v, err := strconv.ParseFloat(rows[i+1][k], 64)
				require.NoError(t, err)
				require.Equal(t, line[tag], v, tag)
			}
		}
		events, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
		require.NoError(t, err)
		require.Len(t, events, 1)
		text, err = os.ReadFile(events[0])
		require.NoError(t, err)
		require.Equal(t, len(steps), bytes.Count(text, []byte("global_grad_norm")))
	}
}

// Steps without a finite loss end the run, unless the config lets them be skipped and others are left.
func TestSkippedSteps(t *testing.T) {
	args := []string{"-data", subset, "-epochs", "1", "-config"}
	bad := "optimizer: sgd\nlearning_rate: 1.0e+30\n"
	err := run(append(args, configFile(t, "bad.yaml", bad)), io.Discard, io.Discard)
	require.ErrorContains(t, err, "a smaller learning_rate may help")
	require.Equal(t, 1, exitCode(err))

	file := configFile(t, "skipping.yaml", bad+"skip_non_finite_steps: true")
	r := readReport(t, append(args[2:], file)...)
	require.Positive(t, r.Epochs[0].SkippedSteps)
	require.Contains(t, r.Epochs[0].String(), " steps skipped so far")
	err = run(append(args, file, "-epochs", "2"), io.Discard, io.Discard)
	require.ErrorContains(t, err, "epoch 2: no step had a finite loss")

	file = configFile(t, "few.yaml", bad+"skip_non_finite_steps: true\nmax_skipped_steps: 3")
	require.ErrorContains(t, run(append(args, file), io.Discard, io.Discard), "in step 3 in a row")
}

// An optimizer without a learning rate is trained, too, and none is printed.
func TestConfigWithoutRate(t *testing.T) {
	require.NotContains(t, runMNIST(t, "-config", configFile(t, "cocob.yaml", "optimizer: cocob"), "-epochs", "1"), "learning rate")
}

// Where the config averages weights the test is made with the averages, too, and training goes on as if there had been none.
func TestAveragedAccuracy(t *testing.T) {
	data, err := readData(subset)
	require.NoError(t, err)
	for _, optimizer := range []string{"class: adam, use_ema: true, ema_momentum: 0.9", "class: adam"} {
		file := configFile(t, "average.yaml", "optimizer: {"+optimizer+"}")
		cfg := config{model: "mlp", host: hostGraph, file: file, seed: 4, batch: 100, epochs: 2}
		tr, err := newTrainer(cfg, data)
		require.NoError(t, err)
		defer tr.close()
		first, err := tr.evaluate()
		require.NoError(t, err)
		require.Nil(t, first.WeightsAccuracy, "nothing was trained yet")
		var last epochResult
		l := tr.training(cfg.epochs, func(int) *progress { return &progress{} }, func(r epochResult) error { last = r; return nil })
		require.NoError(t, l.Run(t.Context()))
		plain, err := newTrainer(cfg, data)
		require.NoError(t, err)
		defer plain.close()
		for range 2 {
			plain.shuffle()
			for part := range batches(plain.order, cfg.batch) {
				_, err := plain.train(part)
				require.NoError(t, err)
			}
		}
		require.True(t, sameWeights(allWeights(plain.model), allWeights(tr.model)))

		own, err := plain.accuracy(data.test)
		require.NoError(t, err)
		if optimizer == "class: adam" {
			require.Equal(t, accuracies{TestAccuracy: own}, last.accuracies)
			require.NotContains(t, last.String(), "average")
			continue
		}
		require.NoError(t, plain.updater.AssignAverages())
		averages, err := plain.accuracy(data.test)
		require.NoError(t, err)
		require.NotEqual(t, own, averages)
		require.Equal(t, accuracies{averages, &own}, last.accuracies)
	}
}

// Both accuracies are in the lines and in the report.
func TestReportOfAverages(t *testing.T) {
	args := []string{"-config", "configs/ranger.yaml", "-epochs", "2"}
	require.Regexp(t, `epoch 2: .*test accuracy \d\d\.\d\d % with averaged weights \(\d\d\.\d\d % without averaging\)\n`+
		`test accuracy \d\d\.\d\d % with averaged weights \(\d\d\.\d\d % without averaging\)\n$`, runMNIST(t, args...))
	r := readReport(t, args...)
	require.NotNil(t, r.WeightsAccuracy)
	require.Equal(t, r.accuracies, r.Epochs[1].accuracies)
	require.NotEqual(t, *r.WeightsAccuracy, r.TestAccuracy)
}
