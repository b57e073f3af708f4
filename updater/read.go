package updater

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/pkg/errors"

	"optimop/internal/convert"
	"optimop/internal/suggest"
	"optimop/solvers/schedule"
)

// What bounds the text of a config. The YAML parser takes a time that grows with the square of the length: for the longest text
// that it gets here about a second.
const (
	maxText = 1 << 20
	maxYAML = 32 << 10
)

// ReadConfig reads the JSON or YAML form: JSON if it begins with "{" or "[". A key that is unknown or written twice, a wrong type, a number
// out of its range and text after the config are errors; they name the key (updater_opts[0].gradient_clip), and suggest
// one that is known. Names and values of the optimizers' options are checked too. A null means the same as no key. YAML may have
// comments and up to 32 KiB, but neither aliases nor several documents. A chain of rules has no such form: set Optimizer in Go.
func ReadConfig(r io.Reader) (Config, error) {
	c, err := readConfig(r)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return Config{}, errors.Wrap(err, "updater: config")
	}
	return c, nil
}

func readConfig(r io.Reader) (c Config, err error) {
	if r == nil {
		return c, errors.New("the reader is nil")
	}
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return c, err
	}
	if len(text) > maxText {
		return c, errors.Errorf("the text is longer than %d bytes", maxText)
	}
	if text, err = toJSON(text); err != nil {
		return c, err
	}
	var raw map[string]json.RawMessage // checks what follows the object, too
	if err := json.Unmarshal(text, &raw); err != nil {
		return c, errors.Wrap(err, "want an object")
	}
	if raw == nil {
		return c, errors.New("want an object, not null")
	}
	if err := uniqueKeys(text); err != nil {
		return c, err
	}
	object := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		var v any
		if err := json.Unmarshal(raw[key], &v); err != nil {
			return c, errors.Wrap(err, key)
		}
		object[key] = v
	}
	return c, decodeObject(reflect.ValueOf(&c).Elem(), object, "")
}

// toJSON translates YAML.
func toJSON(text []byte) (_ []byte, err error) {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return nil, errors.New("want an object, not an empty document")
	}
	if trimmed[0] == '{' || trimmed[0] == '[' || json.Valid(trimmed) {
		return text, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("bad YAML: %v", p)
		}
	}()
	if len(text) > maxYAML {
		return nil, errors.Errorf("the YAML text is longer than %d bytes", maxYAML)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, errors.Wrap(err, "bad YAML")
	}
	if len(file.Docs) != 1 {
		return nil, errors.Errorf("bad YAML: want one document, not %d", len(file.Docs))
	}
	if file.Docs[0].Body == nil {
		return nil, errors.New("want an object, not an empty document")
	}
	var bad refused
	ast.Walk(&bad, file.Docs[0].Body)
	if bad.why != "" {
		return nil, errors.Errorf("%s: %s", strings.TrimPrefix(bad.at.GetPath(), "$."), bad.why)
	}
	ast.Walk(exponents{}, file.Docs[0].Body)
	var v any
	if err := yaml.NodeToValue(file.Docs[0].Body, &v, yaml.UseOrderedMap()); err != nil {
		return nil, errors.Wrap(err, "bad YAML")
	}
	text, err = yaml.MarshalWithOptions(v, yaml.JSON())
	return text, errors.Wrap(err, "bad YAML")
}

// exponents makes 1e-8 the number that it is in YAML 1.2. The parser knows only that with a point, 1.0e-8, from YAML 1.1.
type exponents struct{}

var exponent = regexp.MustCompile(`^[-+]?[0-9]+[eE][-+]?[0-9]+$`)

// Visit implements ast.Visitor.
func (e exponents) Visit(n ast.Node) ast.Visitor {
	number := func(v ast.Node) ast.Node {
		s, ok := v.(*ast.StringNode)
		if !ok || s.Token.Type != token.StringType || !exponent.MatchString(s.Value) { // quoted, too
			return v
		}
		x, err := strconv.ParseFloat(s.Value, 64)
		if err != nil {
			return v
		}
		return &ast.FloatNode{BaseNode: s.BaseNode, Token: s.Token, Value: x}
	}
	switch n := n.(type) {
	case *ast.MappingValueNode:
		n.Value = number(n.Value)
	case *ast.SequenceNode:
		for i := range n.Values {
			n.Values[i] = number(n.Values[i])
		}
	}
	return e
}

// refused is the first thing in a YAML text that has no JSON form, or can make a small text a huge one.
type refused struct {
	at  ast.Node
	why string
}

// Visit implements ast.Visitor.
func (r *refused) Visit(n ast.Node) ast.Visitor {
	switch {
	case r.why != "":
		return nil
	case n.Type() == ast.AliasType || n.Type() == ast.AnchorType || n.Type() == ast.MergeKeyType:
		r.at, r.why = n, "anchors and aliases are not understood"
	case n.Type() == ast.InfinityType || n.Type() == ast.NanType:
		r.at, r.why = n, "the number must be finite"
	}
	return r
}

// uniqueKeys refuses objects with a key twice, of which encoding/json would take the last. The text is valid JSON, so it is
// not nested deeper than that package allows.
func uniqueKeys(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var path []string
	var walk func() error
	walk = func() error {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		open, _ := tok.(json.Delim)
		seen := map[string]bool{}
		for i := 0; (open == '{' || open == '[') && d.More(); i++ {
			at := "[" + strconv.Itoa(i) + "]"
			if open == '{' {
				key, err := d.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				at = "." + name
			}
			path = append(path, at)
			if open == '{' && seen[at] {
				return errors.Errorf("%s: the key is written twice", strings.Join(path, "")[1:])
			}
			seen[at] = true
			if err := walk(); err != nil {
				return err
			}
			path = path[:len(path)-1]
		}
		if open != 0 {
			_, err = d.Token()
		}
		return err
	}
	return walk()
}

// decodeObject sets the fields of a struct by their keys. path is that of the object, with a dot at its end.
func decodeObject(at reflect.Value, object map[string]any, path string) error {
	fields := map[string]reflect.Value{}
	var known []string
	for i := range at.NumField() {
		if key := at.Type().Field(i).Tag.Get("json"); key != "-" {
			fields[key], known = at.Field(i), append(known, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		v := object[key]
		f, ok := fields[key]
		if why := foreign[key]; !ok && why != "" {
			return errors.Errorf("%s%s: %s", path, key, why)
		}
		if !ok && strings.EqualFold(key, "learning_rate") && path != "" {
			return errors.Errorf("%s%s: the learning rate does not belong here; write learning_rate_multiplier, which multiplies that of the config", path, key)
		}
		if !ok {
			return errors.Errorf("%s%s: unknown key%s", path, key, suggest.For(key, known))
		}
		if v == nil {
			continue
		}
		if s, isObject := v.(map[string]any); isObject && key == "learning_rate" {
			f = at.FieldByName("LearningRateSchedule")
			v = s
		}
		if on, isBool := v.(bool); key == "dynamic_loss_scale" && isBool {
			if !on {
				continue
			}
			v = map[string]any{}
		}
		if n, isNumber := v.(float64); key == "log_grad_norm" && isNumber && n == 2 {
			v = true
		}
		if err := decodeValue(f, v, path+key); err != nil {
			return err
		}
	}
	return nil
}

var scheduleType = reflect.TypeFor[schedule.Schedule]()

// decodeValue sets a field to a value as JSON has it.
func decodeValue(at reflect.Value, v any, path string) error {
	want, r := at.Type(), reflect.ValueOf(v)
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case want == scheduleType:
		s, err := readSchedule(v)
		if err != nil {
			return placed(err, path)
		}
		at.Set(reflect.ValueOf(&s).Elem())
		return nil
	case want.Kind() == reflect.Interface || r.IsValid() && r.Type() == want:
		at.Set(r)
		return nil
	case want.Kind() == reflect.Pointer:
		p := reflect.New(want.Elem())
		at.Set(p)
		return decodeValue(p.Elem(), v, path)
	case want.Kind() == reflect.Struct && isObject:
		return decodeObject(at, object, path+".")
	case want.Kind() == reflect.Slice && isList:
		at.Set(reflect.MakeSlice(want, len(list), len(list)))
		for i, e := range list {
			if err := decodeValue(at.Index(i), e, path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
		return nil
	case want.Kind() == reflect.Slice && want.Elem().Kind() == reflect.String && r.Kind() == reflect.String:
		at.Set(reflect.ValueOf([]string{r.String()}))
		return nil
	case want.Kind() == reflect.Slice && want.Elem().Kind() == reflect.Interface && (isObject || r.Kind() == reflect.String):
		at.Set(reflect.ValueOf([]any{v}))
		return nil
	case want.Kind() == reflect.Bool && (v == 0.0 || v == 1.0):
		at.SetBool(v == 1.0)
		return nil
	}
	if n, ok := convert.Number(r, want); ok {
		at.Set(n)
		return nil
	}
	return errors.Errorf("%s: want %s, not %s", path, article(want), inJSON(v))
}

func article(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list, each of it " + article(t.Elem())
	}
	return "an object"
}

// inJSON shows a value in an error.
func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil || len(text) > 60 {
		return reflect.TypeOf(v).String()
	}
	return string(text)
}

// readSchedule understands {"interval": …, "decay": …} too.
func readSchedule(v any) (schedule.Schedule, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.Errorf(`want a schedule, {"class": …}, not %s`, inJSON(v))
	}
	if _, ok := object["class"]; !ok {
		object = maps.Clone(object)
		if _, has := object["initial"]; has {
			return nil, errors.New(`initial: the key needs "class" beside it`)
		}
		object["class"], object["initial"] = "interval_decay", 1.0
	}
	return schedule.FromConfig(object)
}

// placed puts a key before an error of its schedule, together with the schedule's own option where it is one's.
func placed(err error, path string) error {
	var bad *schedule.OptionError
	if errors.As(err, &bad) {
		return errors.Errorf("%s.%s %s", path, bad.Option, bad.Problem)
	}
	return errors.Wrap(err, path)
}

const misplaced = "the learning rate does not belong here; write learning_rate beside optimizer"

// foreign are keys of RETURNN and Keras that have no place in a config, with the reason.
var foreign = map[string]string{
	"adam": legacy("adam"), "nadam": legacy("nadam"), "adadelta": legacy("adadelta"), "adagrad": legacy("adagrad"), "rmsprop": legacy("rmsprop"),
	"extra_updates": "functions have no form in a file; use the option updater.ExtraUpdate in Go",
	"use_horovod":   horovod, "horovod_scale_lr": horovod, "horovod_avg_grad": horovod, "horovod_reduce_type": horovod,
	"reg_l2": "write l2 in updater_opts", "L2": "write l2 in updater_opts",
}

const horovod = "training on several machines is not supported yet"

func legacy(name string) string {
	return "the flag is not understood; write \"optimizer\": {\"class\": \"" + name + "\"}"
}
