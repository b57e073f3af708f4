package loop

import (
	"iter"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/batch"
)

// Batches is a pass over data. A batch maps names of sources to a tensor.Tensor, gorgonia.Value, Go number or slice.
type Batches = iter.Seq2[map[string]any, error]

// Each are batches that do not fail.
func Each(seq iter.Seq[map[string]any]) Batches {
	return func(yield func(map[string]any, error) bool) {
		for b := range seq {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// Slice are batches in memory.
func Slice(batches ...map[string]any) Batches { return Each(slices.Values(batches)) }

// Examples is the number of examples in a batch: the length of the first axis of its sources, and 1 if none has any. Sources
// without axes, or that are no numbers, are left aside. Where lengths differ it is an error, and Loop.Examples or
// Evaluator.Examples must know better.
func Examples(b map[string]any) (float64, error) {
	n := -1
	for _, s := range batch.Shapes(b) {
		switch {
		case len(s) == 0:
		case n < 0:
			n = s[0]
		case n != s[0]:
			return 0, errors.Errorf("loop: the first axes of %s differ, so the number of examples is not known; set Examples",
				batch.Describe(b))
		}
	}
	if n < 0 {
		n = 1
	}
	return float64(n), nil
}
