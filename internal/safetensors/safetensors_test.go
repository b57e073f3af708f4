package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
)

const golden = "../../testdata/safetensors/python.safetensors"

// file puts a header and values together.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// bits are the elements of a tensor as integers, so that NaNs and zeros compare exactly.
func bits(data any) (words []uint64) {
	switch data := data.(type) {
	case []float32:
		for _, v := range data {
			words = append(words, uint64(math.Float32bits(v)))
		}
	case []float64:
		for _, v := range data {
			words = append(words, math.Float64bits(v))
		}
	case []int64:
		for _, v := range data {
			words = append(words, uint64(v))
		}
	}
	return words
}

func requireEqual(t *testing.T, want, got []Tensor) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		require.Equal(t, w.Name, got[i].Name)
		require.Equal(t, append([]int{}, w.Shape...), got[i].Shape, w.Name)
		require.IsType(t, w.Data, got[i].Data, w.Name)
		require.Equal(t, bits(w.Data), bits(got[i].Data), w.Name)
	}
}

func write(t *testing.T, tensors []Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, tensors, metadata))
	return b.Bytes()
}

// The values are those of testdata/safetensors/generate.py.
func TestPython(t *testing.T) {
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	got, metadata, err := Read(iotest.HalfReader(bytes.NewReader(b)))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": `1 "ü"`}, metadata)
	float := math.Float64frombits
	requireEqual(t, []Tensor{
		{"global_step", nil, []int64{7}},
		{"range", []int{3}, []int64{math.MinInt64, -1, math.MaxInt64}},
		{"dense/W/adam/m", []int{3}, []float64{1. / 3, 5e-324, math.MaxFloat64}},
		{`größe "µ"`, nil, []float64{0.5}},
		{"special64", []int{5}, []float64{
			float(0x7ff0000000000001), float(0xfff8000000012345), float(1 << 63), math.Inf(1), math.Inf(-1),
		}},
		{"dense/W", []int{2, 3}, []float32{1.5, -2.25, 3, 0.1, 1e-45, math.MaxFloat32}},
		{"empty", []int{2, 0, 3}, []float32{}},
		{"special32", []int{5}, []float32{
			math.Float32frombits(0x7f800001), math.Float32frombits(0xffc12345), math.Float32frombits(1 << 31),
			float32(math.Inf(1)), float32(math.Inf(-1)),
		}},
	}, got)
	got[0], got[7] = got[7], got[0] // Write sorts
	require.Equal(t, b, write(t, got, metadata))
}

func TestRoundTrip(t *testing.T) {
	long := make([]float64, 5*chunk+3) // several steps of growth
	for i := range long {
		long[i] = float64(i)
	}
	high := Tensor{"high", make([]int, maxRank), []float32{}}
	for _, c := range []struct {
		name     string
		tensors  []Tensor
		metadata map[string]string
	}{
		{"nothing", nil, nil},
		{"only metadata", nil, map[string]string{"": "", "b": "<\n\u2028>", "a": "\x00"}},
		{"long", []Tensor{{"long", []int{len(long)}, long}}, nil},
		{"order", []Tensor{
			{"z", []int{1}, []int64{1}}, {"y", []int{1, 1}, []float64{2}}, {"", nil, []float32{3}}, {"a", nil, []float32{4}}, high,
		}, map[string]string{"k": "v"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := write(t, c.tensors, c.metadata)
			require.Zero(t, binary.LittleEndian.Uint64(b)%8)
			got, metadata, err := Read(bytes.NewReader(b))
			require.NoError(t, err)
			require.Equal(t, c.metadata, metadata)
			requireEqual(t, c.tensors, got)
		})
	}
}

const entryA = `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`

func TestReadErrors(t *testing.T) {
	with := func(old, replacement string, data ...byte) []byte {
		return file("{"+strings.Replace(entryA, old, replacement, 1)+"}", append(make([]byte, 4), data...)...)
	}
	shape := func(s string) []byte { return with("[1]", s) }
	offsets := func(s string) []byte { return with("[0,4]", s) }
	_, _, err := Read(bytes.NewReader(with("", "")))
	require.NoError(t, err, "the table changes a file that is right")
	for _, c := range []struct {
		want string
		b    []byte
	}{
		{"header: length: unexpected EOF", nil},
		{"header: length: unexpected EOF", make([]byte, 7)},
		{"header: unexpected EOF", make([]byte, 8)},
		{"header: unexpected EOF", file("{}")[:9]},
		{"header: 100000001 bytes, the most is 100000000", binary.LittleEndian.AppendUint64(nil, maxHeader+1)},
		{"header: 18446744073709551615 bytes", bytes.Repeat([]byte{255}, 8)},
		{"header: not UTF-8", with("a", "\xff")},
		{"header: <nil>, want {", file("null")},
		{"header: [, want {", file("[]")},
		{`header: "a": "dtype": unexpected EOF`, file(`{"a":{"dtype":`)},
		{`header: "a": "shape": unexpected EOF`, file(`{"a":{"shape":[`)},
		{`header: "a": "shape": unexpected EOF`, file(`{"a":{"shape":[1`)},
		{`header: "a": unexpected EOF`, file(`{"a":{"shape":[1]`)},
		{`header: "a": invalid character '2'`, file(`{"a":{"shape":[1]2`)},
		{"header: text after the object", file("{}{}")},
		{"header: text after the object", file("{}\x00")},
		{`header: "a" occurs twice`, file("{"+entryA+","+entryA+"}", 0, 0, 0, 0)},
		{`"__metadata__": <nil>, want {`, file(`{"__metadata__":null}`)},
		{`"__metadata__": "k": { is not a text`, file(`{"__metadata__":{"k":{}}}`)},
		{`"__metadata__": "k": 1 is not a text`, file(`{"__metadata__":{"k":1}}`)},
		{`"__metadata__": "k" occurs twice`, file(`{"__metadata__":{"k":"1","k":"2"}}`)},
		{`"__metadata__" occurs twice`, file(`{"__metadata__":{},"__metadata__":{}}`)},
		{`"a": <nil>, want {`, file(`{"a":null}`)},
		{`"a": "dtype": "F16" is none of F32, F64 and I64`, with("F32", "F16")},
		{`"a": "dtype": 3 is not a text`, with(`"F32"`, "3")},
		{`"a": "dtype" occurs twice`, with(`"dtype"`, `"dtype":"F32","dtype"`)},
		{`"a": wants dtype, shape and data_offsets`, with(`"shape":[1],`, "")},
		{`"a": "x": no such property`, with(`"dtype"`, `"x":1,"dtype"`)},
		{`"a": "DTYPE": no such property`, with("dtype", "DTYPE")},
		{`"a": "shape": -1 is not a natural number`, shape("[-1]")},
		{`"a": "shape": 1.0 is not a natural number`, shape("[1.0]")},
		{`"a": "shape": 9223372036854775808 is not a natural number`, shape("[9223372036854775808]")},
		{`"a": "shape": <nil>, want [`, shape("null")},
		{`"a": "shape": [ is not a number`, shape("[[1]]")},
		{`"a": "shape": more than 64 numbers`, shape("[1" + strings.Repeat(",1", maxRank) + "]")},
		{`tensor "a": shape [4294967296 4294967296] is too large`, shape("[4294967296,4294967296]")},
		{`tensor "a": shape [2305843009213693952] is too large`, shape("[2305843009213693952]")},
		{`tensor "a" has 4 bytes, F32[2] has 8`, shape("[2]")},
		{`tensor "a" has 4 bytes, F64[1] has 8`, with("F32", "F64")},
		{`"a": "data_offsets": 1 numbers, want 2`, offsets("[0]")},
		{`"a": "data_offsets": more than 2 numbers`, offsets("[0,4,4]")},
		{`"a": "data_offsets": -4 is not`, offsets("[-4,0]")},
		{`tensor "a" has -4 bytes`, file("{"+entryA[:len(entryA)-6]+`[4,0]},"0":`+entryA[4:]+"}", 0, 0, 0, 0)},
		{`tensor "a" begins at byte 4, the one before it ends at 0`, offsets("[4,8]")},
		{`tensor "b" begins at byte 0, the one before it ends at 4`, file(`{"b":`+entryA[4:]+","+entryA+"}", 0, 0, 0, 0)},
		{`tensor "a": unexpected EOF`, file("{" + entryA + "}")},
		{`tensor "a": unexpected EOF`, file("{"+entryA+"}", 1, 2, 3)},
		{"bytes after the last tensor", with("", "", 1)},
	} {
		_, _, err := Read(bytes.NewReader(c.b))
		require.ErrorContains(t, err, c.want, "%q", c.b)
	}
}

func TestReaderFails(t *testing.T) {
	fail := errors.New("no disk")
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	for n := range len(b) + 1 {
		_, _, err := Read(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(fail)))
		require.ErrorIs(t, err, fail, n)
		_, _, err = Read(bytes.NewReader(b[:n]))
		require.Equal(t, n < len(b), err != nil, n)
	}
}

// What a short file announces takes no memory.
func TestAllocations(t *testing.T) {
	for _, b := range [][]byte{
		append(binary.LittleEndian.AppendUint64(nil, maxHeader), "{}"...),
		file(`{"a":{"dtype":"F64","shape":[1099511627776],"data_offsets":[0,8796093022208]}}`, 1, 2, 3, 4, 5, 6, 7, 8),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := Read(bytes.NewReader(b))
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
	}
}

type failAfter int

func (f *failAfter) Write(b []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestWriteErrors(t *testing.T) {
	one := []float32{1}
	for _, c := range []struct {
		want     string
		tensors  []Tensor
		metadata map[string]string
	}{
		{`tensor "a" occurs twice`, []Tensor{{"a", nil, one}, {"b", nil, one}, {"a", nil, one}}, nil},
		{`tensor "a" occurs twice`, []Tensor{{"a", nil, one}, {"a", nil, []int64{1}}}, nil},
		{`tensor "__metadata__": the name is that of the metadata`, []Tensor{{metadataKey, nil, one}}, nil},
		{`"\xff" is not UTF-8`, []Tensor{{"\xff", nil, one}}, nil},
		{`tensor "a": data is []int, want`, []Tensor{{"a", nil, []int{1}}}, nil},
		{`tensor "a": data is <nil>, want`, []Tensor{{"a", nil, nil}}, nil},
		{`tensor "a": 1 elements, shape [2] has 2`, []Tensor{{"a", []int{2}, one}}, nil},
		{`tensor "a": 0 elements, shape [] has 1`, []Tensor{{"a", nil, []float32{}}}, nil},
		{`tensor "a": negative dimension in shape [-1 -1]`, []Tensor{{"a", []int{-1, -1}, one}}, nil},
		{`tensor "a": shape [4611686018427387904 4 2] is too large`, []Tensor{{"a", []int{1 << 62, 4, 2}, one}}, nil},
		{`tensor "a": 65 dimensions`, []Tensor{{"a", make([]int, maxRank+1), one}}, nil},
		{`metadata: "\xff" is not UTF-8`, nil, map[string]string{"k": "\xff"}},
		{`metadata: "\xff" is not UTF-8`, nil, map[string]string{"\xff": "v"}},
		{"the most is 100000000", nil, map[string]string{"k": strings.Repeat(" ", maxHeader)}},
	} {
		var b bytes.Buffer
		require.ErrorContains(t, Write(&b, c.tensors, c.metadata), c.want)
		require.Zero(t, b.Len())
	}
	tensors := []Tensor{{"a", nil, one}, {"b", []int{2 * chunk}, make([]float32, 2*chunk)}}
	for n, want := range []string{"header", `tensor "a"`, `tensor "b"`, `tensor "b"`} {
		w := failAfter(n)
		require.ErrorContains(t, Write(&w, tensors, nil), want+": short write")
	}
	w := failAfter(4)
	require.NoError(t, Write(&w, tensors, nil))
}

// What Read accepts has no byte that is not accounted for, and comes back from what Write makes of it.
func FuzzRead(f *testing.F) {
	b, err := os.ReadFile(golden)
	require.NoError(f, err)
	f.Add(b)
	f.Add(file("{"+entryA+"}", 1, 2, 3, 4))
	f.Add(file(`{"__metadata__":{"k":"v"},"i":{"dtype":"I64","shape":[],"data_offsets":[0,8]}} `, 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(file(`{"a":{"data_offsets":[0,0],"shape":[0,9],"dtype":"F64"},"b":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, metadata, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		length := 8 + int(binary.LittleEndian.Uint64(b))
		sorted := map[string]Tensor{}
		for _, v := range tensors {
			sorted[v.Name] = v
			width := 8
			if _, ok := v.Data.([]float32); ok {
				width = 4
			}
			length += width * len(bits(v.Data))
		}
		require.Equal(t, len(b), length)
		again, metadata2, err := Read(bytes.NewReader(write(t, tensors, metadata)))
		require.NoError(t, err)
		require.Equal(t, len(metadata), len(metadata2))
		for k, v := range metadata {
			require.Equal(t, v, metadata2[k])
		}
		require.Len(t, again, len(tensors))
		for _, got := range again {
			requireEqual(t, []Tensor{sorted[got.Name]}, []Tensor{got})
		}
	})
}

func ExampleWrite() {
	var b bytes.Buffer
	err := Write(&b, []Tensor{{Name: "w", Shape: []int{2}, Data: []float64{0.5, 1}}}, map[string]string{"step": "3"})
	if err != nil {
		fmt.Println(err)
		return
	}
	tensors, metadata, err := Read(&b)
	fmt.Println(tensors, metadata, err)
	// Output: [{w [2] [0.5 1]}] map[step:3] <nil>
}
