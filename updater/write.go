package updater

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/pkg/errors"

	"optimop/solvers"
	"optimop/solvers/schedule"
)

// MarshalJSON is the form that ReadConfig reads, without what is as in the zero Config. Rules, functions and variables, which only Go can
// name, have no such form, and are errors.
func (c Config) MarshalJSON() ([]byte, error) {
	object, err := encodeObject(reflect.ValueOf(c), "")
	if err != nil {
		return nil, errors.Wrap(err, "updater: config")
	}
	if s := c.LearningRateSchedule; s != nil {
		if object[learningRate], err = schedule.Config(s); err != nil {
			return nil, errors.Wrap(err, "updater: config: learning_rate")
		}
	}
	return json.Marshal(object)
}

func encodeObject(v reflect.Value, path string) (map[string]any, error) {
	object := map[string]any{}
	for i := range v.NumField() {
		f, key := v.Field(i), v.Type().Field(i).Tag.Get("json")
		if f.IsZero() {
			continue
		}
		var err error
		switch x := f.Interface().(type) {
		case schedule.Schedule:
			if key != "-" { // else the caller's
				object[key], err = schedule.Config(x)
			}
		case []VarOptions:
			list := make([]map[string]any, len(x))
			for k, o := range x {
				if list[k], err = encodeObject(reflect.ValueOf(o), fmt.Sprintf("%s[%d].", key, k)); err != nil {
					return nil, err
				}
			}
			object[key] = list
		default:
			if key == "-" {
				return nil, errors.Errorf("%s%s: variables have no form in a file; name them by a pattern", path, v.Type().Field(i).Name)
			}
			if f.Kind() == reflect.Interface { // an optimizer
				if k := f.Elem().Kind(); k != reflect.String && k != reflect.Map {
					return nil, errors.Errorf("%s%s: a %T has no form in a file", path, key, x)
				}
			} // rules may be in a list or a map, too
			_, err := replaced(x, path+key, func(at string, r solvers.Rule) (any, error) {
				return nil, errors.Errorf("%s: a %T has no form in a file", at, r)
			})
			if err != nil {
				return nil, err
			}
			object[key] = x
		}
		if err != nil {
			return nil, errors.Wrap(err, path+key)
		}
	}
	return object, nil
}
