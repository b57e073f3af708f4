package updater

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
)

// The README names every key of the config.
func TestReadmeKeys(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	c := reflect.TypeFor[Config]()
	for i := range c.NumField() {
		if key := c.Field(i).Tag.Get("json"); key != "-" {
			require.True(t, strings.Contains(string(text), "`"+key+"`"), key)
		}
	}
}

// The README's config is one.
func TestReadmeConfig(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(text), "```yaml\n")
	require.True(t, ok)
	block, _, ok := strings.Cut(after, "```")
	require.True(t, ok)
	c := config(t, block)
	g, one := G.NewGraph(), G.WithInit(G.Ones())
	w := G.NewMatrix(g, G.Float32, G.WithShape(2, 2), G.WithName("w"), one)
	bias := G.NewVector(g, G.Float32, G.WithShape(2), G.WithName("encoder/bias"), one)
	out := G.NewMatrix(g, G.Float32, G.WithShape(2, 2), G.WithName("decoder/w"), one)
	loss := G.Must(G.Sum(G.Must(G.HadamardProd(w, out))))
	loss = G.Must(G.Add(loss, G.Must(G.Sum(bias))))
	u, err := New(loss, G.Nodes{w, bias, out}, c)
	require.NoError(t, err)
	vm, err := u.NewMachine()
	require.NoError(t, err)
	require.NoError(t, vm.RunAll())
	require.Equal(t, `variable      dtype    shape   matched     optimizer                                         rate  l2  decay  runs      processing          tags
w             float32  (2, 2)              {"class":"adamw","weight_decay":0.05}             ×1    0   ×1     sum of 4  clip_global_norm 5
encoder/bias  float32  (2)     */bias      {"class":"adamw","weight_decay":0.05}             ×1    0   ×0     sum of 4  clip_global_norm 5
decoder/w     float32  (2, 2)  /^decoder/  {"class":"adagrad","learning_rate_multiplier":3}  ×3    0   ×1     sum of 4  clip_global_norm 5
`, u.Table())
}

// The README's training algorithm is that of an example.
func TestReadmeAlgorithm(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(text), "## Training algorithms")
	require.True(t, ok)
	_, after, ok = strings.Cut(after, "```go\n")
	require.True(t, ok)
	block, _, ok := strings.Cut(after, "```")
	require.True(t, ok)
	code, err := os.ReadFile("readme_example_test.go")
	require.NoError(t, err)
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	require.Contains(t, words(string(code)), words(block))
}
