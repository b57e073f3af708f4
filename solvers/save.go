package solvers

import (
	"io"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/internal/safetensors"
	"optimop/internal/saved"
)

// format is what the metadata of a file call it.
const format = "optimop solver 1"

// Save writes Variables, by name, in the safetensors format (https://github.com/huggingface/safetensors). The parameters are
// not among them. Those that are nameless, or share a name with another, are an error: their states could not be found again.
func (s *Solver) Save(w io.Writer) error {
	if err := s.CatchUp(); err != nil {
		return err
	}
	if err := s.params.unnamed(); err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	for _, st := range s.Variables() {
		v, err := st.Value()
		if err != nil {
			return err
		}
		t, err := saved.FromValue(st.Name(), v)
		if err != nil {
			return errors.Wrap(err, "solvers: Save")
		}
		tensors = append(tensors, t)
	}
	if len(tensors) == 0 {
		return errors.New("solvers: Save: there are no variables yet: call Build")
	}
	return errors.Wrap(safetensors.Write(w, tensors, map[string]string{"format": format}), "solvers: Save")
}

// Load reads what Save wrote, into the same variables: Build makes them first. All that is missing, unexpected, of another
// dtype or shape, or illegal is listed in one error, and then nothing is changed. See SetWeights.
func (s *Solver) Load(r io.Reader) error {
	if err := s.CatchUp(); err != nil {
		return err
	}
	vars := s.Variables()
	if len(vars) == 0 {
		return errors.New("solvers: Load: there are no variables yet: call Build")
	}
	tensors, meta, err := safetensors.Read(r)
	if err != nil {
		return errors.Wrap(err, "solvers: Load")
	}
	if meta["format"] != format {
		return errors.Errorf("solvers: Load: that is nothing that Save wrote: its format is %q", meta["format"])
	}
	read := map[string]gorgonia.Value{}
	for _, t := range tensors {
		read[t.Name] = saved.Value(t)
	}
	var bad []string
	values := make([]gorgonia.Value, len(vars))
	for i, st := range vars {
		v, ok := read[st.Name()]
		delete(read, st.Name())
		if !ok {
			bad = append(bad, st.Name()+" is missing")
		} else if err := st.Takes(v); err != nil {
			bad = append(bad, err.Error())
		}
		values[i] = v
	}
	for _, t := range tensors {
		if _, left := read[t.Name]; left {
			bad = append(bad, t.Name+" is unexpected")
		}
	}
	if bad != nil {
		return errors.Errorf("solvers: Load: nothing was loaded: %s", strings.Join(bad, "; "))
	}
	return s.SetWeights(values)
}

// unnamed reports a parameter that has no name of its own, by which its state could be found again.
func (p *params) unnamed() error {
	refuse := func(own, name string) error {
		if own == name {
			return nil
		}
		return errors.Errorf("solvers: a parameter has no name of its own, so that it is called %q: give it one before its state is saved", name)
	}
	var worst error
	note := func(err error) { // of several the first, so that the error does not depend on the order of a map
		if err != nil && (worst == nil || err.Error() < worst.Error()) {
			worst = err
		}
	}
	for w, name := range p.node {
		if n := w.Value(); n != nil {
			note(refuse(ownName(n), name))
		}
	}
	for m, name := range p.other {
		note(refuse(ownName(m), name))
	}
	return worst
}
