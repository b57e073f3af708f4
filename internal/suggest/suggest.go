// Package suggest finds the word that a mistyped word was probably meant to be.
package suggest

import (
	"fmt"
	"strings"
)

// For returns ` (did you mean "x"?)` for the known word nearest to got, or a list of all known words where none is near.
func For(got string, known []string) string {
	best, at := len(got)/2+1, -1
	for i, k := range known {
		if d := distance(fold(got), fold(k)); d < best {
			best, at = d, i
		}
	}
	switch {
	case at >= 0:
		return fmt.Sprintf(" (did you mean %q?)", known[at])
	case len(known) > 0:
		return " (known: " + strings.Join(known, ", ") + ")"
	}
	return ""
}

func fold(s string) string { return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s)) }

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
