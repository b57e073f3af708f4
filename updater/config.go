package updater

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/internal/suggest"
	"optimop/solvers"
)

// Config says how to train. Its JSON form has the same keys:
//
//	{"optimizer": {"class": "adam", "beta1": 0.8}, "learning_rate": 0.002}
type Config struct {
	// Optimizer is the registered name of an optimizer ("adam"), or a map[string]any with the name under "class" and options
	// beside it, named as the fields of the rule in snake case (see solvers.FromConfig), but for the learning rate. In Go it may also be a solvers.Rule, such as a chain; updaters
	// of one rule share its hyperparameters, those of one *solvers.Solver also its state. Absent, it is plain gradient
	// descent, "sgd". What only transforms gradients, such as a clip, is no optimizer.
	Optimizer any `json:"optimizer,omitempty"`

	// LearningRate replaces the learning rate of the optimizer, also in a rule or solver that was given. Absent, that is the
	// optimizer's own default.
	LearningRate *float64 `json:"learning_rate,omitempty"`
}

// ReadConfig reads the JSON form. A key that is unknown or written twice, a wrong type and text after the config are errors;
// they name the key, and suggest one that is known. Names and values of the optimizer's options are checked too. A null
// means the same as no key. A chain of rules has no JSON form: set Optimizer in Go.
func ReadConfig(r io.Reader) (Config, error) {
	c, err := readConfig(r)
	if err == nil {
		var s *solvers.Solver
		if s, err = c.solver(); err == nil {
			err = c.setRate(s)
		}
	}
	if err != nil {
		return Config{}, errors.Wrap(err, "updater: config")
	}
	return c, nil
}

func readConfig(r io.Reader) (c Config, err error) {
	if r == nil {
		return c, errors.New("the reader is nil")
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return c, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return c, errors.Wrap(err, "want a JSON object")
	}
	if raw == nil {
		return c, errors.New("want a JSON object, not null")
	}
	if err := uniqueKeys(text); err != nil {
		return c, err
	}
	into := map[string]any{"optimizer": &c.Optimizer, "learning_rate": &c.LearningRate}
	known := slices.Sorted(maps.Keys(into))
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		at := into[key]
		if at == nil {
			return c, errors.Errorf("%s: unknown key%s", key, suggest.For(key, known))
		}
		if err := json.Unmarshal(raw[key], at); err != nil {
			return c, errors.Wrap(err, key)
		}
	}
	return c, nil
}

// uniqueKeys refuses objects with a key twice, of which encoding/json would take the last. The text is valid JSON, so it is
// not nested deeper than that package allows.
func uniqueKeys(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var path []string
	var walk func() error
	walk = func() error {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		open, _ := tok.(json.Delim)
		seen := map[string]bool{}
		for (open == '{' || open == '[') && d.More() {
			if open == '{' {
				key, err := d.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				path = append(path, name)
				if seen[name] {
					return errors.Errorf("%s: the key is written twice", strings.Join(path, "."))
				}
				seen[name] = true
			}
			if err := walk(); err != nil {
				return err
			}
			if open == '{' {
				path = path[:len(path)-1]
			}
		}
		if open != 0 {
			_, err = d.Token()
		}
		return err
	}
	return walk()
}

// solver makes the configured solver, with its own learning rate.
func (c Config) solver(opts ...solvers.Option) (s *solvers.Solver, err error) {
	switch o := c.Optimizer.(type) {
	case nil:
		s, err = solvers.FromConfig("sgd", nil, opts...)
	case string:
		s, err = solvers.FromConfig(o, nil, opts...)
		err = errors.Wrap(err, "optimizer")
	case map[string]any:
		s, err = fromMap(o, opts)
	case *solvers.Solver:
		if s, err = o, o.Err(); err == nil && s.Optimizes() {
			for _, f := range opts {
				f(s)
			}
		}
	case solvers.Rule:
		s = solvers.New(o, opts...)
		err = s.Err()
	default:
		err = errors.Errorf("optimizer: want a name or an object with \"class\", not %T", o)
	}
	if err == nil && !s.Optimizes() {
		return nil, c.transforms()
	}
	return s, err
}

// transforms is the error of an optimizer that is none.
func (c Config) transforms() error {
	what := any("what was given")
	switch o := c.Optimizer.(type) {
	case string:
		what = strconv.Quote(o)
	case map[string]any:
		what = fmt.Sprintf("%q", o["class"])
	}
	return errors.Errorf("optimizer: %s is no optimizer by itself: it only transforms the gradients of one; chain them in Go, "+
		"as in solvers.Chain(solvers.NewClipByGlobalNorm(1), solvers.NewSGD())", what)
}

// setRate gives the solver the configured learning rate.
func (c Config) setRate(s *solvers.Solver) error {
	if c.LearningRate == nil {
		return nil
	}
	return errors.Wrap(s.Set("learning_rate", *c.LearningRate), "learning_rate")
}

func fromMap(o map[string]any, opts []solvers.Option) (*solvers.Solver, error) {
	options := maps.Clone(o)
	class, ok := options["class"].(string)
	switch _, has := options["class"]; {
	case !has:
		return nil, errors.Errorf("optimizer.class: missing; it names the optimizer: one of %v", solvers.Optimizers())
	case !ok:
		return nil, errors.Errorf("optimizer.class: want a name, not %#v", options["class"])
	}
	delete(options, "class")
	rate := "" // of one of several rules
	for _, key := range slices.Sorted(maps.Keys(options)) {
		switch rule, field := path.Split(strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))); {
		case field != "learningrate" && field != "lr":
		case rule == "":
			return nil, misplaced(key)
		default:
			rate = key
		}
	}
	s, err := solvers.FromConfig(class, options, opts...)
	var bad *solvers.OptionError
	switch {
	case errors.As(err, &bad):
		return nil, errors.Errorf("optimizer.%s: %s", bad.Option, bad.Problem)
	case err != nil:
		return nil, errors.Wrap(err, "optimizer")
	}
	if _, err := s.Get("learning_rate"); rate != "" && err == nil { // there is but one
		return nil, misplaced(rate)
	}
	return s, nil
}

func misplaced(key string) error {
	return errors.Errorf("optimizer.%s: the learning rate does not belong here; write learning_rate beside optimizer", key)
}
