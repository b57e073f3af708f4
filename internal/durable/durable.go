// Package durable writes files that are whole whatever happens: a killed process, a full disk, a loss of power.
package durable

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pkg/errors"
)

// infix is between the name of a file and the random end of that of the temporary file beside it.
const infix = ".tmp-"

// file is what is written to.
type file interface {
	io.Writer
	Name() string
	Chmod(os.FileMode) error
	Sync() error
	Close() error
}

// create makes the temporary file.
func create(dir, pattern string) (file, error) { return os.CreateTemp(dir, pattern) }

// WriteFile makes write's output the content of a file. It is written to a temporary file beside it, brought to the disk,
// and then moved to its place, and the folder is brought to the disk, too. So at each instant the path has the old file or
// the new one, whole; after an error the old one, but for one of the last step, the folder's, which says so. A process that
// is killed may leave the temporary file, <name>.tmp-<number>: see Leftovers.
func WriteFile(path string, write func(io.Writer) error) error {
	return writeFile(path, write, create)
}

func writeFile(path string, write func(io.Writer) error, create func(dir, pattern string) (file, error)) (err error) {
	dir := filepath.Dir(path)
	f, err := create(dir, filepath.Base(path)+infix+"*")
	if err != nil {
		return errors.WithStack(err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name()) // there is none where it was moved
		}
	}()
	err = fill(f, write)
	if e := f.Close(); err == nil {
		err = errors.WithStack(e)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.WithStack(err)
	}
	return errors.Wrapf(syncFolder(dir), "%s was written, but a loss of power may bring the old file back", path)
}

// fill writes the file and brings it to the disk.
func fill(f file, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<16) // which makes an error of a short write
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return errors.WithStack(err)
	}
	if err := f.Chmod(0o644); err != nil {
		return errors.WithStack(err)
	}
	return errors.WithStack(f.Sync())
}

// syncFolder brings the names in a folder to the disk. Windows has no such thing.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Leftovers are the paths of the temporary files in a folder that processes left which were killed, or that others are
// writing just now.
func Leftovers(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), infix) && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// Remove deletes a file for good.
func Remove(path string) error {
	if err := os.Remove(path); err != nil {
		return errors.WithStack(err)
	}
	return errors.WithStack(syncFolder(filepath.Dir(path)))
}
