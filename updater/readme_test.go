package updater

import (
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README names every key of the config.
func TestReadmeKeys(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	c := reflect.TypeFor[Config]()
	for i := range c.NumField() {
		if key := c.Field(i).Tag.Get("json"); key != "-" {
			require.Contains(t, string(text), "`"+key+"`")
		}
	}
}
