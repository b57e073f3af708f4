package solvers

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"optimop/internal/spelling"
)

var update = flag.Bool("update", false, "write the README's tables of optimizers anew")

const (
	tableBegin = "<!-- optimizers: written by `go test ./solvers -run Readme -update` -->\n"
	tableEnd   = "<!-- end of optimizers -->\n"
)

// The README's tables are what the registry says.
func TestReadmeTables(t *testing.T) {
	const file = "../README.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), tableBegin)
	require.True(t, ok)
	have, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok)
	want := tables(t)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+tableBegin+want+tableEnd+after), 0o600))
		return
	}
	require.Equal(t, want, have, "run: go test ./solvers -run Readme -update")
}

func tables(t *testing.T) string {
	var b strings.Builder
	constructors := exportedConstructors(t)
	rows := func(optimizers bool) {
		b.WriteString("| name | constructor | options and defaults |\n| --- | --- | --- |\n")
		for _, p := range own {
			if New(p.factory()).Optimizes() != optimizers {
				continue
			}
			c := constructors[spelling.Fold(p.name)]
			require.NotEmpty(t, c, p.name)
			delete(constructors, spelling.Fold(p.name))
			fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", p.name, c, options(t, p.factory()))
		}
	}
	rows(true)
	b.WriteString("\nTransformations, for chains with an optimizer; a config cannot name one as the optimizer:\n\n")
	rows(false)
	b.WriteString("\nWith a library's defaults and conventions:\n\n| family | names |\n| --- | --- |\n")
	for _, family := range slices.Sorted(maps.Keys(families)) {
		var names []string
		for _, p := range families[family] {
			delete(constructors, spelling.Fold(family+p.name))
			names = append(names, "`"+p.name+"`")
		}
		slices.Sort(names)
		fmt.Fprintf(&b, "| `%s/` | %s |\n", family, strings.Join(names, ", "))
	}
	require.Empty(t, constructors, "constructors without a registered name")
	return b.String()
}

// options lists the exported fields of the rules that a factory makes.
func options(t *testing.T, r Rule) string {
	var all []string
	for _, info := range New(r).rules {
		require.NoError(t, exported(reflect.ValueOf(info.rule), func(f reflect.StructField, v reflect.Value) error {
			if _, holds := v.Interface().(Rule); holds {
				return nil
			}
			value := fmt.Sprint(v.Interface())
			if v.Kind() == reflect.String {
				value = fmt.Sprintf("%q", v.Interface())
			}
			all = append(all, spelling.Snake(f.Name)+" "+value)
			return nil
		}))
	}
	return strings.Join(all, ", ")
}

// exportedConstructors are the functions New… of the package that make a Solver, by the name that they should have in the
// registry.
func exportedConstructors(t *testing.T) map[string]string {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "New") && fn.Name.Name != "New" {
				found[spelling.Fold(strings.TrimPrefix(fn.Name.Name, "New"))] = fn.Name.Name
			}
		}
	}
	return found
}

// A file for each rule, named after it, of at most 150 lines, in the usual order.
func TestOneRuleOneFile(t *testing.T) {
	for _, p := range own {
		rule := New(p.factory()).rules[0].rule
		name := spelling.Fold(reflect.Indirect(reflect.ValueOf(rule)).Type().Name())
		var text []byte
		for _, file := range must(filepath.Glob("*.go")) {
			if spelling.Fold(strings.TrimSuffix(file, ".go")) == name {
				text = must(os.ReadFile(file))
			}
		}
		require.NotEmpty(t, text, name)
		lines := strings.Split(string(text), "\n")
		require.LessOrEqual(t, len(lines), 150, name)
		order := []string{"\n// ", "\ntype ", "\nfunc New", ") Apply("}
		last := -1
		for _, mark := range order {
			i := strings.Index(string(text), mark)
			require.Greater(t, i, last, "%s: %q", name, mark)
			last = i
		}
	}
}
