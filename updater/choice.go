package updater

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"optimop/solvers"
)

// choiceKey tells choices apart. Equal ones share an optimizer.
type choiceKey struct {
	choice      any
	given       string
	rate, decay float64
	group       group
}

// choiceOf is comparable, whatever was chosen: JSON of names and maps, with what of makes of rules among them, the identity of rules.
func choiceOf(choice any, of inPlace) any {
	switch o := choice.(type) {
	case nil:
		return `{"class":"sgd"}`
	case string:
		choice = map[string]any{"class": o}
	case map[string]any:
	default:
		if reflect.TypeOf(o).Comparable() {
			return o
		}
		if v := reflect.ValueOf(o); v.Kind() == reflect.Func {
			return v.Pointer()
		}
	}
	return textOf(choice, of)
}

// inPlace is what stands in the place of a rule, whose key is at.
type inPlace func(at string, r solvers.Rule) (any, error)

// identity tells rules apart, typeOf does not.
func identity(_ string, r solvers.Rule) (any, error) { return fmt.Sprintf("%T %p", r, r), nil }
func typeOf(_ string, r solvers.Rule) (any, error)   { return fmt.Sprintf("%T", r), nil }

// textOf is the JSON of names, lists and maps, with something in the place of each rule among them.
func textOf(choice any, of inPlace) string {
	out, err := replaced(choice, "", of)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(out); err == nil {
			return string(text)
		}
	}
	return fmt.Sprintf("%v", choice) // fmt sorts maps, too
}

// replaced puts something in the place of each rule in lists and maps.
func replaced(v any, at string, of inPlace) (any, error) {
	if r, ok := v.(solvers.Rule); ok {
		return of(at, r)
	}
	switch r := reflect.ValueOf(v); {
	case v == nil:
		return nil, nil
	case r.Kind() == reflect.Slice && !r.IsNil():
		out := make([]any, r.Len())
		for i := range out {
			e, err := replaced(r.Index(i).Interface(), fmt.Sprintf("%s[%d]", at, i), of)
			if err != nil {
				return nil, err
			}
			out[i] = e
		}
		return out, nil
	case r.Type() == reflect.TypeFor[map[string]any]():
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v.(map[string]any))) {
			e, err := replaced(v.(map[string]any)[key], at+"."+key, of)
			if err != nil {
				return nil, err
			}
			out[key] = e
		}
		return out, nil
	}
	return v, nil
}

// isDefault reports whether a choice means the optimizer of the Config.
func isDefault(choice any) bool {
	o, isMap := choice.(map[string]any)
	return choice == nil || choice == any("") || isMap && len(o) == 0
}
