package kernel

import "unsafe"

// early is how many rows ahead of its turn a row is asked for: rows lie anywhere in memory, which takes its time for each, but not for
// many at once one after the other.
const early = 16

// Take makes row k of some a copy of row at[k] of whole.
func Take(some, whole Array, at []int) { each(some, whole, at, false) }

// Put makes row at[k] of whole a copy of row k of some.
func Put(whole, some Array, at []int) { each(some, whole, at, true) }

func each(some, whole Array, at []int, back bool) {
	if len(at) == 0 || some.Len == 0 {
		return
	}
	a, b := some.bytes(), whole.bytes()
	width := len(a) / len(at)
	for _, i := range at[:min(early, len(at))] {
		fetch(unsafe.Pointer(&b[i*width]), width)
	}
	for k, i := range at {
		if k+early < len(at) {
			fetch(unsafe.Pointer(&b[at[k+early]*width]), width)
		}
		to, from := a[k*width:][:width], b[i*width:][:width]
		if back {
			to, from = from, to
		}
		copy(to, from)
	}
}

// Fetch asks the memory for rows of a number of elements that will be copied soon.
func Fetch(whole Array, width int, at []int) {
	b, bytes := whole.bytes(), width*int(whole.Type.size())
	for _, i := range at {
		fetch(unsafe.Pointer(&b[i*bytes]), bytes)
	}
}
