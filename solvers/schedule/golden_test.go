package schedule

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"optimop/internal/spelling"
)

// goldenRow is a row of testdata/golden/schedules.
type goldenRow struct {
	Name      string
	Tolerance float64 // relative to the largest |value|
	Values    []float64

	Config map[string]any // of a schedule
	At     []int          // the steps of Values; absent: all from 0

	Options map[string]any // of a controller
	Rate    float64
	Rates   map[int]float64
	Scores  []*float64
}

func readGolden(t *testing.T, file string) []goldenRow {
	b, err := os.ReadFile("../../testdata/golden/schedules/" + file + ".json")
	require.NoError(t, err)
	var f struct{ Rows []goldenRow }
	require.NoError(t, json.Unmarshal(b, &f))
	require.NotEmpty(t, f.Rows)
	return f.Rows
}

func (r *goldenRow) check(t *testing.T, i int, got float64, label int) {
	largest := 0.0
	for _, v := range r.Values {
		largest = max(largest, math.Abs(v))
	}
	require.NotZero(t, r.Tolerance)
	require.InDelta(t, r.Values[i], got, r.Tolerance*largest, "%s at %d", r.Name, label)
}

var goldenFiles = []string{"keras", "torch", "optax", "addons"}

func TestGoldenSchedules(t *testing.T) {
	for _, file := range goldenFiles {
		for _, r := range readGolden(t, file) {
			t.Run(file+"/"+r.Name, func(t *testing.T) {
				s, err := FromConfig(r.Config)
				require.NoError(t, err)
				at, err := Compile(s)
				require.NoError(t, err)
				for i := range r.Values {
					step := i
					if r.At != nil {
						step = r.At[i]
					}
					r.check(t, i, at(step), step)
				}
				text, err := Marshal(s)
				require.NoError(t, err)
				back, err := Unmarshal(text)
				require.NoError(t, err)
				require.Equal(t, s, back)
				again, err := Marshal(back)
				require.NoError(t, err)
				require.JSONEq(t, string(text), string(again))
			})
		}
	}
}

// set gives a controller the options of a row, by the names of its fields.
func set(t *testing.T, controller any, options map[string]any) {
	byField := map[string]any{}
	for name, v := range options {
		byField[spelling.Fold(name)] = v
	}
	text, err := json.Marshal(byField)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, controller))
}

// Each row is run once, and a second time with a new controller for each epoch, which gets the state of the one before.
func testController(t *testing.T, r *goldenRow, make func() Controller) {
	once, again := make(), make()
	for i := range r.Values {
		r.check(t, i, once.Rate(), i)
		require.Equal(t, once.Rate(), again.Rate())
		if i == len(r.Scores) {
			break
		}
		score := math.NaN()
		if r.Scores[i] != nil {
			score = *r.Scores[i]
		}
		rate, err := once.Observe(score)
		require.NoError(t, err)
		require.Equal(t, once.Rate(), rate)
		_, err = again.Observe(score)
		require.NoError(t, err)
		state, err := again.State()
		require.NoError(t, err)
		again = make()
		require.NoError(t, again.Restore(state))
	}
	require.Len(t, r.Values, len(r.Scores)+1)
}

func TestGoldenPlateau(t *testing.T) {
	for _, r := range readGolden(t, "plateau") {
		t.Run(r.Name, func(t *testing.T) {
			testController(t, &r, func() Controller {
				c, err := NewReduceOnPlateau(r.Rate, func(c *ReduceOnPlateau) { set(t, c, r.Options) })
				require.NoError(t, err)
				return c
			})
		})
	}
}

func TestGoldenNewbob(t *testing.T) {
	for _, r := range readGolden(t, "newbob") {
		t.Run(r.Name, func(t *testing.T) {
			testController(t, &r, func() Controller {
				c, err := NewNewbob(r.Rate, func(n *Newbob) {
					set(t, n, r.Options)
					n.Rates = r.Rates
				})
				require.NoError(t, err)
				return c
			})
		})
	}
}
