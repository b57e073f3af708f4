package solvers

import (
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
	serial int // of the last nameless one
}

// naming is a list of names that is not kept yet, as what is done with it may still be refused.
type naming struct {
	model  []gorgonia.ValueGrad
	names  []string
	twin   []bool
	serial int
}

// form is what may not change about a parameter.
type form struct {
	dt    tensor.Dtype
	shape tensor.Shape
}

// name finds the names of a list of parameters. Those that were seen before keep theirs; a new one takes its own name,
// numbered where another parameter of the list or of the same graph has it.
func (p *params) name(model []gorgonia.ValueGrad) (*naming, error) {
	out := &naming{model: model, names: make([]string, len(model)), twin: make([]bool, len(model)), serial: p.serial}
	used := map[string]bool{}
	for i, m := range model {
		if v := reflect.ValueOf(m); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, errors.Errorf("solvers: parameter %d is nil", i)
		} else if !v.Comparable() {
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
			if !used[try] && (base == "" || !p.onGraph(n, try)) {
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

// keep remembers names from now on.
func (p *params) keep(n *naming) {
	if p.node == nil {
		p.node, p.other, p.form = map[weak.Pointer[gorgonia.Node]]string{}, map[gorgonia.ValueGrad]string{}, map[string]form{}
	}
	p.prune()
	p.serial = n.serial
	for i, m := range n.model {
		if node := asNode(m); node != nil {
			p.node[weak.Make(node)] = n.names[i]
		} else if n.twin[i] || ownName(m) == "" {
			p.other[m] = n.names[i]
		}
	}
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

// onGraph reports whether another node of n's graph has the name.
func (p *params) onGraph(n *gorgonia.Node, name string) bool {
	for w, k := range p.node {
		if o := w.Value(); k == name && o != nil && n != nil && o.Graph() == n.Graph() {
			return true
		}
	}
	return false
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

func asNode(m gorgonia.ValueGrad) *gorgonia.Node {
	n, _ := m.(*gorgonia.Node)
	return n
}

// ownName is the name that the user gave, or "". A nameless node's Name prints its missing operation.
func ownName(m gorgonia.ValueGrad) string {
	if n := asNode(m); n != nil {
		if n.Op() == nil && n.Graph() != nil && n.Graph().ByName(n.Name()) == nil {
			return ""
		}
		return n.Name()
	}
	if n, ok := m.(interface{ Name() string }); ok {
		return n.Name()
	}
	return ""
}
