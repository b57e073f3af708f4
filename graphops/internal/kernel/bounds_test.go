//go:build linux

package kernel

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// fence is memory between two pages that nobody may touch.
type fence struct{ all, inside []byte }

func newFence(t *testing.T) *fence {
	page := os.Getpagesize()
	all, err := syscall.Mmap(-1, 0, 4*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(all)) })
	require.NoError(t, syscall.Mprotect(all[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(all[3*page:], syscall.PROT_NONE))
	return &fence{all, all[page : 3*page]}
}

const guard = 0xa5

// put copies an array to the end of a fence, or to the beginning.
func (f *fence) put(a Array, end bool) Array {
	for i := range f.inside {
		f.inside[i] = guard
	}
	at := 0
	if end {
		at = len(f.inside) - len(a.bytes())
	}
	b := Array{unsafe.Add(unsafe.Pointer(unsafe.SliceData(f.inside)), at), a.Len, a.Type}
	if a.Len > 0 {
		Copy(b, a)
	}
	return b
}

// take copies an array back, and reports whether something beside it has changed.
func (f *fence) take(to, a Array) bool {
	at := int(uintptr(a.Ptr) - address(f.inside))
	for i, b := range f.inside {
		if b != guard && (i < at || i >= at+len(a.bytes())) {
			return false
		}
	}
	if a.Len > 0 {
		Copy(to, a)
	}
	return true
}

// No machine reads or writes outside of the arrays, whatever their lengths: a read would fault. What is read beside them in
// the same page must not matter, and what is written there would show.
func TestBounds(t *testing.T) {
	var fences []*fence
	for range 40 {
		fences = append(fences, newFence(t))
	}
	for n := range 201 {
		for seed := range 2 {
			s := seeded(1000*n+seed, 300)
			s.data[1] = 0 // no arrays that overlap
			r := newRandom(s, [][2]int{{1, n}, {n, 1}, {2, n}})
			want := r.expect()
			for _, m := range machines() {
				for _, end := range []bool{true, false} {
					got := outcome{memory: aligned(r.size)}
					copy(got.memory, r.memory)
					arrays := r.bind(got.memory)
					in := make([]Array, len(arrays))
					for i, a := range arrays {
						in[i] = fences[i].put(a, end)
					}
					p := r.program(m)
					for i := range runs {
						got.errs[i] = p.Run(in, nil)
					}
					for i, a := range arrays {
						require.True(t, fences[i].take(a, in[i]), "%s writes beside array %d of %v", m.name, i, r)
					}
					require.NoError(t, r.compare(want, got), "%s %v", m.name, r)
				}
			}
		}
	}
}

// The same for arrays of many strips that fill the pages.
func TestBoundsOfLongArrays(t *testing.T) {
	x, y := newFence(t), newFence(t)
	for _, m := range machines() {
		for n := 900; n < 1025; n++ {
			r := &random{}
			f := r.family(Float64, [2]int{1, n})
			r.leaf(f, 0, 0)
			r.leaf(f, r.size, 0)
			r.numbers()
			sum := r.add(Node{}, Sum, f.tensors[0])
			r.stores = []Store{{1, r.add(f.node(), Div, f.tensors[0], sum), -1}, {2, r.add(Node{}, MaxAll, f.tensors[1]), -1}}
			r.fill(seeded(n, 2))
			got := r.bind(r.memory)
			want := r.expect()
			in := append([]Array{x.put(got[0], true), y.put(got[1], true)}, got[2:]...)
			var errs [runs]error
			p := r.program(m)
			for i := range runs {
				errs[i] = p.Run(in, nil)
			}
			require.True(t, x.take(got[0], in[0]) && y.take(got[1], in[1]))
			require.NoError(t, r.compare(want, outcome{r.memory, errs}), "%s, %d elements", m.name, n)
		}
	}
}
