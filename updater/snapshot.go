package updater

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/internal/durable"
	"optimop/internal/safetensors"
	"optimop/internal/saved"
)

// format is what the metadata of a file call it.
const format = "optimop checkpoint 1"

// The other keys of the metadata, whose values are JSON.
const (
	metaKinds     = "kinds"     // by name: parameter or state
	metaConfig    = "config"    // of an Updater, if it has that form
	metaSchedules = "schedules" // by hyperparameter
	metaVersions  = "versions"  // of the program's modules and of Go
	metaPosition  = "position"
	metaNotes     = "notes"
)

// Position is where in its data a training is: what it takes to go on with the next batch. What the numbers count is the caller's affair.
type Position struct {
	Epoch int    `json:"epoch"` // that is running, or was finished
	Batch int    `json:"batch"` // those of the epoch that are done
	Seed  uint64 `json:"seed"`  // of the order of the examples
}

// Snapshot is a copy of all that a training needs to go on elsewhere as if nothing had happened: variables, slots, counters,
// hyperparameters, averages, accumulators, the states of random operations and of the loss scale. It shares nothing with the training,
// which goes on while another goroutine writes the snapshot. Updater, GradientDescent and Batched make and restore them.
//
// In a file (in the safetensors format, https://github.com/huggingface/safetensors, which Python and Rust read) each
// value has its own name. The metadata have the rest, the config and the schedules among it, and a checksum of everything.
type Snapshot struct {
	Position Position          // the caller's to set
	Notes    map[string]string // any texts of the caller's, or nil

	tensors []safetensors.Tensor
	kinds   map[string]string // by name
	about   map[string]string // metadata that are not above
}

// newSnapshot makes a snapshot of items.
func newSnapshot(items []item) (*Snapshot, error) {
	s := &Snapshot{kinds: map[string]string{}, about: map[string]string{}}
	for _, it := range items {
		t, err := it.tensor()
		if err != nil {
			return nil, err
		}
		s.tensors = append(s.tensors, t)
		s.kinds[it.name] = it.kind
	}
	return s, putJSON(s.about, metaVersions, versions())
}

func putJSON(metadata map[string]string, key string, value any) error {
	b, err := json.Marshal(value)
	if err == nil {
		metadata[key] = string(b)
	}
	return errors.Wrap(err, key)
}

// versions are those of Go and of the modules that decide how the numbers come about.
func versions() map[string]string {
	v := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v["go"] = info.GoVersion
	for _, m := range append(info.Deps, &info.Main) {
		if slices.Contains([]string{"optimop", "gorgonia.org/gorgonia", "gorgonia.org/tensor"}, m.Path) {
			v[m.Path] = m.Version
		}
	}
	return v
}

// Write writes the snapshot. The bytes depend on nothing but what is in it.
func (s *Snapshot) Write(w io.Writer) error { return errors.Wrap(s.write(w), "updater: Write") }

func (s *Snapshot) write(w io.Writer) error {
	metadata := maps.Clone(s.about)
	metadata["format"] = format
	err := putJSON(metadata, metaKinds, s.kinds)
	if err == nil && s.Position != (Position{}) {
		err = putJSON(metadata, metaPosition, s.Position)
	}
	if err == nil && len(s.Notes) > 0 {
		err = putJSON(metadata, metaNotes, s.Notes)
	}
	if err == nil {
		err = safetensors.Seal(s.tensors, metadata)
	}
	if err == nil {
		err = safetensors.Write(w, s.tensors, metadata)
	}
	return err
}

// WriteFile writes the snapshot to a file that is whole whatever happens: it is written beside its place, brought to the disk, and
// then moved there. At each instant the path has the old file or the new one; after an error, such as of a full disk, the old one.
// A process that is killed may leave a file <path>.tmp-<number>, which can be deleted.
func (s *Snapshot) WriteFile(path string) error {
	return errors.Wrap(durable.WriteFile(path, s.write), "updater: WriteFile")
}

// ReadSnapshot reads what Write wrote, to the end of r. Any damage is an error, found by the checksum. The file need not be trusted.
func ReadSnapshot(r io.Reader) (*Snapshot, error) {
	s, err := readSnapshot(r, true)
	return s, errors.Wrap(err, "updater: ReadSnapshot")
}

func readSnapshot(r io.Reader, check bool) (*Snapshot, error) {
	tensors, metadata, err := safetensors.Read(r)
	if err != nil {
		return nil, errors.Wrap(err, "no whole safetensors file")
	}
	if metadata["format"] != format {
		return nil, errors.Errorf("no file of SaveFile: its format is %q", metadata["format"])
	}
	if check {
		if err := safetensors.Check(tensors, metadata); err != nil {
			return nil, err
		}
	}
	s := &Snapshot{tensors: tensors, about: metadata}
	for _, m := range []struct {
		key string
		to  any
	}{{metaKinds, &s.kinds}, {metaPosition, &s.Position}, {metaNotes, &s.Notes}} {
		text, ok := metadata[m.key]
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(text), m.to); err != nil {
			return nil, errors.Wrapf(err, "the metadata: %s", m.key)
		}
		delete(metadata, m.key)
	}
	if s.kinds == nil {
		return nil, errors.New("the metadata: no kinds")
	}
	delete(metadata, "format")
	return s, nil
}

// ReadSnapshotFile is ReadSnapshot of a file.
func ReadSnapshotFile(path string) (*Snapshot, error) {
	s, err := readSnapshotFile(path, true)
	return s, errors.Wrap(err, "updater: ReadSnapshotFile")
}

func readSnapshotFile(path string, check bool) (*Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	defer f.Close()
	s, err := readSnapshot(bufio.NewReaderSize(f, 1<<16), check)
	return s, errors.Wrap(err, path)
}

// Config is the Config of the Updater as JSON, for ReadConfig; "" of an algorithm, and of one with rules or variables that only Go can name.
func (s *Snapshot) Config() string { return s.about[metaConfig] }

// Schedules are the schedules of hyperparameters as JSON, {"adam/learning_rate": {"class": …}}; "" if there are none.
func (s *Snapshot) Schedules() string { return s.about[metaSchedules] }

// Versions is a JSON object with the versions of Go and of the modules optimop and Gorgonia that made the snapshot.
func (s *Snapshot) Versions() string { return s.about[metaVersions] }

// Names are the names of all values, in no order that means anything.
func (s *Snapshot) Names() (names []string) {
	for _, t := range s.tensors {
		names = append(names, t.Name)
	}
	return names
}

// Value is a copy of one of the values, nil if there is none of that name.
func (s *Snapshot) Value(name string) gorgonia.Value {
	for _, t := range s.tensors {
		if t.Name == name {
			if v, err := saved.Copy(saved.Value(t)); err == nil {
				return v
			}
		}
	}
	return nil
}

// GlobalStep is the number of runs that the training had made; 0 if there is no such counter.
func (s *Snapshot) GlobalStep() int {
	if n, ok := s.Value(globalStep).(*gorgonia.I64); ok {
		return int(*n)
	}
	return 0
}
