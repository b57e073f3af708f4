package solvers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/convert"
	"optimop/internal/spelling"
	"optimop/internal/suggest"
	"optimop/solvers/schedule"
)

// FromConfigMap makes a solver of a config: its class by name, under the key "class", and its options, as FromConfig
// understands them. The value of an option that is a rule is a config again, or the name of a class. Classes are the
// registered names (Register makes more), and those of the rules that hold others: "chain" with rules, "restrict" with rule
// and names, "accumulate" with rule, n and mean, "multi_optimizer" with parts, "optimizer_map" with fallback and routes;
// "base", "ema", "lookahead", "loss_scale", "moving_average" and "swa" with rule and their options. The key "schedules" has
// schedules by the names of the hyperparameters (see Solver.Schedule), "expanded" and "skip_missing" are the options of New.
// See Config for an example. An unknown class or option, a value of another type or out of its range are errors. The config
// stays as it is, and the solver shares no memory with it.
func FromConfigMap(config map[string]any, opts ...Option) (*Solver, error) {
	config = maps.Clone(config)
	for key, opt := range map[string]Option{keyExpanded: Expanded(), keyMissing: SkipMissing()} {
		on, isBool := config[key].(bool)
		if _, ok := config[key]; ok && !isBool {
			return nil, errors.Errorf("solvers: %s is %s; it must be true or false", key, convert.Show(config[key]))
		}
		delete(config, key)
		if on {
			opts = append([]Option{opt}, opts...)
		}
	}
	schedules, ok := config[keySchedules].(map[string]any)
	if !ok && config[keySchedules] != nil {
		return nil, errors.Errorf("solvers: schedules are %s; they must be an object, by names of hyperparameters", convert.Show(config[keySchedules]))
	}
	delete(config, keySchedules)
	r, err := ruleFromMap(config, 0)
	if err != nil {
		return nil, err
	}
	s := New(r, opts...)
	if s.err != nil {
		return nil, s.err
	}
	for _, name := range sortedKeys(schedules) {
		at, ok := schedules[name].(map[string]any)
		if !ok {
			return nil, errors.Errorf(`solvers: the schedule of %s is %s; it must be {"class": …}`, name, convert.Show(schedules[name]))
		}
		sch, err := schedule.FromConfig(at)
		if err == nil {
			err = s.Schedule(name, sch)
		}
		if err != nil {
			return nil, errors.Wrapf(err, "solvers: schedule %q", name)
		}
	}
	return s, nil
}

// ruleFromMap makes a rule of its config.
func ruleFromMap(config map[string]any, depth int) (Rule, error) {
	if depth > maxDepth {
		return nil, errors.Errorf("solvers: rules are nested more than %d deep", maxDepth)
	}
	name, ok := config[keyClass].(string)
	if !ok {
		return nil, errors.Errorf(`solvers: the config needs a "class", the name of a rule, not %s`, convert.Show(config[keyClass]))
	}
	options := maps.Clone(config)
	delete(options, keyClass)
	r, _, err := configuredRule(name, options, depth)
	return r, err
}

// configuredRule makes a rule of a class, with options of its own and of a Base around it. It is checked here, and not only where a
// solver is made of it, so that the error can say which rule of a config is meant.
func configuredRule(name string, options map[string]any, depth int) (r Rule, opts []Option, err error) {
	if r, opts, err = newRule(name); err != nil {
		return nil, nil, err
	}
	infos, err := ownOptions(r)
	if err != nil {
		return nil, nil, err
	}
	r, options, others, err := based(name, r, infos, options, depth)
	if err == nil {
		err = setOptions(name, infos, options, depth, others...)
	}
	if err == nil {
		err = checkHeld(name, infos[:1])
	}
	if err == nil {
		err = checkRule(name, r)
	}
	return r, opts, errors.Wrapf(err, "solvers: %s", name)
}

// checkHeld looks for the rule that a class of ours holds.
func checkHeld(class string, own []*ruleInfo) error {
	if !slices.ContainsFunc(holders, func(h preset) bool { return fold(h.name) == fold(class) }) {
		return nil
	}
	fields, err := optionsOf(own)
	for _, f := range fields {
		if err == nil && f.at.Type() == ruleType && f.at.IsNil() {
			err = &OptionError{Option: f.known, Problem: `the rule is nil; it must be a name or {"class": …}`}
		}
	}
	return err
}

// checkRule looks at a rule of a class, with all that it is made of.
func checkRule(class string, r Rule) error {
	parts, err := walk(r, nil)
	for _, p := range parts {
		if err == nil {
			err = p.validate()
		}
	}
	return without(without(err, "solvers: "), spelling.Fold(class)+": ")
}

// without is an error without a prefix, to stand within another.
func without(err error, prefix string) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), prefix))
}

// ownOptions are the rules whose fields a config sets by their bare names: those of a chain that a registered name stands for,
// or one with a mode for rows, but of a rule that holds others only the rule itself, since the others have configs of their own.
func ownOptions(r Rule) ([]*ruleInfo, error) {
	_, composite := r.(Composite)
	if w, ok := r.(*rows); ok && w.Rule != nil {
		composite = false
	}
	if c, ok := r.(*chain); composite || ok && len(c.Rules) == 0 {
		info, err := describe(r, nil)
		return []*ruleInfo{info}, err
	}
	return walk(r, nil)
}

// decode turns a value, as JSON or a program has it, into what a field wants, where nothing is lost. Lists and maps are copied.
func decode(v any, want reflect.Type, depth int) (reflect.Value, error) {
	r := reflect.ValueOf(v)
	config, isMap := v.(map[string]any)
	number, isNumber := v.(json.Number)
	switch {
	case depth > maxDepth:
		return reflect.Value{}, errors.Errorf("it is nested more than %d deep", maxDepth)
	case !r.IsValid():
		if canBeNil(want) {
			return reflect.Zero(want), nil
		}
		return reflect.Value{}, mismatch(v, want)
	case want == ruleType:
		return decodeRule(v, depth+1)
	case want == scheduleType && isMap:
		s, err := schedule.FromConfig(config)
		return reflect.ValueOf(&s).Elem(), err
	case isNumber:
		return decodeNumber(number, want)
	case want.Kind() == reflect.Slice:
		return decodeList(r, want, depth)
	case want.Kind() == reflect.Map && isMap:
		return decodeMap(config, want, depth)
	case want.Kind() == reflect.Struct && isMap:
		return decodeStruct(config, want, depth)
	case r.Type().AssignableTo(want):
		return r, nil
	case want.Kind() == reflect.Pointer:
		e, err := decode(v, want.Elem(), depth+1)
		if err != nil {
			return e, err
		}
		p := reflect.New(want.Elem())
		p.Elem().Set(e)
		return p, nil
	case want.Kind() == r.Kind() && (want.Kind() == reflect.String || want.Kind() == reflect.Bool): // of a type of its own
		return r.Convert(want), nil
	}
	if word, ok := v.(string); ok && want.Kind() == reflect.Float64 {
		if x, ok := notFinite[word]; ok {
			return reflect.ValueOf(x).Convert(want), nil
		}
	}
	if n, ok := convert.Number(r, want); ok {
		return n, nil
	}
	return reflect.Value{}, mismatch(v, want)
}

// notFinite are the numbers that JSON has not.
var notFinite = map[string]float64{"inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.NaN()}

func mismatch(v any, want reflect.Type) error {
	hint := ""
	if config, ok := v.(map[string]any); ok && config[keyClass] != nil && want.Kind() == reflect.Float64 {
		hint = fmt.Sprintf(`: a schedule stands beside the options, under %q, or is set with Solver.Schedule`, keySchedules)
	}
	return errors.Errorf("want %s, not %s%s", article(want.String()), convert.Show(v), hint)
}

func canBeNil(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		return true
	}
	return false
}

// decodeRule makes a rule of a config, of the name of a class, or takes it as it is.
func decodeRule(v any, depth int) (reflect.Value, error) {
	var r Rule
	var err error
	switch v := v.(type) {
	case map[string]any:
		r, err = ruleFromMap(v, depth)
	case string:
		r, err = ruleFromMap(map[string]any{keyClass: v}, depth)
	case Rule:
		r = addressable(v)
	default:
		err = errors.Errorf(`want a rule, {"class": …}, not %s`, convert.Show(v))
	}
	return reflect.ValueOf(&r).Elem(), without(err, "solvers: ")
}

// decodeNumber keeps integers exact that float64 does not have.
func decodeNumber(n json.Number, want reflect.Type) (reflect.Value, error) {
	zero := reflect.Zero(want)
	switch {
	case want.Kind() == reflect.Pointer:
		e, err := decodeNumber(n, want.Elem())
		if err != nil {
			return e, err
		}
		p := reflect.New(want.Elem())
		p.Elem().Set(e)
		return p, nil
	case want.Kind() == reflect.Slice:
		return decodeList(reflect.ValueOf([]any{n}), want, 0)
	case zero.CanInt():
		if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil && !zero.OverflowInt(i) {
			return reflect.ValueOf(i).Convert(want), nil
		}
	case zero.CanUint():
		if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil && !zero.OverflowUint(u) {
			return reflect.ValueOf(u).Convert(want), nil
		}
	}
	if f, err := n.Float64(); err == nil {
		if x, ok := convert.Number(reflect.ValueOf(f), want); ok {
			return x, nil
		}
	}
	return reflect.Value{}, mismatch(n, want)
}

// decodeList makes a list; a single value is a list of one (axes: 0).
func decodeList(r reflect.Value, want reflect.Type, depth int) (reflect.Value, error) {
	if r.Kind() != reflect.Slice {
		r = reflect.ValueOf([]any{r.Interface()})
	}
	if r.IsNil() {
		return reflect.Zero(want), nil
	}
	out := reflect.MakeSlice(want, 0, r.Len())
	for i := range r.Len() {
		e, err := decode(r.Index(i).Interface(), want.Elem(), depth+1)
		if err != nil {
			return e, errors.Wrapf(err, "element %d", i)
		}
		out = reflect.Append(out, e)
	}
	return out, nil
}

func decodeMap(config map[string]any, want reflect.Type, depth int) (reflect.Value, error) {
	if want.Key().Kind() != reflect.String {
		return reflect.Value{}, mismatch(config, want)
	}
	out := reflect.MakeMap(want)
	for _, key := range sortedKeys(config) {
		e, err := decode(config[key], want.Elem(), depth+1)
		if err != nil {
			return e, errors.Wrapf(err, "key %q", key)
		}
		out.SetMapIndex(reflect.ValueOf(key).Convert(want.Key()), e)
	}
	return out, nil
}

// decodeStruct sets the exported fields of a struct that is no rule.
func decodeStruct(config map[string]any, want reflect.Type, depth int) (reflect.Value, error) {
	p := reflect.New(want)
	left := maps.Clone(config)
	var known []string
	err := exported(p, func(f reflect.StructField, at reflect.Value) error {
		name := spelling.Snake(f.Name)
		known = append(known, name)
		v, ok := left[name]
		if !ok {
			return nil
		}
		delete(left, name)
		e, err := decode(v, f.Type, depth+1)
		if err != nil {
			return errors.Wrapf(err, "option %q", name)
		}
		at.Set(e)
		return nil
	})
	for _, key := range sortedKeys(left) {
		if err == nil {
			err = &OptionError{Option: key, Problem: fmt.Sprint("unknown option", suggest.For(key, known))}
		}
	}
	return p.Elem(), err
}
