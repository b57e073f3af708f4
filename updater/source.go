package updater

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/batch"
)

// checkNames compares the sources of a batch with the inputs.
func (a *UpdatesAlgorithm) checkNames(data map[string]any) error {
	var inputs, missing []string
	used := 0
	for i, s := range a.run.sources {
		name := s.Name
		if !s.Named {
			name = nodeName(s.Node)
		}
		_, ok := data[s.Name]
		switch {
		case !ok || !s.Named:
			missing = append(missing, name)
		case !slices.ContainsFunc(a.run.sources[:i], func(o *batch.Source) bool { return o.Name == s.Name }):
			used++
		}
		inputs = append(inputs, name)
	}
	if missing != nil {
		return errors.Errorf("updater: not all sources were found: the batch lacks %q. It has %q, the inputs are %q",
			missing, slices.Sorted(maps.Keys(data)), inputs)
	}
	if used == len(data) {
		return nil
	}
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if slices.Contains(inputs, name) {
			continue
		}
		if a.run.fixed[name] {
			return errors.Errorf("updater: the batch has a source %q, but the input of that name has a value already, "+
				"which would be used instead: name it in Sources", name)
		}
		unused = append(unused, name)
	}
	if a.opts.OnUnusedSources == "ignore" || a.opts.OnUnusedSources == "warn" && a.warned {
		return nil
	}
	if a.opts.OnUnusedSources == "warn" {
		a.warned = true
		slog.Warn("some sources of the batch are no inputs of the training algorithm", "unused", unused, "inputs", inputs)
		return nil
	}
	return errors.Errorf("updater: the batch has sources %q that are no inputs; the inputs are %q. Leave them out of the batch, or set "+
		`OnUnusedSources to "warn" or "ignore"`, unused, inputs)
}

// lacks reports whether a batch has no data for some input.
func (a *UpdatesAlgorithm) lacks(data map[string]any) bool {
	return slices.ContainsFunc(a.run.sources, func(s *batch.Source) bool {
		_, ok := data[s.Name]
		return !ok
	})
}
