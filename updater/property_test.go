package updater

import (
	"bytes"
	"log/slog"
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"pgregory.net/rapid"
)

// What an updater does in the graph is what the formulas say, whatever the config, its form, and the model.
func TestEqualsReference(t *testing.T) {
	quiet(t)
	rapid.Check(t, func(t *rapid.T) { checkTrial(t, drawTrial(t)) })
}

// quiet drops warnings, as of variables that no loss depends on.
func quiet(t testing.TB) {
	old := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(old) })
}

type failer interface {
	Fatalf(format string, args ...any)
}

// checkTrial compares the training by a Config made in Go and by its text with the reference.
func checkTrial(t failer, tr *trial) {
	text, err := tr.text()
	if err != nil {
		t.Fatalf("text: %v", err)
	}
	read, err := ReadConfig(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	ref, a, b := newReference(tr), newTraining(t, tr, nil), newTraining(t, tr, &read)
	for i, r := range tr.runs {
		if r.init {
			ref.init()
		}
		if r.rate != nil {
			ref.rate = *r.rate
		}
		fails := ref.run(r.data)
		if ref.ambiguous {
			return
		}
		for _, x := range []*training{a, b} {
			if err := x.prepare(r); err != nil {
				t.Fatalf("%s\nbefore run %d: %v", text, i, err)
			}
			was := x.state()
			if err := x.run(); fails != (err != nil) {
				t.Fatalf("%s\nrun %d: fails: %v, the error: %v", text, i, fails, err)
			} else if err != nil && !same(was, x.state()) {
				t.Fatalf("%s\nrun %d failed and changed something", text, i)
			}
		}
		if !same(a.state(), b.state()) {
			t.Fatalf("%s\nrun %d: the Config in Go gives\n%v, its text\n%v", text, i, a.state(), b.state())
		}
		a.compare(t, ref, text, i)
		if slices.ContainsFunc(ref.vars, func(v *refVar) bool { return slices.ContainsFunc(v.w, notFinite) }) {
			return // what gradients are now depends on how they are factored
		}
	}
}

// training is an updater of a trial.
type training struct {
	*trial
	graph
	u  *Updater
	vm G.VM
}

func newTraining(t failer, tr *trial, cfg *Config) *training {
	x := &training{trial: tr, graph: tr.graph()}
	nodes := func(vars []int) (out G.Nodes) {
		for _, i := range vars {
			out = append(out, x.graph.vars[i])
		}
		return out
	}
	if cfg == nil {
		c := tr.config(x.graph.vars)
		cfg = &c
	}
	var opts []Option
	if tr.expanded {
		opts = append(opts, Expanded())
	}
	var err error
	if x.u, err = New(x.graph.losses[0], nodes(tr.losses[0].vars), *cfg, opts...); err != nil {
		t.Fatalf("New with %+v: %v", *cfg, err)
	}
	if len(tr.losses) > 1 {
		if err := x.u.AddLoss(x.graph.losses[1], nodes(tr.losses[1].vars)...); err != nil {
			t.Fatalf("AddLoss: %v", err)
		}
	}
	if x.vm, err = x.u.NewMachine(); err != nil {
		t.Fatalf("NewMachine with %+v: %v", *cfg, err)
	}
	return x
}

// prepare does what is to be done before a run.
func (x *training) prepare(r oneRun) error {
	if r.init {
		if err := x.u.InitOptimizerVars(); err != nil {
			return err
		}
	}
	if r.rate != nil {
		if err := x.u.SetLearningRate(*r.rate); err != nil {
			return err
		}
	}
	for i, n := range x.graph.data {
		let(n, x.trial.vars[x.trial.data[i]], r.data[i])
	}
	return nil
}

func (x *training) run() error {
	defer x.vm.Reset()
	return x.vm.RunAll()
}

// state is everything that a run may change.
func (x *training) state() (all []float64) {
	for _, v := range x.graph.vars {
		all = append(all, numbersOf(v)...)
		for _, name := range x.u.SlotNames() {
			all = append(all, numbersOf(x.u.Slot(v, name))...)
		}
	}
	total, row, _, err := x.u.Skipped()
	return append(all, float64(must(x.u.GlobalStep())), float64(must(total, err)), float64(row), must(x.u.LearningRate()))
}

// same compares bits, but for those of NaN.
func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}

// numbersOf are a node's numbers; none if it is nil.
func numbersOf(n *G.Node) (all []float64) {
	if n == nil {
		return nil
	}
	switch v := n.Value().Data().(type) {
	case float64:
		return []float64{v}
	case float32:
		return []float64{float64(v)}
	case []float64:
		return slices.Clone(v)
	case []float32:
		for _, x := range v {
			all = append(all, float64(x))
		}
	}
	return all
}

// compare compares weights, slots and counters with the reference.
func (x *training) compare(t failer, r *reference, text []byte, run int) {
	relative, absolute := 1e-9, 1e-12
	if slices.ContainsFunc(r.vars, func(v *refVar) bool { return v.dt == tensor.Float32 }) {
		relative, absolute = 1e-4, 1e-6
	}
	equal := func(what string, got, want []float64) {
		ok := slices.EqualFunc(got, want, func(a, b float64) bool {
			return a == b || a != a && b != b || math.Abs(a-b) <= absolute+relative*math.Abs(b)
		})
		if !ok {
			t.Fatalf("%s\n%v\nrun %d: %s is\n%v, want\n%v", text, x.u.Table(), run, what, got, want)
		}
	}
	for i, v := range r.vars {
		n := x.graph.vars[i]
		equal(v.name, numbersOf(n), v.w)
		for name, want := range v.slots {
			if slot := x.u.Slot(n, name); slot != nil {
				equal(v.name+"/"+name, numbersOf(slot), want)
			}
		}
		if slot := x.u.Slot(n, "sum"); slot != nil {
			equal(v.name+"/sum", numbersOf(slot), v.sum)
		}
	}
	total, row, what, err := x.u.Skipped()
	equal("the counters", []float64{float64(must(x.u.GlobalStep())), float64(must(total, err)), float64(row), must(x.u.LearningRate())},
		[]float64{float64(r.step), float64(r.total), float64(r.row), r.baseRate(r.losses) * r.dynamic()})
	if what != r.what {
		t.Fatalf("%s\nrun %d: the step was skipped for %q, want %q", text, run, what, r.what)
	}
}
