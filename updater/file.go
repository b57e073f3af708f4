package updater

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/internal/safetensors"
	"optimop/internal/saved"
)

// format is what the metadata of a file call it.
const format = "optimop updater 1"

// SaveFile writes the values of all variables and the whole state of the optimizers (slots, counters with the global step,
// hyperparameters, accumulators, the states of random operations) to a file in the safetensors format
// (https://github.com/huggingface/safetensors), each under its name. The file is written beside its place and then moved there, so that a run
// that is interrupted leaves the old one. Two variables of one name are an error. What hyperparameters with
// schedules are is not saved: the global step says it. The optim op is built if there is none. While averages of the weights stand in for
// them (UseAverages) SaveFile is an error.
func (u *Updater) SaveFile(path string) error {
	return errors.Wrap(u.saveFile(path), "updater: SaveFile")
}

func (u *Updater) saveFile(path string) error {
	if _, err := u.OptimOp(); err != nil {
		return err
	}
	if err := u.checkNames(); err != nil {
		return err
	}
	s, err := u.snapshot()
	if err != nil {
		return err
	}
	kinds := map[string]string{}
	for _, it := range s.items {
		kinds[it.name] = it.kind
	}
	text, err := json.Marshal(kinds)
	if err != nil {
		return err
	}
	return replace(path, func(w io.Writer) error {
		return safetensors.Write(w, s.tensors, map[string]string{"format": format, "kinds": string(text)})
	})
}

// copied is a copy of the values of all variables and states.
type copied struct {
	items   []item
	tensors []safetensors.Tensor // of the items
}

// snapshot copies everything.
func (u *Updater) snapshot() (s copied, err error) {
	if s.items, err = u.items(); err != nil {
		return s, err
	}
	for _, it := range s.items {
		t, err := it.tensor()
		if err != nil {
			return s, err
		}
		s.tensors = append(s.tensors, t)
	}
	return s, nil
}

// restore writes everything back that it can, and returns the first error.
func (s copied) restore() (err error) {
	for i, it := range s.items {
		if e := it.restore(s.tensors[i]); err == nil {
			err = errors.Wrapf(e, "restoring %s", it.name)
		}
	}
	return err
}

// replace writes a file whole or not at all.
func replace(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// LoadOpt is an option of LoadFile.
type LoadOpt func(*loadOptions)

type loadOptions struct{ parameters bool }

// ParametersOnly loads the values of the variables and leaves the optimizers' state as it is.
func ParametersOnly() LoadOpt { return func(o *loadOptions) { o.parameters = true } }

// LoadFile reads what SaveFile wrote, and builds the optim op if there is none. Names, shapes and dtypes must be those of this updater's variables
// and state: everything that is missing, unexpected or of another form is listed in one error, and then nothing is changed. LoadFile, too, is an
// error while averages stand in for the weights: what it loads would be overwritten when those come back.
func (u *Updater) LoadFile(path string, opts ...LoadOpt) error {
	return errors.Wrap(u.loadFile(path, opts), "updater: LoadFile")
}

func (u *Updater) loadFile(path string, opts []LoadOpt) error {
	var o loadOptions
	for _, f := range opts {
		if f != nil {
			f(&o)
		}
	}
	if _, err := u.OptimOp(); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	tensors, meta, err := safetensors.Read(f)
	if err != nil {
		return errors.Wrapf(err, "%s is no whole safetensors file", path)
	}
	if meta["format"] != format {
		return errors.Errorf("%s is no file of SaveFile: its format is %q", path, meta["format"])
	}
	kinds := map[string]string{}
	if err := json.Unmarshal([]byte(meta["kinds"]), &kinds); err != nil {
		return errors.Wrapf(err, "%s: the metadata", path)
	}
	if err := u.checkNames(); err != nil {
		return err
	}
	items, err := u.items()
	if err != nil {
		return err
	}
	if o.parameters {
		isState := func(kind string) bool { return kind != kindParameter }
		items = slices.DeleteFunc(items, func(it item) bool { return isState(it.kind) })
		tensors = slices.DeleteFunc(tensors, func(t safetensors.Tensor) bool { return isState(kinds[t.Name]) })
	}
	set, err := matchUp(items, tensors)
	if err != nil {
		return err
	}
	for _, f := range set {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// The kinds of what a file holds.
const (
	kindParameter = "parameter"
	kindState     = "state"
)

// item is one thing that is saved.
type item struct {
	name, kind string
	value      gorgonia.Value
	node       *gorgonia.Node  // of a variable, or nil
	state      *graphops.State // or nil
}

// checkNames reports variables that a file could not tell apart.
func (u *Updater) checkNames() error {
	for _, s := range u.settings {
		if s.name != s.node.Name() {
			return errors.Errorf("a variable has no name of its own, so that it is called %q: give it one with gorgonia.WithName", s.name)
		}
	}
	return nil
}

// items are the variables and states, in order. While averages stand in for the weights there are none.
func (u *Updater) items() (items []item, err error) {
	if len(u.losses) == 0 {
		return nil, errors.New("make the updater with New")
	}
	if why := u.solver.Store().Locked(); why != nil {
		return nil, why
	}
	if err := u.solver.CatchUp(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	add := func(it item) error {
		if seen[it.name] {
			return errors.Errorf("two things are called %q: give the variables names of their own", it.name)
		}
		seen[it.name] = true
		items = append(items, it)
		return nil
	}
	for _, s := range u.settings {
		if s.node.Value() == nil {
			return nil, errors.Errorf("variable %q has no value", s.name)
		}
		if err := add(item{name: s.name, kind: kindParameter, value: s.node.Value(), node: s.node}); err != nil {
			return nil, err
		}
	}
	states := u.OptimizerVars()
	var losses gorgonia.Nodes
	for _, o := range u.losses {
		losses = append(losses, o.loss)
	}
	for _, m := range u.metas {
		losses = append(losses, m.Loss)
	}
	for _, g := range graphops.Generators(losses...) {
		for _, st := range g.States() {
			if !slices.Contains(states, st) {
				states = append(states, st)
			}
		}
	}
	for _, st := range states {
		v, err := st.Value()
		if err != nil {
			return nil, err
		}
		if err := add(item{name: st.Name(), kind: kindState, value: v, state: st}); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// tensor is a copy of the value, in the order of its elements.
func (it item) tensor() (safetensors.Tensor, error) { return saved.FromValue(it.name, it.value) }

// assign writes what was read into the value.
func (it item) assign(t safetensors.Tensor) error { return graphops.Copy(it.value, saved.Value(t)) }

// restore writes a copy back. A variable's node may have got another value in the meantime, by gorgonia.Let: then into both.
func (it item) restore(t safetensors.Tensor) (err error) {
	if it.state != nil {
		_, err = it.state.Value() // takes over what Let gave its nodes, so that it does not come back later
	} else if now := it.node.Value(); now != nil && now != it.value {
		err = graphops.Copy(now, saved.Value(t))
	}
	if e := it.assign(t); err == nil {
		err = e
	}
	return err
}

// accepts looks at what was read for a hyperparameter or a counter.
func (it item) accepts(t safetensors.Tensor) error {
	if it.state == nil || it.state.Kind() == graphops.Slot {
		return nil
	}
	v, err := graphops.ScalarValue(saved.Value(t))
	switch {
	case err != nil:
		return err
	case it.state.Kind() == graphops.Counter && (v < 0 || v > 1<<53):
		return errors.Errorf("%s is %v, which no counter can be", it.name, v)
	}
	return it.state.Accepts(v)
}

// matchUp pairs what is there with what was read, and returns what copies the one into the other.
func matchUp(items []item, tensors []safetensors.Tensor) (set []func() error, err error) {
	read := map[string]safetensors.Tensor{}
	for _, t := range tensors {
		read[t.Name] = t
	}
	var bad []string
	for _, it := range items {
		t, ok := read[it.name]
		delete(read, it.name)
		if !ok {
			bad = append(bad, it.name+" is missing")
			continue
		}
		want, err := it.tensor()
		if err != nil {
			return nil, err
		}
		switch {
		case dtypeName(want.Data) != dtypeName(t.Data):
			bad = append(bad, it.name+" is "+dtypeName(t.Data)+" there, and "+dtypeName(want.Data)+" here")
		case !slices.Equal(want.Shape, t.Shape):
			bad = append(bad, errors.Errorf("%s has shape %v there, and %v here", it.name, t.Shape, want.Shape).Error())
		default:
			set = append(set, func() error { return it.assign(t) })
			if err := it.accepts(t); err != nil {
				bad = append(bad, err.Error())
			}
		}
	}
	for _, t := range tensors {
		if _, left := read[t.Name]; left {
			bad = append(bad, t.Name+" is unexpected")
		}
	}
	if len(bad) > 0 {
		return nil, errors.Errorf("nothing was loaded: %s", strings.Join(bad, "; "))
	}
	return set, nil
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
