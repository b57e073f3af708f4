package loop

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/solvers"
	"optimop/updater"
)

// numbered is gradient descent with Adam on (w − data)², whose batches are those of ten.
func numbered(t testing.TB) (*updater.GradientDescent, *G.Node) {
	g := G.NewGraph()
	w := G.NewScalar(g, tensor.Float64, G.WithName("w"), G.WithValue(1.0))
	data := G.NewScalar(g, tensor.Float64, G.WithName("data"))
	cost := must(G.Square(must(G.Sub(w, data))))
	return must(updater.NewGradientDescent(updater.Descent{Cost: cost, Parameters: G.Nodes{w}, StepRule: solvers.NewAdam()})), w
}

func tenNumbers(epoch int) Batches {
	return func(yield func(map[string]any, error) bool) {
		for i := range 10 {
			if !yield(map[string]any{"data": math.Sin(float64(10*epoch + i))}, nil) {
				return
			}
		}
	}
}

// A training that ends amid an epoch goes on elsewhere with the next batch, and comes to the same.
func TestResume(t *testing.T) {
	callbacks := func(s updater.Saver, c updater.Checkpoints) []Callback {
		return []Callback{
			Do(func(e Event) error { e.Row()["cost"] = math.Abs(float64(e.Loop.Log.Status.EpochsDone) - 2); return nil }, AfterEpoch),
			TrackTheBest(Best{Record: "cost", Save: SaveBest(s, c, "cost")}),
			FinishAfter(AfterEpochs(4)), Checkpoint(s, c),
		}
	}
	a, want := numbered(t)
	whole := &Loop{Algorithm: a, Data: tenNumbers, Callbacks: callbacks(a, updater.Checkpoints{Folder: t.TempDir()})}
	run(t, whole)

	c := updater.Checkpoints{Folder: t.TempDir()}
	a, _ = numbered(t)
	_, err := Resume(a, c)
	require.ErrorIs(t, err, os.ErrNotExist)
	l := &Loop{Algorithm: a, Data: tenNumbers, Callbacks: append(callbacks(a, c), FinishAfter(AfterBatches(33)))}
	l.Log = NewLog()
	l.Log.Status.SetNumber("odd", math.Inf(-1))
	run(t, l)
	last := must(updater.ReadSnapshotFile(must(c.Last())))
	require.Equal(t, updater.Position{Epoch: 3, Batch: 3}, last.Position)
	require.Equal(t, 33, last.GlobalStep())

	b, w := numbered(t)
	log, err := Resume(b, c)
	require.NoError(t, err)
	require.Equal(t, l.Log.Status, log.Status)
	run(t, &Loop{Algorithm: b, Data: tenNumbers, Callbacks: callbacks(b, c), Log: log})
	require.Equal(t, want.Value(), w.Value())
	delete(log.Status.Numbers, "odd")
	require.Equal(t, whole.Log.Status, log.Status)

	path, score, err := c.Best()
	require.NoError(t, err)
	require.Zero(t, score)
	require.Equal(t, 20, must(updater.ReadSnapshotFile(path)).GlobalStep())
	require.ErrorContains(t, SaveBest(b, c, "none")(Event{Loop: l}), `the record "none" is <nil>, no number`)

	other := updater.Checkpoints{Folder: t.TempDir()}
	must(other.Save(must(b.Snapshot())))
	_, err = Resume(b, other)
	require.ErrorContains(t, err, "no status of a loop")
	for _, text := range []string{"", `{"Numbers":{"x":"y"}}`, `{"Taken":-1}`} {
		_, err = decodeStatus(text)
		require.Error(t, err)
	}
}

const interruptEnv = "OPTIMOP_TEST_INTERRUPT"

// TestInterrupt sends interrupts to a process that trains: the first lets it finish its batch and save, the second ends it within a batch.
func TestInterrupt(t *testing.T) {
	if folder := os.Getenv(interruptEnv); folder != "" {
		trainForEver(t, folder)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("there are no interrupts to send to a process")
	}
	for _, twice := range []bool{false, true} {
		folder := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestInterrupt$")
		cmd.Env = append(os.Environ(), interruptEnv+"="+folder)
		out := must(cmd.StdoutPipe())
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "in batch 3" {
		}
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		for lines.Scan() && lines.Text() != "stopping" {
		}
		c := updater.Checkpoints{Folder: folder}
		if twice {
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			err := cmd.Wait()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, syscall.SIGINT, exit.Sys().(syscall.WaitStatus).Signal())
			_, err = c.Last()
			require.ErrorIs(t, err, os.ErrNotExist)
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, "go"), nil, 0o600)) // lets the batch end
		for lines.Scan() {
		}
		require.NoError(t, cmd.Wait())
		require.Equal(t, 3, must(updater.ReadSnapshotFile(must(c.Last()))).GlobalStep())
	}
}

// trainForEver is the process. Its third batch takes until there is a file, and two minutes at most.
func trainForEver(t *testing.T, folder string) {
	a, _ := numbered(t)
	l := &Loop{Algorithm: a, Data: tenNumbers, Callbacks: []Callback{
		Do(func(e Event) error {
			n := e.Loop.Log.Status.IterationsDone + 1
			fmt.Println("in batch", n)
			for i := 0; n == 3 && i < 1200; i++ {
				if _, err := os.Stat(filepath.Join(folder, "go")); err == nil {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}, BeforeBatch),
		Checkpoint(a, updater.Checkpoints{Folder: folder}),
	}}
	defer StopOnInterrupt(l, func() { fmt.Println("stopping") })()
	run(t, l)
}
