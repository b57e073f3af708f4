package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"
)

// ConflictError says that two stores write the same memory.
type ConflictError struct{ A, B int }

func (e ConflictError) Error() string { return fmt.Sprintf("stores %d and %d share memory", e.A, e.B) }

// plan remembers what place found, which mostly holds for the next run too.
type plan struct {
	arrays  []span       // by leaf: of its array
	waiting []*passStore // that must not write their targets before all passes are done
	targets []target
	filled  []target // those that are not empty, in the order of memory
	written []bool
}

type span struct{ lo, hi uintptr }

// target is a piece of memory that the run will write.
type target struct {
	span
	store int
	leaf  int
	pass  *pass // nil: a scalar
	slot  int   // index into pass.stores
}

// place refuses stores that share memory, and finds the ones that cannot be written in place since something else still has
// to read the old value there.
func (p *Program) place(memory func(leaf int) (lo, hi uintptr)) error {
	pl := &p.plan
	same := slices.Equal(pl.written, p.written) && len(pl.arrays) == len(p.arrays)
	if !same {
		pl.written, pl.arrays = append(pl.written[:0], p.written...), make([]span, len(p.arrays))
		pl.targets = p.list(pl.targets[:0])
	}
	for i, a := range p.arrays {
		lo, hi := a.Bytes()
		if s := (span{lo, hi}); s != pl.arrays[i] {
			pl.arrays[i], same = s, false
		}
	}
	if !same || memory != nil { // else no array is a copy of a target, and each is where it was
		for i := range pl.targets {
			t := &pl.targets[i]
			s := pl.arrays[t.leaf]
			if memory != nil {
				s.lo, s.hi = memory(t.leaf)
			}
			if s != t.span {
				t.span, same = s, false
			}
		}
	}
	if !same {
		if err := p.stage(); err != nil {
			pl.written = pl.written[:0] // look again next time
			return err
		}
	}
	if !same || p.moved {
		p.lay(p.work)
		p.moved = false
	}
	return nil
}

// list makes the targets of this run.
func (p *Program) list(targets []target) []target {
	for _, i := range p.scalars {
		if p.written[i] {
			targets = append(targets, target{store: i, leaf: p.stores[i].Leaf})
		}
	}
	for _, ps := range p.passes {
		for k, s := range ps.stores {
			if p.active(ps) {
				targets = append(targets, target{store: s.store, leaf: s.array, pass: ps, slot: k})
			}
		}
	}
	return targets
}

func (p *Program) stage() error {
	for _, s := range p.plan.waiting {
		s.wait = false
	}
	p.plan.waiting = p.plan.waiting[:0]
	slices.SortStableFunc(p.plan.targets, func(a, b target) int { return cmp.Compare(a.lo, b.lo) })
	filled := p.plan.filled[:0]
	for _, t := range p.plan.targets {
		if t.lo < t.hi {
			filled = append(filled, t)
		}
	}
	p.plan.filled = filled
	for i := 1; i < len(filled); i++ {
		if a, b := filled[i-1], filled[i]; b.lo < a.hi {
			return ConflictError{min(a.store, b.store), max(a.store, b.store)}
		}
	}
	// A store whose memory is written later, from the array that is a copy of it, writes that array before.
	for i := range filled {
		filled[i].span = p.plan.arrays[filled[i].leaf]
	}
	slices.SortFunc(filled, func(a, b target) int { return cmp.Compare(a.lo, b.lo) })
	for _, ps := range p.passes {
		if !p.active(ps) {
			continue
		}
		for _, leaf := range ps.leaves {
			lo, hi := p.arrays[leaf].Bytes()
			i, _ := slices.BinarySearchFunc(filled, lo, func(t target, lo uintptr) int {
				if t.hi <= lo {
					return -1
				}
				return 1
			})
			for ; i < len(filled) && filled[i].lo < hi; i++ {
				if t := filled[i]; t.pass != nil && (t.pass != ps || t.leaf != leaf) {
					s := &t.pass.stores[t.slot]
					if !s.wait {
						p.plan.waiting = append(p.plan.waiting, s)
					}
					s.hold(p.arrays[t.leaf])
				}
			}
		}
	}
	return nil
}

// hold makes a store wait until all passes are done.
func (s *passStore) hold(dst Array) {
	s.wait = true
	if n := (len(dst.bytes()) + 7) / 8; len(s.staged) < n {
		s.staged = make([]uint64, n)
	}
}

// staging is the array of the same form where a new value waits.
func (s *passStore) staging(dst Array) Array {
	dst.Ptr = unsafe.Pointer(unsafe.SliceData(s.staged))
	return dst
}
