// Package summary writes the scalars of a training run, such as the loss and the norm of the gradients, as CSV, as lines of
// JSON, or as event files of TensorBoard.
//
// A record reaches the io.Writer in one call of its Write and is never held back, so there is nothing to flush. After that call
// has failed, what it wrote may be half a record; the writer then writes no more, and each further Write returns that error. A
// record that is refused for its own faults has written nothing, and the next one can follow.
package summary

import (
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pkg/errors"
)

// Value is one scalar.
type Value struct {
	Tag   string // not empty, UTF-8
	Value float64
}

// Record is what is written for one step.
type Record struct {
	Step   int
	Time   time.Time // zero: now
	Values []Value   // each tag once
}

// Writer writes records. It is for one goroutine at a time.
type Writer interface {
	Write(Record) error
}

// WriteCloser is a Writer of a file of its own, which Close closes.
type WriteCloser interface {
	Writer
	io.Closer
}

// check returns an error if a tag is no tag, occurs twice, or is one of the names that the format has for itself.
func check(r Record, taken ...string) error {
	seen := make(map[string]bool, len(r.Values)+len(taken))
	for _, t := range taken {
		seen[t] = true
	}
	for _, v := range r.Values {
		switch {
		case v.Tag == "":
			return errors.Errorf("step %d: a value has no tag", r.Step)
		case !utf8.ValidString(v.Tag):
			return errors.Errorf("step %d: tag %q is not UTF-8", r.Step, v.Tag)
		case seen[v.Tag]:
			return errors.Errorf("step %d: tag %q occurs twice", r.Step, v.Tag)
		}
		seen[v.Tag] = true
	}
	return nil
}

// stream keeps the first error of an io.Writer.
type stream struct {
	w   io.Writer
	err error
}

func (s *stream) write(b []byte) error {
	if s.err == nil {
		n, err := s.w.Write(b)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		s.err = err
	}
	return s.err
}

// text is the shortest decimal number that reads back as v, or NaN, Infinity or -Infinity.
func text(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
