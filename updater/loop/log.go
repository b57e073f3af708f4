package loop

import (
	"iter"
	"maps"
	"slices"

	"github.com/pkg/errors"
)

// Records that a Loop makes.
const (
	FinishRequested = "training_finish_requested" // true, by a callback
	Finished        = "training_finished"         // true
	Failed          = "got_exception"             // the text of the error
)

// Row has the records of one iteration. Monitors write a float64, or for what is no scalar a *tensor.Dense of float64.
type Row map[string]any

// Status is how far a training is. It is all that a loop needs to go on with a training, beside what the algorithm saves: keep
// it with the weights, with encoding/gob, say, and give it to the Log of a new loop.
type Status struct {
	IterationsDone int   // batches
	EpochsDone     int   // complete ones
	EpochEnds      []int // IterationsDone at the end of each
	EpochStarted   bool
	Taken          int // batches that were taken from the data of the present epoch, also those that failed

	Numbers map[string]float64 // of callbacks: "best_cost"
}

// check refuses what no training comes to.
func (s *Status) check() error {
	if s.IterationsDone < 0 || s.EpochsDone < 0 || s.Taken < 0 {
		return errors.Errorf("loop: a status with %d iterations, %d epochs and %d batches of the present one; none can be less than 0",
			s.IterationsDone, s.EpochsDone, s.Taken)
	}
	return nil
}

// Number is one of Numbers.
func (s *Status) Number(name string) (float64, bool) {
	v, ok := s.Numbers[name]
	return v, ok
}

// SetNumber keeps a number of a callback.
func (s *Status) SetNumber(name string, v float64) {
	if s.Numbers == nil {
		s.Numbers = map[string]float64{}
	}
	s.Numbers[name] = v
}

// Log has a row of records for each iteration, where there are any. Row 0 is before the first batch, row i after batch i.
type Log struct {
	Status Status
	rows   map[int]Row
}

// NewLog makes an empty log.
func NewLog() *Log { return &Log{} }

// Row is that of an iteration. It is made where there is none.
func (l *Log) Row(iteration int) (Row, error) {
	if iteration < 0 {
		return nil, errors.Errorf("loop: there is no iteration %d", iteration)
	}
	return l.row(iteration), nil
}

func (l *Log) row(i int) Row {
	r := l.rows[i]
	if r == nil {
		if r = (Row{}); l.rows == nil {
			l.rows = map[int]Row{}
		}
		l.rows[i] = r
	}
	return r
}

// Current is the row after the batches done so far.
func (l *Log) Current() Row { return l.row(l.Status.IterationsDone) }

// Previous is the row one batch before Current; nil before the first batch.
func (l *Log) Previous() Row {
	if l.Status.IterationsDone == 0 {
		return nil
	}
	return l.row(l.Status.IterationsDone - 1)
}

// LastEpoch is the row at the end of the last complete epoch; nil if there is none.
func (l *Log) LastEpoch() Row {
	if n := len(l.Status.EpochEnds); n > 0 {
		return l.row(l.Status.EpochEnds[n-1])
	}
	return nil
}

// Get reads a record of the current row; it makes none.
func (l *Log) Get(name string) (v any, ok bool) {
	v, ok = l.rows[l.Status.IterationsDone][name]
	return v, ok
}

// Rows are the rows that there are, with their iterations, in order.
func (l *Log) Rows() iter.Seq2[int, Row] {
	return func(yield func(int, Row) bool) {
		for _, i := range slices.Sorted(maps.Keys(l.rows)) {
			if !yield(i, l.rows[i]) {
				return
			}
		}
	}
}

// Len is the number of rows.
func (l *Log) Len() int { return len(l.rows) }
