package schedule

import (
	"io"
	"strconv"

	"github.com/pkg/errors"

	"optimop/internal/textplot"
)

// Drawing is the size of a plot in characters: Width columns (default 60) and Height lines (default 10).
type Drawing struct{ Width, Height int }

// Draw writes a plot of the values at steps 0 to steps−1 as text: the lowest value below, the highest above. Each column has
// one step, the first the first and the last the last one. A schedule that Check refuses, a value that is not finite, fewer than
// 2 steps, and a plot below 2 by 2 or above 1000 by 1000 are errors.
func Draw(w io.Writer, s Schedule, steps int, options ...func(*Drawing)) error {
	d := configured(Drawing{60, 10}, options)
	if err := textplot.CheckSize(d.Width, d.Height); err != nil {
		return errors.Wrap(err, "schedule: Draw")
	}
	if steps < 2 {
		return errors.Errorf("schedule: Draw: there are %d steps; it must be 2 or more", steps)
	}
	at, err := Compile(s)
	if err != nil {
		return err
	}
	var values []float64
	for _, step := range textplot.Columns(steps, d.Width) {
		v := at(step)
		if !finite(v) {
			return errors.Errorf("schedule: Draw: %s is %v at step %d", title(s), v, step)
		}
		values = append(values, v)
	}
	_, err = io.WriteString(w, textplot.Text(values, d.Height, textplot.Axis{First: "0", Last: strconv.Itoa(steps - 1), Mark: -1}))
	return errors.Wrap(err, "schedule: Draw")
}
