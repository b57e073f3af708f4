package updater

import (
	"bytes"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// saver is a training whose state tells its step: the weights are the number of runs, all of them.
func saver(t testing.TB) (*Updater, G.VM) {
	g := G.NewGraph()
	w := G.NewVector(g, tensor.Float64, G.WithShape(20_000), G.WithName("w"), G.WithInit(G.Zeroes()))
	u := must(New(must(G.Neg(must(G.Sum(w)))), G.Nodes{w}, config(t, `{"learning_rate": 1}`)))
	return u, must(u.NewMachine())
}

// While one goroutine trains, others read slots, set and read hyperparameters, and save: each of them sees a state between two steps. (The
// race detector finds where it does not.)
func TestBetween(t *testing.T) {
	u, vm := saver(t) // each weight is the number of runs
	w := u.settings[0].node
	path := filepath.Join(t.TempDir(), "state")
	const steps = 200
	var all sync.WaitGroup
	done, failures := make(chan struct{}), make(chan error, 10)
	other := func(f func() error) {
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				if err := f(); err != nil {
					failures <- err
					return
				}
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
	}
	whole := func(v G.Value, step int) error {
		for _, x := range v.Data().([]float64) {
			if x != float64(step) {
				t.Errorf("a weight is %v after %d steps", x, step)
				break
			}
		}
		return nil
	}
	other(func() error { // a snapshot, written without hurry
		var s *Snapshot
		err := u.Between(func() (err error) { s, err = u.Snapshot(); return err })
		if err != nil {
			return err
		}
		if err := s.WriteFile(path); err != nil {
			return err
		}
		return whole(s.Value("w"), s.GlobalStep())
	})
	other(func() error {
		return u.Between(func() error {
			step, err := u.GlobalStep()
			if err != nil {
				return err
			}
			return whole(w.Value(), step)
		})
	})
	for range 2 {
		other(func() error {
			return u.Between(func() error {
				if err := u.SetLearningRate(2); err != nil {
					return err
				}
				if _, err := u.Solver().Get(learningRate); err != nil {
					return err
				}
				return u.SetLearningRate(1)
			})
		})
	}
	for range steps {
		require.NoError(t, vm.RunAll())
		vm.Reset()
	}
	close(done)
	all.Wait()
	require.Empty(t, failures)
	require.Equal(t, steps, must(u.GlobalStep()))
	require.NoError(t, whole(w.Value(), steps))
	require.NoError(t, u.LoadFile(path))
	require.ErrorContains(t, new(Updater).Between(nil), "make it with New")
}

// Updaters on graphs of their own train in parallel, with the numbers that they have alone.
func TestTwoUpdatersInParallel(t *testing.T) {
	const n, steps = 4, 12
	var nets [2 * n]*statefulNet
	for i := range nets { // Gorgonia's constants forbid to build graphs in parallel
		nets[i] = stateful(t, floatTypes[i%n%2], int64(i%n))
	}
	var all sync.WaitGroup
	for _, one := range nets[:n] {
		all.Go(func() { one.train(t, 0, steps) })
	}
	all.Wait()
	for i, one := range nets[n:] {
		one.train(t, 0, steps)
		require.Equal(t, one.values(t), nets[i].values(t))
	}
}

// A snapshot is the same for all who read it at once.
func TestSnapshotInParallel(t *testing.T) {
	n := stateful(t, tensor.Float32, 1)
	n.train(t, 0, 3)
	s := must(n.u.Snapshot())
	var out [4]bytes.Buffer
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() {
			if err := s.Write(&out[i]); err != nil {
				t.Error(err)
			}
		})
	}
	n.train(t, 3, 6)
	all.Wait()
	for i := range out {
		require.Equal(t, out[0].Bytes(), out[i].Bytes())
	}
}
