package solvers

import (
	"fmt"
	"reflect"
	"weak"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// params gives parameters names that stay theirs.
type params struct {
	node   map[weak.Pointer[gorgonia.Node]]string
	other  map[gorgonia.ValueGrad]string // that are no nodes and either nameless or, last time, of a name that several had
	form   map[string]form
	serial int      // of the last nameless one
	last   *naming  // that was kept
	built  []string // the names of the model of Build, or of the first step
}

// naming is a list of names. What is done with it may be refused; else it is kept, and is good for the same model again.
type naming struct {
	model  []gorgonia.ValueGrad // nil once it is kept
	names  []string
	twin   []bool
	serial int
	known  []identity // once it is kept
	step   *stepPlan  // of the last step with it
}

// identity is how a parameter is known again: as a node, as another object, or by its own name.
type identity struct {
	node  weak.Pointer[gorgonia.Node]
	other gorgonia.ValueGrad
	own   string
}

// form is what may not change about a parameter.
type form struct {
	dt    tensor.Dtype
	shape tensor.Shape
	rows  bool // of its gradient, which may change
}

// name finds the names of a list of parameters. Those that were seen before keep theirs; a new one takes its own name,
// numbered where another parameter of the list or of the same graph has it.
func (p *params) name(model []gorgonia.ValueGrad) (*naming, error) {
	if p.last != nil && p.again(model) {
		return p.last, nil
	}
	out := &naming{model: model, names: make([]string, len(model)), twin: make([]bool, len(model)), serial: p.serial}
	used := map[string]bool{}
	for i, m := range model {
		if absent(m) {
			return nil, errors.Errorf("solvers: parameter %d is nil", i)
		} else if !identifiable(reflect.ValueOf(m)) {
			return nil, errors.Errorf("solvers: parameter %d is a %T, which has no identity; hand over a pointer", i, m)
		}
		name, ok := p.known(m)
		if !ok {
			continue
		}
		if used[name] {
			return nil, errors.Errorf("solvers: parameter %q is listed twice", name)
		}
		out.names[i], out.twin[i], used[name] = name, asNode(m) == nil, true
	}
	first := map[string]int{}
	onGraph := p.onGraphs()
	for i, m := range model {
		if out.names[i] != "" {
			continue
		}
		base, n := ownName(m), asNode(m)
		for k := 1; out.names[i] == ""; k++ {
			try := numbered(base, k)
			if base == "" {
				out.serial++
				try = numbered("param", out.serial)
			}
			if !used[try] && (base == "" || n == nil || !onGraph[place{try, n.Graph()}]) {
				out.names[i], used[try] = try, true
			}
		}
		if j, twice := first[base]; twice && base != "" {
			out.twin[i], out.twin[j] = n == nil, asNode(model[j]) == nil
		} else {
			first[base] = i
		}
	}
	return out, nil
}

// again reports whether a model is that of the last naming, for which name would find the same names. Nodes and nameless
// parameters have to be the same ones; of others only the names count.
func (p *params) again(model []gorgonia.ValueGrad) bool {
	known := p.last.known
	if len(model) != len(known) {
		return false
	}
	for i, m := range model {
		if n := asNode(m); n != nil {
			if known[i].node.Value() != n {
				return false
			}
			continue
		}
		switch k := &known[i]; {
		case k.other != nil:
			if m != k.other {
				return false
			}
		case k.own == "" || absent(m) || !identifiable(reflect.ValueOf(m)) || ownName(m) != k.own || p.other[m] != "":
			return false
		}
	}
	return true
}

// train is keep for the model of a step.
func (p *params) train(n *naming) {
	p.keep(n)
	if p.built == nil {
		p.built = n.names
	}
}

// keep remembers names from now on.
func (p *params) keep(n *naming) {
	n.step = nil
	if n == p.last {
		return
	}
	if p.node == nil {
		p.node, p.other, p.form = map[weak.Pointer[gorgonia.Node]]string{}, map[gorgonia.ValueGrad]string{}, map[string]form{}
	}
	p.prune()
	p.serial = n.serial
	n.known = make([]identity, len(n.model))
	for i, m := range n.model {
		if node := asNode(m); node != nil {
			n.known[i].node = weak.Make(node)
			p.node[n.known[i].node] = n.names[i]
		} else if own := ownName(m); n.twin[i] || own == "" {
			n.known[i].other, p.other[m] = m, n.names[i]
		} else {
			n.known[i].own = own
		}
	}
	p.last = n
	for i, m := range n.model {
		if name, ok := p.known(m); ok && name != n.names[i] { // it is listed twice, which name refuses from now on
			p.last = nil
		}
	}
	n.model = nil
}

// known is the name that a parameter got before.
func (p *params) known(m gorgonia.ValueGrad) (name string, ok bool) {
	if n := asNode(m); n != nil {
		name, ok = p.node[weak.Make(n)]
	} else {
		name, ok = p.other[m]
	}
	return name, ok
}

// place is where a name is taken.
type place struct {
	name  string
	graph *gorgonia.ExprGraph
}

// onGraphs are the names of the nodes that are known.
func (p *params) onGraphs() map[place]bool {
	taken := map[place]bool{}
	for w, name := range p.node {
		if n := w.Value(); n != nil {
			taken[place{name, n.Graph()}] = true
		}
	}
	return taken
}

// prune forgets nodes that nobody holds any more: whoever builds a graph for each step leaves many. Of ValueGrads that are
// wrapped anew for each step it cannot know, so it bounds their number.
func (p *params) prune() {
	for m := range p.other {
		if len(p.other) > 2*len(p.form)+1024 && ownName(m) != "" {
			delete(p.other, m)
		}
	}
	if len(p.node) < 2*len(p.form)+64 {
		return
	}
	for w := range p.node {
		if w.Value() == nil {
			delete(p.node, w)
		}
	}
}

// check refuses a parameter whose form is not that of before.
func (p *params) check(name string, f form) error {
	if old, ok := p.form[name]; ok && (old.dt != f.dt || !old.shape.Eq(f.shape)) {
		return errors.Errorf("solvers: parameter %q is %v of shape %v, but was %v of shape %v", name, f.dt, f.shape, old.dt, old.shape)
	}
	return nil
}

// identifiable is Value.Comparable, which allocates memory at each call.
func identifiable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !identifiable(v.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Interface:
		return v.IsNil() || identifiable(v.Elem())
	case reflect.Array:
		return v.Comparable()
	}
	return v.Type().Comparable()
}

func asNode(m gorgonia.ValueGrad) *gorgonia.Node {
	n, _ := m.(*gorgonia.Node)
	return n
}

// noName is the Name of a nameless input: it prints its missing operation.
var noName = fmt.Sprintf("%s()", gorgonia.Op(nil))

// ownName is the name that the user gave, or "".
func ownName(m gorgonia.ValueGrad) string {
	if n := asNode(m); n != nil {
		name := n.Name()
		if n.Op() == nil && name == noName && n.Graph() != nil && n.Graph().ByName(name) == nil {
			return ""
		}
		return name
	}
	if n, ok := m.(interface{ Name() string }); ok {
		return n.Name()
	}
	return ""
}
