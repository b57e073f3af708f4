package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Show is a value of a config in a message. What may contain itself is named by its kind, as JSON has it, or its type.
func Show(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case json.Number:
		return x.String()
	case string, bool:
		return fmt.Sprintf("%#v", v)
	}
	switch k := reflect.TypeOf(v).Kind(); {
	case k <= reflect.Complex128:
		return fmt.Sprint(v)
	case k == reflect.Map:
		return "an object"
	case k == reflect.Slice:
		return "a list"
	}
	return "a " + reflect.TypeOf(v).String()
}
