package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Write writes a file. The bytes depend only on the content: like the format's own implementation it sorts the tensors by dtype
// (I64, F64, F32) and then by name, and pads the header with spaces to a multiple of 8 bytes; it also sorts the metadata by key.
// The values are not copied as a whole. Errors: a name that is not UTF-8, occurs twice or is "__metadata__", Data of another
// type or of another length than that of the shape, more than 64 dimensions, a header of more than 100 MB, and those of w. All
// but those of w are found before anything is written.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	entries, err := layout(tensors)
	if err != nil {
		return errors.Wrap(err, "safetensors")
	}
	header, err := marshal(entries, metadata)
	if err != nil {
		return errors.Wrap(err, "safetensors")
	}
	if _, err := w.Write(header); err != nil {
		return errors.Wrap(err, "safetensors: header")
	}
	for _, e := range entries {
		var err error
		switch data := e.Data.(type) {
		case []float32:
			err = writeData(w, data)
		case []float64:
			err = writeData(w, data)
		case []int64:
			err = writeData(w, data)
		}
		if err != nil {
			return errors.Wrapf(err, "safetensors: tensor %q", e.Name)
		}
	}
	return nil
}

type entry struct {
	Tensor
	info info
}

// layout checks the tensors and places them in the file.
func layout(tensors []Tensor) ([]entry, error) {
	entries := make([]entry, len(tensors))
	for i, t := range tensors {
		in, err := describe(t)
		if err != nil {
			return nil, errors.Wrapf(err, "tensor %q", t.Name)
		}
		entries[i] = entry{t, in}
	}
	rank := []string{"I64", "F64", "F32"} // the order of the format's own implementation
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.info.DType), slices.Index(rank, b.info.DType)), strings.Compare(a.Name, b.Name))
	})
	seen := make(map[string]bool, len(entries))
	end := 0
	for i := range entries {
		e := &entries[i]
		if seen[e.Name] {
			return nil, errors.Errorf("tensor %q occurs twice", e.Name)
		}
		seen[e.Name] = true
		e.info.Offsets[0] += end
		e.info.Offsets[1] += end
		end = e.info.Offsets[1]
	}
	return entries, nil
}

// describe checks one tensor and describes it as if it were the first one in the file.
func describe(t Tensor) (info, error) {
	if err := checkText(t.Name); err != nil {
		return info{}, err
	}
	if t.Name == metadataKey {
		return info{}, errors.New("the name is that of the metadata")
	}
	dtype, n := "", 0
	switch data := t.Data.(type) {
	case []float32:
		dtype, n = "F32", len(data)
	case []float64:
		dtype, n = "F64", len(data)
	case []int64:
		dtype, n = "I64", len(data)
	default:
		return info{}, errors.Errorf("data is %T, want []float32, []float64 or []int64", t.Data)
	}
	want, err := elements(t.Shape)
	if err != nil {
		return info{}, err
	}
	if n != want {
		return info{}, errors.Errorf("%d elements, shape %v has %d", n, t.Shape, want)
	}
	shape := append([]int{}, t.Shape...) // not nil, which JSON would have as null
	return info{dtype, shape, [2]int{0, n * size(dtype)}}, nil
}

// marshal makes the header with the length before it.
func marshal(entries []entry, metadata map[string]string) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 8))
	separator := byte('{')
	member := func(key string, value any) error {
		k, err := json.Marshal(key)
		if err != nil {
			return errors.WithStack(err)
		}
		v, err := json.Marshal(value)
		if err != nil {
			return errors.WithStack(err)
		}
		b.WriteByte(separator)
		b.Write(append(append(k, ':'), v...))
		separator = ','
		return nil
	}
	if len(metadata) > 0 {
		for _, k := range slices.Sorted(maps.Keys(metadata)) {
			if err := checkText(k, metadata[k]); err != nil {
				return nil, errors.Wrap(err, "metadata")
			}
		}
		if err := member(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if err := member(e.Name, e.info); err != nil {
			return nil, errors.Wrapf(err, "tensor %q", e.Name)
		}
	}
	if separator == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	b.WriteString(strings.Repeat(" ", -b.Len()&7))
	header := b.Bytes()
	if len(header)-8 > maxHeader {
		return nil, errors.Errorf("the header has %d bytes, the most is %d", len(header)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(header, uint64(len(header)-8))
	return header, nil
}

func writeData[T float32 | float64 | int64](w io.Writer, data []T) error {
	var b []byte
	for part := range slices.Chunk(data, chunk) {
		var err error
		if b, err = binary.Append(b[:0], binary.LittleEndian, part); err != nil {
			return errors.WithStack(err)
		}
		if _, err := w.Write(b); err != nil {
			return errors.WithStack(err)
		}
	}
	return nil
}
