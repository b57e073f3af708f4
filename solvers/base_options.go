package solvers

import (
	"maps"
	"reflect"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
)

// based puts a Base around an optimizer where options are the Base's and not the optimizer's own, and returns the options that are
// left for this, with the names of those that the Base could have. A null is Keras' None: the default. Options that change nothing
// make no Base.
func based(optimizer string, r Rule, own []*ruleInfo, options map[string]any, depth int) (_ Rule, left map[string]any, names []string, err error) {
	optimizes := slices.ContainsFunc(own, func(i *ruleInfo) bool { _, transforms := i.rule.(Transformation); return !transforms })
	switch r.(type) {
	case *lookahead, *ema, *swa, *movingAverage: // which lets the rule within make its steps
		optimizes = true
	}
	if !optimizes {
		return r, options, nil, nil
	}
	b := newBase(r)
	info, err := describe(b, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	ofRule, err := optionsOf(own)
	if err != nil {
		return nil, nil, nil, err
	}
	ofBase, err := optionsOf([]*ruleInfo{info})
	if err != nil {
		return nil, nil, nil, err
	}
	for _, f := range ofBase {
		if f.name != "rule" && findOption(ofRule, fold(optimizer), f.name) == nil {
			names = append(names, kerasSpelling(f))
		}
	}
	left = maps.Clone(options)
	theirs := map[string]any{}
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
		return nil, nil, nil, errors.New("only one of clipnorm, global_clipnorm and clipvalue can be given")
	}
	if err := setOptions("base", []*ruleInfo{info}, theirs, depth); err != nil {
		return nil, nil, nil, err
	}
	if reflect.DeepEqual(b, newBase(r)) {
		return r, left, names, nil
	}
	return b, left, names, nil
}

// kerasSpelling is the name of an option of a Base as Keras spells it: clipnorm, not clip_norm.
func kerasSpelling(f option) string {
	for _, name := range kerasBase {
		if spelling.Fold(name) == f.name {
			return name
		}
	}
	return f.known
}
