package loop

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's section is the code of the example, and what it prints.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "### The training loop\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```")
	require.Len(t, blocks, 5)
	for _, b := range []string{blocks[1], blocks[3]} {
		lines := strings.Split(strings.TrimSpace(b), "\n")[1:]
		require.Greater(t, len(lines), 4)
		for _, line := range lines {
			line, _, _ = strings.Cut(line, " // ")
			require.Contains(t, string(example), strings.TrimSpace(line))
		}
	}
}
