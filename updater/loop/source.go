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
	var seq Batches
	if err := safely(func() error { seq = data(s.EpochsDone); return nil }); err != nil {
		return false, errors.WithMessagef(err, "loop: opening the data of epoch %d", s.EpochsDone+1)
	}
	if seq == nil {
		return false, nil
	}
	r.next, r.stop = iter.Pull2(seq)
	for i := range s.Taken {
		if _, ok, err := r.take(); err != nil || !ok {
			r.close()
			if err == nil {
				err = errors.Errorf("it has only %d", i)
			}
			return false, errors.WithMessagef(err, "loop: passing over the %d batches of epoch %d that were done", s.Taken, s.EpochsDone+1)
		}
	}
	return true, nil
}

// read takes the next batch of the present epoch. A callback may have closed the iterator.
func (r *source) read(data func(epoch int) Batches, s *Status) (map[string]any, bool, error) {
	if ok, err := r.open(data, s); err != nil || !ok {
		return nil, false, err
	}
	return r.take()
}

func (r *source) take() (b map[string]any, ok bool, err error) {
	panicked := safely(func() error { b, err, ok = r.next(); return nil })
	if panicked != nil {
		return nil, false, panicked
	}
	return b, ok, err
}

func (r *source) close() {
	if r.stop != nil {
		r.stop()
	}
	*r = source{}
}
