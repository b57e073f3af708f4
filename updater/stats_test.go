package updater

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/updater/summary"
)

func euclid(x ...float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

// The numbers are those of plain arithmetic: norms of the raw gradients, ratios of the processed ones.
func TestSummaryValues(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32} {
		for _, opts := range [][]Option{nil, {Expanded()}} {
			l := newLinear(dt, initial{"w", []float64{1, 2}}, initial{"b", 4.}, initial{"zero", 0.})
			u := must(New(l.loss, l.vars, config(t, `{"learning_rate": 0.5, "summary_interval": 1, "dynamic_learning_rate": {"interval": 2, "decay": 0.5},
				"updater_opts": [{"match": "w", "gradient_clip": 5, "tags": ["t", "both"]}, {"match": "*", "tags": "both"}, {"match": "b", "accum_grad_multiple_step": 2}]}`), opts...))
			vm := must(u.NewMachine())
			near := func(want map[string]float64) {
				t.Helper()
				got := tags(t, u)
				require.Equal(t, len(want), len(got), got)
				for tag, x := range want {
					require.InDelta(t, x, got[tag], 1e-6*max(1, x), tag)
					require.InDelta(t, x, floats(u.SummaryNode(tag))[0], 1e-6*max(1, x), tag)
				}
			}
			l.run(t, vm, []float64{3, -8}, 2., 0.)
			near(map[string]float64{
				"loss": 3*1 - 8*2 + 2*4, "learning_rate": .5, "global_grad_norm": euclid(3, 8, 2),
				"global_norm_for_tag_t": euclid(3, 8), "global_norm_for_tag_both": euclid(3, 8, 2),
				"grad_norm/w": euclid(3, 8), "grad_mean/w": -2.5, "grad_max/w": 8, "clip_ratio/w": euclid(3, 5) / euclid(3, 8), "update_ratio/w": .5 * euclid(3, 5) / euclid(1, 2),
				"grad_norm/b": 2, "grad_mean/b": 2, "grad_max/b": 2, "clip_ratio/b": 1, "update_ratio/b": 0, // accumulates
				"grad_norm/zero": 0, "grad_mean/zero": 0, "grad_max/zero": 0, "clip_ratio/zero": 1, "update_ratio/zero": 0,
			})
			w := []float64{1 - 1.5, 2 + 2.5}
			l.run(t, vm, []float64{0, 1}, -6., 7.)
			near(map[string]float64{
				"loss": w[1] - 6*4, "learning_rate": .25, "global_grad_norm": euclid(1, 6, 7),
				"global_norm_for_tag_t": 1, "global_norm_for_tag_both": euclid(1, 6, 7),
				"grad_norm/w": 1, "grad_mean/w": .5, "grad_max/w": 1, "clip_ratio/w": 1, "update_ratio/w": .25 / euclid(w...),
				"grad_norm/b": 6, "grad_mean/b": -6, "grad_max/b": 6, "clip_ratio/b": 1, "update_ratio/b": .25 * 4 / 4, // the sum is −4
				"grad_norm/zero": 7, "grad_mean/zero": 7, "grad_max/zero": 7, "clip_ratio/zero": 1, "update_ratio/zero": 0, // what was 0 has no ratio
			})
		}
	}
}

// The moments are of gradients after accumulation and before clips, and of the variables' values before the run.
func TestDebugGradSummaries(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", []float64{1, 2}}, initial{"b", 4.})
	u := must(New(l.loss, l.vars, config(t, `{"gradient_clip": 0.5, "accum_grad_multiple_step": 2, "updater_opts": [{"match": "w", "debug_grad_summaries": true}]}`)))
	vm := must(u.NewMachine())
	l.run(t, vm, []float64{3, -8}, 2.)
	l.run(t, vm, []float64{1, -4}, 2.)
	want := map[string]float64{
		"global_grad_norm": euclid(1, 4, 2), // of the last run alone
		"grads/w_mean":     -4, "grads/w_stddev": 8, "grads/w_rms": euclid(4, 12) / math.Sqrt2, "grads/w_l2": euclid(4, 12), "grads/w_max": 4, "grads/w_min": -12,
		"vars/w_mean": 1.5, "vars/w_stddev": .5, "vars/w_rms": euclid(1, 2) / math.Sqrt2, "vars/w_l2": euclid(1, 2), "vars/w_max": 2, "vars/w_min": 1,
	}
	got := tags(t, u)
	require.Equal(t, len(want), len(got))
	for tag, x := range want {
		require.InDelta(t, x, got[tag], 1e-12, tag)
	}
}

// What the config asks for, and in which runs.
func TestSummaryInterval(t *testing.T) {
	for text, c := range map[string]struct {
		every int
		tags  []string
	}{
		`{}`:                       {0, nil},
		`{"log_grad_norm": true}`:  {1, []string{"global_grad_norm"}},
		`{"log_grad_norm": 2}`:     {1, []string{"global_grad_norm"}},
		`{"log_grad_norm": false}`: {0, nil},
		`{"summary_interval": 3}`:  {3, nil},
		`{"optimizer": "cocob", "summary_interval": 2}`:  {2, nil},
		`{"log_grad_norm": true, "summary_interval": 4}`: {4, nil},
		`{"debug_grad_summaries": true, "summary_interval": 0, "updater_opts": [{"match": "w", "debug_grad_summaries": false}]}`: {0, nil},
	} {
		l := newLinear(tensor.Float64, initial{"w", 1.})
		u := must(New(l.loss, l.vars, config(t, text)))
		_, ok, err := u.Summary()
		require.NoError(t, err)
		require.False(t, ok)
		vm := must(u.NewMachine())
		last := math.NaN()
		for step := range 9 {
			l.run(t, vm, float64(step+1))
			r, ok, err := u.Summary()
			require.NoError(t, err)
			on := c.every > 0 && step%c.every == 0
			require.Equal(t, on, ok, text)
			if on {
				require.Equal(t, step, r.Step)
				last = float64(step + 1)
			}
			if c.tags != nil {
				require.Len(t, r.Values, len(c.tags))
			}
			if n := u.SummaryNode("global_grad_norm"); c.every > 0 {
				require.Equal(t, last, floats(n)[0], text)
			} else {
				require.Nil(t, n)
			}
			require.Nil(t, u.SummaryNode("nonsense"))
		}
		require.Equal(t, strings.Contains(text, "summary_interval") && c.every > 0 && !strings.Contains(text, "cocob"), u.SummaryNode("learning_rate") != nil, text)
	}
}

// The numbers of a run go to files of all three forms.
func TestSummaryWriters(t *testing.T) {
	l := newLinear(tensor.Float64, initial{"w", []float64{1, 2}})
	u := must(New(l.loss, l.vars, config(t, `{"summary_interval": 2}`)))
	vm := must(u.NewMachine())
	dir := t.TempDir()
	var table, lines bytes.Buffer
	asTable, asLines := summary.NewCSV(&table), summary.NewJSONLines(&lines)
	events, err := summary.TensorBoardFile(dir)
	require.NoError(t, err)
	var norms []float64
	for step := range 5 {
		x := float64(step)
		l.run(t, vm, []float64{x, 2 * x})
		r, ok, err := u.Summary()
		require.NoError(t, err)
		if !ok {
			continue
		}
		norms = append(norms, euclid(x, 2*x))
		for _, w := range []summary.Writer{asTable, asLines, events} {
			require.NoError(t, w.Write(r))
		}
	}
	require.NoError(t, events.Close())
	require.Len(t, norms, 3)
	rows, err := csv.NewReader(&table).ReadAll()
	require.NoError(t, err)
	column := slices.Index(rows[0], "global_grad_norm")
	texts := strings.Split(strings.TrimSpace(lines.String()), "\n")
	require.Len(t, texts, 3)
	require.Len(t, rows, 4)
	for i, norm := range norms {
		row := rows[i+1]
		require.Equal(t, strconv.Itoa(2*i), row[0])
		require.Equal(t, strconv.FormatFloat(norm, 'g', -1, 64), row[column])
		var object map[string]float64
		require.NoError(t, json.Unmarshal([]byte(texts[i]), &object))
		require.Equal(t, float64(2*i), object["step"])
		require.Equal(t, norm, object["global_grad_norm"])
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	data, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(data, []byte("update_ratio/w")))
}

// BenchmarkSummaries is what summaries cost in runs that compute none, in percent of such runs without them: the median of pairs
// of runs, each in both orders. Nearly all of the work is that of the update.
func BenchmarkSummaries(b *testing.B) {
	for _, c := range []struct{ vars, elements int }{{1, 1 << 20}, {16, 1 << 14}, {16, 1 << 8}} {
		b.Run(fmt.Sprintf("%dx%d", c.vars, c.elements), func(b *testing.B) {
			without, with := summed(b, c.vars, c.elements, 0), summed(b, c.vars, c.elements, 1<<40)
			run := func(vm G.VM) float64 {
				begin := time.Now()
				require.NoError(b, vm.RunAll())
				took := time.Since(begin)
				vm.Reset()
				return float64(took)
			}
			var ratios []float64
			for b.Loop() {
				first := run(with) / run(without)
				second := 1 / run(without)
				ratios = append(ratios, math.Sqrt(first*second*run(with)))
			}
			slices.Sort(ratios)
			b.ReportMetric(100*(ratios[len(ratios)/2]-1), "%more")
		})
	}
}

// summed is a machine that trains variables with Adam and a clip, after its first run, which is on the interval.
func summed(b *testing.B, vars, elements, interval int) G.VM {
	g := G.NewGraph()
	var loss *G.Node
	var all G.Nodes
	for i := range vars {
		w := G.NewVector(g, G.Float32, G.WithShape(elements), G.WithName(fmt.Sprint("w", i)), G.WithInit(G.Ones()))
		x := G.NewVector(g, G.Float32, G.WithShape(elements), G.WithName(fmt.Sprint("x", i)), G.WithInit(G.Ones()))
		term := must(G.Sum(must(G.HadamardProd(w, x))))
		if loss != nil {
			term = must(G.Add(loss, term))
		}
		loss, all = term, append(all, w)
	}
	u := must(New(loss, all, Config{Optimizer: "adam", GradientClipGlobalNorm: 1, SummaryInterval: interval}))
	vm := must(u.NewMachine())
	require.NoError(b, vm.RunAll())
	vm.Reset()
	return vm
}
