package solvers

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
	"optimop/solvers/schedule"
)

// The keys of a config that are no options of a rule.
const (
	keyClass     = "class"
	keySchedules = "schedules"
	keyExpanded  = "expanded"
	keyMissing   = "skip_missing"
)

// Config is the inverse of FromConfigMap: the class of the solver's rule and all its options, with their present values and
// with the configs of the rules that it is made of.
//
//	{"class": "chain", "rules": [{"class": "clip_by_norm", "max_norm": 1}, {"class": "sgd", "learning_rate": 0.01}],
//	 "schedules": {"sgd/learning_rate": {"class": "noam", "d_model": 512, "warmup_steps": 4000}}}
//
// The options are the exported fields of a rule, in snake case: numbers, truth values, strings, rules, schedules, structs,
// pointers to these, lists and maps of them. Infinities and NaN, which JSON has not, are "inf", "-inf" and "nan", nil is null.
// Schedules stand beside the options, since a hyperparameter has a value of its own beneath its schedule. A rule that stands
// in two places comes back as two.
//
// Errors: a solver that has a mistake, a rule that is not registered or has a state in fields that are not exported, a
// function as a rule, as a schedule or in a field, and a hyperparameter that Bind tied to a node.
func (s *Solver) Config() (map[string]any, error) {
	if err := s.settle(); err != nil {
		return nil, err
	}
	config, err := encodeRule(s.rule, 0)
	if err != nil {
		return nil, err
	}
	put := func(key string, value any) {
		if _, taken := config[key]; taken && err == nil {
			err = errors.Errorf("solvers: %v: a config has no place for a field called %s", config[keyClass], key)
		}
		config[key] = value
	}
	if len(s.schedule) > 0 {
		schedules := map[string]any{}
		for _, h := range s.schedule {
			if schedules[h.name], err = schedule.Config(h.sch); err != nil {
				return nil, errors.Wrapf(err, "solvers: %s", h.name)
			}
		}
		put(keySchedules, schedules)
	}
	if s.expanded {
		put(keyExpanded, true)
	}
	if s.missing {
		put(keyMissing, true)
	}
	if err != nil {
		return nil, err
	}
	return config, nil
}

// settle takes over what gorgonia.Let gave to nodes of hyperparameters, so that the fields of the rules have the present values.
func (s *Solver) settle() error {
	if err := s.Err(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.bound)) {
		return errors.Errorf("solvers: %s is bound to a node, which has no config", name)
	}
	for _, st := range s.store.States() {
		if _, err := st.Value(); err != nil {
			return err
		}
	}
	return nil
}

// Marshal is the config of a solver as JSON.
func Marshal(s *Solver) ([]byte, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(config)
	return b, errors.Wrap(err, "solvers: the config")
}

// Unmarshal is FromConfigMap of a config in JSON.
func Unmarshal(data []byte, opts ...Option) (*Solver, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // integers stay exact
	var config map[string]any
	if err := d.Decode(&config); err != nil {
		return nil, errors.Wrap(err, "solvers: the config is no JSON object")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("solvers: something follows the config")
	}
	return FromConfigMap(config, opts...)
}

var (
	ruleType     = reflect.TypeFor[Rule]()
	scheduleType = reflect.TypeFor[schedule.Schedule]()
)

// encodeRule is the config of a rule.
func encodeRule(r Rule, depth int) (map[string]any, error) {
	if depth > maxDepth {
		return nil, errors.Errorf("solvers: rules are nested more than %d deep; does one hold itself?", maxDepth)
	}
	for s, ok := r.(*Solver); ok; s, ok = r.(*Solver) {
		if err := s.asRule(); err != nil {
			return nil, err
		}
		r = s.rule
	}
	r = addressable(r)
	name, fresh, err := classOf(r)
	if err != nil {
		return nil, err
	}
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		if !reflect.DeepEqual(r, fresh) {
			return nil, errors.Errorf("solvers: %s: a %T that is not that of its factory has no config: declare a struct", name, r)
		}
		return map[string]any{keyClass: name}, nil
	}
	config, err := encodeFields(v, reflect.ValueOf(fresh), depth)
	if err != nil {
		return nil, errors.Wrapf(err, "solvers: %s", name)
	}
	if _, taken := config[keyClass]; taken {
		return nil, errors.Errorf("solvers: %s: a config has no place for a field called %s", name, keyClass)
	}
	config[keyClass] = name
	return config, nil
}

// encodeFields makes a map of the exported fields of a struct. What the others hold must be what they hold in a fresh one.
func encodeFields(p, fresh reflect.Value, depth int) (map[string]any, error) {
	config := map[string]any{}
	bare := func(p reflect.Value) reflect.Value {
		c := reflect.New(p.Elem().Type())
		c.Elem().Set(p.Elem())
		return c
	}
	a, b := bare(p), bare(fresh)
	clearField := func(_ reflect.StructField, v reflect.Value) error { v.SetZero(); return nil }
	err := exported(p, func(f reflect.StructField, v reflect.Value) error {
		e, err := encode(v, depth)
		config[spelling.Snake(f.Name)] = e
		return errors.Wrapf(err, "option %q", spelling.Snake(f.Name))
	})
	for _, c := range []reflect.Value{a, b} {
		if err == nil {
			err = exported(c, clearField)
		}
	}
	if err == nil && !reflect.DeepEqual(a.Interface(), b.Interface()) {
		err = errors.Errorf("a %v holds something in fields that are not exported", p.Type())
	}
	return config, err
}

// encode is the value of a field, as JSON has it. It shares no memory with the field.
func encode(v reflect.Value, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.Errorf("it is nested more than %d deep", maxDepth)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		if v.IsNil() {
			return nil, nil
		}
	}
	switch v.Type() {
	case ruleType:
		return encodeRule(v.Interface().(Rule), depth+1)
	case scheduleType:
		return schedule.Config(v.Interface().(schedule.Schedule))
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Float64, reflect.Float32:
		return encodeFloat(v.Float()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint(), nil
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			var err error
			if list[i], err = encode(v.Index(i), depth+1); err != nil {
				return nil, errors.Wrapf(err, "element %d", i)
			}
		}
		return list, nil
	case reflect.Map:
		return encodeMap(v, depth)
	case reflect.Pointer:
		return encode(v.Elem(), depth+1)
	case reflect.Struct:
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		return encodeFields(p, reflect.New(v.Type()), depth+1)
	}
	return nil, errors.Errorf("a %v has no config", v.Type())
}

func encodeMap(v reflect.Value, depth int) (any, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, errors.Errorf("a %v has no config: the keys must be strings", v.Type())
	}
	out := map[string]any{}
	for at := v.MapRange(); at.Next(); {
		e, err := encode(at.Value(), depth+1)
		if err != nil {
			return nil, errors.Wrapf(err, "key %q", at.Key())
		}
		out[at.Key().String()] = e
	}
	return out, nil
}

func encodeFloat(x float64) any {
	switch {
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	case math.IsNaN(x):
		return "nan"
	}
	return x
}
