package kernel

import (
	"bytes"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// busy is a program whose passes and reductions several workers share, with the arrays it begins with.
func busy(scale float64) (nodes []Node, stores []Store, in []Array) {
	var b Builder
	total := b.Add(Node{Op: Const})
	elem := func(op Op, n int, args ...int) int {
		x := Node{Op: op, Elem: true, Len: n}
		copy(x.Args[:], args)
		return b.Add(x)
	}
	factor := b.Add(Node{Op: Const, Bits: math.Float64bits(scale)})
	for i, n := range []int{32767, 32768, 32769, 100003, 17, 40000} {
		w, m := vector(&b, 2*i, n), vector(&b, 2*i+1, n)
		root := elem(Add, n, elem(Sqrt, n, elem(Abs, n, m)), factor)
		total = b.Add(Node{Op: Add, Args: [3]int{total, b.Add(Node{Op: SumSquares, Args: [3]int{elem(Sub, n, w, m)}})}})
		stores = append(stores, Store{2*i + 1, elem(Add, n, elem(Mul, n, w, factor), elem(Mul, n, m, factor)), -1},
			Store{2 * i, elem(Sub, n, w, elem(Div, n, m, root)), -1})
		for k := range 2 {
			x := make([]float64, n)
			for j := range x {
				x[j] = float64((j*(7+k)+i)%101) / 16
			}
			in = append(in, Of(x))
		}
	}
	stores = append(stores, Store{len(in), total, -1})
	return b.nodes, stores, append(in, Of(make([]float64, 1)))
}

// Programs of several goroutines share the pool of workers, whatever else happens: the number of processors changes, the
// garbage collector looks at stacks all the time, and a profiler interrupts the machine's code. The results stay the same.
func TestStress(t *testing.T) {
	const rounds = 300
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	if pprof.StartCPUProfile(io.Discard) == nil { // else the tests are being profiled already
		defer pprof.StopCPUProfile()
	}
	stop := make(chan struct{})
	var others, programs sync.WaitGroup
	others.Go(func() {
		var keep [64][]*int
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			keep[i%len(keep)] = append([]*int(nil), make([]*int, 100)...)
			if i%512 == 0 {
				runtime.GOMAXPROCS(1 + i/512%4)
			}
			runtime.Gosched()
		}
	})
	for _, scale := range []float64{.5, .25} {
		programs.Go(func() {
			nodes, stores, want := busy(scale)
			_, _, begin := busy(scale)
			if err := (&Builder{nodes: slices.Clone(nodes)}).program(stores, nil, nil).Run(want, nil); err != nil {
				t.Error(err)
			}
			p := (&Builder{nodes: nodes}).program(stores, nil, fastest())
			_, _, in := busy(scale)
			for range rounds {
				for i := range in {
					Copy(in[i], begin[i])
				}
				if err := p.Run(in, nil); err != nil {
					t.Error(err)
				}
				for i := range in {
					if !bytes.Equal(want[i].bytes(), in[i].bytes()) { // there is no NaN
						t.Errorf("array %d differs", i)
						return
					}
				}
			}
		})
	}
	programs.Wait()
	close(stop)
	others.Wait()
	require.False(t, t.Failed())
}
