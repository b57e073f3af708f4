package main

import (
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// training is a float32 MLP on one batch of 100 images, and how it makes a step.
type training struct {
	*learner
	m    *model
	step func() error
}

func newTraining(tb testing.TB, host func(*training) error) *training {
	m := newModel(architectures["mlp"], 1)
	g, err := m.graph(m.batch)
	require.NoError(tb, err)
	t := &training{m: m, learner: &learner{graph: g, y: make([]float32, m.batch*classes)}}
	require.NoError(tb, t.addLoss())
	data, err := openData(subset, io.Discard)
	require.NoError(tb, err)
	for numbers := range batches(rand.New(rand.NewPCG(1, 1)).Perm(data.train.len()), m.batch) {
		data.train.gather(numbers, t.x, t.y)
		break
	}
	require.NoError(tb, host(t))
	return t
}

// inGraph is optimop's way: the update is part of the graph.
func inGraph(t *training) error {
	op, err := solvers.NewAdam().Minimize(t.loss, t.vars...)
	if err != nil {
		return err
	}
	vm, err := graphops.NewMachine(op)
	t.vm = vm
	t.step = func() error { return vm.RunAll() }
	return err
}

// gorgoniasWay is that of Gorgonia's examples: dual values and one of its own solvers.
func gorgoniasWay(t *training) error {
	if _, err := gorgonia.Grad(t.loss, t.vars...); err != nil {
		return err
	}
	vm := gorgonia.NewTapeMachine(t.loss.Graph(), gorgonia.BindDualValues(t.vars...))
	solver, grads := gorgonia.NewAdamSolver(), gorgonia.NodesToValueGrads(t.vars)
	t.vm = vm
	t.step = func() error {
		if err := vm.RunAll(); err != nil {
			return err
		}
		defer vm.Reset()
		return solver.Step(grads)
	}
	return nil
}

// Both ways make the same step, apart from rounding.
func TestTrainingsAgree(t *testing.T) {
	ours, theirs := newTraining(t, inGraph), newTraining(t, gorgoniasWay)
	require.NoError(t, ours.step())
	require.NoError(t, theirs.step())
	for i, w := range ours.m.weights {
		require.InDeltaSlice(t, theirs.m.weights[i].Float32s(), w.Float32s(), 1e-6)
	}
}

func BenchmarkTraining(b *testing.B) {
	for name, host := range map[string]func(*training) error{"optimop": inGraph, "gorgonia": gorgoniasWay} {
		b.Run(name, func(b *testing.B) {
			t := newTraining(b, host)
			require.NoError(b, t.step())
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, t.step())
			}
		})
	}
}

// BenchmarkTrainingRatio runs both ways in turn, so that what else the machine does hits both alike, and reports how much
// of Gorgonia's time and memory ours takes: medians over the rounds. Choose their number with -benchtime 50x or so.
func BenchmarkTrainingRatio(b *testing.B) {
	const steps = 10
	ways := [2]*training{newTraining(b, inGraph), newTraining(b, gorgoniasWay)}
	measure := func(t *training) (seconds, bytes float64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		for range steps {
			require.NoError(b, t.step())
		}
		seconds = time.Since(start).Seconds() / steps
		runtime.ReadMemStats(&after)
		return seconds, float64(after.TotalAlloc-before.TotalAlloc) / steps
	}
	measure(ways[0]) // to warm up
	measure(ways[1])
	var timeRatio, bytesRatio, stepTime, stepBytes []float64
	for round := 0; b.Loop(); round++ {
		var seconds, bytes [2]float64
		for i := range ways {
			way := (i + round) % 2 // each goes first in every other round
			seconds[way], bytes[way] = measure(ways[way])
		}
		timeRatio, bytesRatio = append(timeRatio, seconds[0]/seconds[1]), append(bytesRatio, bytes[0]/bytes[1])
		stepTime, stepBytes = append(stepTime, seconds[0]), append(stepBytes, bytes[0])
	}
	median := func(s []float64) float64 { slices.Sort(s); return s[len(s)/2] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(timeRatio), "time-ratio")
	b.ReportMetric(median(bytesRatio), "bytes-ratio")
	b.ReportMetric(1e3*median(stepTime), "ms/step")
	b.ReportMetric(median(stepBytes), "B/step")
}
