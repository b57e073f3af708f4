package updater

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"optimop/internal/durable"
)

var kills = flag.Int("kills", 20, "how often TestKill kills a process that saves")

const killPath = "OPTIMOP_TEST_KILL"

// wholeStep reads a file and returns the step that it is of.
func wholeStep(t *testing.T, path string) int {
	t.Helper()
	s, err := ReadSnapshotFile(path)
	require.NoError(t, err)
	for _, w := range s.Value("w").Data().([]float64) {
		require.Equal(t, float64(s.GlobalStep()), w)
	}
	return s.GlobalStep()
}

// TestKill kills, at random instants, a process that trains and saves after each step. The file is that of the last step that the
// process reported as saved, or of the next one, whole. `go test ./updater -run TestKill -kills 500` does it 500 times.
func TestKill(t *testing.T) {
	if path := os.Getenv(killPath); path != "" {
		saveForEver(t, path)
	}
	path := filepath.Join(t.TempDir(), "state")
	u, _ := saver(t)
	require.NoError(t, u.SaveFile(path))
	random, last := rand.New(rand.NewPCG(1, 2)), 0
	for range *kills {
		saved := saveAndKill(t, path, time.Duration(random.IntN(int(30*time.Millisecond))))
		now := wholeStep(t, path)
		require.GreaterOrEqual(t, now, max(last, saved))
		require.LessOrEqual(t, now, max(last, saved)+1)
		last = now
	}
	require.NotZero(t, last)
	left, err := durable.Leftovers(filepath.Dir(path))
	require.NoError(t, err)
	t.Logf("%d kills within %d saved steps; %d hit a file that was being written", *kills, last, len(left))
}

// saveForEver goes on from the file, and reports each step that is saved.
func saveForEver(t *testing.T, path string) {
	u, vm := saver(t)
	require.NoError(t, u.LoadFile(path))
	fmt.Println("from", must(u.GlobalStep()))
	for {
		require.NoError(t, vm.RunAll())
		vm.Reset()
		require.NoError(t, u.SaveFile(path))
		fmt.Println("saved", must(u.GlobalStep()))
	}
}

// saveAndKill starts the process, kills it some time after it has begun, and returns the last step that it reported.
func saveAndKill(t *testing.T, path string, after time.Duration) (saved int) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), killPath+"="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "from")
	time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	for lines.Scan() {
		if n, err := strconv.Atoi(lines.Text()[len("saved "):]); err == nil {
			saved = n
		}
	}
	require.Error(t, cmd.Wait()) // it was killed
	return saved
}

// small mounts a tiny file system of its own, or skips the test.
func small(t *testing.T) string {
	dir := t.TempDir()
	if err := mount(dir, "size=96k"); err != nil {
		t.Skipf("a full disk cannot be tried, as no small file system can be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	return dir
}

// A full disk is an error, and the old file stays.
func TestFullDisk(t *testing.T) {
	dir := small(t)
	path := filepath.Join(dir, "state")
	u, _ := practised(t, adamConfig, 2)
	require.NoError(t, u.SaveFile(path))
	old := must(os.ReadFile(path))
	large, _ := saver(t) // of 160 kB
	require.ErrorIs(t, large.SaveFile(path), syscall.ENOSPC)
	require.Equal(t, old, must(os.ReadFile(path)))
	require.Len(t, must(os.ReadDir(dir)), 1)
	require.NoError(t, u.SaveFile(path))
	c := Checkpoints{Folder: filepath.Join(dir, "run")}
	last := must(c.Save(must(u.Snapshot())))
	_, err := c.Save(must(large.Snapshot()))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, last, must(c.Last()))
}

// A folder that cannot be written to is an error, and the old file stays.
func TestReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	u, _ := practised(t, adamConfig, 2)
	require.NoError(t, u.SaveFile(path))
	old := must(os.ReadFile(path))
	if os.Geteuid() == 0 { // may write everywhere, but on a file system that is read-only
		if err := remount(dir); err != nil {
			t.Skipf("root may write to any folder, and none can be made read-only: %v", err)
		}
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	} else {
		require.NoError(t, os.Chmod(dir, 0o500))
		t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) })
	}
	err := u.SaveFile(path)
	require.Error(t, err)
	require.Contains(t, err.Error(), path)
	require.Equal(t, old, must(os.ReadFile(path)))
	require.NoError(t, u.LoadFile(path))
}

// limited is a writer that fails after some bytes, by an error or by a short write.
type limited struct {
	left  int
	short bool
}

func (l *limited) Write(b []byte) (int, error) {
	if len(b) <= l.left {
		l.left -= len(b)
		return len(b), nil
	}
	n := l.left
	l.left = 0
	if l.short {
		return n, io.ErrShortWrite
	}
	return n, syscall.EIO
}

// Wherever writing fails, Write says so.
func TestWriteFails(t *testing.T) {
	u, _ := practised(t, adamConfig, 2)
	s := must(u.Snapshot())
	whole := &limited{left: 1 << 20}
	require.NoError(t, s.Write(whole))
	for n := range 1<<20 - whole.left {
		require.ErrorIs(t, s.Write(&limited{left: n}), syscall.EIO)
		require.ErrorIs(t, s.Write(&limited{n, true}), io.ErrShortWrite)
	}
}

// mount makes a folder a file system in memory.
func mount(dir, options string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, options) }

// remount makes a folder read-only.
func remount(dir string) error {
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	if err != nil {
		_ = syscall.Unmount(dir, 0) // the error is that of the mount
	}
	return err
}
