package solvers

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Averager is a rule that keeps averages of the weights: EMA, MovingAverage and SWA. They are its slot "average"; its number
// "seen" for the parameter is 0 as long as there is none.
type Averager interface {
	Rule
	Averages() // does nothing
}

// UseAverages puts the averages of the weights (see Averager) into the parameters, for evaluation, until restore puts the
// weights back, bit for bit. In between training through the solver, by Step or an optim op, is an error and changes nothing, and so is
// UseAverages; Store().Locked() tells whoever would save the parameters. The averages themselves stay what they are. It needs
// memory for a copy of the parameters.
//
//	restore, err := solver.UseAverages(w0, w1)
//	if err != nil { … }
//	defer restore()
//
// The parameters are nodes (for gorgonia.Nodes, gorgonia.NodesToValueGrads(nodes)...) or whatever Step takes, in any order; values are written in place. Of several averages of a parameter
// the outermost wrapper's counts. A parameter without one stays as it is; that none has one is an error. A second
// restore does nothing.
func (s *Solver) UseAverages(model ...gorgonia.ValueGrad) (restore func() error, err error) {
	pairs, err := s.averages(model)
	if err != nil {
		return nil, err
	}
	if err := exchange(pairs); err != nil {
		return nil, err
	}
	s.store.Lock(errors.New("solvers: the parameters hold averages of the weights: call what UseAverages returned before training goes on"))
	return func() error {
		if pairs == nil {
			return nil
		}
		back := slices.Clone(pairs)
		for i, p := range back {
			v, err := valueOf(p.param, p.name)
			if err != nil {
				return err
			}
			back[i].dst, back[i].src = v, p.weights
		}
		if err := exchange(back); err != nil {
			return err
		}
		pairs = nil
		s.store.Lock(nil)
		return nil
	}, nil
}

// WithAverages runs something, such as an evaluation, between UseAverages and its end, also if it fails or panics.
func (s *Solver) WithAverages(run func() error, model ...gorgonia.ValueGrad) (err error) {
	if run == nil {
		return errors.New("solvers: there is nothing to run with the averages: the function is nil")
	}
	restore, err := s.UseAverages(model...)
	if err != nil {
		return err
	}
	defer func() {
		if e := restore(); err == nil {
			err = e
		}
	}()
	return run()
}

// AssignAverages makes the averages of the weights the parameters, for good (Keras' finalize_variable_values, Addons'
// assign_average_vars). Slots and counters stay, so that training can go on from there. See UseAverages for the model.
func (s *Solver) AssignAverages(model ...gorgonia.ValueGrad) error {
	pairs, err := s.averages(model)
	if err != nil {
		return err
	}
	return exchange(pairs)
}

// HasAverages reports whether one of the parameters has an average of its weights by now, so that UseAverages has something to put in.
func (s *Solver) HasAverages(model ...gorgonia.ValueGrad) (bool, error) {
	if err := s.Err(); err != nil {
		return false, err
	}
	named, err := s.params.name(model)
	if err != nil {
		return false, err
	}
	for _, name := range named.names {
		if average, err := s.averageOf(name); average != nil || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// averaged is a parameter with its average.
type averaged struct {
	name     string
	param    gorgonia.ValueGrad
	dst, src gorgonia.Value
	weights  gorgonia.Value // what dst was
}

// averages finds the parameters that have an average.
func (s *Solver) averages(model []gorgonia.ValueGrad) (pairs []averaged, err error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	if why := s.store.Locked(); why != nil {
		return nil, why
	}
	if !slices.ContainsFunc(s.rules, func(r *ruleInfo) bool { _, ok := r.rule.(Averager); return ok }) {
		return nil, errors.New("solvers: no rule of the solver averages weights: wrap one in EMA, MovingAverage or SWA")
	}
	named, err := s.params.name(model)
	if err != nil {
		return nil, err
	}
	for i, m := range model {
		name := named.names[i]
		src, err := s.averageOf(name)
		if err != nil {
			return nil, err
		}
		if src == nil {
			continue
		}
		dst, err := valueOf(m, name)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, averaged{name: name, param: m, dst: dst, src: src})
	}
	if pairs == nil {
		return nil, errors.New("solvers: none of the parameters has an average of its weights yet: " +
			"that comes with steps of EMA, MovingAverage or SWA, or with the option use_ema")
	}
	return pairs, nil
}

// averageOf is the average of a parameter, or nil.
func (s *Solver) averageOf(param string) (gorgonia.Value, error) {
	for _, r := range s.rules {
		if _, ok := r.rule.(Averager); !ok {
			continue
		}
		slot, seen := s.store.Lookup(param+"/"+r.name+"/average"), s.store.Lookup(param+"/"+r.name+"/seen")
		if slot == nil || seen == nil {
			continue
		}
		n, err := seen.Value()
		if err != nil {
			return nil, err
		}
		if x, err := graphops.ScalarValue(n); err != nil || x > 0 {
			if err != nil {
				return nil, err
			}
			return slot.Value()
		}
	}
	return nil, nil
}

// exchange writes all src to their dst, and notes what those were. An error leaves everything as it was.
func exchange(pairs []averaged) error {
	for i := range pairs {
		p := &pairs[i]
		if p.dst.Dtype() != p.src.Dtype() || !p.dst.Shape().Eq(p.src.Shape()) {
			return errors.Errorf("solvers: parameter %q is %v of shape %v, its average %v of shape %v",
				p.name, p.dst.Dtype(), p.dst.Shape(), p.src.Dtype(), p.src.Shape())
		}
		p.weights = fresh(p.dst)
		if err := graphops.Copy(p.weights, p.dst); err != nil {
			return errors.Wrapf(err, "solvers: parameter %q", p.name)
		}
	}
	for i, p := range pairs {
		if err := graphops.Copy(p.dst, p.src); err != nil {
			for _, q := range slices.Backward(pairs[:i]) {
				_ = graphops.Copy(q.dst, q.weights) // which could be written a moment ago
			}
			return errors.Wrapf(err, "solvers: parameter %q", p.name)
		}
	}
	return nil
}

func valueOf(m gorgonia.ValueGrad, name string) (gorgonia.Value, error) {
	v := m.Value()
	if absent(v) {
		return nil, errors.Errorf("solvers: parameter %q has no value", name)
	}
	return v, nil
}

// fresh is memory for a value like another.
func fresh(like gorgonia.Value) gorgonia.Value {
	switch dt := like.Dtype(); {
	case like.Shape().IsScalar() && dt == tensor.Float32:
		return gorgonia.NewF32(0)
	case like.Shape().IsScalar():
		return gorgonia.NewF64(0)
	default:
		return tensor.New(tensor.Of(dt), tensor.WithShape(like.Shape()...))
	}
}
