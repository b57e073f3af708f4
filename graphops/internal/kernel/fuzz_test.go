package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas/gonum"
)

func of64(b []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// program compiles the program for a machine.
func (r *random) program(m *machine) *Program {
	return (&Builder{nodes: slices.Clone(r.b.nodes)}).program(r.stores, gonum.Implementation{}, m)
}

// runs is how often a program runs: the second time what was found in the first is remembered.
const runs = 2

// outcome is what a program does: its memory, and its errors by run.
type outcome struct {
	memory []byte
	errs   [runs]error
}

// run does the program in memory of its own.
func (r *random) run(p *Program) (o outcome) {
	o.memory = aligned(r.size)
	copy(o.memory, r.memory)
	in := r.bind(o.memory)
	for i := range runs {
		o.errs[i] = p.Run(in, nil)
	}
	return o
}

// expect is what the plain Go loops do where every store has an array of its own, which nobody reads.
func (r *random) expect() (o outcome) {
	o.memory = aligned(r.size)
	copy(o.memory, r.memory)
	in := r.bind(o.memory)
	all, stores := in, slices.Clone(r.stores)
	for i := range stores {
		a := in[stores[i].Leaf]
		a.Ptr = unsafe.Pointer(unsafe.SliceData(aligned(len(a.bytes()))))
		all, stores[i].Leaf = append(all, a), len(all)
	}
	p := (&Builder{nodes: slices.Clone(r.b.nodes)}).program(stores, gonum.Implementation{}, nil)
	for run := range runs {
		err := p.Run(all, nil)
		for i, s := range r.stores {
			for j := range i {
				if err == nil && p.Written(i) && p.Written(j) && r.overlap(s.Leaf, r.stores[j].Leaf) {
					err = ConflictError{}
				}
			}
		}
		for i, s := range r.stores {
			if err == nil && p.Written(i) && in[s.Leaf].Len > 0 {
				Copy(in[s.Leaf], all[stores[i].Leaf])
			}
		}
		o.errs[run] = err
	}
	return o
}

// compare compares outcomes bit for bit; any NaN equals any other. Of two conflicts any may be reported.
func (r *random) compare(want, got outcome) error {
	for i := range runs {
		var a, b ConflictError
		if w, g := want.errs[i], got.errs[i]; fmt.Sprint(w) != fmt.Sprint(g) && !(errors.As(w, &a) && errors.As(g, &b)) {
			return fmt.Errorf("the error of run %d is %v, not %v", i, g, w)
		}
	}
	in, out := r.bind(want.memory), r.bind(got.memory)
	for i := range in {
		var err error
		switch in[i].Type {
		case Float32:
			err = same[float32](in[i], out[i])
		case Float64:
			err = same[float64](in[i], out[i])
		}
		if err != nil {
			return fmt.Errorf("array %d: %w", i, err)
		}
	}
	if !bytes.Equal(want.memory, got.memory) { // without NaNs
		return errors.New("memory between the arrays, or a counter, differs")
	}
	return nil
}

// same compares arrays, and makes their NaNs the same.
func same[T float](x, y Array) error {
	a, b := Elements[T](x), Elements[T](y)
	for i := range a {
		switch {
		case a[i] != a[i] && b[i] != b[i]:
			a[i], b[i] = T(math.NaN()), T(math.NaN())
		case math.Float64bits(float64(a[i])) != math.Float64bits(float64(b[i])):
			return fmt.Errorf("element %d is %v, not %v", i, b[i], a[i])
		}
	}
	return nil
}

// check compares plain Go and every machine, with several numbers of workers, with what is expected. visit sees the programs.
func (r *random) check(visit func(*machine, *Program)) error {
	want := r.expect()
	for _, m := range append(machines(), nil) {
		for procs := 1; procs <= 3; procs += 2 {
			p := r.program(m)
			old := runtime.GOMAXPROCS(procs)
			got := r.run(p)
			runtime.GOMAXPROCS(old)
			if err := r.compare(want, got); err != nil {
				return fmt.Errorf("%s, %d workers: %w%v", name(m), procs, err, r)
			}
			if visit(m, p); m == nil {
				break
			}
		}
	}
	return nil
}

func name(m *machine) string {
	if m == nil {
		return "go"
	}
	return m.name
}

// FuzzProgram compares plain Go and every machine, with one worker and with three, with plain Go on arrays of which none is
// both read and written.
func FuzzProgram(f *testing.F) {
	f.Add([]byte{0, 10, 4, 1, 2, 3, 20, 9, 1, 2, 3, 10, 1, 2, 9, 4, 5})
	for i := range 32 {
		f.Add(seeded(i, 300).data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, newRandom(&source{data}, edges).check(func(*machine, *Program) {}))
	})
}
