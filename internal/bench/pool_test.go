package bench

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// chunk is how many elements a worker claims at a time: small enough that a worker that was disturbed does not keep the others
// waiting, large enough that claiming costs nothing.
const chunk = 32 << 10

// pool runs the loops that we compare with on several goroutines. They are persistent, and wait a moment for the next job
// before they sleep: waking a thread costs a good part of a step over a million elements.
type pool struct {
	job     atomic.Pointer[job]
	helpers []*helper
}

// job is new for each run, so that a helper that comes late finds nothing left to claim.
type job struct {
	n          int
	do         func(lo, hi int)
	next, left atomic.Int64 // chunks
}

type helper struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// newPool makes a pool of that many workers, of which the caller of run is one. stop ends the others.
func newPool(workers int) *pool {
	p := &pool{}
	for range workers - 1 {
		h := &helper{wake: make(chan struct{}, 1)}
		p.helpers = append(p.helpers, h)
		go p.help(h)
	}
	return p
}

func (p *pool) run(n int, do func(lo, hi int)) {
	if len(p.helpers) == 0 {
		do(0, n)
		return
	}
	j := &job{n: n, do: do}
	j.left.Store(int64((n + chunk - 1) / chunk))
	p.start(j)
	j.work()
	for j.left.Load() > 0 {
		runtime.Gosched()
	}
}

func (p *pool) stop() { p.start(&job{}) }

func (p *pool) start(j *job) {
	p.job.Store(j)
	for _, h := range p.helpers {
		if h.asleep.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
}

func (j *job) work() {
	for {
		lo := int(j.next.Add(1)-1) * chunk
		if lo >= j.n {
			return
		}
		j.do(lo, min(lo+chunk, j.n))
		j.left.Add(-1)
	}
}

func (p *pool) help(h *helper) {
	var last *job
	for {
		for start := time.Now(); p.job.Load() == last; {
			if time.Since(start) < 100*time.Microsecond {
				continue
			}
			h.asleep.Store(true)
			// A job that came in between is not announced: whoever clears asleep first decides whether there is a message.
			if p.job.Load() == last || !h.asleep.CompareAndSwap(true, false) {
				<-h.wake
			}
		}
		last = p.job.Load()
		if last.do == nil {
			return
		}
		last.work()
	}
}

// Each element is visited once, whether the helpers are awake or asleep.
func TestPool(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		p := newPool(workers)
		for i, n := range []int{1, chunk, chunk + 1, 10*chunk - 1, 0} {
			seen := make([]int32, n)
			for range 20 {
				p.run(n, func(lo, hi int) {
					for k := lo; k < hi; k++ {
						seen[k]++
					}
				})
				time.Sleep(time.Duration(i*50) * time.Microsecond)
			}
			for _, s := range seen {
				require.EqualValues(t, 20, s)
			}
		}
		p.stop()
	}
}
