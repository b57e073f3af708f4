package updater

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// fragile is a training in which any number can be made not finite: the loss is Σ c·w over some variables, plus d, so that the
// elements of c are the gradients, and d is nothing but a part of the loss.
type fragile struct {
	u       *Updater
	vm      G.VM
	vars, c G.Nodes
	d       *G.Node
	start   *Snapshot
}

// guards are the configs: what looks for numbers that are not finite, if anything does.
var guards = map[string]string{
	"none":  ``,
	"skip":  `, "skip_non_finite_steps": true`,
	"check": `, "debug_add_check_numerics_ops": true, "debug_add_check_numerics_on_output": true`,
}

func newFragile(t *testing.T, optimizer, guard string, dt tensor.Dtype, opts []Option) *fragile {
	g := G.NewGraph()
	f := &fragile{d: inputOf(g, dt, "d", 0.0)}
	sum := f.d
	for i := range 3 {
		x := make([]float64, i+2)
		for k := range x {
			x[k] = math.Sin(float64(i + k))
		}
		w, c := inputOf(g, dt, fmt.Sprintf("w%d", i), x), inputOf(g, dt, fmt.Sprintf("c%d", i), x)
		f.vars, f.c = append(f.vars, w), append(f.c, c)
		sum = must(G.Add(sum, must(G.Sum(must(G.HadamardProd(w, c))))))
	}
	f.u = must(New(sum, f.vars, config(t, fmt.Sprintf(`{"optimizer": %q, "learning_rate": 0.01%s}`, optimizer, guards[guard])), opts...))
	f.vm = must(f.u.NewMachine())
	f.start = must(f.u.Snapshot())
	return f
}

// feed sets the gradients of a step.
func (f *fragile) feed(step int) {
	for i, c := range f.c {
		for k := range c.Shape().TotalSize() {
			poke(c, k, math.Cos(float64(step+7*i+k)))
		}
	}
	poke(f.d, 0, float64(step))
}

// poke changes an element of a node's value in place.
func poke(n *G.Node, at int, v float64) {
	switch x := n.Value().(type) {
	case *G.F64:
		*x = G.F64(v)
	case *G.F32:
		*x = G.F32(v)
	case *tensor.Dense:
		if x.Dtype() == tensor.Float64 {
			x.Float64s()[at] = v
		} else {
			x.Float32s()[at] = float32(v)
		}
	}
}

func (f *fragile) run() error {
	err := f.vm.RunAll()
	f.vm.Reset()
	return err
}

// state is everything, by name, in bits that compare.
func (f *fragile) state(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, x := range must(f.u.Snapshot()).tensors {
		all[x.Name] = fmt.Sprintf("%b", x.Data)
	}
	return all
}

// slots are the names of the float slots of a variable.
func (f *fragile) slots(v *G.Node) (names []string) {
	for _, st := range f.u.OptimizerVars() {
		if st.Kind() == graphops.Slot && st.Param() == v.Name() {
			names = append(names, st.Name())
		}
	}
	return names
}

// fault is what is made not finite, at which step.
type fault struct {
	what string // "gradient", "loss", "slot", "rate"
	v    int    // which variable
	at   int    // which element
	step int
	x    float64
}

// TestInjection makes a number that is not finite of a random gradient, slot, loss or learning rate at a random step, in
// 1,000 cases, with each guard and without one.
func TestInjection(t *testing.T) {
	const steps = 5
	random := rand.New(rand.NewPCG(3, 4))
	built := map[string]*fragile{}
	seen := map[string]int{}
	for range 1000 {
		optimizer := pickOne(random, "adam", "momentum", "rmsprop", "adagrad", "adabelief", "nadam", "lion", "lamb", "adadelta")
		guard, dt, host := pickOne(random, "none", "skip", "check"), pickOne(random, floatTypes...), random.IntN(len(hosts))
		key := fmt.Sprint(optimizer, guard, dt, host)
		f := built[key]
		if f == nil {
			f = newFragile(t, optimizer, guard, dt, hosts[host])
			built[key] = f
		}
		in := fault{pickOne(random, "gradient", "loss", "slot", "rate"), random.IntN(3), 0, random.IntN(steps),
			pickOne(random, math.NaN(), math.Inf(1), math.Inf(-1))}
		in.at = random.IntN(in.v + 2)
		seen[guard+" "+in.what]++
		f.inject(t, guard, in, steps, fmt.Sprintf("%s: %+v", key, in), random)
	}
	require.Len(t, seen, 12)
}

func pickOne[E any](random *rand.Rand, of ...E) E { return of[random.IntN(len(of))] }

// inject makes one case.
func (f *fragile) inject(t *testing.T, guard string, in fault, steps int, msg string, random *rand.Rand) {
	require.NoError(t, f.u.Restore(f.start))
	for step := range in.step {
		f.feed(step)
		require.NoError(t, f.run(), msg)
	}
	sound := must(f.u.Snapshot())
	f.feed(in.step)
	require.NoError(t, f.run())
	want := f.state(t) // with nothing injected
	require.NoError(t, f.u.Restore(sound))
	switch in.what {
	case "gradient":
		poke(f.c[in.v], in.at, in.x)
	case "loss":
		poke(f.d, 0, in.x)
	case "slot":
		st := f.u.Solver().Store().Lookup(pickOne(random, f.slots(f.vars[in.v])...))
		poke(must(st.Node(f.u.graph())), in.at, in.x)
	case "rate":
		require.Error(t, f.u.SetLearningRate(in.x), msg)
		rates := slices.DeleteFunc(f.u.OptimizerVars(), func(st *graphops.State) bool { return !strings.HasSuffix(st.Name(), "/learning_rate") })
		poke(must(rates[0].Node(f.u.graph())), 0, in.x) // past all checks
	}
	before := f.state(t)
	err := f.run()
	after := f.state(t)
	name := f.vars[in.v].Name()
	switch {
	case in.what == "rate":
		require.ErrorContains(t, err, "learning_rate", msg)
		require.Equal(t, before, after, msg)
	case guard == "check":
		require.Error(t, err, msg)
		require.Equal(t, before, after, msg)
		if in.what == "slot" {
			require.ErrorContains(t, err, name, msg)
		}
	case guard == "skip" && in.what != "slot":
		require.NoError(t, err, msg)
		f.requireSkipped(t, in, before, after, msg)
		f.requireSameRest(t, sound, steps-in.step-1, msg)
	default: // as the formula says: only what is of that variable is touched, and by a loss alone nothing
		require.NoError(t, err, msg)
		sick := false
		for key := range want {
			if own := key == name || strings.HasPrefix(key, name+"/"); in.what == "loss" || !own {
				require.Equal(t, want[key], after[key], "%s: %s", msg, key)
			} else {
				sick = sick || strings.Contains(after[key], "NaN") || strings.Contains(after[key], "Inf")
			}
		}
		require.Equal(t, in.what != "loss", sick, msg)
	}
}

// requireSkipped checks that a run named what was not finite, and changed nothing but the counters that say so.
func (f *fragile) requireSkipped(t *testing.T, in fault, before, after map[string]string, msg string) {
	total, _, what, err := f.u.Skipped()
	require.NoError(t, err)
	require.Equal(t, 1, total, msg)
	if in.what == "loss" {
		require.Equal(t, "the loss", what, msg)
	} else { // then the loss is not finite either, unless the weight is 0, and it comes first
		require.Contains(t, []string{"the loss", "the gradient of " + f.vars[in.v].Name()}, what, msg)
	}
	for key := range before {
		if key != globalStep && !strings.HasPrefix(key, "skipped/") {
			require.Equal(t, before[key], after[key], "%s: %s", msg, key)
		}
	}
}

// requireSameRest checks that a training goes on after a skipped step as if that had not been.
func (f *fragile) requireSameRest(t *testing.T, sound *Snapshot, n int, msg string) {
	var ends [2][][]float64
	for i := range ends {
		for step := range n {
			f.feed(100 + step)
			require.NoError(t, f.run(), msg)
		}
		for _, v := range f.vars {
			ends[i] = append(ends[i], slices.Clone(elements(v)))
		}
		require.NoError(t, f.u.Restore(sound))
	}
	require.Equal(t, ends[1], ends[0], msg)
}
