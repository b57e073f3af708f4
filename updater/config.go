package updater

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/suggest"
	"optimop/solvers"
)

// Config says how to train. Its JSON form has the same keys:
//
//	{"optimizer": {"class": "adam", "beta1": 0.8}, "learning_rate": 0.002}
type Config struct {
	// Optimizer is the registered name of an optimizer ("adam"), or a map[string]any with the name under "class" and options
	// beside it, named as the fields of the rule in snake case. In Go it may also be a solvers.Rule, such as a chain. Absent,
	// it is plain gradient descent, "sgd".
	Optimizer any `json:"optimizer,omitempty"`

	// LearningRate replaces the learning rate of the optimizer. Absent, that is the optimizer's own default.
	LearningRate *float64 `json:"learning_rate,omitempty"`
}

// ReadConfig reads the JSON form. A key that is unknown or written twice, a wrong type and text after the config are errors;
// they name the key, and suggest one that is known. Names and values of the optimizer's options are checked too.
func ReadConfig(r io.Reader) (Config, error) {
	c, err := readConfig(r)
	if err == nil {
		_, err = c.solver()
	}
	if err != nil {
		return Config{}, errors.Wrap(err, "updater: config")
	}
	return c, nil
}

func readConfig(r io.Reader) (c Config, err error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return c, err
	}
	if err := uniqueKeys(text); err != nil {
		return c, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return c, errors.Wrap(err, "want a JSON object")
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

// uniqueKeys refuses objects with a key twice, of which encoding/json would take the last.
func uniqueKeys(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	var walk func(path string) error
	walk = func(path string) error {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		open, _ := tok.(json.Delim)
		seen := map[string]bool{}
		for (open == '{' || open == '[') && d.More() {
			at := path
			if open == '{' {
				key, err := d.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				if at = path + "." + name; path == "" {
					at = name
				}
				if seen[name] {
					return errors.Errorf("%s: the key is written twice", at)
				}
				seen[name] = true
			}
			if err := walk(at); err != nil {
				return err
			}
		}
		if open != 0 {
			_, err = d.Token()
		}
		return err
	}
	if err := walk(""); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is text after the config")
	}
	return nil
}

// solver makes the configured solver.
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
		if s = o; o == nil || len(opts) > 0 { // the options are the updater's
			s = solvers.New(o, opts...)
		}
		err = s.Err()
	case solvers.Rule:
		s = solvers.New(o, opts...)
		err = s.Err()
	default:
		err = errors.Errorf("optimizer: want a name or an object with \"class\", not %T", o)
	}
	if err != nil {
		return nil, err
	}
	if c.LearningRate != nil {
		if err := s.Set("learning_rate", *c.LearningRate); err != nil {
			return nil, errors.Wrap(err, "learning_rate")
		}
	}
	return s, nil
}

func fromMap(o map[string]any, opts []solvers.Option) (*solvers.Solver, error) {
	options := maps.Clone(o)
	class, ok := options["class"].(string)
	switch _, has := options["class"]; {
	case !has:
		return nil, errors.Errorf("optimizer.class: missing; it names the optimizer: one of %v", solvers.Names())
	case !ok:
		return nil, errors.Errorf("optimizer.class: want a name, not %#v", options["class"])
	}
	delete(options, "class")
	for _, key := range []string{"learning_rate", "lr"} {
		if _, has := options[key]; has {
			return nil, errors.Errorf("optimizer.%s: the learning rate does not belong here; write learning_rate beside optimizer", key)
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
	return s, nil
}
