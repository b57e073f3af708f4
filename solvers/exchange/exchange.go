// Package exchange moves the state of optimizers to and from torch and Keras, by safetensors files. Both libraries know their state by
// position; here and in the files the names of the parameters go with it. testdata/exchange/optimizer_files.py saves and loads such
// files in Python.
//
// The solver must be one whose formula is the library's, such as those of solvers.FromConfig("torch/adam", …) and "keras/adam": where a slot
// means something else there, that is an error. It must be built (Build, a Step, Minimize, or an updater's OptimOp), alone or within an
// updater: its parameters' slots are of one rule of these kinds.
//
//	torch  SGD with and without momentum, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam
//	Keras  SGD with and without momentum, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Lamb, Lion, AdaBelief;
//	       of the base class use_ema and gradient_accumulation_steps
package exchange

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/safetensors"
	"optimop/internal/saved"
	"optimop/solvers"
)

// slot is what a library has in the place of one of our slots.
type slot struct {
	ours, theirs string
	negative     bool // theirs is minus ours
	scalar       bool // ours is one number for all parameters
}

// subject is a solver with the rule whose state is moved.
type subject struct {
	*solvers.Solver
	rule   string // its name in the solver
	params []string
}

// newSubject finds the one rule that has slots of the parameters, or a learning rate where there are none.
func newSubject(s *solvers.Solver, params []string) (subject, error) {
	x := subject{s, "", params}
	if s == nil {
		return x, errors.New("the solver is nil")
	}
	if err := s.Err(); err != nil {
		return x, err
	}
	for i, p := range params {
		for _, q := range params[:i] {
			if p == q {
				return x, errors.Errorf("parameter %q is named twice", p)
			}
		}
	}
	for _, st := range s.Store().States() {
		parts := strings.Split(strings.TrimPrefix(st.Name(), st.Param()+"/"), "/")
		if len(parts) != 2 || parts[0] == "base" || st.Kind() == graphops.Slot && st.Param() == "" && parts[1] != "mu_product" {
			continue
		}
		if _, known := torchSlots[kind(parts[0])]; !known && kerasSlots[kind(parts[0])] == nil {
			continue
		}
		if x.rule != "" && x.rule != parts[0] {
			return x, errors.Errorf("the state is of several optimizers: %s and %s", x.rule, parts[0])
		}
		x.rule = parts[0]
	}
	if x.rule == "" {
		return x, errors.New("there is no state of a known optimizer: call Build first, or use one of the library's")
	}
	return x, nil
}

// kind is the kind of a rule: "adam" of "adam#2".
func kind(rule string) string {
	name, _, _ := strings.Cut(rule, "#")
	return name
}

// state finds a state of the rule's: of a parameter, or of all if that is "". nil: there is none.
func (x subject) state(param, name string) *graphops.State {
	full := x.rule + "/" + name
	if param != "" {
		full = param + "/" + full
	}
	return x.Store().Lookup(full)
}

// rawMaximum refuses an AMSGrad whose maximum is of corrected moments, as no library has it.
func (x subject) rawMaximum() error {
	corrected := false
	switch r := x.Rule(x.rule).(type) {
	case *solvers.Adam:
		corrected = r.AMSGrad && r.MaxCorrected
	case *solvers.AdamW:
		corrected = r.AMSGrad && r.MaxCorrected
	}
	if corrected {
		return errors.New("this AMSGrad takes the maximum of corrected moments, torch and Keras of those before: use theirs")
	}
	return nil
}

// see says that a parameter had its first step, where something goes by that.
func (x subject) see(a *assignments, param string) error {
	if st := x.state(param, "seen"); st != nil {
		return a.number(st, 1)
	}
	return nil
}

// assignments are values that states get, all or none.
type assignments []assignment

type assignment struct {
	st *graphops.State
	v  gorgonia.Value
}

// add puts a tensor on the list for a state.
func (a *assignments) add(st *graphops.State, t safetensors.Tensor, negative bool) error {
	old, err := st.Value()
	if err != nil {
		return err
	}
	to, err := saved.FromValue(st.Name(), old) // of the same form
	if err != nil {
		return err
	}
	if err := convert(to.Data, t.Data, negative, len(to.Shape) == 0); err != nil {
		return errors.Wrapf(err, "%s: %s", t.Name, st.Name())
	}
	to.Shape = t.Shape
	v := saved.Value(to)
	if err := st.Takes(v); err != nil {
		return errors.Wrap(err, t.Name)
	}
	*a = append(*a, assignment{st, v})
	return nil
}

// number puts a number on the list.
func (a *assignments) number(st *graphops.State, v float64) error {
	return a.add(st, safetensors.Tensor{Name: "a number", Data: []float64{v}}, false)
}

// run assigns everything. All values were accepted before.
func (a assignments) run() error {
	for _, x := range a {
		if err := x.st.Assign(x.v); err != nil {
			return err
		}
	}
	return nil
}

// convert copies elements to a slice of another type. Numbers of tensors must not lose anything; single ones are rounded.
func convert(to, from any, negative, single bool) error {
	values, wide := floats(from)
	sign := 1.0
	if negative {
		sign = -1
	}
	switch to := to.(type) {
	case []float64:
		if len(to) != len(values) {
			return errors.Errorf("%d elements, not %d", len(values), len(to))
		}
		for i, v := range values {
			to[i] = sign * v
		}
	case []float32:
		if wide && !single {
			return errors.New("it is float64 there, and float32 here")
		}
		if len(to) != len(values) {
			return errors.Errorf("%d elements, not %d", len(values), len(to))
		}
		for i, v := range values {
			to[i] = float32(sign * v)
		}
	case []int64:
		if len(values) != 1 || values[0] != float64(int64(values[0])) || values[0] < 0 {
			return errors.Errorf("%v is no count", values)
		}
		to[0] = int64(values[0])
	}
	return nil
}

// floats are elements as float64. wide says whether they were more than float32.
func floats(data any) (out []float64, wide bool) {
	switch x := data.(type) {
	case []float64:
		return x, true
	case []float32:
		for _, v := range x {
			out = append(out, float64(v))
		}
	case []int64:
		for _, v := range x {
			out = append(out, float64(v))
		}
	}
	return out, false
}

// asTensor is the value of a state under another name.
func asTensor(name string, st *graphops.State, negative bool) (safetensors.Tensor, error) {
	v, err := st.Value()
	if err != nil {
		return safetensors.Tensor{}, err
	}
	t, err := saved.FromValue(name, v)
	if negative && err == nil {
		err = convert(t.Data, t.Data, true, true)
	}
	return t, err
}

// content is a file that was read.
type content struct {
	tensors  map[string]safetensors.Tensor
	order    []string
	metadata map[string]string
}

func read(r io.Reader) (c content, err error) {
	tensors, metadata, err := safetensors.Read(r)
	c = content{map[string]safetensors.Tensor{}, nil, metadata}
	for _, t := range tensors {
		c.tensors[t.Name] = t
		c.order = append(c.order, t.Name)
	}
	return c, err
}

// take removes a tensor and returns it.
func (c content) take(name string) (safetensors.Tensor, bool) {
	t, ok := c.tensors[name]
	delete(c.tensors, name)
	return t, ok
}

// rest is an error if something is left.
func (c content) rest() error {
	var left []string
	for _, name := range c.order {
		if _, ok := c.tensors[name]; ok {
			left = append(left, name)
		}
	}
	if left != nil {
		return errors.Errorf("unexpected: %s", strings.Join(left, ", "))
	}
	return nil
}

// names are the parameters: those that were given, or those of the file.
func (c content) names(given []string) ([]string, error) {
	if len(given) > 0 {
		return given, nil
	}
	byIndex := map[string]string{}
	if err := json.Unmarshal([]byte(c.metadata["names"]), &byIndex); err != nil {
		return nil, errors.Wrap(err, "the file has no names of parameters: give them")
	}
	names := make([]string, len(byIndex))
	for i := range names {
		name, ok := byIndex[strconv.Itoa(i)]
		if !ok {
			return nil, errors.Errorf("the names of the file have no index %d", i)
		}
		names[i] = name
	}
	return names, nil
}

// indexed is the map from index to name as JSON.
func indexed(names []string) (string, error) {
	byIndex := map[string]string{}
	for i, n := range names {
		byIndex[strconv.Itoa(i)] = n
	}
	b, err := json.Marshal(byIndex)
	return string(b), err
}
