package updater

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// reference trains a trial in plain float64, by the formulas of RETURNN's updater. Nothing in it is this module's code.
type reference struct {
	*trial
	vars  []*refVar
	rate  float64 // that was set for all optimizers, or NaN
	first float64 // which the decoupled decay is relative to
	step  int
	total int // skipped steps
	row   int // of them, just now
	what  string

	ambiguous bool // rounding decides what follows
}

type refVar struct {
	variable
	w, sum []float64
	group  int // of runs, that sum is of
	t      int // updates
	slots  map[string][]float64

	moved         bool      // w is not what it was at the start
	size, sumSize []float64 // of what the gradient, and sum, are the sums of, where that is rounded
}

func newReference(tr *trial) *reference {
	r := &reference{trial: tr, rate: number(tr.cfg["learning_rate"], math.NaN())}
	for _, v := range tr.vars {
		r.vars = append(r.vars, &refVar{variable: v, w: slices.Clone(v.start), size: make([]float64, len(v.start))})
	}
	r.init()
	r.first = r.baseRate(tr.losses[:1])
	return r
}

// init sets the state of the optimizers back.
func (r *reference) init() {
	for i, v := range r.vars {
		v.sum, v.sumSize, v.group, v.t, v.slots = make([]float64, len(v.w)), make([]float64, len(v.w)), -1, 0, map[string][]float64{}
		for name, fill := range r.optimizer(i).slots() {
			v.slots[name] = slices.Repeat([]float64{fill}, len(v.w))
		}
	}
}

// of is a setting of a variable: that of the last updater_opts that fit it and have one, else that of the config.
func (r *reference) of(i int, key string) any {
	for _, e := range slices.Backward(r.entries) {
		if v, ok := e.options[key]; ok && e.fits(r.vars[i].name) {
			return v
		}
	}
	if r.cfg[key] == any("") { // the same as none
		return nil
	}
	return r.cfg[key]
}

func (r *reference) number(i int, key string) float64 { return number(r.of(i, key), 0) }

func number(v any, absent float64) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int:
		return float64(v)
	case bool:
		if v {
			return 1
		}
		return 0
	}
	return absent
}

// at is a number in the run of a global step: one that stays, or follows a schedule.
func at(v any, step int) float64 {
	o, ok := v.(map[string]any)
	if !ok {
		return number(v, math.NaN())
	}
	x, s := func(key string) float64 { return number(o[key], math.NaN()) }, float64(step)
	switch o["class"] {
	case nil:
		return math.Pow(x("decay"), math.Mod(s, x("interval")))
	case "exponential_decay":
		return x("initial") * math.Pow(x("decay_rate"), s/x("decay_steps"))
	case "noam":
		return x("factor") * math.Pow(x("d_model"), -.5) * min(math.Pow(s+1, -.5), (s+1)*math.Pow(x("warmup_steps"), -1.5))
	}
	return math.NaN()
}

// baseRate is the learning rate of the next run, without multipliers, of an updater of some losses: that of the config's optimizer, or of
// the first one, in the order of the variables, that a variable with a gradient uses.
func (r *reference) baseRate(losses []lossOf) float64 {
	use := map[string]bool{}
	var all []int
	for i := range r.vars {
		for _, l := range losses {
			if slices.Contains(l.vars, i) {
				all = append(all, i)
			}
			penalized := slices.Contains(l.vars, i) && r.l2(i) != 0 && r.cfg["decouple_constraints"] != true
			use[r.optimizerKey(i)] = use[r.optimizerKey(i)] || l.has(i) || penalized
		}
	}
	all = slices.DeleteFunc(all, func(i int) bool { return !use[r.optimizerKey(i)] })
	for _, i := range all {
		if reflect.DeepEqual(r.complete(r.of(i, "optimizer")), r.complete(nil)) {
			return r.rateOf(r.optimizer(i))
		}
	}
	return r.rateOf(r.optimizer(all[0]))
}

// has reports whether a loss depends on a variable.
func (l lossOf) has(i int) bool {
	return slices.ContainsFunc(l.terms, func(x term) bool { return x.v == i || x.form == "product" && x.with == i })
}

// optimizerKey is the same for variables that share an optimizer.
func (r *reference) optimizerKey(i int) string {
	n, mean := max(1, r.number(i, "accum_grad_multiple_step")), r.number(i, "gradient_accumulation_steps")
	rate, decay := number(r.of(i, "learning_rate_multiplier"), 1), number(r.of(i, "weight_decay_multiplier"), 1)
	return fmt.Sprint(r.complete(r.of(i, "optimizer")), rate, decay, n, mean)
}

func (r *reference) rateOf(o refOptimizer) float64 {
	if s, ok := r.cfg["learning_rate"].(map[string]any); ok {
		return at(s, r.step)
	}
	if !math.IsNaN(r.rate) {
		return r.rate
	}
	return o.number("learning_rate")
}

func (r *reference) dynamic() float64 {
	if v, ok := r.cfg["dynamic_learning_rate"]; ok {
		return at(v, r.step)
	}
	return 1
}

// l2 is the factor of a variable's penalty.
func (r *reference) l2(i int) float64 {
	return r.number(i, "l2") * number(r.of(i, "weight_decay_multiplier"), 1)
}

// run is one run; it reports whether that fails, and then nothing has changed.
func (r *reference) run(data [][]float64) (fails bool) {
	losses, grads := r.gradients(data)
	if r.cfg["skip_non_finite_steps"] == true {
		if bad := r.notFinite(losses, grads); bad != "" {
			if k := r.cfg["max_skipped_steps"]; k != nil && r.row+1 >= k.(int) {
				return true
			}
			r.total, r.row, r.what, r.step = r.total+1, r.row+1, bad, r.step+1
			return false
		}
		r.row = 0
	}
	for i, g := range grads {
		if g == nil {
			continue
		}
		if g = r.accumulate(i, g); g != nil {
			g = r.process(i, g, grads)
			r.decay(i)
			r.update(i, g)
			r.vars[i].moved = true
		}
	}
	r.step++
	return false
}

func notFinite(x float64) bool { return x-x != 0 }

// notFinite names the first loss or gradient that is not finite.
func (r *reference) notFinite(losses []float64, grads [][]float64) string {
	for _, l := range losses {
		if notFinite(l) {
			return "the loss"
		}
	}
	for i, g := range grads {
		if slices.ContainsFunc(g, notFinite) {
			return "the gradient of " + r.vars[i].name
		}
	}
	return ""
}

// accumulate is nil in a run that only accumulates.
func (r *reference) accumulate(i int, g []float64) []float64 {
	v, mean := r.vars[i], int(r.number(i, "gradient_accumulation_steps"))
	n := max(mean, int(r.number(i, "accum_grad_multiple_step")))
	if n < 2 {
		return g
	}
	if v.group != r.step/n {
		clear(v.sum)
		clear(v.sumSize)
	}
	v.group = r.step / n
	for k := range g {
		v.sum[k] += g[k]
		v.sumSize[k] += v.size[k]
	}
	r.cancels(v.sum, v.sumSize)
	if r.step%n != n-1 {
		return nil
	}
	out := slices.Clone(v.sum)
	for k := range out {
		if mean > 0 {
			out[k] /= float64(n)
		}
	}
	return out
}

// globalNorm is the norm of the raw gradients, or of those of the variables with a tag.
func (r *reference) globalNorm(tag string, grads [][]float64) float64 {
	var all []float64
	for i, g := range grads {
		has := tag == ""
		for _, e := range r.entries {
			tags, _ := e.options["tags"].([]string)
			has = has || slices.Contains(tags, tag) && e.fits(r.vars[i].name)
		}
		if has {
			all = append(all, g...)
		}
	}
	return norm(all)
}

func norm(g []float64) float64 {
	s := 0.0
	for _, x := range g {
		s += x * x
	}
	return math.Sqrt(s)
}

// process is the post-processing of one gradient, of which the global norms are those of the raw ones.
func (r *reference) process(i int, g []float64, raw [][]float64) []float64 {
	g = slices.Clone(g)
	each := func(f func(x float64) float64) {
		for k := range g {
			g[k] = f(g[k])
		}
	}
	tag, _ := r.of(i, "global_norm_tag").(string)
	clipTag, ok := r.of(i, "gradient_clip_global_norm_tag").(string)
	if !ok {
		clipTag = tag
	}
	if c := r.number(i, "gradient_clip"); c != 0 {
		each(func(x float64) float64 { return max(min(x, c), -c) })
	}
	if c := r.number(i, "gradient_clip_norm"); c != 0 {
		n := norm(g)
		each(func(x float64) float64 { return x * c / max(n, c) })
	}
	if c := r.number(i, "gradient_clip_avg_norm"); c != 0 {
		n := norm(g)
		each(func(x float64) float64 { return x * c * min(float64(len(g))/n, 1/c) })
	}
	if c := r.number(i, "gradient_clip_global_norm"); c != 0 {
		n := r.globalNorm(clipTag, raw)
		f := c * min(1/n, 1/c)
		if math.IsInf(n, 0) {
			f = math.NaN()
		}
		each(func(x float64) float64 { return x * f })
	}
	if r.number(i, "gradient_nan_inf_filter") != 0 {
		each(func(x float64) float64 {
			if notFinite(x) {
				return 0
			}
			return x
		})
	}
	if c := r.number(i, "grad_norm_to_clip_to_zero"); c != 0 {
		n := r.globalNorm(tag, raw)
		r.ambiguous = r.ambiguous || math.Abs(n-c) < 1e-3*c
		if notFinite(n) || n > c {
			clear(g)
		}
	}
	return g
}

// decay is the decoupled penalty.
func (r *reference) decay(i int) {
	f := 2 * r.l2(i)
	if r.cfg["decouple_constraints"] != true || f == 0 {
		return
	}
	if d, ok := r.cfg["decouple_constraints_factor"].(float64); ok {
		rate := r.first
		if now := r.rateOf(nil); !math.IsNaN(now) {
			rate = now
		}
		f *= d * rate * r.dynamic() / r.first
	}
	for k, w := range r.vars[i].w {
		r.vars[i].w[k] = (1 - f) * w
	}
}
