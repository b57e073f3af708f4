package summary

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// event is what readEvents makes of an event.
type event struct {
	time    float64
	step    int64
	version string
	tags    []string
	values  []float32
}

// crc32c is CRC-32C by bits.
func crc32c(b []byte) uint32 {
	c := ^uint32(0)
	for _, v := range b {
		c ^= uint32(v)
		for range 8 {
			c = c>>1 ^ 0x82f63b78*(c&1)
		}
	}
	return ^c
}

// readEvents reads an event file, with all checksums.
func readEvents(t *testing.T, b []byte) (events []event) {
	t.Helper()
	checked := func(n int) []byte {
		require.GreaterOrEqual(t, len(b), n+4)
		part := b[:n]
		require.Equal(t, bits.RotateLeft32(crc32c(part), -15)+0xa282ead8, binary.LittleEndian.Uint32(b[n:]))
		b = b[n+4:]
		return part
	}
	for len(b) > 0 {
		e := event{}
		fields(t, checked(int(binary.LittleEndian.Uint64(checked(8)))), func(field int, number uint64, text []byte) {
			switch field {
			case 1:
				e.time = math.Float64frombits(number)
			case 2:
				e.step = int64(number)
			case 3:
				e.version = string(text)
			case 5:
				fields(t, text, func(field int, _ uint64, value []byte) {
					require.Equal(t, 1, field)
					fields(t, value, func(field int, number uint64, text []byte) {
						if field == 1 {
							e.tags = append(e.tags, string(text))
						} else {
							require.Equal(t, 2, field)
							e.values = append(e.values, math.Float32frombits(uint32(number)))
						}
					})
				})
			default:
				t.Fatalf("field %d", field)
			}
		})
		events = append(events, e)
	}
	return events
}

// fields reads the fields of a protocol buffer.
func fields(t *testing.T, b []byte, f func(field int, number uint64, text []byte)) {
	t.Helper()
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		require.Positive(t, n)
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		var number uint64
		var text []byte
		key := uvarint()
		switch key & 7 {
		case 0:
			number = uvarint()
		case 1:
			number, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			n := uvarint()
			text, b = b[:n], b[n:]
		case 5:
			number, b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		default:
			t.Fatalf("wire type of %d", key)
		}
		f(int(key>>3), number, text)
	}
}

// The records are those of testdata/tensorboard/generate.py.
func TestTensorFlow(t *testing.T) {
	want, err := os.ReadFile("../../testdata/tensorboard/events.bin")
	require.NoError(t, err)
	var b bytes.Buffer
	w := NewTensorBoard(&b)
	long := strings.Repeat("t", 200)
	for _, r := range []Record{
		{1, time.Unix(1700000000, 25e7), []Value{{"loss", 0.1}, {"größe", 0}}},
		{1 << 40, time.Unix(1700000001, 5e8), []Value{{"loss", 1e300}, {long, -2.5}}}, // 1e300 is infinite in float32
		{-1, time.Unix(1700000002, 0), nil},
	} {
		require.NoError(t, w.Write(r))
	}
	require.Equal(t, want, b.Bytes())
	inf := float32(math.Inf(1))
	require.Equal(t, []event{
		{1700000000.25, 0, "brain.Event:2", nil, nil},
		{1700000000.25, 1, "", []string{"loss", "größe"}, []float32{0.1, 0}},
		{1700000001.5, 1 << 40, "", []string{"loss", long}, []float32{inf, -2.5}},
		{1700000002, -1, "", nil, nil},
	}, readEvents(t, b.Bytes()))
}

func TestTensorBoardNumbers(t *testing.T) {
	var b bytes.Buffer
	w := NewTensorBoard(&b)
	before := time.Now()
	for i, v := range numbers {
		require.NoError(t, w.Write(Record{Step: i, Values: []Value{{"v", v}}}))
	}
	after := time.Now()
	events := readEvents(t, b.Bytes())
	require.Len(t, events, len(numbers)+1)
	for i, v := range numbers {
		e := events[i+1]
		require.Equal(t, int64(i), e.step)
		require.Equal(t, []string{"v"}, e.tags)
		require.Equal(t, math.Float32bits(float32(v)), math.Float32bits(e.values[0]))
		require.GreaterOrEqual(t, e.time, float64(before.UnixMicro()-1)/1e6)
		require.LessOrEqual(t, e.time, float64(after.UnixMicro()+1)/1e6)
	}
}

func TestTensorBoardFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "1")
	host, err := os.Hostname()
	require.NoError(t, err)
	now := func() time.Time { return time.Unix(1700000000, 0) }
	for i, end := range []string{"", ".1", ".2"} {
		w, err := createEventFile(dir, now)
		require.NoError(t, err)
		require.NoError(t, w.Write(Record{Step: i, Values: []Value{{"loss", 1}}}))
		b, err := os.ReadFile(filepath.Join(dir, "events.out.tfevents.1700000000."+host+end))
		require.NoError(t, err)
		require.Equal(t, []event{
			{1700000000, 0, "brain.Event:2", nil, nil}, {1700000000, int64(i), "", []string{"loss"}, []float32{1}},
		}, readEvents(t, b), "before the file is closed")
		require.NoError(t, w.Close())
		require.ErrorIs(t, w.Write(Record{}), os.ErrClosed)
		require.ErrorIs(t, w.Close(), os.ErrClosed)
	}
	w, err := TensorBoardFile(dir)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	names, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.??????????."+host+"*"))
	require.NoError(t, err)
	require.Len(t, names, 4)

	file := names[0]
	w, err = TensorBoardFile(file)
	require.ErrorContains(t, err, "summary: tensorboard: ")
	require.True(t, w == nil)
}
