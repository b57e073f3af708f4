package graphops

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// refusal is a code that must be 0.
type refusal struct {
	code    Expr
	explain func(code float64) error
}

// Refuse evaluates a scalar expression in each run, before anything is written. Where it is not 0 (NaN is not), the run fails
// with the error of explain and writes nothing at all, no counter either, whatever When says. Of several codes the first in
// the order of the options that is not 0 counts. The code may hold reductions, so a condition over all elements of a tensor
// costs a pass over it: what the new values reduce as well is computed once.
func Refuse(code Expr, explain func(code float64) error) CommitOpt {
	return func(c *commitConfig) { c.refuse = append(c.refuse, refusal{code, explain}) }
}

func (r refusal) check() error {
	switch err := r.code.Err(); {
	case err != nil:
		return errors.Wrap(err, "graphops: Refuse")
	case !r.code.IsScalar():
		return errors.Errorf("graphops: Refuse needs a scalar code, not one of shape %v", r.code.Shape())
	case r.explain == nil:
		return errors.New("graphops: Refuse needs a function that explains the code")
	}
	return nil
}

// refused is the error of a run whose code was not 0.
func (r refusal) refused(code float64) (err error) {
	defer rescue(&err, "Refuse")
	if err = r.explain(code); err == nil {
		err = errors.Errorf("graphops: the run was refused with code %v", code)
	}
	return err
}

// Before calls f at the start of each run of the commit or plan, after the values were found and checked and before anything
// is computed from them. An error fails the run. f may change slots and counters of the store in place (State.Set,
// Store.Reset, the elements of State.Value), and the run sees what it wrote; it stays written also where the run then fails.
// f must not bind other values to nodes, nor run the plan. Several functions are called in the order of the options.
//
// It is for what cannot be said as an update, such as setting all slots back now and then. The nodes of the graph that the new
// values read, such as gradients, have been computed before; with Expanded those of the new values themselves come after,
// and the values are checked last.
func Before(f func() error) CommitOpt {
	return func(c *commitConfig) {
		if f != nil {
			c.before = append(c.before, f)
		}
	}
}

// callAll calls functions until one fails.
func callAll(fs []func() error) (err error) {
	defer rescue(&err, "Before")
	for _, f := range fs {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// beforeOp calls the functions of Before in an expanded commit, where the commit itself comes after the nodes of the new values.
type beforeOp struct {
	op
	commit *commitOp
	calls  []func() error
}

// separate takes the functions of Before out of the options and makes a node of them.
func (c *commitConfig) separate(on *gorgonia.Node, commit *commitOp) (gorgonia.Nodes, error) {
	if len(c.before) == 0 {
		return nil, nil
	}
	o := &beforeOp{newOp("before", gorgonia.Nodes{on}, tensor.Float64, tensor.ScalarShape()), commit, c.before}
	c.before, commit.before = nil, o
	n, err := apply(o, &o.op, false, on)
	return gorgonia.Nodes{n}, err
}

func (o *beforeOp) Do(...gorgonia.Value) (gorgonia.Value, error) {
	if c := o.commit; c.node != nil && !c.inert && c.training {
		if err := callAll(o.calls); err != nil {
			return nil, err
		}
	}
	return gorgonia.NewF64(0), nil
}
