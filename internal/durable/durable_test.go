package durable

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, WriteFile(path, text("1")))
	require.NoError(t, WriteFile(path, text("22")))
	require.Equal(t, "22", read(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
	left, err := Leftovers(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, Remove(path))
	require.NoFileExists(t, path)
	require.Error(t, Remove(path))
}

// faulty is a file of which one operation fails, or writes less than it should.
type faulty struct {
	*os.File
	fails string
}

var errFault = errors.New("no disk")

func (f faulty) is(operation string) error {
	if f.fails == operation {
		return errFault
	}
	return nil
}

func (f faulty) Write(b []byte) (int, error) {
	if f.fails == "short" {
		return f.File.Write(b[:len(b)/2])
	}
	if err := f.is("write"); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f faulty) Chmod(os.FileMode) error { return f.is("chmod") }
func (f faulty) Sync() error             { return f.is("sync") }

func (f faulty) Close() error {
	f.File.Close()
	return f.is("close")
}

// Whatever fails, the old file stays, and nothing is left beside it.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, WriteFile(path, text("old")))
	check := func(what string) {
		require.Equal(t, "old", read(t, path), what)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, what)
	}
	for _, what := range []string{"short", "write", "chmod", "sync", "close"} {
		err := writeFile(path, text("new, and longer"), func(dir, pattern string) (file, error) {
			f, err := os.CreateTemp(dir, pattern)
			return faulty{f, what}, err
		})
		want := errFault
		if what == "short" {
			want = io.ErrShortWrite
		}
		require.ErrorIs(t, err, want, what)
		check(what)
	}
	require.ErrorIs(t, WriteFile(path, func(w io.Writer) error {
		require.NoError(t, text("new")(w))
		return errFault
	}), errFault)
	check("the caller's")
	require.ErrorIs(t, WriteFile(filepath.Join(dir, "none", "a"), text("new")), os.ErrNotExist)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700))
	require.Error(t, WriteFile(filepath.Join(dir, "taken"), text("new"))) // a folder cannot be replaced by a file
	require.NoError(t, os.Remove(filepath.Join(dir, "taken")))
	check("a folder")
}

func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a.tmp-123", "tmp", "b.tmp-4"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	left, err := Leftovers(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a.tmp-123"), filepath.Join(dir, "b.tmp-4")}, left)
	_, err = Leftovers(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
