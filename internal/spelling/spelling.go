// Package spelling relates the names of Go fields to those that people write.
package spelling

import (
	"strings"
	"unicode"
)

var ignored = strings.NewReplacer("_", "", "-", "")

// Fold drops what does not distinguish names: case, "_" and "-".
func Fold(name string) string { return ignored.Replace(strings.ToLower(name)) }

// Snake turns LearningRate into learning_rate, Beta1 into beta1 and DModel into d_model.
func Snake(s string) string {
	var b strings.Builder
	rs := []rune(s)
	for i, r := range rs {
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
