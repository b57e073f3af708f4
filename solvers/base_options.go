package solvers

import (
	"maps"
	"reflect"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
)

// based puts a Base around an optimizer where options are the Base's and not the optimizer's own, and returns the options that are
// left for this. A null is Keras' None: the default. Options that change nothing make no Base.
func based(optimizer string, r Rule, own []*ruleInfo, options map[string]any, depth int) (Rule, map[string]any, error) {
	if !slices.ContainsFunc(own, func(i *ruleInfo) bool { _, transforms := i.rule.(Transformation); return !transforms }) {
		return r, options, nil
	}
	b := newBase(r)
	info, err := describe(b, nil)
	if err != nil {
		return nil, nil, err
	}
	ofRule, err := optionsOf(own)
	if err != nil {
		return nil, nil, err
	}
	ofBase, err := optionsOf([]*ruleInfo{info})
	if err != nil {
		return nil, nil, err
	}
	left, theirs := maps.Clone(options), map[string]any{}
	clips := 0
	for _, key := range sortedKeys(options) {
		name := spelling.Fold(key)
		f := findOption(ofBase, "", name)
		if f == nil || f.name == "rule" || findOption(ofRule, fold(optimizer), name) != nil {
			continue
		}
		delete(left, key)
		if options[key] == nil {
			continue
		}
		theirs[key] = options[key]
		if slices.Contains([]string{"clipnorm", "globalclipnorm", "clipvalue"}, f.name) {
			clips++
		}
	}
	if clips > 1 {
		return nil, nil, errors.New("only one of clipnorm, global_clipnorm and clipvalue can be given")
	}
	if err := setOptions("base", []*ruleInfo{info}, theirs, depth); err != nil {
		return nil, nil, err
	}
	if reflect.DeepEqual(b, newBase(r)) {
		return r, left, nil
	}
	return b, left, nil
}
