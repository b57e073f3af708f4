package loop

import (
	"iter"

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
	rows   []Row // nil where there is none
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
	for len(l.rows) <= i {
		l.rows = append(l.rows, nil)
	}
	if l.rows[i] == nil {
		l.rows[i] = Row{}
	}
	return l.rows[i]
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
	if i := l.Status.IterationsDone; i < len(l.rows) {
		v, ok = l.rows[i][name]
	}
	return v, ok
}

// Rows are the rows that there are, with their iterations, in order.
func (l *Log) Rows() iter.Seq2[int, Row] {
	return func(yield func(int, Row) bool) {
		for i, r := range l.rows {
			if r != nil && !yield(i, r) {
				return
			}
		}
	}
}

// Len is the number of rows.
func (l *Log) Len() (n int) {
	for range l.Rows() {
		n++
	}
	return n
}
