package solvers

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"optimop/internal/convert"
	"optimop/internal/spelling"
	"optimop/internal/suggest"
)

// optionNames maps the spellings of other libraries to ours, all folded. A rule's own field of that name comes first. A
// spelling that means something else in other libraries stands with the name of the optimizer.
var optionNames = map[string]string{
	"adamlrratio": "adamlearningrateratio", "axis": "axes", "b1": "beta1", "b2": "beta2", "clipnorm": "maxnorm", "clipvalue": "maxvalue",
	"eps": "epsilon", "maxdelta": "maxvalue",
	"initialgradientsquaredaccumulatorvalue": "initialaccumulatorvalue", "initialscale": "initialvalue", "l1regularizationstrength": "l1",
	"l2regularizationstrength": "l2", "l2shrinkageregularizationstrength": "l2shrinkage", "lr": "learningrate",
	"lrdecay": "ratedecay", "minlr": "minlearningrate", "muona": "a", "muonb": "b", "muonc": "c",
	"nsmathreshhold": "smathreshold", "nsmathreshold": "smathreshold",
	"scheduledecay": "momentumdecay", "stddev": "standarddeviation", "usenesterov": "nesterov",
	"weightdecayrate": "weightdecay",

	"blocks/adadelta/decayrate": "rho", "blocks/basicrmsprop/decayrate": "rho", "blocks/rmsprop/decayrate": "rho",
	"ranger/alpha": "slowstepsize", "ranger/k": "syncperiod", "rangeradabelief/alpha": "slowstepsize", "rangeradabelief/k": "syncperiod",
	"optax/rmsprop/decay": "rho", "returnn/rmsprop/decay": "rho", "tf1/rmsprop/decay": "rho", "torch/rmsprop/alpha": "rho",
}

// option is an exported field of a rule, as a config can set it.
type option struct {
	rule, name string // folded
	known      string // for messages
	at         reflect.Value
	check      func(float64) error // of a hyperparameter
}

// optionsOf are the exported fields of rules.
func optionsOf(rules []*ruleInfo) (fields []option, err error) {
	for _, r := range rules {
		err := exported(reflect.ValueOf(r.rule), func(f reflect.StructField, v reflect.Value) error {
			o := option{rule: spelling.Fold(r.name), name: spelling.Fold(f.Name), known: spelling.Snake(f.Name), at: v}
			for _, h := range r.fields {
				if v.Addr().Interface() == any(h.value) {
					o.check = h.check
				}
			}
			fields = append(fields, o)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// setOptions sets fields of rules by name, as they stand in a config. Names are compared without case, - and _, after
// optionNames of the optimizer. Of several rules that have one the last gets it, which is the optimizer itself; "adam/epsilon" means one rule's.
// Others are names that options could have had, for who misspelt one.
func setOptions(optimizer string, rules []*ruleInfo, options map[string]any, depth int, others ...string) error {
	fields, err := optionsOf(rules)
	if err != nil {
		return err
	}
	var known []string
	for _, f := range fields {
		known = append(known, f.known)
	}
	known = append(known, others...)
	from := map[*option]string{}
	set := func(key, name string, value any) error {
		f := findOption(fields, fold(optimizer), name)
		if f == nil && ignored(name, value) {
			return nil
		}
		if f == nil {
			return &OptionError{Option: key, Problem: "unknown option" + suggest.For(key, known)}
		}
		if other, twice := from[f]; twice {
			return &OptionError{Option: key, Problem: fmt.Sprintf("%q already sets %s", other, f.known)}
		}
		from[f] = key
		v, err := decode(value, f.at.Type(), depth)
		if err != nil {
			return &OptionError{Option: key, Problem: err.Error()}
		}
		f.at.Set(v)
		if f.check != nil {
			if err := f.check(v.Float()); err != nil {
				return &OptionError{Option: key, Problem: strings.TrimPrefix(err.Error(), "solvers: ")}
			}
		}
		return nil
	}
	for _, key := range sortedKeys(options) {
		name := spelling.Fold(key)
		rule, short := name[:strings.LastIndexByte(name, '/')+1], name[strings.LastIndexByte(name, '/')+1:]
		if short != "betas" || findOption(fields, "", name) != nil { // torch's
			if err := set(key, name, options[key]); err != nil {
				return err
			}
			continue
		}
		pair, err := decode(options[key], reflect.TypeFor[[]float64](), depth)
		if err != nil || pair.Len() != 2 {
			return &OptionError{Option: key, Problem: "want two numbers, not " + convert.Show(options[key])}
		}
		for i, b := range pair.Interface().([]float64) {
			if err := set(key, fmt.Sprint(rule, "beta", i+1), b); err != nil {
				return err
			}
		}
	}
	return nil
}

// findOption finds the last field of a name, "beta1" or "adam/beta1", or nil.
func findOption(fields []option, optimizer, name string) *option {
	rule, short, qualified := strings.Cut(name, "/")
	if !qualified {
		rule, short = "", name
	}
	for _, want := range []string{short, optionNames[short], optionNames[optimizer+"/"+short]} {
		for i := len(fields) - 1; i >= 0; i-- {
			if f := &fields[i]; f.name == want && (!qualified || rule == f.rule) {
				return f
			}
		}
	}
	return nil
}

// ignored reports whether an option is one of TensorFlow's that have no meaning here, with a value that it could have.
func ignored(name string, value any) bool {
	switch value.(type) {
	case bool:
		return name == "uselocking"
	case string:
		return name == "name"
	}
	return false
}

// OptionError says what is wrong with an option given by name.
type OptionError struct{ Option, Problem string }

func (e *OptionError) Error() string { return "option " + strconv.Quote(e.Option) + ": " + e.Problem }

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
