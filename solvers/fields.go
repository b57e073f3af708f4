package solvers

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/spelling"
)

// field is an exported float64 field of a rule: a hyperparameter. Its legal range stands in the tag `range:"[0,1)"`; without
// one, any finite number is legal; a tag `why:"..."` gives the reason.
type field struct {
	name  string // snake case
	value *float64
	check func(float64) error
}

// Validator is a rule with conditions that concern several of its fields.
type Validator interface{ Validate() error }

// describe names a rule, unlike the ones that are known, and finds its hyperparameters.
func describe(r Rule, known []*ruleInfo) (*ruleInfo, error) {
	v := reflect.ValueOf(r)
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil() {
		return nil, errors.Errorf("solvers: a %T is nil", r)
	}
	info := &ruleInfo{rule: r, name: "rule"}
	if t := reflect.Indirect(v).Type(); t.Name() != "" {
		info.name = strings.ToLower(t.Name())
	}
	base := info.name
	for i := 2; slices.ContainsFunc(known, func(k *ruleInfo) bool { return k.name == info.name }); i++ {
		info.name = numbered(base, i)
	}
	err := exported(v, func(f reflect.StructField, v reflect.Value) error {
		p, ok := v.Addr().Interface().(*float64)
		if !ok {
			return nil
		}
		name := spelling.Snake(f.Name)
		in, err := parseRange(f.Tag.Get("range"))
		if err != nil {
			return errors.Wrapf(err, "solvers: %s.%s", info.name, f.Name)
		}
		check := func(x float64) error {
			if in.contains(x) {
				return nil
			}
			why := f.Tag.Get("why")
			if why != "" {
				why = ": " + why
			}
			return errors.Errorf("solvers: %s/%s is %v; it must be in %s%s", info.name, name, x, in, why)
		}
		for _, other := range info.fields {
			if other.name == name {
				return errors.Errorf("solvers: %s: two fields are called %s", info.name, name)
			}
		}
		info.fields = append(info.fields, field{name, p, check})
		return nil
	})
	return info, err
}

// validate checks all fields of a rule.
func (r *ruleInfo) validate() (err error) {
	for _, f := range r.fields {
		if err := f.check(*f.value); err != nil {
			return err
		}
	}
	if v, ok := r.rule.(Validator); ok {
		defer func() {
			if p := recover(); p != nil {
				err = errors.Errorf("solvers: %s: Validate panicked: %v", r.name, p)
			}
		}()
		return errors.Wrapf(v.Validate(), "solvers: %s", r.name)
	}
	return nil
}

// accepts checks a new value of one field.
func (r *ruleInfo) accepts(f field, v float64) error {
	defer func(old float64) { *f.value = old }(*f.value)
	*f.value = v
	return r.validate()
}

// exported visits the exported fields of a rule that is a pointer to a struct, those of embedded structs too.
func exported(v reflect.Value, visit func(reflect.StructField, reflect.Value) error) error {
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(v.Elem().Type()) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		at, err := v.Elem().FieldByIndexErr(f.Index)
		if err == nil {
			err = visit(f, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addressable replaces a rule that is a struct by a pointer to a copy, so that its hyperparameters can be set.
func addressable(r Rule) Rule {
	v := reflect.ValueOf(r)
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return r
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface().(Rule)
}

// interval is a range of legal values.
type interval struct {
	lo, hi         float64
	openLo, openHi bool
}

func parseRange(tag string) (interval, error) {
	if tag == "" {
		return interval{math.Inf(-1), math.Inf(1), true, true}, nil
	}
	if !strings.ContainsAny(tag[:1], "[(") || !strings.ContainsAny(tag[len(tag)-1:], "])") {
		return interval{}, errors.Errorf("bad range %q", tag)
	}
	lo, hi, ok := strings.Cut(tag[1:len(tag)-1], ",")
	a, err1 := strconv.ParseFloat(lo, 64)
	b, err2 := strconv.ParseFloat(hi, 64)
	if !ok || err1 != nil || err2 != nil {
		return interval{}, errors.Errorf("bad range %q", tag)
	}
	return interval{a, b, tag[0] == '(', tag[len(tag)-1] == ')'}, nil
}

func (r interval) contains(x float64) bool {
	return (x > r.lo || x == r.lo && !r.openLo) && (x < r.hi || x == r.hi && !r.openHi)
}

func (r interval) String() string {
	left, right := "[", "]"
	if r.openLo {
		left = "("
	}
	if r.openHi {
		right = ")"
	}
	return fmt.Sprintf("%s%v, %v%s", left, r.lo, r.hi, right)
}

// choice checks a field that is one of some words.
func choice(field, got string, known ...string) error {
	if slices.Contains(known, got) {
		return nil
	}
	return errors.Errorf("%s is %q; it must be one of %q", field, got, known)
}
