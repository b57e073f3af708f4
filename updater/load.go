package updater

import (
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/batch"
	"optimop/internal/safetensors"
	"optimop/internal/saved"
)

// LoadOpt is an option of LoadFile, Restore and LoadVariables.
type LoadOpt func(*loadOptions)

type loadOptions struct {
	parameters, partial, convert, same, unchecked bool
	names                                         []renaming
}

type renaming struct{ pattern, replacement string }

func newLoadOptions(opts []LoadOpt) (o loadOptions) {
	for _, f := range opts {
		if f != nil {
			f(&o)
		}
	}
	return o
}

// ParametersOnly loads the values of the variables and leaves the optimizers' state as it is.
func ParametersOnly() LoadOpt { return func(o *loadOptions) { o.parameters = true } }

// AllowPartial loads what is both there and here; what is missing or unexpected makes no difference. That nothing fits at all is
// still an error, and so is what has the name, but not the form.
func AllowPartial() LoadOpt { return func(o *loadOptions) { o.partial = true } }

// MapNames changes the names in the file before they are looked for: what fits the regular expression is replaced, where $1 is
// its first group, as in regexp.ReplaceAllString. MapNames("^encoder/", "model/encoder/") also renames the slots of these variables.
// Several are applied one after another.
func MapNames(pattern, replacement string) LoadOpt {
	return func(o *loadOptions) { o.names = append(o.names, renaming{pattern, replacement}) }
}

// Convert lets float32 become float64 and float64 float32, rounded. A number that float32 cannot hold is an error.
func Convert() LoadOpt { return func(o *loadOptions) { o.convert = true } }

// SameConfig refuses a file of an Updater with another Config, or with other schedules. Otherwise there is a warning of log/slog, since
// the rest of the training will differ: the hyperparameters that are loaded are those of the file, and what the config says beside them is this one's.
func SameConfig() LoadOpt { return func(o *loadOptions) { o.same = true } }

// Unchecked reads a file without looking at its checksum: one that was changed on purpose, by a script.
func Unchecked() LoadOpt { return func(o *loadOptions) { o.unchecked = true } }

// LoadFile reads what SaveFile wrote, and builds the optim op if there is none. Names, shapes and dtypes must be those of this updater's variables
// and state: everything that is missing, unexpected or of another form is listed in one error, and then nothing is changed. Options allow
// some of that. A file that is damaged is an error, too, and so is LoadFile while averages stand in for the weights: what it loads would
// be overwritten when those come back.
func (u *Updater) LoadFile(path string, opts ...LoadOpt) error {
	_, err := u.OptimOp()
	if err == nil {
		err = loadFile(u.restore, path, newLoadOptions(opts))
	}
	return errors.Wrap(err, "updater: LoadFile")
}

// Restore is LoadFile of a snapshot. That may be restored several times, in several updaters.
func (u *Updater) Restore(s *Snapshot, opts ...LoadOpt) error {
	return errors.Wrap(u.restore(s, newLoadOptions(opts)), "updater: Restore")
}

func (u *Updater) restore(s *Snapshot, o loadOptions) error {
	if _, err := u.OptimOp(); err != nil {
		return err
	}
	items, err := u.items()
	if err != nil {
		return err
	}
	if err := u.checkNames(); err != nil {
		return err
	}
	mine := map[string]string{}
	if err := u.describe(mine); err != nil {
		return err
	}
	return o.restore(items, mine, s)
}

// restore compares trainings, and then loads.
func (o loadOptions) restore(items []item, mine map[string]string, s *Snapshot) error {
	if s == nil {
		return errors.New("the snapshot is nil")
	}
	if err := o.compare(s, mine); err != nil {
		return err
	}
	_, err := o.load(items, s)
	return err
}

// loadFile restores the snapshot of a file.
func loadFile(restore func(*Snapshot, loadOptions) error, path string, o loadOptions) error {
	s, err := readSnapshotFile(path, !o.unchecked)
	if err != nil {
		return err
	}
	return restore(s, o)
}

// compare looks at the config and the schedules of a snapshot, which decide how a training goes on.
func (o loadOptions) compare(s *Snapshot, mine map[string]string) error {
	if o.parameters {
		return nil
	}
	var differ []string
	for _, key := range []string{metaConfig, metaSchedules} {
		differ = append(differ, difference(key, s.about[key], mine[key])...)
	}
	switch {
	case len(differ) == 0:
		return nil
	case o.same:
		return errors.Errorf("nothing was loaded: the file was saved with another config: %s", strings.Join(differ, ", "))
	}
	slog.Warn("a training goes on with another config than the one that it was saved with", "differ", differ)
	return nil
}

// difference are the keys at which two objects in JSON differ. A config without that form is not known, and cannot differ.
func difference(what, there, here string) (keys []string) {
	if there == here || what == metaConfig && (there == "" || here == "") {
		return nil
	}
	var a, b map[string]any
	if json.Unmarshal([]byte(there), &a) != nil && there != "" {
		return []string{what}
	}
	_ = json.Unmarshal([]byte(here), &b) // which was made by json.Marshal, or is empty
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(a[key], b[key]) {
			keys = append(keys, key)
		}
	}
	return keys
}

// change is what loading does to one thing.
type change struct {
	item
	to, from safetensors.Tensor
}

// load gives items the values of a snapshot: all of them or none.
func (o loadOptions) load(items []item, s *Snapshot) (changes []change, err error) {
	if changes, err = o.match(items, s); err != nil {
		return nil, err
	}
	for i, c := range changes {
		if err := c.assign(c.to); err != nil {
			for _, done := range changes[:i+1] {
				_ = done.assign(done.from) // nothing better can be done
			}
			return nil, errors.Wrap(err, c.name)
		}
	}
	return changes, nil
}

// match pairs what is there with what was read.
func (o loadOptions) match(items []item, s *Snapshot) (changes []change, err error) {
	read, order, err := o.renamed(s)
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, it := range items {
		if o.parameters && it.kind != kindParameter {
			continue
		}
		t, ok := read[it.name]
		delete(read, it.name)
		if !ok {
			if !o.partial {
				bad = append(bad, it.name+" is missing")
			}
			continue
		}
		c, err := o.change(it, t)
		if err != nil {
			bad = append(bad, err.Error())
		}
		changes = append(changes, c)
	}
	for _, name := range order {
		if _, left := read[name]; left && !o.partial {
			bad = append(bad, name+" is unexpected")
		}
	}
	if len(bad) == 0 && len(changes) == 0 {
		bad = append(bad, "none of the names is known here")
	}
	if len(bad) > 0 {
		return nil, errors.Errorf("nothing was loaded: %s", strings.Join(bad, "; "))
	}
	return changes, nil
}

// renamed are the tensors of a snapshot that are to be loaded, by the names to look for, which are also returned in the order of the file.
func (o loadOptions) renamed(s *Snapshot) (read map[string]safetensors.Tensor, order []string, err error) {
	read = map[string]safetensors.Tensor{}
	var patterns []*regexp.Regexp
	for _, r := range o.names {
		p, err := regexp.Compile(r.pattern)
		if err != nil {
			return nil, nil, errors.Wrapf(err, "MapNames(%q)", r.pattern)
		}
		patterns = append(patterns, p)
	}
	for _, t := range s.tensors {
		if o.parameters && s.kinds[t.Name] != kindParameter {
			continue
		}
		name := t.Name
		for i, p := range patterns {
			name = p.ReplaceAllString(name, o.names[i].replacement)
		}
		if _, twice := read[name]; twice {
			return nil, nil, errors.Errorf("nothing was loaded: MapNames makes two things %q", name)
		}
		read[name] = t
		order = append(order, name)
	}
	return read, order, nil
}

// change checks what was read for an item.
func (o loadOptions) change(it item, t safetensors.Tensor) (c change, err error) {
	c = change{item: it, to: t}
	if c.from, err = it.tensor(); err != nil {
		return c, err
	}
	if dtypeName(c.from.Data) != dtypeName(t.Data) && o.convert {
		if c.to.Data, err = converted(t.Data, c.from.Data); err != nil {
			return c, errors.Wrap(err, it.name)
		}
	}
	switch have, want := dtypeName(c.to.Data), dtypeName(c.from.Data); {
	case have != want:
		return c, errors.Errorf("%s is %s there, and %s here", it.name, have, want)
	case !slices.Equal(c.from.Shape, t.Shape):
		return c, errors.Errorf("%s has shape %v there, and %v here", it.name, t.Shape, c.from.Shape)
	}
	return c, it.accepts(c.to)
}

// converted are the elements of a slice in the type of another, if both are floats.
func converted(data, like any) (any, error) {
	switch x := data.(type) {
	case []float32:
		if _, ok := like.([]float64); ok {
			out := make([]float64, len(x))
			for i, v := range x {
				out[i] = float64(v)
			}
			return out, nil
		}
	case []float64:
		if _, ok := like.([]float32); ok {
			out := make([]float32, len(x))
			for i, v := range x {
				if out[i] = float32(v); math.IsInf(float64(out[i]), 0) && !math.IsInf(v, 0) {
					return nil, errors.Errorf("%v is too large for float32", v)
				}
			}
			return out, nil
		}
	}
	return data, nil
}

func dtypeName(data any) string {
	switch data.(type) {
	case []float32:
		return "float32"
	case []float64:
		return "float64"
	case []int64:
		return "int64"
	}
	return "of no type that a file can hold"
}

// LoadVariables loads the variables of a file of SaveFile, or of another Snapshot, into inputs of any graph, by their names: a graph
// that only predicts, or one of another batch size. One that has no value gets one. Of the options ParametersOnly and SameConfig say nothing here. All that is missing,
// unexpected (unless AllowPartial is given) or of another form is listed in one error, and then nothing is changed.
func LoadVariables(path string, vars gorgonia.Nodes, opts ...LoadOpt) error {
	o := newLoadOptions(append(slices.Clone(opts), ParametersOnly()))
	s, err := readSnapshotFile(path, !o.unchecked)
	if err == nil {
		err = o.loadVariables(s, vars)
	}
	return errors.Wrap(err, "updater: LoadVariables")
}

func (o loadOptions) loadVariables(s *Snapshot, vars gorgonia.Nodes) error {
	var items []item
	for i, n := range vars {
		name, ok := "", false
		if n != nil {
			name, ok = batch.GivenName(n)
		}
		switch {
		case !ok || !n.IsVar():
			return errors.Errorf("%s is no named input of a graph", nodeName(n))
		case slices.ContainsFunc(vars[:i], func(m *gorgonia.Node) bool { return m.Name() == name }):
			return errors.Errorf("two variables are called %q", name)
		}
		v := n.Value()
		if v == nil {
			t, err := saved.Zero(n.Dtype(), n.Shape())
			if err != nil {
				return errors.Wrapf(err, "%q", name)
			}
			v = saved.Value(t)
		}
		items = append(items, item{name: name, kind: kindParameter, value: v, node: n})
	}
	changes, err := o.load(items, s)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.node.Value() == nil {
			if err := gorgonia.Let(c.node, c.value); err != nil {
				return errors.Wrapf(err, "%q", c.name)
			}
		}
	}
	return nil
}

// assign writes what was read into the value.
func (it item) assign(t safetensors.Tensor) error { return graphops.Copy(it.value, saved.Value(t)) }
