package loop

import (
	"fmt"

	"github.com/pkg/errors"
)

// BatchError is an error at a batch. errors.As and errors.Is find its cause, and so does errors.Cause of github.com/pkg/errors.
type BatchError struct {
	Iteration int    // number of the batch, from 1, over all epochs
	Epoch     int    // from 1
	Batch     string // names and shapes of the sources: "x (2, 3), y (2)"; empty if there is no batch, as the data failed
	Err       error
}

func (e *BatchError) Error() string {
	at := fmt.Sprintf("loop: iteration %d, epoch %d", e.Iteration, e.Epoch)
	if e.Batch != "" {
		at += ", batch of " + e.Batch
	}
	return at + ": " + e.Err.Error()
}

func (e *BatchError) Unwrap() error { return e.Err }

// Cause is for errors.Cause of github.com/pkg/errors.
func (e *BatchError) Cause() error { return e.Err }

// safely makes an error of the panic of a function that is the user's. Its %+v has the stack of the panic, and errors.As and
// errors.Is find an error that was panicked with.
func safely(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = errors.Wrap(p, "panic")
		default:
			err = errors.Errorf("panic: %v", p)
		}
	}()
	return f()
}
