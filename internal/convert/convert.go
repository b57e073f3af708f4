// Package convert turns the numbers of JSON and of programs into what a field wants.
package convert

import "reflect"

// Number converts a number to a numeric type where nothing is lost. Beyond 2⁵³ floats are not all the integers, so there
// it makes none of one another.
func Number(v reflect.Value, want reflect.Type) (reflect.Value, bool) {
	if !v.IsValid() || !isNumber(v.Type()) || !isNumber(want) {
		return reflect.Value{}, false
	}
	float := reflect.TypeFor[float64]()
	f := v.Convert(float).Float()
	if want.Kind() != reflect.Float64 && (f < -1<<53 || f > 1<<53) {
		return reflect.Value{}, false
	}
	c := v.Convert(want)
	return c, c.Convert(v.Type()).Equal(v) && c.Convert(float).Float() == f // -1 as an unsigned number comes back as -1
}

func isNumber(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 }
