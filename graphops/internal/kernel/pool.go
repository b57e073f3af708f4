package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// minGroups is the number of groups from which on the work is shared out.
const minGroups = 3

// workers is the pool of all programs: what is shared out is memory bandwidth, of which there is only one. Whoever finds it
// taken works alone.
var workers pool

type pool struct {
	busy    sync.Mutex
	helpers []*helper
	job     job
}

// job is the present dispatch. Helpers that come late find its groups taken.
type job struct {
	state atomic.Uint64 // the number of groups, and in the lower half that of those claimed
	done  atomic.Int64  // groups
	p     *Program
	w     *work
}

// helper is a goroutine of the pool, which waits for work: a while by looking, then asleep.
type helper struct {
	calls  atomic.Uint32
	asleep atomic.Bool
	wake   chan struct{}
	worker worker
}

// patience is how long a helper looks for work before it goes to sleep. Waking it takes about 30 µs, and a step of a thousand
// tensors begins with 70 µs of other work.
const patience = 100 * time.Microsecond

// run does w on at most GOMAXPROCS goroutines, and reports false where it cannot.
func (pl *pool) run(p *Program, w *work) bool {
	n := min(runtime.GOMAXPROCS(0), w.count()) - 1
	if n < 1 || !pl.busy.TryLock() {
		return false
	}
	defer pl.busy.Unlock()
	for len(pl.helpers) < n {
		h := &helper{wake: make(chan struct{}, 1)}
		pl.helpers = append(pl.helpers, h)
		go h.loop(&pl.job)
	}
	j := &pl.job
	j.p, j.w = p, w
	j.done.Store(0)
	j.state.Store(uint64(w.count()) << 32)
	for _, h := range pl.helpers[:n] {
		h.calls.Add(1)
		if h.asleep.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
	j.work(&p.self)
	for i := 0; j.done.Load() != int64(w.count()); i++ {
		if i > 1000 {
			runtime.Gosched()
		}
	}
	j.p, j.w = nil, nil
	return true
}

// work does groups until there are none left.
func (j *job) work(wk *worker) {
	for {
		x := j.state.Add(1) - 1
		g := int(uint32(x))
		if g >= int(x>>32) {
			return
		}
		// The dispatch waits for this group, so what it reads here cannot change.
		if wk != &j.p.self {
			wk.reserve(j.p.sizes)
		}
		j.p.group(wk, j.w, g)
		j.done.Add(1)
	}
}

func (h *helper) loop(j *job) {
	for last := uint32(0); ; {
		h.wait(last)
		last = h.calls.Load()
		j.work(&h.worker)
	}
}

// wait returns once there is a call after the last.
func (h *helper) wait(last uint32) {
	start := time.Now()
	for i := 1; h.calls.Load() == last; i++ {
		if i%256 != 0 || time.Since(start) < patience {
			continue
		}
		h.asleep.Store(true)
		if h.calls.Load() != last && h.asleep.CompareAndSwap(true, false) {
			return
		}
		<-h.wake
		return
	}
}
