package solvers

import (
	"path"
	"slices"

	"github.com/pkg/errors"
)

// Parameters are named in options by their names in the solver or by patterns (see path.Match): "decoder/*".

func fits(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok || pattern == name
}

func fitsAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, name) })
}

// checkPatterns refuses what is no pattern.
func checkPatterns(option string, patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return errors.Errorf("%s: %q is no pattern: %v", option, p, err)
		}
	}
	return nil
}

// checkNames refuses a pattern that no parameter fits.
func (b *Builder) checkNames(option string, patterns []string) error {
	for _, p := range patterns {
		if !b.anyName(func(name string) bool { return fits(p, name) }) {
			return errors.Errorf("%s: no parameter is called %q", option, p)
		}
	}
	return nil
}
