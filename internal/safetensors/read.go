package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"
)

// Read reads a file to its end. The tensors come in the order of their values in the file, and those without values by name;
// metadata is nil if the file has none. The file need not be trusted: memory is taken as bytes arrive, not as the header
// announces them. Errors: a header that is longer than 100 MB, not UTF-8 or not the JSON object of the package comment; a name
// or a key that occurs twice; a dtype other than F32, F64 and I64; more than 64 dimensions; offsets that do not fit the shape,
// overlap or leave gaps; values that are missing or left over; and those of r.
func Read(r io.Reader) (tensors []Tensor, metadata map[string]string, err error) {
	header, err := readHeader(r)
	if err != nil {
		return nil, nil, errors.Wrap(err, "safetensors: header")
	}
	entries, metadata, err := parse(header)
	if err != nil {
		return nil, nil, errors.Wrap(err, "safetensors: header")
	}
	if err := checkOffsets(entries); err != nil {
		return nil, nil, errors.Wrap(err, "safetensors")
	}
	for _, e := range entries {
		n := (e.info.Offsets[1] - e.info.Offsets[0]) / size(e.info.DType)
		var err error
		switch e.info.DType {
		case "F32":
			e.Data, err = readData[float32](r, n, 4)
		case "F64":
			e.Data, err = readData[float64](r, n, 8)
		case "I64":
			e.Data, err = readData[int64](r, n, 8)
		}
		if err != nil {
			return nil, nil, errors.Wrapf(err, "safetensors: tensor %q", e.Name)
		}
		tensors = append(tensors, e.Tensor)
	}
	switch _, err := io.ReadFull(r, make([]byte, 1)); err {
	case io.EOF:
		return tensors, metadata, nil
	case nil:
		return nil, nil, errors.New("safetensors: bytes after the last tensor")
	default:
		return nil, nil, errors.Wrap(err, "safetensors: after the last tensor")
	}
}

func readHeader(r io.Reader) ([]byte, error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, errors.Wrap(noEOF(err), "length")
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, errors.Errorf("%d bytes, the most is %d", n, maxHeader)
	}
	var b bytes.Buffer // grows with what was read
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, errors.WithStack(noEOF(err))
	}
	if !utf8.Valid(b.Bytes()) {
		return nil, errors.New("not UTF-8")
	}
	return b.Bytes(), nil
}

// parse reads the header by tokens, because decoding into maps and structs would let keys pass that occur twice.
func parse(header []byte) (entries []entry, metadata map[string]string, err error) {
	p := parser{json.NewDecoder(bytes.NewReader(header))}
	p.UseNumber()
	err = p.object(func(name string) (err error) {
		if name == metadataKey {
			metadata = map[string]string{}
			return p.object(func(key string) (err error) {
				metadata[key], err = p.text()
				return err
			})
		}
		e := entry{Tensor: Tensor{Name: name}}
		e.info, err = p.info()
		e.Shape = e.info.Shape
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := p.Token(); err != io.EOF {
		return nil, nil, errors.New("text after the object")
	}
	return entries, metadata, nil
}

// checkOffsets sorts the tensors by place and checks that they fill the file and are as long as their shapes tell.
func checkOffsets(entries []entry) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(slices.Compare(a.info.Offsets[:], b.info.Offsets[:]), strings.Compare(a.Name, b.Name))
	})
	end := 0
	for _, e := range entries {
		in := e.info
		n, err := elements(in.Shape)
		switch {
		case err != nil:
			return errors.Wrapf(err, "tensor %q", e.Name)
		case in.Offsets[0] != end:
			return errors.Errorf("tensor %q begins at byte %d, the one before it ends at %d", e.Name, in.Offsets[0], end)
		case in.Offsets[1]-in.Offsets[0] != n*size(in.DType):
			return errors.Errorf("tensor %q has %d bytes, %s%v has %d", e.Name, in.Offsets[1]-in.Offsets[0], in.DType, in.Shape,
				n*size(in.DType))
		}
		end = in.Offsets[1]
	}
	return nil
}

// readData reads n elements. The slice at most doubles with each step, so that a short file cannot ask for a long one.
func readData[T float32 | float64 | int64](r io.Reader, n, size int) ([]T, error) {
	data := make([]T, 0, min(n, chunk))
	b := make([]byte, size*cap(data))
	for len(data) < n {
		if len(data) == cap(data) {
			data = append(make([]T, 0, min(n, 2*len(data))), data...)
		}
		part := data[len(data):min(cap(data), len(data)+chunk)]
		read := b[:size*len(part)]
		if _, err := io.ReadFull(r, read); err != nil {
			return nil, errors.WithStack(noEOF(err))
		}
		if _, err := binary.Decode(read, binary.LittleEndian, part); err != nil {
			return nil, errors.WithStack(err)
		}
		data = data[:len(data)+len(part)]
	}
	return data, nil
}

// noEOF makes an error of the end of a file in which more must come.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

type parser struct{ *json.Decoder }

// object reads an object. It calls member after each key, to read the value.
func (p parser) object(member func(key string) error) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.More() {
		key, err := p.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return errors.Errorf("%q occurs twice", key)
		}
		seen[key] = true
		if err := member(key); err != nil {
			return errors.Wrapf(err, "%q", key)
		}
	}
	return p.expect('}')
}

func (p parser) info() (in info, err error) {
	members := 0
	err = p.object(func(key string) (err error) {
		members++
		switch key {
		case "dtype":
			if in.DType, err = p.text(); err == nil && size(in.DType) == 0 {
				err = errors.Errorf("%q is none of F32, F64 and I64", in.DType)
			}
		case "shape":
			in.Shape, err = p.numbers(maxRank)
		case "data_offsets":
			var offsets []int
			if offsets, err = p.numbers(2); err == nil && len(offsets) != 2 {
				err = errors.Errorf("%d numbers, want 2", len(offsets))
			}
			copy(in.Offsets[:], offsets)
		default:
			err = errors.New("no such property of a tensor")
		}
		return err
	})
	if err == nil && members != 3 {
		err = errors.New("wants dtype, shape and data_offsets")
	}
	return in, err
}

// numbers reads an array of at most so many integers from 0 on.
func (p parser) numbers(most int) ([]int, error) {
	if err := p.expect('['); err != nil {
		return nil, err
	}
	numbers := []int{}
	for p.More() {
		if len(numbers) == most {
			return nil, errors.Errorf("more than %d numbers", most)
		}
		t, err := p.Token()
		if err != nil {
			return nil, errors.WithStack(noEOF(err))
		}
		text, ok := t.(json.Number)
		if !ok {
			return nil, errors.Errorf("%v is not a number", t)
		}
		n, err := strconv.Atoi(text.String())
		if err != nil || n < 0 {
			return nil, errors.Errorf("%s is not a natural number in range", text)
		}
		numbers = append(numbers, n)
	}
	return numbers, p.expect(']')
}

func (p parser) text() (string, error) {
	t, err := p.Token()
	if err != nil {
		return "", errors.WithStack(noEOF(err))
	}
	s, ok := t.(string)
	if !ok {
		return "", errors.Errorf("%v is not a text", t)
	}
	return s, nil
}

func (p parser) expect(want json.Delim) error {
	t, err := p.Token()
	if err != nil {
		return errors.WithStack(noEOF(err))
	}
	if t != want {
		return errors.Errorf("%v, want %v", t, want)
	}
	return nil
}
