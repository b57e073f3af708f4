package updater

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func bases(paths []string) (names []string) {
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names
}

func TestCheckpoints(t *testing.T) {
	u, _ := practised(t, adamConfig, 1)
	vm := must(u.NewMachine())
	c := Checkpoints{Folder: filepath.Join(t.TempDir(), "a", "b"), Keep: 2}
	_, err := c.Last()
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = c.Best()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, must(c.List()))
	for range 4 {
		path, err := c.Save(must(u.Snapshot()))
		require.NoError(t, err)
		require.Equal(t, path, must(c.Last()))
		require.NoError(t, os.WriteFile(path+".tmp-12", nil, 0o600)) // of a process that was killed
		runs(t, vm, 1)
	}
	require.Equal(t, []string{"step-000000000003.safetensors", "step-000000000004.safetensors"}, bases(must(c.List())))
	require.NoError(t, u.LoadFile(must(c.Last())))
	require.Equal(t, 4, must(u.GlobalStep()))

	// One that is damaged is passed over.
	log := logged(t, slog.LevelWarn)
	data := must(os.ReadFile(must(c.Last())))
	require.NoError(t, os.WriteFile(must(c.Last()), data[:len(data)/2], 0o600))
	require.Equal(t, "step-000000000003.safetensors", filepath.Base(must(c.Last())))
	require.Contains(t, log.String(), "step-000000000004")

	// A training from the start in an old folder keeps its own.
	require.NoError(t, u.Solver().Reset())
	runs(t, vm, 1)
	must(c.Save(must(u.Snapshot())))
	require.Equal(t, []string{"step-000000000001.safetensors", "step-000000000004.safetensors"}, bases(must(c.List())))
	entries := must(os.ReadDir(c.Folder))
	require.Len(t, entries, 2)
}

func TestBestCheckpoint(t *testing.T) {
	u, _ := practised(t, adamConfig, 1)
	s := must(u.Snapshot())
	s.Notes = map[string]string{"who": "me", "score": "mine"}
	for _, higher := range []bool{false, true} {
		c := Checkpoints{Folder: t.TempDir(), Higher: higher}
		sign := map[bool]float64{false: 1, true: -1}[higher]
		for _, x := range []struct {
			score float64
			saved bool
		}{{math.NaN(), false}, {2, true}, {3, false}, {2, false}, {math.NaN(), false}, {1.0 / 3, true}, {math.Inf(-1), true}} {
			saved, err := Checkpoints{Folder: c.Folder, Higher: higher}.SaveIfBest(s, sign*x.score)
			require.NoError(t, err)
			require.Equal(t, x.saved, saved, x.score)
		}
		path, score, err := c.Best()
		require.NoError(t, err)
		require.Equal(t, sign*math.Inf(-1), score)
		back := must(ReadSnapshotFile(path))
		require.Equal(t, "me", back.Notes["who"])
		require.Empty(t, must(c.List()))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		_, err = c.SaveIfBest(s, 0)
		require.Error(t, err, "a best one that is damaged is not overwritten")
	}
	require.Equal(t, "mine", s.Notes["score"])
}

func TestCheckpointsRefuse(t *testing.T) {
	u, _ := practised(t, adamConfig, 1)
	s := must(u.Snapshot())
	_, err := Checkpoints{}.Save(s)
	require.ErrorContains(t, err, "no Folder")
	_, err = Checkpoints{Folder: t.TempDir(), Keep: -1}.Save(s)
	require.ErrorContains(t, err, "Keep is -1")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Checkpoints{Folder: file}.Save(s)
	require.Error(t, err)
	_, err = Checkpoints{Folder: file}.SaveIfBest(s, 1)
	require.Error(t, err)
	_, err = Checkpoints{Folder: file}.List()
	require.Error(t, err)
}
