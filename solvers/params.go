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
	other  map[gorgonia.ValueGrad]string // nameless ones that are no nodes
	form   map[string]form
	serial int
}

// form is what may not change about a parameter.
type form struct {
	dt    tensor.Dtype
	shape tensor.Shape
}

// names finds the names of a list of parameters. Those that were seen before keep theirs; a new one takes its own name,
// numbered where another parameter of the list or of the same graph has it.
func (p *params) names(model []gorgonia.ValueGrad) ([]string, error) {
	if p.node == nil {
		p.node, p.other, p.form = map[weak.Pointer[gorgonia.Node]]string{}, map[gorgonia.ValueGrad]string{}, map[string]form{}
	}
	out := make([]string, len(model))
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
		out[i], used[name] = name, true
	}
	for i, m := range model {
		if out[i] != "" {
			continue
		}
		base, n := ownName(m), asNode(m)
		for k := 1; ; k++ {
			if base == "" {
				p.serial++
				out[i] = numbered("param", p.serial)
			} else {
				out[i] = numbered(base, k)
			}
			if !used[out[i]] && (base == "" || !p.onGraph(n, out[i])) {
				break
			}
		}
		used[out[i]] = true
		switch {
		case n != nil:
			p.prune()
			p.node[weak.Make(n)] = out[i]
		case base == "":
			p.other[m] = out[i]
		}
	}
	return out, nil
}

// known is the name that a parameter got before.
func (p *params) known(m gorgonia.ValueGrad) (name string, ok bool) {
	if n := asNode(m); n != nil {
		name, ok = p.node[weak.Make(n)]
	} else if ownName(m) == "" {
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

// prune forgets nodes that nobody holds any more: whoever builds a graph for each step leaves many.
func (p *params) prune() {
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
