package summary

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
)

// NewTensorBoard makes a Writer of an event file of TensorBoard. Each record is one event with its step, its time in seconds
// since 1970, and a simple_value for each tag. That is a float32: values are rounded, and those that are too large become
// infinite. The event that tells the version of the file comes just before the first record. Errors: a tag that occurs twice, is
// empty or not UTF-8, and those of w.
//
// The file is a sequence of frames, each a length (eight bytes), a checksum of those, an event, and a checksum of it. All numbers
// are little-endian. A checksum is CRC-32C, rotated right by 15 bits and increased by 0xa282ead8. Events are protocol buffers,
// with these fields (https://github.com/tensorflow/tensorboard/tree/master/tensorboard/compat/proto):
//
//	Event:   wall_time 1 (double), step 2 (int64), file_version 3 (string), summary 5 (Summary)
//	Summary: value 1 (repeated Value)
//	Value:   tag 1 (string), simple_value 2 (float)
func NewTensorBoard(w io.Writer) Writer { return &eventWriter{stream: stream{w: w}, now: time.Now} }

// TensorBoardFile makes a file of a name that TensorBoard looks for, events.out.tfevents.<seconds since 1970>.<host>, in the
// directory, and makes that too if need be; see NewTensorBoard. If there is such a file, the name gets a number: .1, .2, …
func TensorBoardFile(dir string) (WriteCloser, error) { return createEventFile(dir, time.Now) }

// Field numbers of protocol buffers, with the wire types in the low three bits.
const (
	varint, fixed64, bytesType, fixed32 = 0, 1, 2, 5

	eventWallTime = 1<<3 | fixed64
	eventStep     = 2<<3 | varint
	eventVersion  = 3<<3 | bytesType
	eventSummary  = 5<<3 | bytesType
	summaryValue  = 1<<3 | bytesType
	valueTag      = 1<<3 | bytesType
	valueSimple   = 2<<3 | fixed32
)

type eventWriter struct {
	stream
	now   func() time.Time
	began bool
}

func (e *eventWriter) Write(r Record) error {
	if err := check(r); err != nil {
		return errors.Wrap(err, "summary: tensorboard")
	}
	t := r.Time
	if t.IsZero() {
		t = e.now()
	}
	var b []byte
	if !e.began {
		b = appendFrame(b, appendBytes(wallTime(t), eventVersion, []byte("brain.Event:2")))
	}
	var summary []byte
	for _, v := range r.Values {
		value := appendBytes(nil, valueTag, []byte(v.Tag))
		value = binary.LittleEndian.AppendUint32(append(value, valueSimple), math.Float32bits(float32(v.Value)))
		summary = appendBytes(summary, summaryValue, value)
	}
	event := binary.AppendUvarint(append(wallTime(t), eventStep), uint64(int64(r.Step)))
	b = appendFrame(b, appendBytes(event, eventSummary, summary))
	e.began = true
	return errors.Wrapf(e.write(b), "summary: tensorboard: step %d", r.Step)
}

// wallTime is the first field of an event.
func wallTime(t time.Time) []byte {
	seconds := float64(t.Unix()) + float64(t.Nanosecond())/1e9
	return binary.LittleEndian.AppendUint64([]byte{eventWallTime}, math.Float64bits(seconds))
}

// appendBytes appends a field of a string or a message.
func appendBytes(b []byte, field byte, value []byte) []byte {
	return append(binary.AppendUvarint(append(b, field), uint64(len(value))), value...)
}

func appendFrame(b, event []byte) []byte {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	b = binary.LittleEndian.AppendUint32(append(b, length...), checksum(length))
	return binary.LittleEndian.AppendUint32(append(b, event...), checksum(event))
}

func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}

type eventFile struct {
	eventWriter
	file *os.File
}

func (e *eventFile) Close() error { return errors.Wrap(e.file.Close(), "summary: tensorboard") }

func createEventFile(dir string, now func() time.Time) (WriteCloser, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, errors.Wrap(err, "summary: tensorboard")
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, errors.Wrap(err, "summary: tensorboard")
	}
	base := filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.%s", now().Unix(), host))
	name := base
	for n := 1; ; n++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return &eventFile{eventWriter{stream: stream{w: f}, now: now}, f}, nil
		}
		if !os.IsExist(err) {
			return nil, errors.Wrap(err, "summary: tensorboard")
		}
		name = fmt.Sprintf("%s.%d", base, n)
	}
}
