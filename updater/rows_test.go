package updater

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// A config names a mode for rows, and the gradient stays one of rows through a clip.
func TestRowsInConfigs(t *testing.T) {
	before := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, dt := range floatTypes {
		for _, optimizer := range []string{`"addons/lazyadam"`, `"lazy_adam"`, `{"class": "rows", "mode": "lazy", "rule": {"class": "adamw", "weight_decay": 0.5}}`} {
			loss, table := embedding(dt, false)
			u := must(New(loss, G.Nodes{table}, config(t, `{"learning_rate": 0.5, "gradient_clip_global_norm": 1, "optimizer": `+optimizer+`}`)))
			require.NoError(t, must(u.NewMachine()).RunAll())
			after := elements(table)
			require.Equal(t, append(before[:2:2], before[4:6]...), append(after[:2:2], after[4:6]...), optimizer)
			require.NotEqual(t, before[2], after[2])
		}
	}
}

// What is saved has caught up: it is what it is with whole gradients, and training goes on from it.
func TestRowsThatCatchUpAreSaved(t *testing.T) {
	build := func(mode string) (*Updater, G.VM, *G.Node) {
		n := &net{g: G.NewGraph()}
		table := n.matrix(G.Float64, "table", 4, 2, []float64{1, 2, 3, 4, 5, 6, 7, 8})
		rows := G.NewVector(n.g, tensor.Int, G.WithShape(2), G.WithName("rows"), G.WithValue(tensor.New(tensor.WithBacking([]int{1, 3}))))
		loss := must(G.Sum(must(G.Square(must(graphops.Gather(table, rows))))))
		u := must(New(loss, G.Nodes{table}, config(t, fmt.Sprintf(
			`{"learning_rate": 0.1, "optimizer": {"class": "rows", "mode": "%s", "rule": {"class": "adamw", "weight_decay": 0.1}}}`, mode))))
		return u, must(u.NewMachine()), table
	}
	lazy, vm, table := build("catch_up")
	_, whole, want := build("dense")
	for range 3 {
		require.NoError(t, vm.RunAll())
		require.NoError(t, whole.RunAll())
	}
	require.Equal(t, 1., elements(table)[0])
	path := filepath.Join(t.TempDir(), "u.safetensors")
	require.NoError(t, lazy.SaveFile(path))
	require.InDeltaSlice(t, elements(want), elements(table), 1e-13)
	require.NoError(t, vm.RunAll())
	require.NoError(t, lazy.LoadFile(path))
	require.InDeltaSlice(t, elements(want), elements(table), 1e-13)
	require.NoError(t, vm.RunAll())
	require.NoError(t, whole.RunAll())
	require.NoError(t, lazy.Solver().CatchUp())
	require.InDeltaSlice(t, elements(want), elements(table), 1e-13)
}
