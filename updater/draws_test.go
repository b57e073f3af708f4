package updater

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"gorgonia.org/tensor"
	"pgregory.net/rapid"
)

// draws draws a trial. What it draws is always legal.
type draws struct {
	*rapid.T
	*trial
	mean  bool     // accumulation takes the mean
	usual []string // forms of terms
}

func pick[E any](d draws, what string, of ...E) E { return rapid.SampledFrom(of).Draw(d.T, what) }

// rarely is true once in n times, and not in the least of trials.
func (d draws) rarely(n int, what string) bool { return rapid.IntRange(1, n).Draw(d.T, what) == n }

// maybe gives a key a value once in n times.
func maybe[E any](d draws, o map[string]any, n int, key string, of ...E) {
	if d.rarely(n, key+"?") {
		o[key] = pick(d, key, of...)
	}
}

func drawTrial(t *rapid.T) *trial {
	tr := &trial{cfg: map[string]any{}, form: rapid.SampledFrom([]string{"JSON", "YAML", "Config as JSON"}).Draw(t, "form")}
	d := draws{T: t, trial: tr}
	tr.expanded = d.rarely(5, "expanded")
	d.mean = d.rarely(3, "mean")
	d.model()
	d.config()
	for range rapid.IntRange(1, 7).Draw(t, "runs") {
		d.run()
	}
	return tr
}

// numbers are eighths, so that sums of the first gradients are exact in float32, too.
func (d draws) numbers(n int, what string) []float64 {
	x := make([]float64, n)
	for i, k := range rapid.SliceOfN(rapid.IntRange(-20, 20), n, n).Draw(d.T, what) {
		x[i] = float64(k) / 8
	}
	return x
}

func (d draws) model() {
	n := rapid.IntRange(1, 5).Draw(d.T, "variables")
	names := rapid.Permutation(varNames).Draw(d.T, "names")[:n]
	dtypes := []tensor.Dtype{pick(d, "dtype", tensor.Float64, tensor.Float32)}
	first := n // variables of the first loss
	if n > 1 && d.rarely(4, "two losses") {
		first = rapid.IntRange(1, n-1).Draw(d.T, "first")
		dtypes = append(dtypes, pick(d, "second dtype", tensor.Float64, tensor.Float32))
	}
	d.usual = []string{"linear", "distance", "square", "tanh", "product"}
	if dtypes[0] != dtypes[len(dtypes)-1] { // Gorgonia merges constants of both dtypes
		d.usual = []string{"linear", "product"}
	}
	for k, dt := range dtypes {
		l := lossOf{}
		from, to := 0, first
		if k == 1 {
			from, to = first, n
		}
		for i := from; i < to; i++ {
			shape := tensor.Shape(rapid.SliceOfN(rapid.IntRange(1, 3), 0, 3).Draw(d.T, "shape"))
			d.vars = append(d.vars, variable{names[i], dt, shape, d.numbers(shape.TotalSize(), "start")})
			l.vars = append(l.vars, i)
		}
		for i := from; i < to; i++ {
			for range rapid.IntRange(0, 2).Draw(d.T, "terms") {
				d.term(&l, i)
			}
		}
		if len(l.terms) == 0 {
			d.term(&l, from)
		}
		if k == 1 && dt == dtypes[0] && d.rarely(2, "shared") {
			l.vars = append(l.vars, 0)
			d.term(&l, 0)
		}
		d.losses = append(d.losses, l)
	}
}

func (d draws) term(l *lossOf, i int) {
	x := term{form: pick(d, "term", d.usual...), v: i, c: len(d.data)}
	d.data = append(d.data, i)
	if x.form == "product" {
		x.with, x.d = pick(d, "with", l.vars...), len(d.data)
		d.data = append(d.data, x.with)
	}
	l.terms = append(l.terms, x)
}

func (d draws) run() {
	r := oneRun{init: d.rarely(8, "init")}
	if _, fixed := d.cfg["learning_rate"].(map[string]any); !fixed && d.rarely(5, "set learning rate") {
		r.rate = new(pick(d, "rate", .13, .01, 0))
	}
	for i, v := range d.data {
		x := d.numbers(d.vars[v].shape.TotalSize(), "data")
		isTanh := func(t term) bool { return t.form == "tanh" && t.c == i }
		if slices.ContainsFunc(d.losses, func(l lossOf) bool { return slices.ContainsFunc(l.terms, isTanh) }) { // where it is not flat
			for k := range x {
				x[k] /= 4
			}
		}
		if d.rarely(15, "not finite") {
			x[rapid.IntRange(0, len(x)-1).Draw(d.T, "where")] = pick(d, "value", math.NaN(), math.Inf(1), math.Inf(-1))
		}
		r.data = append(r.data, x)
	}
	d.runs = append(d.runs, r)
}

func (d draws) config() {
	c := d.cfg
	maybe(d, c, 4, "preset", "tf1", "returnn")
	if d.rarely(2, "optimizer?") {
		c["optimizer"] = d.optimizer("")
	}
	d.settings(c)
	if d.rarely(2, "learning_rate?") {
		c["learning_rate"] = pick[any](d, "learning_rate", .1, .03, .27, .1, .03, schedules[0], schedules[1])
	}
	maybe(d, c, 4, "dynamic_learning_rate", append(schedules[:], map[string]any{"interval": 3, "decay": .5})...)
	if maybe(d, c, 3, "decouple_constraints", true); c["decouple_constraints"] != nil {
		maybe(d, c, 3, "decouple_constraints_factor", 1.0, .4)
	}
	if maybe(d, c, 4, "skip_non_finite_steps", true); c["skip_non_finite_steps"] != nil {
		maybe(d, c, 2, "max_skipped_steps", 1, 2, 3)
	}
	for range rapid.IntRange(0, 3).Draw(d.T, "updater_opts") {
		var fit []pattern
		for _, p := range patterns {
			if slices.ContainsFunc(d.losses[0].vars, func(i int) bool { return p.fits(d.vars[i].name) }) {
				fit = append(fit, p)
			}
		}
		p := rapid.SampledFrom(fit)
		e := someVars{pattern: p.Draw(d.T, "match"), options: map[string]any{}, byNode: d.rarely(4, "by node")}
		o := e.options
		d.settings(o)
		maybe(d, o, 3, "tags", []string{"a"}, []string{"b"}, []string{"a", "b"})
		maybe(d, o, 3, "l2", .0137, .041, 0)
		maybe(d, o, 4, "learning_rate_multiplier", .5, 3, 0)
		maybe(d, o, 4, "weight_decay_multiplier", .5, 3, 0)
		if d.rarely(3, "optimizer?") {
			o["optimizer"] = d.optimizer(d.complete(nil)["class"].(string))
		}
		d.entries = append(d.entries, e)
	}
	d.prune()
	if d.has("epsilon") {
		maybe(d, c, 4, "optimizer_epsilon", 1e-16, 1e-3)
	}
	if d.has("momentum") {
		maybe(d, c, 4, "momentum", .5, .8)
	}
	d.rule = d.canBeRule() && d.rarely(2, "rule")
}

var schedules = [...]map[string]any{
	{"class": "exponential_decay", "initial": .2, "decay_steps": 2.5, "decay_rate": .7},
	{"class": "noam", "d_model": 4, "warmup_steps": 3, "factor": .6},
}

// settings are those that the config and updater_opts have in common.
func (d draws) settings(o map[string]any) {
	if d.mean {
		maybe(d, o, 4, "gradient_accumulation_steps", 2, 3, 0)
	} else {
		maybe(d, o, 4, "accum_grad_multiple_step", 2, 3, 1, 0)
	}
	maybe(d, o, 5, "gradient_clip", .37, 1.7, 0)
	maybe(d, o, 5, "gradient_clip_norm", .83, 3.1, 0)
	maybe(d, o, 5, "gradient_clip_avg_norm", .21, 1.3, 0)
	maybe(d, o, 4, "gradient_clip_global_norm", .71, 4.3, 0)
	maybe(d, o, 4, "gradient_nan_inf_filter", true, false)
	maybe(d, o, 4, "grad_norm_to_clip_to_zero", 6.31, 1.37, 0)
	maybe(d, o, 4, "global_norm_tag", "a", "b", "")
	maybe(d, o, 4, "gradient_clip_global_norm_tag", "a", "b", "")
}

// prune drops tags that nobody has or that nothing goes by, which are errors.
func (d draws) prune() {
	all := []map[string]any{d.cfg}
	for _, e := range d.entries {
		all = append(all, e.options)
	}
	on := func(key string) bool {
		return slices.ContainsFunc(all, func(o map[string]any) bool { return number(o[key], 0) != 0 })
	}
	clip, zero := on("gradient_clip_global_norm"), on("grad_norm_to_clip_to_zero")
	for _, o := range all {
		for key, read := range map[string]bool{"global_norm_tag": clip || zero, "gradient_clip_global_norm_tag": clip} {
			t, _ := o[key].(string)
			known := slices.ContainsFunc(all, func(e map[string]any) bool {
				tags, _ := e["tags"].([]string)
				return slices.Contains(tags, t)
			})
			if t != "" && !(read && known) {
				delete(o, key)
			}
		}
	}
}

// has reports whether an optimizer of the config has an option.
func (d draws) has(key string) bool {
	_, has := d.trial.optimizer(nil)[key]
	for _, e := range d.entries {
		_, own := d.trial.optimizer(e.options["optimizer"])[key]
		has = has || own
	}
	return has
}

// canBeRule reports whether Go can give the config's optimizer as a rule: that takes nothing from the config,
// and is not the same as one by name.
func (d draws) canBeRule() bool {
	for _, key := range []string{"preset", "optimizer_epsilon", "momentum"} {
		if d.cfg[key] != nil {
			return false
		}
	}
	for _, e := range d.entries {
		choice := e.options["optimizer"]
		if o, ok := choice.(map[string]any); ok && o["class"] == nil || choice != nil && reflect.DeepEqual(d.complete(choice), d.complete(nil)) {
			return false
		}
	}
	o, _ := d.cfg["optimizer"].(map[string]any)
	_, scheduled := o["momentum"].(map[string]any)
	return !scheduled && o["learning_rate_multiplier"] == nil
}

// optimizer draws a choice. One beside a config's class may leave out its own.
func (d draws) optimizer(beside string) any {
	class := pick(d, "class", "sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop", "amsgrad", "returnn/sgd", "returnn/nadam",
		"returnn/amsgrad", "tf1/adam", "tf1/adagrad", "tf1/rmsprop", "tf1/adadelta")
	without := beside != "" && d.rarely(4, "without class")
	if without {
		class = beside
	}
	o := map[string]any{"class": class}
	for _, x := range []struct {
		key string
		of  []any
	}{
		{"momentum", []any{.5, .9, 0.0, map[string]any{"class": "exponential_decay", "initial": .9, "decay_steps": 2, "decay_rate": .5}}},
		{"nesterov", []any{true, false}}, {"beta1", []any{.5, .8, 0.0}}, {"beta2", []any{.9, .99}}, {"rho", []any{.5, .8}},
		{"epsilon", []any{1e-8, 1e-3, .1}}, {"epsilon_hat", []any{true, false}}, {"weight_decay", []any{.3, .1}}, {"decay", []any{true}},
		{"centered", []any{true}}, {"initial_accumulator_value", []any{.1, 1.0}},
	} {
		if _, has := refClass(d.cfg["preset"], class)[x.key]; has {
			maybe(d, o, 2, x.key, x.of...)
		}
	}
	maybe(d, o, 4, "learning_rate_multiplier", .5, 3.0)
	switch {
	case without:
		delete(o, "class")
	case len(o) == 1 && d.rarely(2, "by name"):
		return pick(d, "spelling", class, fmt.Sprint(class, "Optimizer"))
	}
	return o
}
