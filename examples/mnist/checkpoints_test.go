package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"optimop/updater/loop"
)

// trainUntil trains on the small subset with flags, up to a batch if that is not 0, and returns the weights.
func trainUntil(t *testing.T, batch int, args ...string) [][]float32 {
	t.Helper()
	cfg, err := parseFlags(append([]string{"-data", subset, "-model", "logreg", "-epochs", "3", "-batch", "300"}, args...), io.Discard)
	require.NoError(t, err)
	data, err := openData(cfg.data, io.Discard)
	require.NoError(t, err)
	m, err := newTrainer(cfg, data)
	require.NoError(t, err)
	defer m.close()
	l := m.training(cfg.epochs, func(int) *progress { return &progress{} }, func(epochResult) error { return nil })
	if cfg.checkpoints != "" {
		require.NoError(t, m.keep(l, cfg, io.Discard))
	}
	if batch > 0 {
		l.Callbacks = append(l.Callbacks, loop.FinishAfter(loop.AfterBatches(batch)))
	}
	require.NoError(t, l.Run(context.Background()))
	l.Close()
	var weights [][]float32
	for _, w := range m.model.weights {
		weights = append(weights, slices.Clone(w.Float32s()))
	}
	return weights
}

// A run that is stopped, amid an epoch or between two, goes on to the same weights bit for bit, in each host and with a config.
func TestResume(t *testing.T) {
	for _, flags := range [][]string{
		{"-host", "graph"}, {"-host", "step"}, {"-host", "expanded"}, {"-solver", "momentum"}, {"-config", "configs/ranger.yaml"},
	} {
		want := trainUntil(t, 0, flags...)
		folder := t.TempDir()
		keep := append(slices.Clone(flags), "-checkpoints", folder, "-resume")
		for _, batch := range []int{4, 7, 13} { // 7 end the first epoch, the last of which is short
			require.NotEqual(t, want, trainUntil(t, batch, keep...))
		}
		require.Equal(t, want, trainUntil(t, 0, keep...), flags)
		require.FileExists(t, filepath.Join(folder, "best.safetensors"))
	}
}

// The flags of the program, and what is no run to go on with.
func TestCheckpointFlags(t *testing.T) {
	folder := t.TempDir()
	args := []string{"-data", subset, "-model", "logreg", "-epochs", "1", "-checkpoints", folder, "-resume"}
	var out, notes bytes.Buffer
	require.NoError(t, run(args, &out, &notes))
	require.Contains(t, notes.String(), "there is no checkpoint in "+folder)
	require.Contains(t, out.String(), "epoch 1: ")
	out.Reset()
	require.NoError(t, run(args, &out, io.Discard))
	require.NotContains(t, out.String(), "epoch", "the training is done")
	for want, flags := range map[string][]string{
		"the checkpoint is of -model logreg -batch 100 -seed 1 -epochs 1": {"-seed", "2"},
		"-resume needs -checkpoints":                                      {"-checkpoints", ""},
		"-checkpoints conflicts with -lr-find":                            {"-lr-find", "x.png"},
	} {
		err := run(append(slices.Clone(args), flags...), io.Discard, io.Discard)
		require.ErrorContains(t, err, want)
		require.Equal(t, 2, exitCode(err), want)
	}
	require.NoError(t, os.RemoveAll(folder))
}
