package updater

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/solvers"
	"optimop/solvers/schedule"
)

// What is written is read as the same config.
func TestConfigRoundTrip(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{"optimizer": "adam", "learning_rate": 0, "optimizer_epsilon": 0, "gradient_clip": 1.5, "seed": 7, "debug_save_updater_vars": true}`,
		`{"optimizer": {"class": "adam", "beta1": 0.5, "beta2": {"class": "constant", "value": 0.9}}, "learning_rate": {"class": "noam", "d_model": 4, "warmup_steps": 10},
			"dynamic_learning_rate": {"interval": 3, "decay": 0.5}, "updater_opts": [{"match": "*", "tags": "a", "l2": 0, "gradient_clip": 0}, {"match": "/w/", "optimizer": {"beta1": 0.1}, "debug_grad_summaries": false}]}`,
	} {
		c := config(t, text)
		written, err := json.Marshal(c)
		require.NoError(t, err)
		again, err := ReadConfig(strings.NewReader(string(written)))
		require.NoError(t, err, string(written))
		require.Equal(t, c, again)
	}
	_, _, w, _ := model()
	for want, c := range map[string]Config{
		"optimizer: a *solvers.Solver has no form":       {Optimizer: solvers.NewAdam()},
		"updater_opts[0].Vars: variables have no form":   {UpdaterOpts: []VarOptions{{Vars: G.Nodes{w}}}},
		"dynamic_learning_rate: schedule: a schedule.Fu": {DynamicLearningRate: schedule.Func(func(s schedule.Expr) schedule.Expr { return s })},
	} {
		_, err := json.Marshal(c)
		require.ErrorContains(t, err, want)
	}
}
