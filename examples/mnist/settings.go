package main

import (
	"os"

	"github.com/pkg/errors"

	"optimop/updater"
)

// readSettings reads a config of the updater. Its errors name the file and the key.
func readSettings(file string) (updater.Config, error) {
	f, err := os.Open(file)
	if err != nil {
		return updater.Config{}, errors.WithStack(err) // it has the name
	}
	defer f.Close()
	c, err := updater.ReadConfig(f)
	return c, errors.Wrap(err, file)
}

// useConfig makes the updater of the usual batch size at once, so that what is wrong with the config shows before the
// training.
func (t *trainer) useConfig(cfg config) (err error) {
	if t.settings, err = readSettings(cfg.file); err != nil {
		return usageError{errors.Wrap(err, "-config")}
	}
	if _, err = t.learner(min(t.batch, len(t.order))); err != nil {
		return usageError{errors.Wrapf(err, "-config %s", cfg.file)}
	}
	if cfg.plots() {
		return nil // nothing is trained
	}
	summing := t.updater.SummaryNode("global_grad_norm") != nil // every summary has it
	switch {
	case summing && cfg.summaries == "":
		return usagef("-config %s asks for summaries: name a folder for them with -summaries", cfg.file)
	case summing:
		t.summaries, err = newSummaries(cfg.summaries)
	case cfg.summaries != "":
		return usagef("-summaries %s: %s asks for none; give it a summary_interval", cfg.summaries, cfg.file)
	}
	return err
}

// useUpdater trains with the solver by an updater, which can look for its learning rate.
func (t *trainer) useUpdater() error {
	t.settings = updater.Config{Optimizer: t.solver, LearningRate: &t.rate}
	t.solver = nil
	_, err := t.learner(min(t.batch, len(t.order)))
	return err
}

// startEpoch tells the updater, whose config may go by the runs of an epoch.
func (t *trainer) startEpoch() error {
	if t.updater == nil {
		return nil
	}
	return t.updater.StartEpoch()
}

// skipped is the number of steps that the config let be skipped so far. Of the epoch's images so many had a loss: with none,
// nothing was learned, and nothing ever will be.
func (t *trainer) skipped(images int) (int, error) {
	if t.updater == nil {
		return 0, nil
	}
	total, _, _, err := t.updater.Skipped()
	if err == nil && images == 0 {
		err = errors.New("no step had a finite loss; a smaller learning_rate may help")
	}
	return total, err
}

// evaluate measures the accuracies on the test images, after which training goes on with the weights themselves.
func (t *trainer) evaluate() (accuracies, error) {
	own, err := t.accuracy(t.data.test)
	if err != nil || t.updater == nil {
		return accuracies{TestAccuracy: own}, err
	}
	averages, err := t.updater.Averages()
	if err != nil || !averages {
		return accuracies{TestAccuracy: own}, err
	}
	found := accuracies{WeightsAccuracy: &own}
	err = t.updater.WithAverages(func() (err error) {
		found.TestAccuracy, err = t.accuracy(t.data.test)
		return err
	})
	return found, err
}
