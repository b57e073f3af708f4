package loop

import (
	"iter"

	"github.com/pkg/errors"
)

// source is the open iterator of an epoch. It outlives a run that ends in the middle of the epoch.
type source struct {
	next func() (map[string]any, error, bool)
	stop func()
}

// open makes the iterator of the present epoch if there is none, and passes over what was taken of it. It reports whether there are data.
func (r *source) open(data func(epoch int) Batches, s *Status) (bool, error) {
	if r.next != nil {
		return true, nil
	}
	seq := data(s.EpochsDone)
	if seq == nil {
		return false, nil
	}
	r.next, r.stop = iter.Pull2(seq)
	for i := range s.Taken {
		if _, err, ok := r.next(); err != nil || !ok {
			r.close()
			if err == nil {
				err = errors.Errorf("it has only %d", i)
			}
			return false, errors.WithMessagef(err, "loop: passing over the %d batches of epoch %d that were done", s.Taken, s.EpochsDone+1)
		}
	}
	return true, nil
}

func (r *source) read() (map[string]any, bool, error) {
	b, err, ok := r.next()
	return b, ok, err
}

func (r *source) close() {
	if r.stop != nil {
		r.stop()
	}
	*r = source{}
}
