package updater

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"
)

// Optimizers have Keras' base options in configs, beside the config's own.
func TestBaseOptionsOfConfigs(t *testing.T) {
	c, err := ReadConfig(strings.NewReader(`{"learning_rate": 0.5, "gradient_clip": 1, "gradient_accumulation_steps": 2, "optimizer": {"class": "sgd",
		"weight_decay": 0.5, "exclude_from_weight_decay": ["bias"], "use_ema": true, "ema_momentum": 0.5, "constraints": [{"class": "box", "max_value": 4}]}}`))
	require.NoError(t, err)
	l := newLinear(tensor.Float64, initial{"kernel", 4.}, initial{"bias", 4.}, initial{"far", 9.})
	u, err := New(l.loss, l.vars, c)
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	l.run(t, vm, 8., -1., 0.)
	require.Equal(t, []float64{4, 4, 9}, append(append(elements(l.vars[0]), elements(l.vars[1])...), elements(l.vars[2])...))
	l.run(t, vm, 8., -1., 0.)
	require.Equal(t, []float64{2.5, 4, 4}, append(append(elements(l.vars[0]), elements(l.vars[1])...), elements(l.vars[2])...))
	require.Equal(t, []float64{4.5}, elements(u.Slot(l.vars[1], "average"))) // before the constraint

	for want, config := range map[string]string{
		"gradient_accumulation_steps is 1": `{"class": "adam", "gradient_accumulation_steps": 1}`,
		"ema_momentum is 2":                `{"class": "adam", "use_ema": true, "ema_momentum": 2}`,
	} {
		_, err := ReadConfig(strings.NewReader(`{"optimizer": ` + config + `}`))
		require.ErrorContains(t, err, want)
	}
}
