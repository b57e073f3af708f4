package summary

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"

	"github.com/pkg/errors"
)

// NewCSV makes a Writer of comma-separated values with a header. The columns are step and the tags of the first record, in its
// order. Later records need the same tags, in any order. Numbers are the shortest that read back as the same float64, or NaN,
// Infinity, -Infinity. The time is left out. Errors: a tag that the header does not have or that the record lacks, a tag that
// occurs twice, is empty, "step" or not UTF-8, and those of w.
func NewCSV(w io.Writer) Writer { return &csvWriter{stream: stream{w: w}} }

type csvWriter struct {
	stream
	header  []string       // step and the tags; nil before the first record
	columns map[string]int // by tag
}

func (c *csvWriter) Write(r Record) error {
	if err := check(r, "step"); err != nil {
		return errors.Wrap(err, "summary: csv")
	}
	rows := make([][]string, 0, 2)
	header, columns := c.header, c.columns
	if header == nil {
		header, columns = []string{"step"}, map[string]int{}
		for _, v := range r.Values {
			columns[v.Tag] = len(header)
			header = append(header, v.Tag)
		}
		rows = append(rows, header)
	}
	row := make([]string, len(header))
	row[0] = strconv.Itoa(r.Step)
	for _, v := range r.Values {
		i, ok := columns[v.Tag]
		if !ok {
			return errors.Errorf("summary: csv: step %d: tag %q is not in the header", r.Step, v.Tag)
		}
		row[i] = text(v.Value)
	}
	for i, s := range row {
		if s == "" {
			return errors.Errorf("summary: csv: step %d: tag %q of the header is missing", r.Step, header[i])
		}
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(append(rows, row)); err != nil {
		return errors.Wrapf(err, "summary: csv: step %d", r.Step)
	}
	c.header, c.columns = header, columns
	return errors.Wrapf(c.write(b.Bytes()), "summary: csv: step %d", r.Step)
}

// NewJSONLines makes a Writer of one JSON object per line: {"step":1,"loss":0.5}, with the tags in the record's order. JSON has
// no numbers for NaN and the infinities; they are the strings "NaN", "Infinity" and "-Infinity". The time is left out. Errors:
// a tag that occurs twice, is empty, "step" or not UTF-8, and those of w.
func NewJSONLines(w io.Writer) Writer { return &jsonWriter{stream{w: w}} }

type jsonWriter struct{ stream }

func (j *jsonWriter) Write(r Record) error {
	if err := check(r, "step"); err != nil {
		return errors.Wrap(err, "summary: json")
	}
	b := strconv.AppendInt([]byte(`{"step":`), int64(r.Step), 10)
	for _, v := range r.Values {
		tag, err := json.Marshal(v.Tag)
		if err != nil {
			return errors.Wrapf(err, "summary: json: step %d: tag %q", r.Step, v.Tag)
		}
		b = append(append(append(b, ','), tag...), ':')
		number := text(v.Value)
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
			number = `"` + number + `"`
		}
		b = append(b, number...)
	}
	return errors.Wrapf(j.write(append(b, "}\n"...)), "summary: json: step %d", r.Step)
}
