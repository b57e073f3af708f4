package main

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A small run tells words apart by the company they keep, and rows that catch up lose what whole gradients lose.
func TestRun(t *testing.T) {
	for _, solver := range []string{"adam", "adabelief", "momentum"} {
		var out bytes.Buffer
		rate := map[string]string{"adam": "0.01", "adabelief": "0.01", "momentum": "2"}[solver]
		require.NoError(t, run([]string{"-rows", "300", "-width", "8", "-steps", "1500", "-solver", solver, "-rate", rate}, &out))
		found := regexp.MustCompile(`(?m)^(dense|catch_up|lazy) +(\S+) +(\S+) `).FindAllStringSubmatch(out.String(), -1)
		require.Len(t, found, 3, out.String())
		require.Equal(t, found[0][2:], found[1][2:], solver)
		require.NotEqual(t, found[0][3], found[2][3])
		for _, f := range found {
			var first, last float64
			_, err := fmt.Sscan(f[2], &first)
			require.NoError(t, err)
			_, err = fmt.Sscan(f[3], &last)
			require.NoError(t, err)
			require.Less(t, last, 0.75*first, out.String())
		}
		require.Regexp(t, "nearest to winter: *(spring|summer|autumn)", out.String())
	}
}

func TestRunRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"-rows is 10, but the text has 78 different words": {"-rows", "10"},
		"must be 1 or more":                {"-steps", "0"},
		"no optimizer is called \"adamm\"": {"-solver", "adamm"},
		"learning_rate":                    {"-rate", "-1"},
		"what rows miss is known for":      {"-solver", "rmsprop", "-steps", "1", "-rows", "100"},
		"flag provided but not defined":    {"-what"},
	} {
		require.ErrorContains(t, run(args, new(bytes.Buffer)), want)
	}
}
