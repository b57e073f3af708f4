// Package suggest finds the word that a mistyped word was probably meant to be.
package suggest

import (
	"fmt"
	"path"
	"strings"

	"optimop/internal/spelling"
)

// most bounds a list of known words.
const most = 60

// For returns ` (did you mean "x"?)` for the known word nearest to got, or a list of known words where none is near. A got
// without "/" may also be near the last part of a word, after "/".
func For(got string, known []string) string {
	best, at := len(got)/2+1, -1
	for i, k := range known {
		d := distance(spelling.Fold(got), spelling.Fold(k))
		if !strings.Contains(got, "/") {
			d = min(d, distance(spelling.Fold(got), spelling.Fold(path.Base(k))))
		}
		if d < best {
			best, at = d, i
		}
	}
	switch {
	case at >= 0:
		return fmt.Sprintf(" (did you mean %q?)", known[at])
	case len(known) > most:
		return fmt.Sprintf(" (known: %s and %d more)", strings.Join(known[:most], ", "), len(known)-most)
	case len(known) > 0:
		return " (known: " + strings.Join(known, ", ") + ")"
	}
	return ""
}

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
