package updater

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each test that the README names as the proof of a promise exists.
func TestReadmePromises(t *testing.T) {
	readme := string(must(os.ReadFile("../README.md")))
	_, table, ok := strings.Cut(readme, "| promise | test |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+)`").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(names), 25)
	var code strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			code.Write(must(os.ReadFile(path)))
		}
		return err
	}))
	for _, n := range names {
		require.Contains(t, code.String(), "func "+n[1]+"(", n[1])
	}
}
