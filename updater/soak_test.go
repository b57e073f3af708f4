package updater

import (
	"bytes"
	"flag"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

var soakSteps = flag.Int("soak", 3000, "how many steps TestSoak makes")

const soakConfig = `{
	"optimizer": {"class": "adam", "beta2": 0.99}, "learning_rate": 0.01, "dynamic_learning_rate": {"interval": 1000, "decay": 0.999},
	"accum_grad_multiple_step": 2, "gradient_clip_global_norm": 1, "weight_decay": 0.01, "use_ema": true, "ema_momentum": 0.99,
	"skip_non_finite_steps": true, "dynamic_loss_scale": {"initial_scale": 64, "dynamic_growth_steps": 500}, "summary_interval": 100}`

// soaked is a linear model with dropout: Σ (m∘(x·w) − y)²/4, where m is the mask. It can be built with more that the reference has not.
type soaked struct {
	u       *Updater
	vm      G.VM
	w, x, y *G.Node
	mask    G.Value // of the last run
}

func newSoaked(t *testing.T, text string) *soaked {
	g := G.NewGraph()
	ones := inputOf(g, tensor.Float64, "ones", []float64{1, 1, 1, 1})
	n := &soaked{w: inputOf(g, tensor.Float64, "w", []float64{.5, -.5, 1}), y: inputOf(g, tensor.Float64, "y", make([]float64, 4))}
	n.x = G.NewMatrix(g, tensor.Float64, G.WithShape(4, 3), G.WithName("x"), G.WithInit(G.Zeroes()))
	mask := must(graphops.Dropout(ones, .25, must(graphops.NewGenerator(graphops.NewStore(), "mask", 3))))
	read := G.Read(mask, &n.mask) // Gorgonia writes over the mask later in the run
	diff := must(G.Sub(must(G.HadamardProd(must(G.Mul(n.x, n.w)), mask)), n.y))
	n.u = must(New(must(G.Mean(must(G.Square(diff)))), G.Nodes{n.w}, config(t, text)))
	n.vm = must(n.u.NewMachine(read))
	return n
}

// feed sets the batch of a step. Now and then one is not finite, in the first and in the second run of a group.
func (n *soaked) feed(step int) (bad bool) {
	x, y := n.x.Value().Data().([]float64), n.y.Value().Data().([]float64)
	for i := range x {
		x[i] = math.Sin(float64(step*(i+3)) + float64(i))
	}
	for i := range y {
		y[i] = x[3*i] - 2*x[3*i+1] + .5*x[3*i+2] + .3*math.Cos(float64(step+i))
	}
	if bad = step%1001 == 999; bad {
		y[step%4] = math.NaN()
	}
	return bad
}

// soakReference is the same training in plain Go.
type soakReference struct {
	w, m, v, sum, average [3]float64
	t                     int // updates
}

// step trains on a batch with a mask.
func (r *soakReference) step(step int, bad bool, x, y, mask []float64) {
	var g [3]float64
	for i, t := range y {
		pred := 0.0
		for k := range g {
			pred += x[3*i+k] * r.w[k]
		}
		for k := range g {
			g[k] += 2. / 4 * (pred*mask[i] - t) * mask[i] * x[3*i+k]
		}
	}
	if step%2 == 0 {
		r.sum = [3]float64{} // also where the run is skipped
	}
	switch {
	case bad:
		return
	case step%2 == 0:
		r.sum = g
		return
	}
	norm := math.Sqrt(g[0]*g[0] + g[1]*g[1] + g[2]*g[2]) // of the last run alone
	r.t++
	rate := .01 * math.Pow(.999, float64(step%1000))
	for k := range g {
		d := (r.sum[k] + g[k]) * min(1, 1/norm)
		r.w[k] -= r.w[k] * .01 * rate
		r.m[k] = .9*r.m[k] + .1*d
		r.v[k] = .99*r.v[k] + .01*d*d
		r.w[k] -= rate * r.m[k] / (1 - math.Pow(.9, float64(r.t))) / (math.Sqrt(r.v[k]/(1-math.Pow(.99, float64(r.t)))) + 1e-8)
		r.average[k] = .99*r.average[k] + .01*r.w[k]
	}
	if r.t == 1 {
		r.average = r.w
	}
}

// residentBytes is how much memory the process has, 0 where that cannot be said.
func residentBytes() float64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(string(bytes.Fields(text)[1]))
	if err != nil {
		return 0
	}
	return float64(pages * os.Getpagesize())
}

// TestSoak trains for long with everything on, beside a reference: the numbers stay those of the reference, memory and goroutines
// stay as they are. A second training, with noise too, is saved and loaded now and then.
// `go test ./updater -run TestSoak -soak 200000 -v` makes 200,000 steps.
func TestSoak(t *testing.T) {
	quiet(t)
	if *soakSteps >= 100_000 { // so that what the collector keeps in reserve does not hide, or pretend, a growth
		defer debug.SetGCPercent(debug.SetGCPercent(20))
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(8 << 20))
	}
	n, noisy := newSoaked(t, soakConfig), newSoaked(t, soakConfig[:len(soakConfig)-1]+`, "gradient_noise": 0.01, "seed": 5}`)
	ref := &soakReference{w: [3]float64{.5, -.5, 1}}
	skips, goroutines, resident, worst := 0, 0, 0., 0.
	path := t.TempDir() + "/state"
	for step := range *soakSteps {
		bad := n.feed(step)
		noisy.feed(step)
		require.NoError(t, n.vm.RunAll())
		ref.step(step, bad, n.x.Value().Data().([]float64), n.y.Value().Data().([]float64), n.mask.Data().([]float64))
		if bad {
			skips++
		}
		require.NoError(t, noisy.vm.RunAll())
		if step%100 == 0 {
			_, _, err := n.u.Summary()
			require.NoError(t, err)
			require.NoError(t, noisy.u.SaveFile(path))
			require.NoError(t, noisy.u.LoadFile(path))
		}
		n.vm.Reset()
		noisy.vm.Reset()
		if step%50 == 1 && ref.t > 0 {
			worst = max(worst, distance(ref.w, elements(n.w)), distance(ref.average, elements(n.u.Slot(n.w, "average"))))
			require.Less(t, worst, 1e-9, step)
		}
		if step == *soakSteps/10 {
			goroutines, resident = runtime.NumGoroutine(), residentBytes()
		}
	}
	total, _, what, err := n.u.Skipped()
	require.NoError(t, err)
	require.Equal(t, skips, total)
	require.Equal(t, "the loss", what)
	for i := 0; i < 100 && runtime.NumGoroutine() > goroutines; i++ {
		time.Sleep(10 * time.Millisecond) // one that ran a machine may be about to end
	}
	require.Less(t, runtime.NumGoroutine(), goroutines+runtime.GOMAXPROCS(0), "but for the workers of the kernel, which come when there is work")
	end := residentBytes()
	most := 1.05
	if *soakSteps < 100_000 {
		most = 1.2 // what other tests left is given back by and by
	}
	require.LessOrEqual(t, end, most*resident)
	t.Logf("%d steps, %d of them skipped; the parameters are within %.2g of the reference; %.1f MB at 10 %%, %.1f MB at the end",
		*soakSteps, skips, worst, resident/1e6, end/1e6)
}

func distance(want [3]float64, got []float64) (most float64) {
	for k, x := range got {
		most = max(most, math.Abs(x-want[k]))
	}
	return most
}
