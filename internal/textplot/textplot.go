// Package textplot draws curves in characters.
package textplot

import (
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// CheckSize refuses plots that would be unreadable, or huge.
func CheckSize(width, height int) error {
	for _, n := range []int{width, height} {
		if n < 2 || n > 1000 {
			return errors.Errorf("the plot is %d by %d; it must be 2 by 2 to 1000 by 1000", width, height)
		}
	}
	return nil
}

// Columns says which of n ≥ 2 points the columns of a plot show: the first shows the first, the last the last one.
func Columns(n, width int) []int {
	points := make([]int, min(width, n))
	for i := range points {
		points[i] = int(float64(n-1) * (float64(i) / float64(len(points)-1)))
	}
	return points
}

// Axis is the line below a curve: labels for its ends, and a column that gets a mark, or −1.
type Axis struct {
	First, Last string
	Mark        int
}

// Text is a plot of finite values, one in each column.
func Text(values []float64, height int, a Axis) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	scale := 1.0
	if math.IsInf(high-low, 0) {
		scale = 0.5
	}
	lines := make([][]byte, height)
	for i := range lines {
		lines[i] = []byte(strings.Repeat(" ", len(values)))
	}
	for i, v := range values {
		line := height - 1
		if high > low {
			line = int(math.Round((high*scale - v*scale) / (high*scale - low*scale) * float64(height-1)))
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
	line := []byte(strings.Repeat("-", len(values)))
	if a.Mark >= 0 {
		line[a.Mark] = '^'
	}
	fmt.Fprintf(&b, "%10s +%s\n", "", line)
	fmt.Fprintf(&b, "%10s  %s%*s\n", "", a.First, max(len(values)-len(a.First), len(a.Last)+1), a.Last)
	return b.String()
}
