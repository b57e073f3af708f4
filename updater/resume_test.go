package updater

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// resumeCase is a training that is interrupted.
type resumeCase struct {
	name string
	dt   tensor.Dtype
	cfg  Config
	rows int // of the variable w
}

// Steps before and after the interruption, which is amid the accumulation of a third gradient.
const resumeAt, resumeEnd = 8, 15

// resumeBase has all that has a state beside the optimizer.
const resumeBase = `{"learning_rate": 0.01, "accum_grad_multiple_step": 3, "gradient_noise": 0.01, "seed": 5, "weight_decay": 0.01,
	"dynamic_loss_scale": {"initial_scale": 64, "dynamic_growth_steps": 3}, "gradient_clip_global_norm": 3,
	"dynamic_learning_rate": {"interval": 4, "decay": 0.5}}`

// resumeRules are wrappers, with numbers that let them act within a few updates.
func resumeRules() map[string]solvers.Rule {
	adam := func() *solvers.Solver { return solvers.NewAdam() }
	return map[string]solvers.Rule{
		"lookahead": solvers.Lookahead(adam(), func(o *solvers.LookaheadOptions) { o.SyncPeriod = 2 }),
		"ema":       solvers.EMA(adam(), func(o *solvers.EMAOptions) { o.EMAMomentum, o.EMAOverwriteFrequency = .5, 2 }),
		"average":   solvers.MovingAverage(adam(), func(o *solvers.MovingAverageOptions) { o.AverageDecay, o.DynamicDecay = .9, true }),
		"swa":       solvers.SWA(adam(), func(o *solvers.SWAOptions) { o.StartAveraging, o.AveragePeriod = 1, 2 }),
		"map":       solvers.OptimizerMap(adam(), solvers.Route{Pattern: "b", Rule: solvers.NewLion()}),
		"multi": solvers.MultiOptimizer(solvers.Part{Rule: adam(), Params: []string{"w"}},
			solvers.Part{Rule: solvers.NewMomentum(), Params: []string{"w", "b"}}),
		"accumulate": solvers.Accumulate(2, adam()),
		"restrict":   solvers.Chain(solvers.Restrict(solvers.NewClipByNorm(1), "b"), adam()),
		"base": solvers.WithBase(adam(), func(b *solvers.Base) {
			b.UseEMA, b.EMAMomentum, b.GradientAccumulationSteps = true, .9, 3
		}),
		"strict": solvers.WithBase(adam(), func(b *solvers.Base) {
			b.UseEMA, b.EMAMomentum, b.GradientAccumulationSteps, b.KerasStrict = true, .9, 3, true
		}),
		"nested": solvers.Lookahead(solvers.EMA(solvers.Chain(solvers.NewCentralizeGradients(), solvers.NewRAdam())),
			func(o *solvers.LookaheadOptions) { o.SyncPeriod = 2 }),
	}
}

// resumeCases are all of them, in the same order in each process: every registered name and every wrapper, in both dtypes.
func resumeCases(t testing.TB) (all []resumeCase) {
	base := config(t, resumeBase)
	add := func(name string, dt tensor.Dtype, rows int, rule any, ema bool) {
		c := resumeCase{fmt.Sprintf("%s %v %d", name, dt, rows), dt, base, rows}
		if c.cfg.Optimizer = rule; ema {
			c.cfg.UseEMA, c.cfg.EMAMomentum = true, new(.9)
		}
		if name == "base" || name == "strict" { // they accumulate by themselves
			c.cfg.AccumGradMultipleStep = 0
		}
		if key, ok := rule.(string); !ok { // it may have a decay of its own
			c.cfg.WeightDecay = nil
		} else if !hasRate(key) {
			c.cfg.LearningRate, c.cfg.DynamicLearningRate, c.cfg.WeightDecay = nil, nil, nil
		}
		all = append(all, c)
	}
	optimizers := solvers.Optimizers()
	for _, dt := range floatTypes {
		for _, name := range solvers.Names() {
			if testing.Short() && strings.Contains(name, "/") {
				continue // a library's defaults for one of the rules
			}
			if slices.Contains(optimizers, name) {
				add(name, dt, 3, name, true)
				continue
			}
			made := must(solvers.Lookup(name))
			add(name, dt, 3, solvers.Chain(made(), solvers.NewMomentum()), true)
		}
		rules := resumeRules()
		for _, name := range slices.Sorted(mapKeys(rules)) {
			add(name, dt, 3, rules[name], false)
		}
	}
	for _, name := range []string{"adam", "lamb", "adafactor", "novograd", "cocob", "muon", "ranger"} {
		add(name, tensor.Float32, 60_000, name, true) // enough elements that two workers share them, also in sums
	}
	return all
}

// hasRate reports whether an optimizer has a learning rate.
func hasRate(name string) bool {
	_, err := must(solvers.FromConfig(name, nil)).Get(learningRate)
	return err == nil
}

func mapKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// resumable is a training with dropout.
type resumable struct {
	u    *Updater
	vm   G.VM
	feed *G.Node
}

// start makes the training of a case. The numbers that it begins with depend on the seed.
func (c resumeCase) start(t testing.TB, seed int64) *resumable {
	g := G.NewGraph()
	value := func(name string, rows, columns int) *G.Node {
		x := make([]float64, rows*columns)
		for i := range x {
			x[i] = math.Sin(float64(seed) + float64(i))
		}
		v := tensor.New(tensor.Of(c.dt), tensor.WithShape(rows, columns))
		for i := range x {
			if c.dt == tensor.Float32 {
				v.Float32s()[i] = float32(x[i])
			} else {
				v.Float64s()[i] = x[i]
			}
		}
		return G.NewMatrix(g, c.dt, G.WithShape(rows, columns), G.WithName(name), G.WithValue(v))
	}
	x, w, b := value("x", 2, c.rows), value("w", c.rows, 2), value("b", 2, 2)
	out := must(G.Tanh(must(G.Add(must(G.Mul(x, w)), b))))
	out = must(graphops.Dropout(out, .5, must(graphops.NewGenerator(graphops.NewStore(), "dropout", seed))))
	u, err := New(must(G.Sum(must(G.Square(out)))), G.Nodes{w, b}, c.cfg)
	require.NoError(t, err, c.name)
	vm, err := u.NewMachine()
	require.NoError(t, err, c.name)
	return &resumable{u, vm, x}
}

// train makes runs, each with numbers of its step, of which one lets the loss scale back off.
func (r *resumable) train(t testing.TB, from, to int) {
	for step := from; step < to; step++ {
		n := r.feed.Shape().TotalSize()
		for i := range n {
			v := math.Cos(float64(step*(i+1))) / float64(n)
			if step == resumeAt-2 && i == 0 {
				v = math.Inf(1)
			}
			switch x := r.feed.Value().Data().(type) {
			case []float64:
				x[i] = v
			case []float32:
				x[i] = float32(v)
			}
		}
		require.NoError(t, r.vm.RunAll())
		r.vm.Reset()
	}
}

const resumeFolder = "OPTIMOP_TEST_RESUME"

// resumePath is the file of a case.
func resumePath(dir string, i int, what string) string {
	return filepath.Join(dir, fmt.Sprintf("%d.%s", i, what))
}

// TestResumeElsewhere interrupts each training, goes on in another process with another number of workers, and gets the same bits as
// without an interruption.
func TestResumeElsewhere(t *testing.T) {
	dir := os.Getenv(resumeFolder)
	if dir != "" {
		goOn(t, dir)
		return
	}
	quiet(t)
	dir = t.TempDir()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cases := resumeCases(t)
	for i, c := range cases {
		r := c.start(t, 1)
		r.train(t, 0, resumeAt)
		require.NoError(t, r.u.SaveFile(resumePath(dir, i, "interrupted")), c.name)
		r.train(t, resumeAt, resumeEnd)
		require.NoError(t, r.u.SaveFile(resumePath(dir, i, "whole")), c.name)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestResumeElsewhere$", "-test.v", fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Env = append(os.Environ(), resumeFolder+"="+dir, "GOMAXPROCS=2")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for i, c := range cases {
		want, got := must(os.ReadFile(resumePath(dir, i, "whole"))), must(os.ReadFile(resumePath(dir, i, "resumed")))
		require.True(t, bytes.Equal(want, got), c.name)
		require.False(t, bytes.Equal(want, must(os.ReadFile(resumePath(dir, i, "interrupted")))), c.name)
	}
}

// goOn is the other process, in which everything begins with other numbers.
func goOn(t *testing.T, dir string) {
	quiet(t)
	for i, c := range resumeCases(t) {
		r := c.start(t, 7)
		r.train(t, 1, 3)
		require.NoError(t, r.u.LoadFile(resumePath(dir, i, "interrupted"), SameConfig()), c.name)
		r.train(t, resumeAt, resumeEnd)
		require.NoError(t, r.u.SaveFile(resumePath(dir, i, "resumed")), c.name)
	}
}
