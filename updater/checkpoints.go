package updater

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/durable"
)

// Checkpoints keeps the last snapshots of a training, and the best one, in a folder of its own. Its files are
// step-<global step>.safetensors and best.safetensors, each whole whatever happens (see Snapshot.WriteFile). A Checkpoints has no state but
// the files, so that a process that goes on with the folder knows all. It is for one process and one goroutine at a time.
type Checkpoints struct {
	Folder string // made when it is needed
	Keep   int    // how many of the last are kept; 0: 3
	Higher bool   // scores are better if they are higher, as accuracies; otherwise lower, as losses
}

const (
	stepPrefix = "step-"
	bestName   = "best"
	extension  = ".safetensors"
	scoreNote  = "score"
)

// Save writes a snapshot to the folder, and then deletes what is more than Keep, and what killed processes left. It returns the path.
func (c Checkpoints) Save(s *Snapshot) (path string, err error) {
	path = filepath.Join(c.Folder, fmt.Sprintf("%s%012d%s", stepPrefix, s.GlobalStep(), extension))
	if err := c.write(s, path); err != nil {
		return "", errors.Wrap(err, "updater: Checkpoints")
	}
	return path, errors.Wrapf(c.prune(path), "updater: Checkpoints: %s was written", path)
}

// SaveIfBest writes a snapshot as the best one if its score is better than that of the one that is there, or if there is none. A score that
// is not a number is never better. The score is a note of the snapshot's, "score".
func (c Checkpoints) SaveIfBest(s *Snapshot, score float64) (saved bool, err error) {
	_, best, err := c.Best()
	switch {
	case err == nil && !c.better(score, best):
		return false, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return false, err
	case score != score:
		return false, nil
	}
	noted := *s
	noted.Notes = map[string]string{scoreNote: strconv.FormatFloat(score, 'g', -1, 64)}
	for key, v := range s.Notes { // into another map
		if key != scoreNote {
			noted.Notes[key] = v
		}
	}
	if err := c.write(&noted, c.best()); err != nil {
		return false, errors.Wrap(err, "updater: Checkpoints")
	}
	return true, nil
}

// Best is the path of the best snapshot and its score. That there is none is an error that is os.ErrNotExist.
func (c Checkpoints) Best() (path string, score float64, err error) {
	s, err := ReadSnapshotFile(c.best())
	if err == nil {
		score, err = strconv.ParseFloat(s.Notes[scoreNote], 64)
	}
	if err != nil {
		return "", 0, errors.Wrap(err, "updater: Checkpoints: the best")
	}
	return c.best(), score, nil
}

// Last is the path of the last snapshot that is whole: one that is damaged is passed over with a warning of log/slog. That there is none is
// an error that is os.ErrNotExist.
func (c Checkpoints) Last() (path string, err error) {
	paths, err := c.List()
	if err != nil {
		return "", err
	}
	for _, path := range slices.Backward(paths) {
		_, err := ReadSnapshotFile(path)
		if err == nil {
			return path, nil
		}
		slog.Warn("a checkpoint cannot be used; looking for the one before", "error", err)
	}
	return "", errors.Wrapf(os.ErrNotExist, "updater: Checkpoints: no checkpoint in %s", c.Folder)
}

// List are the paths of the snapshots of Save, by their steps; none if there is no such folder.
func (c Checkpoints) List() (paths []string, err error) {
	entries, err := os.ReadDir(c.Folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Wrap(err, "updater: Checkpoints")
	}
	type numbered struct {
		step uint64
		path string
	}
	var all []numbered
	for _, e := range entries {
		digits, isStep := strings.CutPrefix(strings.TrimSuffix(e.Name(), extension), stepPrefix)
		step, err := strconv.ParseUint(digits, 10, 64)
		if isStep && err == nil && strings.HasSuffix(e.Name(), extension) && e.Type().IsRegular() {
			all = append(all, numbered{step, filepath.Join(c.Folder, e.Name())})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.step, b.step) })
	for _, n := range all {
		paths = append(paths, n.path)
	}
	return paths, nil
}

func (c Checkpoints) best() string { return filepath.Join(c.Folder, bestName+extension) }

// better reports whether a score is better than another. NaN is worse than all.
func (c Checkpoints) better(score, than float64) bool {
	if c.Higher {
		return score > than
	}
	return score < than
}

func (c Checkpoints) write(s *Snapshot, path string) error {
	if c.Folder == "" {
		return errors.New("no Folder is given")
	}
	if c.Keep < 0 {
		return errors.Errorf("Keep is %d; it must be 1 or more, or 0 for 3", c.Keep)
	}
	if err := os.MkdirAll(c.Folder, 0o755); err != nil {
		return errors.WithStack(err)
	}
	return s.WriteFile(path)
}

// prune deletes the oldest snapshots, but never the one that was just written, and leftovers. Training that begins anew in an old folder
// would otherwise lose its own.
func (c Checkpoints) prune(last string) error {
	paths, err := c.List()
	if err != nil {
		return err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return p == last })
	gone, err := durable.Leftovers(c.Folder)
	if err != nil {
		return err
	}
	gone = append(gone, paths[:max(0, len(paths)-cmp.Or(c.Keep, 3)+1)]...)
	for _, p := range gone {
		if err := durable.Remove(p); err != nil {
			return err
		}
	}
	return nil
}
