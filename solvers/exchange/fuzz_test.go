package exchange

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is in a file, it is read whole, or nothing is changed.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(folder + "*_[anr]*.safetensors")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b)
	}
	m := newModel(f, keras["base"], start())
	n := newModel(f, torch["nadam"], start())
	f.Fuzz(func(t *testing.T, b []byte) {
		for i, x := range []*model{m, n} {
			before := x.states(t)
			if []readFunc{kerasOf, torchOf}[i](b, x.s) != nil {
				require.Equal(t, before, x.states(t))
			}
		}
	})
}
