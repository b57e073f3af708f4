package graphops

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Assign copies a value of the same dtype and shape into the state. A number that is illegal for a counter or a hyperparameter is
// an error, and nothing is changed then.
func (st *State) Assign(v gorgonia.Value) error {
	if err := st.Takes(v); err != nil {
		return err
	}
	if err := Copy(st.value, v); err != nil {
		return errors.Wrapf(err, "graphops: %q", st.name)
	}
	return st.rebind()
}

// AssignAdd adds a value of the same dtype and shape to the state.
func (st *State) AssignAdd(v gorgonia.Value) error { return st.combine(v, Expr.Add) }

// AssignSub subtracts a value of the same dtype and shape from the state.
func (st *State) AssignSub(v gorgonia.Value) error { return st.combine(v, Expr.Sub) }

// Takes reports what keeps Assign from giving the state a value.
func (st *State) Takes(v gorgonia.Value) error {
	m, err := memoryOf(v)
	switch {
	case err != nil:
		return errors.Wrapf(err, "graphops: %q", st.name)
	case v.Dtype() != st.value.Dtype() || !m.shape.Eq(st.value.Shape()):
		return errors.Errorf("graphops: %q is %v of shape %v, not %v of shape %v", st.name, st.value.Dtype(), st.value.Shape(), v.Dtype(), v.Shape())
	case st.kind == Slot:
		return nil
	}
	if x := m.Scalar(); st.kind == Counter && !(x >= 0 && x < 1<<53) {
		return errors.Errorf("graphops: counter %q cannot be %v", st.name, x)
	}
	return st.Accepts(m.Scalar())
}

// combine makes the sum, in the state's dtype, beside the state, and then assigns it.
func (st *State) combine(v gorgonia.Value, f func(a, b Expr) Expr) error {
	old, err := st.Value()
	if err != nil {
		return err
	}
	if v == nil || v.Dtype() != old.Dtype() || !v.Shape().Eq(old.Shape()) {
		return st.Takes(v)
	}
	g := gorgonia.NewGraph()
	a := gorgonia.NewTensor(g, old.Dtype(), len(old.Shape()), gorgonia.WithShape(old.Shape()...), gorgonia.WithName("a"))
	b := gorgonia.NewTensor(g, old.Dtype(), len(old.Shape()), gorgonia.WithShape(old.Shape()...), gorgonia.WithName("b"))
	of := Of
	if old.Dtype() == tensor.Int64 {
		of = ScalarOf
	}
	plan, err := Compile([]Update{{a, f(of(a), of(b))}})
	if err != nil {
		return errors.Wrapf(err, "graphops: %q", st.name)
	}
	sum, err := gorgonia.CloneValue(old)
	if err != nil {
		return err
	}
	values := make([]gorgonia.Value, len(plan.Leaves()))
	for i, n := range plan.Leaves() {
		values[i] = map[*gorgonia.Node]gorgonia.Value{a: sum, b: v}[n]
	}
	if err := plan.Run(values); err != nil {
		return errors.Wrapf(err, "graphops: %q", st.name)
	}
	return st.Assign(sum)
}
