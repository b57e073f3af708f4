package convert

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShow(t *testing.T) {
	loop := map[string]any{}
	loop["loop"] = loop
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "null"}, {json.Number("1.0"), "1.0"}, {"a\"b", `"a\"b"`}, {true, "true"}, {2.5, "2.5"}, {uint8(3), "3"},
		{loop, "an object"}, {[]any{loop}, "a list"}, {struct{}{}, "a struct {}"},
	} {
		require.Equal(t, c.want, Show(c.v))
	}
}
