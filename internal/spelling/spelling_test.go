package spelling

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"LearningRate": "learning_rate", "Beta1": "beta1", "DModel": "d_model", "L2": "l2", "NSSteps": "ns_steps", "AMSGrad": "ams_grad", "": "",
	} {
		require.Equal(t, want, Snake(name))
		require.Equal(t, Fold(name), Fold(want))
	}
	require.Equal(t, "adam/learningrate", Fold("Adam/learning-Rate"))
}
