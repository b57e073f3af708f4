package updater

import (
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
)

// The epoch that ResetUpdaterVarsModStep counts from is one of all updaters that On made, as the state and the global step are.
func TestEpochIsShared(t *testing.T) {
	_, loss, w, b := model()
	u, err := New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "momentum", "learning_rate": 0, "reset_updater_vars_mod_step": 2}`))
	require.NoError(t, err)
	_, loss2, w2, b2 := model()
	short, err := u.On(loss2, G.Nodes{w2, b2})
	require.NoError(t, err)
	first, other := must(u.NewMachine()), must(short.NewMachine())

	run := func(vm G.VM, momentum float64) {
		t.Helper()
		require.NoError(t, vm.RunAll())
		require.Equal(t, []float64{momentum}, floats(u.Slot(b, "momentum")))
	}
	// The gradient of b² is 6.
	require.NoError(t, u.StartEpoch())
	run(first, 6)
	run(first, 6+.9*6)
	run(other, 6) // the third run of the epoch
	require.NoError(t, u.StartEpoch())
	run(other, 6) // the first: without the announcement it would go on
	run(other, 6+.9*6)
	run(first, 6)
	require.NoError(t, short.StartEpoch())
	run(first, 6)
}
