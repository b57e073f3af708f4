// Package safetensors reads and writes the safetensors file format: eight bytes with the length of the header (unsigned,
// little-endian), the header in JSON, and the values of the tensors one after another, row-major and little-endian. The header
// is
//
//	{"__metadata__": {key: text, …}, name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
//
// where the offsets are those of the tensor's first byte and of the byte after its last one, counted from the end of the header.
// See https://github.com/huggingface/safetensors. Of the format's dtypes there are F32, F64 and I64.
package safetensors

import (
	"math"
	"unicode/utf8"

	"github.com/pkg/errors"
)

const (
	maxHeader   = 100_000_000 // bytes; the limit of the format's own implementation
	maxRank     = 64          // NumPy's limit; it also bounds what a short text can make a reader allocate
	metadataKey = "__metadata__"
	chunk       = 8192 // elements that are converted at once
)

// Tensor is a named array.
type Tensor struct {
	Name  string
	Shape []int // empty: a scalar
	Data  any   // []float32, []float64 or []int64: the elements in row-major order
}

// info is what the header says of a tensor, in the order in which it says it.
type info struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// size is the number of bytes of an element, 0 for other dtypes.
func size(dtype string) int {
	switch dtype {
	case "F32":
		return 4
	case "F64", "I64":
		return 8
	}
	return 0
}

// elements is the number of elements of a tensor of that shape.
func elements(shape []int) (int, error) {
	if len(shape) > maxRank {
		return 0, errors.Errorf("%d dimensions, the most is %d", len(shape), maxRank)
	}
	n := 1
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, errors.Errorf("negative dimension in shape %v", shape)
		case d > 0 && n > math.MaxInt/8/d:
			return 0, errors.Errorf("shape %v is too large", shape)
		}
		n *= d
	}
	return n, nil
}

func checkText(texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return errors.Errorf("%q is not UTF-8", s)
		}
	}
	return nil
}
