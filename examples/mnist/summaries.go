package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"optimop/updater"
	"optimop/updater/summary"
)

// The files of summaries, beside an event file of TensorBoard.
const (
	csvFile   = "summaries.csv"
	linesFile = "summaries.jsonl"
)

// summaries are the files that take the updater's numbers. A nil one takes none.
type summaries struct {
	writers []summary.Writer
	files   []io.Closer
}

// newSummaries makes the files in a folder, and that too if need be. Files of an earlier run are not touched: the event
// files of two runs in one folder would be one curve in TensorBoard.
func newSummaries(dir string) (*summaries, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, usageError{errors.Wrap(err, "-summaries")}
	}
	s := &summaries{}
	for _, f := range []struct {
		name   string
		writer func(io.Writer) summary.Writer
	}{{csvFile, summary.NewCSV}, {linesFile, summary.NewJSONLines}} {
		file, err := os.OpenFile(filepath.Join(dir, f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			s.close()
			return nil, usageError{errors.Wrap(err, "-summaries: each run needs a new folder")}
		}
		s.add(f.writer(file), file)
	}
	events, err := summary.TensorBoardFile(dir)
	if err != nil {
		s.close()
		return nil, errors.Wrap(err, "-summaries")
	}
	s.add(events, events)
	return s, nil
}

func (s *summaries) add(w summary.Writer, file io.Closer) {
	s.writers, s.files = append(s.writers, w), append(s.files, file)
}

// write writes the numbers of an updater's last run, if it was one that has some.
func (s *summaries) write(u *updater.Updater) error {
	if s == nil {
		return nil
	}
	r, ok, err := u.Summary()
	if err != nil || !ok {
		return err
	}
	for _, w := range s.writers {
		if err := w.Write(r); err != nil {
			return errors.Wrap(err, "writing summaries")
		}
	}
	return nil
}

func (s *summaries) close() {
	if s == nil {
		return
	}
	for _, f := range s.files {
		_ = f.Close() // each record is written at once: nothing is lost
	}
}
