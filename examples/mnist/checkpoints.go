package main

import (
	"fmt"
	"io"
	"os"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/updater"
	"optimop/updater/loop"
)

// runNote is where a checkpoint says which run it is of.
const runNote = "run"

// saver is what is saved of a run. Another run cannot go on with it.
type saver struct {
	updater.Saver
	run  string
	seed uint64
}

// Snapshot implements updater.Saver.
func (s saver) Snapshot() (*updater.Snapshot, error) {
	x, err := s.Saver.Snapshot()
	if err == nil {
		x.Notes, x.Position.Seed = map[string]string{runNote: s.run}, s.seed
	}
	return x, err
}

// Restore implements updater.Saver.
func (s saver) Restore(x *updater.Snapshot, opts ...updater.LoadOpt) error {
	if was := x.Notes[runNote]; was != s.run {
		return usagef("-resume: the checkpoint is of %s; this is %s", was, s.run)
	}
	return s.Saver.Restore(x, opts...)
}

// saver makes the state of the training, where there is none yet, and what saves it.
func (t *trainer) saver(cfg config) (saver, error) {
	l, err := t.learner(min(t.batch, len(t.order)))
	if err != nil {
		return saver{}, err
	}
	s := saver{t.updater, fmt.Sprintf("-model %s -batch %d -seed %d -epochs %d on %d images", cfg.model, t.batch, cfg.seed, cfg.epochs,
		len(t.order)), cfg.seed}
	if t.updater == nil {
		if err := t.solver.Build(gorgonia.NodesToValueGrads(l.vars)); err != nil {
			return s, err
		}
		s.Saver = updater.SaverOf(t.solver, l.vars)
	}
	return s, nil
}

// keep lets a loop save each epoch, the best one, and what an interrupt leaves. With -resume it goes on with what was saved.
func (t *trainer) keep(l *loop.Loop, cfg config, stderr io.Writer) error {
	s, err := t.saver(cfg)
	if err != nil {
		return err
	}
	c := updater.Checkpoints{Folder: cfg.checkpoints, Higher: true}
	better := func(new, old float64) bool { return new > old }
	l.Callbacks = append(l.Callbacks,
		loop.TrackTheBest(loop.Best{Record: accuracyRecord, Better: better, Save: loop.SaveBest(s, c, accuracyRecord)}),
		loop.Checkpoint(s, c))
	if !cfg.resume {
		return nil
	}
	l.Log, err = loop.Resume(s, c, updater.SameConfig())
	if errors.Is(err, os.ErrNotExist) {
		_, err = fmt.Fprintf(stderr, "-resume: there is no checkpoint in %s; the training begins\n", cfg.checkpoints)
		return err
	}
	if err == nil {
		t.step = l.Log.Status.IterationsDone
	}
	return err
}
