package exchange

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/pkg/errors"

	"optimop/graphops"
	"optimop/internal/safetensors"
	"optimop/solvers"
)

// torchSlots are the keys of a parameter's state by the kind of the rule.
var torchSlots = map[string][]slot{
	"sgd":      nil,
	"momentum": {{ours: "momentum", theirs: "momentum_buffer"}},
	"adam":     moments, "adamw": moments, "radam": moments,
	"nadam":    append(slices.Clone(moments), slot{ours: "mu_product", theirs: "mu_product", scalar: true}),
	"adamax":   {{ours: "m", theirs: "exp_avg"}, {ours: "u", theirs: "exp_inf"}},
	"rmsprop":  {{ours: "rms", theirs: "square_avg"}, {ours: "momentum", theirs: "momentum_buffer"}, {ours: "mg", theirs: "grad_avg"}},
	"adagrad":  {{ours: "accumulator", theirs: "sum"}},
	"adadelta": {{ours: "accum", theirs: "square_avg"}, {ours: "accum_update", theirs: "acc_delta"}},
}

var moments = []slot{{ours: "m", theirs: "exp_avg"}, {ours: "v", theirs: "exp_avg_sq"}, {ours: "vhat", theirs: "max_exp_avg_sq"}}

// torchHypers are the keys of a group of parameters and our hyperparameters.
var torchHypers = []struct{ theirs, ours string }{
	{"lr", "learning_rate"}, {"eps", "epsilon"}, {"momentum", "momentum"}, {"dampening", "dampening"}, {"alpha", "rho"}, {"rho", "rho"},
	{"weight_decay", "weight_decay"}, {"lr_decay", "rate_decay"}, {"momentum_decay", "momentum_decay"},
}

// torchConvention refuses a rule whose slots have another meaning in torch.
func (x subject) torchConvention() error {
	switch r := x.Rule(x.rule).(type) {
	case *solvers.Momentum:
		if r.RateInside {
			return errors.New("the velocity of this momentum has the learning rate inside; torch's has it outside: use torch/sgd")
		}
	case *solvers.RMSprop:
		if r.Momentum != 0 && !r.RateOutside {
			return errors.New("the momentum of this RMSprop has the learning rate inside; torch's has it outside: use torch/rmsprop")
		}
	}
	return x.rawMaximum()
}

// torchKeys are the slots that the solver has, and those that are not there while the momentum is 0.
func (x subject) torchKeys() (keys []slot, err error) {
	all, ok := torchSlots[kind(x.rule)]
	if !ok {
		return nil, errors.Errorf("torch has no %s", x.rule)
	}
	if err := x.torchConvention(); err != nil {
		return nil, err
	}
	momentum, isMomentum := x.Rule(x.rule).(*solvers.Momentum)
	for _, k := range all {
		param := x.params[0]
		if k.scalar {
			param = ""
		}
		if x.state(param, k.ours) != nil && !(isMomentum && momentum.Momentum == 0) {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// torchCounts reports whether torch has a step in each parameter's state.
func (x subject) torchCounts() bool { return kind(x.rule) != "sgd" && kind(x.rule) != "momentum" }

// ReadTorch reads the state_dict of an optimizer of torch into a solver. The tensors of the file are called state.<index>.<key>, as in
// state.0.exp_avg; the metadata have the param_groups and, under names, an object that maps each index to the name of the
// parameter, both as JSON. params are names to be used instead, in the order of torch's parameters. Hyperparameters of the groups, which must be the
// same in all, become those of the solver, if it has them. All that does not fit is an error, and then nothing is changed.
func ReadTorch(r io.Reader, s *solvers.Solver, params ...string) error {
	return errors.Wrap(readTorch(r, s, params), "exchange: ReadTorch")
}

func readTorch(r io.Reader, s *solvers.Solver, params []string) error {
	c, err := read(r)
	if err != nil {
		return err
	}
	if params, err = c.names(params); err != nil {
		return err
	}
	x, err := newSubject(s, params)
	if err != nil {
		return err
	}
	if len(params) == 0 {
		return errors.New("there are no parameters")
	}
	if _, err := x.torchKeys(); err != nil {
		return err
	}
	set, err := x.torchHypers(c.metadata["param_groups"])
	if err != nil {
		return err
	}
	undo, err := set()
	if err != nil {
		return err
	}
	a, err := x.takeTorch(c)
	if err == nil {
		err = a.run()
	}
	if err != nil {
		undo()
	}
	return err
}

// takeTorch pairs the tensors of a file with states.
func (x subject) takeTorch(c content) (a assignments, err error) {
	keys, err := x.torchKeys()
	if err != nil {
		return nil, err
	}
	steps := -1.0
	for i, param := range x.params {
		for _, k := range keys {
			name := fmt.Sprintf("state.%d.%s", i, k.theirs)
			t, ok := c.take(name)
			if !ok {
				return nil, errors.Errorf("%s is missing", name)
			}
			of := param
			if k.scalar {
				of = ""
			}
			st := x.state(of, k.ours)
			if st == nil {
				return nil, errors.Errorf("%s: the solver has no %s of %q", name, k.ours, param)
			}
			if err := a.add(st, t, k.negative); err != nil {
				return nil, err
			}
		}
		if err := x.see(&a, param); err != nil {
			return nil, err
		}
		t, ok := c.take(fmt.Sprintf("state.%d.step", i))
		if !ok {
			continue
		}
		n, _ := floats(t.Data)
		if len(n) != 1 || steps >= 0 && n[0] != steps {
			return nil, errors.Errorf("state.%d.step is %v, that of the first parameter %v: here they count together", i, n, steps)
		}
		steps = n[0]
	}
	if steps < 0 && x.torchCounts() {
		return nil, errors.New("state.0.step is missing")
	}
	return a, x.count(&a, steps, c)
}

// count sets the counters, if the file has one.
func (x subject) count(a *assignments, steps float64, c content) error {
	for _, st := range []*graphops.State{x.Store().Lookup("global_step"), x.state("", "step")} {
		if st != nil && steps >= 0 {
			if err := a.number(st, steps); err != nil {
				return err
			}
		}
	}
	return c.rest()
}

// torchHypers reads the groups. set changes the hyperparameters of the solver, and returns what changes them back.
func (x subject) torchHypers(text string) (set func() (undo func(), err error), err error) {
	values := map[string]float64{}
	var groups []map[string]any
	if text != "" {
		if err := json.Unmarshal([]byte(text), &groups); err != nil {
			return nil, errors.Wrap(err, "param_groups")
		}
	}
	for i, g := range groups {
		if nesterov, _ := g["nesterov"].(bool); nesterov != x.nesterov() {
			return nil, errors.Errorf("nesterov is %v there", nesterov)
		}
		if maximize, _ := g["maximize"].(bool); maximize {
			return nil, errors.New("the optimizer maximizes, which none here does")
		}
		own := map[string]float64{}
		for _, h := range torchHypers {
			if v, ok := g[h.theirs].(float64); ok {
				own[h.ours] = v
			}
		}
		if betas, ok := g["betas"].([]any); ok && len(betas) == 2 {
			own["beta1"], _ = betas[0].(float64)
			own["beta2"], _ = betas[1].(float64)
		}
		for name, v := range own { // of several differences any one is named
			if old, ok := values[name]; i > 0 && (!ok || old != v) {
				return nil, errors.Errorf("the groups of parameters have several values of %s", name)
			}
			values[name] = v
		}
	}
	return func() (func(), error) { return x.setAll(values) }, nil
}

func (x subject) nesterov() bool {
	r, ok := x.Rule(x.rule).(*solvers.Momentum)
	return ok && r.Nesterov
}

// setAll sets the hyperparameters that the solver has. A value that is already there is not set: not all can be changed.
func (x subject) setAll(values map[string]float64) (undo func(), err error) {
	old := map[string]float64{}
	undo = func() {
		for name, v := range old { // in any order
			_ = x.Set(name, v) // was legal before
		}
	}
	for _, h := range append(slices.Clone(torchHypers), struct{ theirs, ours string }{"", "beta1"}, struct{ theirs, ours string }{"", "beta2"}) {
		want, given := values[h.ours]
		name := x.rule + "/" + h.ours
		have, err := x.Get(name)
		if err != nil && h.ours == "weight_decay" {
			name = "coupled_decay/weight_decay"
			have, err = x.Get(name)
		}
		switch {
		case !given || err == nil && have == want:
			continue
		case err != nil && want == 0:
			continue
		case err == nil:
			err = x.Set(name, want)
		}
		if err != nil {
			undo()
			return nil, err
		}
		old[name] = have
	}
	return undo, nil
}

// WriteTorch writes the state of a solver for an optimizer of torch with parameters in this order: the form that ReadTorch reads. The
// groups, which say what the optimizer is, are not written: make it with the same hyperparameters.
func WriteTorch(w io.Writer, s *solvers.Solver, params ...string) error {
	return errors.Wrap(writeTorch(w, s, params), "exchange: WriteTorch")
}

func writeTorch(w io.Writer, s *solvers.Solver, params []string) error {
	x, err := newSubject(s, params)
	if err != nil {
		return err
	}
	if len(params) == 0 {
		return errors.New("there are no parameters")
	}
	keys, err := x.torchKeys()
	if err != nil {
		return err
	}
	steps, err := s.GlobalStep()
	if err != nil {
		return err
	}
	if st := x.state("", "step"); st != nil {
		v, err := st.Value()
		if err != nil {
			return err
		}
		n, err := graphops.ScalarValue(v)
		if err != nil {
			return err
		}
		steps = int(n)
	}
	var tensors []safetensors.Tensor
	for i, param := range params {
		for _, k := range keys {
			of := param
			if k.scalar {
				of = ""
			}
			st := x.state(of, k.ours)
			if st == nil {
				return errors.Errorf("the solver has no %s of %q", k.ours, param)
			}
			t, err := asTensor(fmt.Sprintf("state.%d.%s", i, k.theirs), st, k.negative)
			if err != nil {
				return err
			}
			tensors = append(tensors, t)
		}
		if x.torchCounts() {
			tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprintf("state.%d.step", i), Data: []float32{float32(steps)}})
		}
	}
	names, err := indexed(params)
	if err != nil {
		return err
	}
	return safetensors.Write(w, tensors, map[string]string{"names": names})
}
