package safetensors

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func sealed(t *testing.T) ([]Tensor, map[string]string) {
	tensors := []Tensor{{"n", nil, []int64{7}}, {"w", []int{2, 2}, []float64{1, 2, 3, 4}}, {"v", []int{1}, []float32{5}}}
	metadata := map[string]string{"format": "test", "k": "v"}
	require.NoError(t, Seal(tensors, metadata))
	require.NoError(t, Check(tensors, metadata))
	return tensors, metadata
}

// A bit that is wrong is found, or is in the spaces after the header.
func TestEachBit(t *testing.T) {
	tensors, metadata := sealed(t)
	good := write(t, tensors, metadata)
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			got, meta, err := Read(bytes.NewReader(bad))
			if err == nil {
				err = Check(got, meta)
			}
			if err == nil {
				require.Equal(t, metadata, meta)
				requireEqual(t, tensors, got)
				require.Equal(t, byte(' '), good[i])
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for name, change := range map[string]func(tensors []Tensor, metadata map[string]string){
		"no checksum":    func(_ []Tensor, m map[string]string) { delete(m, sumKey) },
		"a value":        func(x []Tensor, _ map[string]string) { x[1].Data.([]float64)[3] = 5 },
		"a name":         func(x []Tensor, _ map[string]string) { x[0].Name = "m" },
		"a shape":        func(x []Tensor, _ map[string]string) { x[1].Shape = []int{4} },
		"two names":      func(x []Tensor, _ map[string]string) { x[0].Name, x[2].Name = "v", "n" },
		"metadata":       func(_ []Tensor, m map[string]string) { m["k"] = "w" },
		"less metadata":  func(_ []Tensor, m map[string]string) { delete(m, "k") },
		"the checksum":   func(_ []Tensor, m map[string]string) { m[sumKey] = m[sumKey][1:] },
		"what Write has": func(x []Tensor, _ map[string]string) { x[0].Data = nil },
	} {
		tensors, metadata := sealed(t)
		change(tensors, metadata)
		require.Error(t, Check(tensors, metadata), name)
	}
	tensors, metadata := sealed(t)
	tensors[0], tensors[2] = tensors[2], tensors[0] // any order
	require.NoError(t, Check(tensors, metadata))
	require.Error(t, Seal([]Tensor{{"n", nil, nil}}, map[string]string{}))
}
