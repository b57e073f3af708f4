package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/convert"
	"optimop/internal/spelling"
	"optimop/internal/suggest"
)

// OptionError says what is wrong with an option of a schedule; "of[1].value" is one of the schedule that is an element of an option.
type OptionError struct{ Option, Problem string }

func (e *OptionError) Error() string { return "option " + strconv.Quote(e.Option) + " " + e.Problem }

// FromConfig makes a schedule of a config: its class by name, under the key "class", and its options by the names of the
// fields in snake case, with values as JSON has them.
//
//	{"class": "exponential_decay", "initial": 0.1, "decay_steps": 1000, "decay_rate": 0.96, "staircase": true}
//
// Case, "_" and "-" make no difference in names, and the spellings of Keras, torch and optax (initial_learning_rate, gamma,
// init_value) are understood. The option "name" (a string) of Keras' schedules is accepted and means nothing here, and null leaves
// an option at its default. An unknown class or option, an option given twice or not at all where it has no default, and a value
// of another type or out of its range are errors. The config stays as it is.
func FromConfig(config map[string]any) (Schedule, error) {
	return fromConfig(config, 0)
}

// maxDepth bounds how deep schedules can be made of others; a map that contains itself would never end.
const maxDepth = 100

func fromConfig(config map[string]any, depth int) (_ Schedule, err error) {
	if depth > maxDepth {
		return nil, errors.Errorf("schedule: schedules are nested more than %d deep", maxDepth)
	}
	name, ok := config["class"].(string)
	if !ok {
		return nil, errors.Errorf(`schedule: the config needs a "class", the name of a schedule, not %s`, convert.Show(config["class"]))
	}
	c, err := lookup(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("schedule: %s: making it panicked: %v", c.name, p)
		}
	}()
	at := reflect.New(c.typ)
	made := reflect.ValueOf(c.factory())
	at.Elem().Set(reflect.Indirect(made))
	if err := setOptions(at.Elem(), config, depth); err != nil {
		return nil, errors.Wrapf(err, "schedule: %s", c.name)
	}
	if made.Kind() != reflect.Pointer {
		at = at.Elem()
	}
	s := at.Interface().(Schedule)
	if err := Check(s); err != nil {
		return nil, err
	}
	return s, nil
}

// setOptions sets the fields of a struct.
func setOptions(at reflect.Value, config map[string]any, depth int) error {
	byName := map[string]int{}
	var known []string
	fields := options(at.Type())
	for i, f := range fields {
		known = append(known, f.name)
		byName[spelling.Fold(f.name)] = i
		for _, a := range f.aliases {
			byName[spelling.Fold(a)] = i
		}
	}
	from := make([]string, len(fields))
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if key == "class" {
			continue
		}
		i, ok := byName[spelling.Fold(key)]
		if _, text := config[key].(string); !ok && text && spelling.Fold(key) == "name" {
			continue
		}
		switch {
		case !ok:
			return &OptionError{key, "is unknown" + suggest.For(key, known)}
		case from[i] != "":
			return &OptionError{key, fmt.Sprintf("is given twice: %q already sets %s", from[i], fields[i].name)}
		}
		from[i] = key
		if config[key] == nil && !fields[i].required { // Keras writes None for "left out"
			continue
		}
		v, err := decode(config[key], fields[i].typ, depth)
		if err != nil {
			return inside(key, err)
		}
		at.FieldByIndex(fields[i].index).Set(v)
	}
	for i, f := range fields {
		if f.required && from[i] == "" {
			return &OptionError{f.name, "is missing"}
		}
	}
	return nil
}

// inside puts the name of an option, or an index, before what is wrong in it.
func inside(where string, err error) error {
	var bad *OptionError
	switch {
	case !errors.As(err, &bad):
		return errors.Wrapf(err, "option %q", where)
	case bad.Option != "" && bad.Option[0] != '[':
		where += "."
	}
	return &OptionError{where + bad.Option, bad.Problem}
}

// option is an exported field of a schedule.
type option struct {
	name     string
	aliases  []string
	required bool
	index    []int
	typ      reflect.Type
}

func options(t reflect.Type) (all []option) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		o := option{name: spelling.Snake(f.Name), required: f.Tag.Get("schedule") == "required", index: f.Index, typ: f.Type}
		if a := f.Tag.Get("alias"); a != "" {
			o.aliases = strings.Split(a, ",")
		}
		all = append(all, o)
	}
	return all
}

var scheduleType = reflect.TypeFor[Schedule]()

// decode turns a value, as JSON or a program has it, into what a field wants, where nothing is lost.
func decode(v any, want reflect.Type, depth int) (reflect.Value, error) {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		if err != nil {
			return reflect.Value{}, &OptionError{"", "is " + string(n) + ", which is no float64"}
		}
		v = f
	}
	r := reflect.ValueOf(v)
	config, isConfig := v.(map[string]any)
	switch {
	case !r.IsValid():
	case want == scheduleType && isConfig:
		s, err := fromConfig(config, depth+1)
		return reflect.ValueOf(&s).Elem(), err
	case r.Type().AssignableTo(want):
		return r, nil
	case want.Kind() == reflect.Slice && r.Kind() == reflect.Slice:
		out := reflect.MakeSlice(want, 0, r.Len())
		for i := range r.Len() {
			e, err := decode(r.Index(i).Interface(), want.Elem(), depth)
			if err != nil {
				return e, inside(fmt.Sprintf("[%d]", i), err)
			}
			out = reflect.Append(out, e)
		}
		return out, nil
	}
	if n, ok := convert.Number(r, want); ok {
		return n, nil
	}
	return reflect.Value{}, &OptionError{"", fmt.Sprintf("is %s; it must be %s", convert.Show(v), article(want))}
}

// article names a type for people.
func article(t reflect.Type) string {
	switch {
	case t == scheduleType:
		return `a schedule, {"class": …}`
	case t.Kind() == reflect.Slice:
		return "a list, each of it " + article(t.Elem())
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// Config is the inverse of FromConfig: the class and all options. A schedule that Check refuses, or whose class is not
// registered, such as a Func, is an error.
func Config(s Schedule) (map[string]any, error) {
	if err := Check(s); err != nil {
		return nil, err
	}
	c, ok := classOf(s)
	if !ok {
		return nil, errors.Errorf("schedule: a %T has no config: only schedules that are registered do", s)
	}
	config := map[string]any{"class": c.name}
	v := reflect.Indirect(reflect.ValueOf(s))
	for _, f := range options(c.typ) {
		e, err := encode(v.FieldByIndex(f.index))
		if err != nil {
			return nil, errors.Wrapf(err, "schedule: %s: option %q", c.name, f.name)
		}
		config[f.name] = e
	}
	return config, nil
}

func encode(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Slice {
		list := make([]any, v.Len())
		for i := range list {
			var err error
			if list[i], err = encode(v.Index(i)); err != nil {
				return nil, errors.Wrapf(err, "element %d", i)
			}
		}
		return list, nil
	}
	if s, ok := v.Interface().(Schedule); ok {
		return Config(s)
	}
	return v.Interface(), nil
}

// Marshal is the schedule's config as JSON.
func Marshal(s Schedule) ([]byte, error) {
	config, err := Config(s)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(config)
	return b, errors.Wrapf(err, "schedule: %s", title(s))
}

// Unmarshal is FromConfig of a config in JSON.
func Unmarshal(data []byte) (Schedule, error) {
	var config map[string]any
	if err := unmarshal(data, &config); err != nil {
		return nil, errors.Wrap(err, "schedule: the config")
	}
	return FromConfig(config)
}

// unmarshal reads the only JSON object of a text.
func unmarshal(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(into); err != nil {
		return errors.Wrap(err, "no JSON object that fits")
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return nil
}
