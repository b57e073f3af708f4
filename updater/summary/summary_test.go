package summary

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
)

var writers = []struct {
	name string
	make func(io.Writer) Writer
}{
	{"csv", NewCSV}, {"json", NewJSONLines}, {"tensorboard", NewTensorBoard},
}

// A record that is refused writes nothing, and leaves the writer as it was.
func TestRefused(t *testing.T) {
	for _, w := range writers {
		for _, c := range []struct {
			want   string
			values []Value
		}{
			{`step 7: tag "a" occurs twice`, []Value{{"a", 1}, {"b", 1}, {"a", 1}}},
			{`step 7: a value has no tag`, []Value{{"a", 1}, {"", 1}}},
			{`step 7: tag "\xff" is not UTF-8`, []Value{{"\xff", 1}}},
			{`step 7: tag "step" occurs twice`, []Value{{"step", 1}}},
		} {
			if w.name == "tensorboard" && c.values[0].Tag == "step" {
				continue // there the step has no tag
			}
			t.Run(w.name+"/"+c.want, func(t *testing.T) {
				var b bytes.Buffer
				s := w.make(&b)
				require.ErrorContains(t, s.Write(Record{Step: 7, Values: c.values}), "summary: "+w.name+": "+c.want)
				require.Zero(t, b.Len())
				require.NoError(t, s.Write(Record{Step: 8, Values: []Value{{"loss", 1}}}))
				require.Contains(t, b.String(), "loss")
			})
		}
	}
}

// flaky is an io.Writer whose write of the given number fails, after half of it.
type flaky struct {
	calls, fail int
	err         error
}

func (f *flaky) Write(b []byte) (int, error) {
	f.calls++
	if f.calls == f.fail {
		return len(b) / 2, f.err
	}
	return len(b), nil
}

func TestWriterFails(t *testing.T) {
	full := errors.New("disk full")
	for _, w := range writers {
		for _, returned := range []error{full, nil} {
			t.Run(w.name, func(t *testing.T) {
				want := returned
				if want == nil {
					want = io.ErrShortWrite
				}
				f := &flaky{fail: 2, err: returned}
				s := w.make(f)
				require.NoError(t, s.Write(Record{Step: 1, Values: []Value{{"a", 1}}}))
				require.ErrorIs(t, s.Write(Record{Step: 2, Values: []Value{{"a", 1}}}), want)
				require.ErrorIs(t, s.Write(Record{Step: 3, Values: []Value{{"a", 1}}}), want)
				require.Equal(t, 2, f.calls, "a write for each record, and none after the error")
			})
		}
	}
}

var numbers = []float64{
	0, math.Copysign(0, -1), 1.0 / 3, 1e6, -1e21, 5e-324, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
}

func requireNumber(t *testing.T, want float64, s string) {
	t.Helper()
	got, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	if math.IsNaN(want) {
		require.True(t, math.IsNaN(got))
		return
	}
	require.Equal(t, math.Float64bits(want), math.Float64bits(got), s)
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	w := NewCSV(&b)
	tags := []string{"loss", `a,"b"` + "\n", "w=é"}
	require.NoError(t, w.Write(Record{Step: 1, Values: []Value{{tags[0], 0.5}, {tags[1], -1}, {tags[2], 1e-7}}}))
	require.Equal(t, "step,loss,\"a,\"\"b\"\"\n\",w=é\n1,0.5,-1,1e-07\n", b.String())
	for i, v := range numbers {
		// the tags in another order
		require.NoError(t, w.Write(Record{Step: -i, Values: []Value{{tags[2], 3}, {tags[0], v}, {tags[1], 2}}}))
	}
	for want, values := range map[string][]Value{
		`tag "w=é" of the header is missing`:  {{tags[0], 1}, {tags[1], 1}},
		`tag "loss" of the header is missing`: nil,
		`tag "new" is not in the header`:      {{tags[0], 1}, {tags[1], 1}, {tags[2], 1}, {"new", 1}},
	} {
		require.ErrorContains(t, w.Write(Record{Step: 9, Values: values}), "summary: csv: step 9: "+want)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2+len(numbers))
	for i, v := range numbers {
		row := rows[2+i]
		require.Equal(t, []string{strconv.Itoa(-i), "2", "3"}, []string{row[0], row[2], row[3]})
		requireNumber(t, v, row[1])
	}
}

func TestCSVWithoutValues(t *testing.T) {
	var b bytes.Buffer
	w := NewCSV(&b)
	require.NoError(t, w.Write(Record{Step: 1}))
	require.Equal(t, "step\n1\n", b.String())
	require.ErrorContains(t, w.Write(Record{Step: 2, Values: []Value{{"a", 1}}}), `tag "a" is not in the header`)
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	w := NewJSONLines(&b)
	require.NoError(t, w.Write(Record{Step: 1, Values: []Value{{"z", 0.5}, {`"a"` + "\n\u2028é", math.NaN()}}}))
	require.NoError(t, w.Write(Record{Step: -2}))
	require.Equal(t, `{"step":1,"z":0.5,"\"a\"\n\u2028é":"NaN"}`+"\n"+`{"step":-2}`+"\n", b.String())
	b.Reset()
	for i, v := range numbers {
		require.NoError(t, w.Write(Record{Step: math.MaxInt - i, Values: []Value{{"loss", v}}}))
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, lines, len(numbers))
	for i, v := range numbers {
		var got struct {
			Step int
			Loss json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &got))
		require.Equal(t, math.MaxInt-i, got.Step)
		finite := !math.IsNaN(v) && !math.IsInf(v, 0)
		require.Equal(t, finite, got.Loss[0] != '"')
		requireNumber(t, v, strings.Trim(string(got.Loss), `"`))
	}
}
