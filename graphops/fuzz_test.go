package graphops

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// expect finds what is in memory after a run, or that the run fails.
func (r *randomPlan) expect(d *direct) (after map[*buffer]*buffer, fails bool) {
	after = map[*buffer]*buffer{}
	for _, l := range r.cells {
		after[l.buffer] = l.clone()
	}
	var written []*cell
	for i, u := range r.updates {
		if r.when[i].x != nil && d.eval(r.when[i].x)[0] == 0 {
			continue
		}
		l, v := r.of(u.Target), d.eval(u.Value.x)
		if l.i64 != nil && (v[0] != math.Trunc(v[0]) || math.Abs(v[0]) > 1<<53) ||
			slices.ContainsFunc(written, l.overlaps) {
			return nil, true
		}
		written = append(written, l)
		for k, at := range l.at {
			after[l.buffer].set(at, v[k])
		}
	}
	return after, false
}

func (r *randomPlan) of(n *G.Node) *cell {
	return r.cells[slices.IndexFunc(r.cells, func(l *cell) bool { return l.node == n })]
}

func runOn(p *Plan, value func(*G.Node) G.Value) error {
	var in []G.Value
	for _, n := range p.Leaves() {
		in = append(in, value(n))
	}
	return p.Run(in)
}

// direct evaluates the expressions of the plan; what adds is evaluated by another plan, and checked.
func (r *randomPlan) direct() (*direct, error) {
	d := &direct{memo: map[*expr][]float64{}}
	d.leaf = func(e *expr) []float64 { return r.of(e.node).elements() }
	var err error
	seen := map[*expr]bool{}
	var walk func(e *expr)
	walk = func(e *expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		for _, a := range e.args {
			walk(a)
		}
		if !orderly(e.op) || err != nil {
			return
		}
		n := G.NewScalar(r.g, tensor.Float64, G.WithName(fmt.Sprint("probe", len(seen))))
		if !e.scalar {
			n = G.NewTensor(r.g, e.dt, len(e.shape), G.WithShape(e.shape...), G.WithName(fmt.Sprint("probe", len(seen))))
		}
		probe := newCell(n, 0)
		if err = runOn(must(Compile([]Update{{n, Expr{e}}})), func(l *G.Node) G.Value {
			if l == n {
				return probe.value
			}
			return r.of(l).row().value
		}); err == nil {
			err = d.accept(e, probe.elements())
		}
	}
	for i, u := range r.updates {
		walk(u.Value.x)
		walk(r.when[i].x)
	}
	return d, err
}

// check runs the plan on the values, and on copies of them that share no memory and lie row by row, and compares both with
// what is expected.
func (r *randomPlan) check() error {
	p, err := Compile(r.updates, r.opts...)
	if err != nil {
		return err
	}
	for range 2 {
		d, err := r.direct()
		if err != nil {
			return err
		}
		want, fails := r.expect(d)
		rows := map[*G.Node]*cell{}
		for _, l := range r.cells {
			rows[l.node] = l.row()
		}
		if fails {
			want = map[*buffer]*buffer{}
			for _, l := range r.cells {
				want[l.buffer] = l.clone()
			}
		}
		err = runOn(p, func(n *G.Node) G.Value { return r.of(n).value })
		if (err != nil) != fails {
			return errors.Errorf("the error is %v, where one was expected: %v", err, fails)
		}
		for _, l := range r.cells {
			if err := sameFloats(want[l.buffer].all(), l.all()); err != nil {
				return errors.Wrapf(err, "memory of %s", l.node.Name())
			}
		}
		if fails {
			continue
		}
		if err := runOn(p, func(n *G.Node) G.Value { return rows[n].value }); err != nil {
			return err
		}
		for i, u := range r.updates {
			if p.prog.Written(i) {
				if err := sameFloats(r.of(u.Target).elements(), rows[u.Target].elements()); err != nil {
					return errors.Wrapf(err, "row by row: %s", u.Target.Name())
				}
			}
		}
	}
	return nil
}

func sameFloats(want, got []float64) error {
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) && (want[i] == want[i] || got[i] == got[i]) {
			return errors.Errorf("element %d is %v, not %v", i, got[i], want[i])
		}
	}
	return nil
}

// String lists what is updated.
func (r *randomPlan) String() string {
	var s strings.Builder
	index := map[*expr]int{}
	var list func(e *expr) int
	list = func(e *expr) int {
		if i, ok := index[e]; ok {
			return i
		}
		var args []int
		for _, a := range e.args {
			args = append(args, list(a))
		}
		index[e] = len(index)
		if fmt.Fprintf(&s, "\n%d: %v %v", index[e], e.op, args); !e.scalar {
			fmt.Fprintf(&s, ", %v %v", e.dt, e.shape)
		}
		if e.node != nil {
			fmt.Fprint(&s, " ", nodeName(e.node))
		}
		if e.op == kernel.Const {
			fmt.Fprint(&s, " ", e.value)
		}
		return index[e]
	}
	for i, u := range r.updates {
		value := list(u.Value.x)
		if w := r.when[i].x; w != nil {
			fmt.Fprintf(&s, "\nwhen %d:", list(w))
		}
		fmt.Fprintf(&s, "\n%s becomes %d", nodeName(u.Target), value)
	}
	for _, l := range r.cells {
		fmt.Fprintf(&s, "\n%s: %T at %p, shape %v", l.node.Name(), l.value, l.buffer, l.shape)
		if d, ok := l.value.(*tensor.Dense); ok {
			fmt.Fprint(&s, ", strides ", d.Strides())
		}
	}
	return s.String()
}

// FuzzPlan runs random updates on values of all layouts.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	for i := range 48 {
		f.Add(seeded(i).data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRandomPlan(&choices{data})
		require.NoError(t, r.check(), "%v", r)
	})
}
