package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Show is a value of a config in a message. What may contain itself is named by its type.
func Show(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case json.Number:
		return x.String()
	case string, bool:
		return fmt.Sprintf("%#v", v)
	}
	if reflect.TypeOf(v).Kind() <= reflect.Complex128 {
		return fmt.Sprint(v)
	}
	return "a " + reflect.TypeOf(v).String()
}
