package solvers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's table of optimizers is what the registry says: names, hyperparameters and defaults.
func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| `(New\\w+)` \\| (.*) \\|$")
	var names []string
	constructors := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		name, constructor, hyper := m[1], m[2], m[3]
		names = append(names, name)
		constructors[constructor] = true
		factory, err := Lookup(name)
		require.NoError(t, err)
		s := New(factory())
		var have []string
		for _, f := range s.rules[0].fields {
			have = append(have, fmt.Sprintf("%s %v", f.name, *f.value))
		}
		require.ElementsMatch(t, strings.Split(hyper, ", "), have, name)
	}
	require.Equal(t, Names(), names)
	require.Equal(t, constructors, exportedConstructors(t))
}

// exportedConstructors are the functions New… of the package, but for New itself.
func exportedConstructors(t *testing.T) map[string]bool {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "New") && fn.Name.Name != "New" {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}
