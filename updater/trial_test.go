package updater

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
	"optimop/solvers/schedule"
)

// trial is a model, a config and what happens in its training.
type trial struct {
	vars     []variable
	data     []int // the variable whose shape each input has
	losses   []lossOf
	cfg      map[string]any // as in a file, but for updater_opts
	entries  []someVars     // updater_opts
	runs     []oneRun
	form     string // of the text of the config
	expanded bool
	rule     bool // Go's Config has the optimizer as a rule
}

type variable struct {
	name  string
	dt    tensor.Dtype
	shape tensor.Shape
	start []float64
}

// lossOf is a sum of terms, with the variables that it is to train.
type lossOf struct {
	vars  []int
	terms []term
}

// term is a part of a loss: Σ c·w, Σ (w−c)², Σ c·w², Σ tanh(c·w), or Σ c·w times Σ d·(the variable with).
type term struct {
	form          string
	v, with, c, d int
}

// someVars is one of updater_opts; byNode is whether Go names its variables by themselves.
type someVars struct {
	pattern
	options map[string]any
	byNode  bool
}

type pattern struct {
	match string
	fits  func(name string) bool
}

type oneRun struct {
	rate *float64 // to be set before
	init bool     // the state is set back before
	data [][]float64
}

var varNames = []string{"enc/w", "enc/bias", "dec/w1", "dec/w?", "top"}

var patterns = []pattern{
	{"top", func(s string) bool { return s == "top" }},
	{"*", func(s string) bool { return s == "top" }},
	{"enc/*", func(s string) bool { return strings.HasPrefix(s, "enc/") }},
	{"*/bias", func(s string) bool { return s == "enc/bias" }},
	{"dec/w?", func(s string) bool { return strings.HasPrefix(s, "dec/w") }},
	{"dec/w[0-9]", func(s string) bool { return s == "dec/w1" }},
	{"/w/", func(s string) bool { return strings.Contains(s, "w") }},
	{"/^dec|s$/", func(s string) bool { return s[0] == 'd' || path.Base(s) == "bias" }},
	{"/./", func(string) bool { return true }},
}

// file is the config as a file has it.
func (tr *trial) file() map[string]any {
	c, list := maps.Clone(tr.cfg), []any{}
	for _, e := range tr.entries {
		o := maps.Clone(e.options)
		o["match"] = e.match
		list = append(list, o)
	}
	if len(list) > 0 {
		c["updater_opts"] = list
	}
	return c
}

// text is the config in one of the forms that are read.
func (tr *trial) text() ([]byte, error) {
	switch tr.form {
	case "YAML":
		return yaml.Marshal(tr.file())
	case "Config as JSON":
		return json.Marshal(tr.config(nil))
	}
	return json.Marshal(tr.file())
}

// config is the config in Go. With vars, entries may name them by themselves.
func (tr *trial) config(vars G.Nodes) (c Config) {
	set := func(to reflect.Value, key string, v any) {
		for i := range to.NumField() {
			if to.Type().Field(i).Tag.Get("json") != key {
				continue
			}
			f := to.Field(i)
			switch {
			case f.Type() == scheduleType:
				f.Set(reflect.ValueOf(scheduleOf(v)))
			case f.Kind() == reflect.Pointer:
				f.Set(reflect.New(f.Type().Elem()))
				f.Elem().Set(reflect.ValueOf(v).Convert(f.Type().Elem()))
			default:
				f.Set(reflect.ValueOf(v).Convert(f.Type()))
			}
			return
		}
		panic(key)
	}
	for k, v := range tr.cfg {
		if s, ok := v.(map[string]any); ok && k == "learning_rate" {
			c.LearningRateSchedule = scheduleOf(s)
			continue
		}
		set(reflect.ValueOf(&c).Elem(), k, v)
	}
	if vars != nil && tr.rule {
		o := maps.Clone(tr.complete(nil))
		class := o["class"].(string)
		delete(o, "class")
		c.Optimizer = must(solvers.FromConfig(class, o))
	}
	for _, e := range tr.entries {
		o := VarOptions{Match: e.match}
		if e.byNode && vars != nil {
			o.Match = ""
			for i, v := range vars {
				if e.fits(tr.vars[i].name) {
					o.Vars = append(o.Vars, v)
				}
			}
		}
		for k, v := range e.options {
			set(reflect.ValueOf(&o).Elem(), k, v)
		}
		c.UpdaterOpts = append(c.UpdaterOpts, o)
	}
	return c
}

// scheduleOf makes a schedule in Go.
func scheduleOf(v any) schedule.Schedule {
	o := v.(map[string]any)
	x := func(key string) float64 { return number(o[key], 0) }
	switch o["class"] {
	case "exponential_decay":
		return schedule.NewExponentialDecay(x("initial"), x("decay_steps"), x("decay_rate"))
	case "noam":
		return schedule.NewNoam(int(x("d_model")), int(x("warmup_steps")), func(n *schedule.Noam) { n.Factor = x("factor") })
	}
	return schedule.NewIntervalDecay(1, int(x("interval")), x("decay"))
}

// graph is a trial's model.
type graph struct {
	losses, vars, data G.Nodes
}

func (tr *trial) graph() (m graph) {
	g := G.NewGraph()
	for _, v := range tr.vars {
		n := v.input(g, v.name)
		let(n, v, v.start)
		m.vars = append(m.vars, n)
	}
	for i, v := range tr.data {
		m.data = append(m.data, tr.vars[v].input(g, fmt.Sprint("data", i)))
	}
	for _, l := range tr.losses {
		var loss *G.Node
		for _, x := range l.terms {
			c, w := m.data[x.c], m.vars[x.v]
			var one *G.Node
			switch x.form {
			case "linear":
				one = sum(must(G.HadamardProd(c, w)))
			case "distance":
				one = sum(must(G.Square(must(G.Sub(w, c)))))
			case "square":
				one = sum(must(G.HadamardProd(c, must(G.Square(w)))))
			case "tanh":
				one = sum(must(G.Tanh(must(G.HadamardProd(c, w)))))
			case "product":
				other := sum(must(G.HadamardProd(m.data[x.d], m.vars[x.with])))
				one = must(G.Mul(sum(must(G.HadamardProd(c, w))), other))
			}
			if loss == nil {
				loss = one
			} else {
				loss = must(G.Add(loss, one))
			}
		}
		m.losses = append(m.losses, loss)
	}
	return m
}

func (v variable) input(g *G.ExprGraph, name string) *G.Node {
	if v.shape.IsScalar() {
		return G.NewScalar(g, v.dt, G.WithName(name))
	}
	return G.NewTensor(g, v.dt, len(v.shape), G.WithShape(v.shape...), G.WithName(name))
}

func sum(n *G.Node) *G.Node {
	if n.Shape().IsScalar() {
		return n
	}
	return must(G.Sum(n))
}

// value makes numbers a value of a variable's form.
func (v variable) value(x []float64) any {
	var flat any = slices.Clone(x)
	if v.dt == tensor.Float32 {
		short := make([]float32, len(x))
		for i := range x {
			short[i] = float32(x[i])
		}
		flat = short
	}
	if v.shape.IsScalar() {
		return reflect.ValueOf(flat).Index(0).Interface()
	}
	return tensor.New(tensor.WithShape(v.shape...), tensor.WithBacking(flat))
}

func let(n *G.Node, v variable, x []float64) {
	if err := G.Let(n, v.value(x)); err != nil {
		panic(err)
	}
}
