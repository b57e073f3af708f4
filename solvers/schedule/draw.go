package schedule

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// Drawing is the size of a plot in characters: Width columns (default 60) and Height lines (default 10).
type Drawing struct{ Width, Height int }

// Draw writes a plot of the values at steps 0 to steps−1 as text: the lowest value below, the highest above. Each column has
// one step, the first the first and the last the last one. A schedule that Check refuses, a value that is not finite, fewer than
// 2 steps, and a plot below 2 by 2 or above 1000 by 1000 are errors.
func Draw(w io.Writer, s Schedule, steps int, options ...func(*Drawing)) error {
	d := configured(Drawing{60, 10}, options)
	for _, n := range []int{d.Width, d.Height} {
		if n < 2 || n > 1000 {
			return errors.Errorf("schedule: Draw: the plot is %d by %d; it must be 2 by 2 to 1000 by 1000", d.Width, d.Height)
		}
	}
	if steps < 2 {
		return errors.Errorf("schedule: Draw: there are %d steps; it must be 2 or more", steps)
	}
	at, err := Compile(s)
	if err != nil {
		return err
	}
	values := make([]float64, min(d.Width, steps))
	low, high := math.Inf(1), math.Inf(-1)
	for i := range values {
		step := int(float64(steps-1) * (float64(i) / float64(len(values)-1)))
		v := at(step)
		if !finite(v) {
			return errors.Errorf("schedule: Draw: %s is %v at step %d", title(s), v, step)
		}
		values[i], low, high = v, min(low, v), max(high, v)
	}
	_, err = io.WriteString(w, plot(values, low, high, d.Height, steps))
	return errors.Wrap(err, "schedule: Draw")
}

func plot(values []float64, low, high float64, height, steps int) string {
	lines := make([][]byte, height)
	for i := range lines {
		lines[i] = []byte(strings.Repeat(" ", len(values)))
	}
	for i, v := range values {
		line := height - 1
		if high > low {
			line = int(math.Round((high/2 - v/2) / (high/2 - low/2) * float64(height-1))) // halves do not overflow
		}
		lines[line][i] = '*'
	}
	var b strings.Builder
	for i, l := range lines {
		label := ""
		switch i {
		case 0:
			label = fmt.Sprintf("%.4g", high)
		case height - 1:
			label = fmt.Sprintf("%.4g", low)
		}
		fmt.Fprintf(&b, "%10s |%s\n", label, strings.TrimRight(string(l), " "))
	}
	last := fmt.Sprint(steps - 1)
	fmt.Fprintf(&b, "%10s +%s\n", "", strings.Repeat("-", len(values)))
	fmt.Fprintf(&b, "%10s  0%*s\n", "", max(len(values)-1, len(last)+1), last)
	return b.String()
}
