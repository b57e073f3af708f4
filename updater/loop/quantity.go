package loop

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// Quantity is something to monitor: what it needs of each batch, and how that is folded over batches.
type Quantity struct {
	Name  string            // of its record
	Nodes gorgonia.Nodes    // their values are given to the aggregator in this order
	New   func() Aggregator // a new one for each interval and each monitor, so that nothing is shared
}

// Aggregator folds the values of batches.
type Aggregator interface {
	// Add takes the values of one batch, of so many examples. They may change with the next batch: copy what is kept.
	Add(values []gorgonia.Value, examples float64) error

	// Value is the result of one batch or more.
	Value() (any, error)
}

// Mean is the mean of a node over batches, weighted by their examples: Σ examples·value / Σ examples, in float64, elementwise.
// Of a mean over the examples of a batch it is the mean over all examples, however short the last batch is.
func Mean(n *gorgonia.Node) Quantity {
	return quantity(func() Aggregator {
		return &ratio{weigh: func(v []array, examples float64) (array, array) { return v[0].scaled(examples), scalar(examples) }}
	}, n)
}

// PerExample is Σ value / Σ examples: the mean over all examples of what is a sum over those of a batch.
func PerExample(n *gorgonia.Node) Quantity {
	return quantity(func() Aggregator {
		return &ratio{weigh: func(v []array, examples float64) (array, array) { return v[0], scalar(examples) }}
	}, n)
}

// Ratio is Σ num / Σ den, elementwise or by a scalar den. Its name is that of num.
func Ratio(num, den *gorgonia.Node) Quantity {
	return quantity(func() Aggregator {
		return &ratio{weigh: func(v []array, _ float64) (array, array) { return v[0], v[1] }}
	}, num, den)
}

// Perplexity is exp(−Σ logLikelihood / Σ n), by the name "perplexity".
func Perplexity(logLikelihood, n *gorgonia.Node) Quantity {
	return Map(Ratio(logLikelihood, n), func(x float64) float64 { return math.Exp(-x) }).Named("perplexity")
}

// Sum is the sum over batches.
func Sum(n *gorgonia.Node) Quantity {
	return quantity(func() Aggregator { return &fold{join: func(old, new float64) float64 { return old + new }} }, n)
}

// Min is the least value, elementwise; NaN if there was one.
func Min(n *gorgonia.Node) Quantity {
	return quantity(func() Aggregator { return &fold{join: math.Min} }, n)
}

// Max is the greatest value, elementwise; NaN if there was one.
func Max(n *gorgonia.Node) Quantity {
	return quantity(func() Aggregator { return &fold{join: math.Max} }, n)
}

// Last is the value of the last batch. It may have another shape in each.
func Last(n *gorgonia.Node) Quantity { return quantity(func() Aggregator { return &last{} }, n) }

// Concatenate are the values of all batches, along a new first axis.
func Concatenate(n *gorgonia.Node) Quantity {
	return quantity(func() Aggregator { return &concatenation{} }, n)
}

func quantity(create func() Aggregator, nodes ...*gorgonia.Node) Quantity {
	return Quantity{Name: nameOf(nodes[0]), Nodes: nodes, New: create}
}

// nameOf is the name that a node was given; empty if it was given none.
func nameOf(n *gorgonia.Node) string {
	if n == nil || n.Graph() == nil || n.Graph().ByName("").Contains(n) {
		return ""
	}
	return n.Name()
}

// Named gives a quantity another name.
func (q Quantity) Named(name string) Quantity {
	q.Name = name
	return q
}

// Map applies a function to the elements of a quantity's result.
func Map(q Quantity, f func(float64) float64) Quantity {
	inner := q.New
	q.New = func() Aggregator { return &mapped{Aggregator: inner(), f: f} }
	return q
}

// check finds what is wrong with a list of quantities.
func check(qs []Quantity) error {
	var names []string
	for _, q := range qs {
		switch {
		case q.New == nil:
			return errors.Errorf("loop: the quantity %q has no New", q.Name)
		case slices.Contains(q.Nodes, nil):
			return errors.Errorf("loop: the quantity %q has a nil node", q.Name)
		case q.Name == "":
			return errors.New("loop: monitored quantities must have names: give the node a name, or use Named")
		case slices.Contains(names, q.Name):
			return errors.Errorf("loop: the names of monitored quantities must be unique: there are two %q", q.Name)
		}
		names = append(names, q.Name)
	}
	if len(qs) == 0 {
		return errors.New("loop: there is nothing to monitor")
	}
	return nil
}

// aggregation is the state of some quantities over an interval.
type aggregation struct {
	of      []Quantity
	parts   []Aggregator
	batches int
}

func newAggregation(qs []Quantity) *aggregation {
	a := &aggregation{of: qs}
	for _, q := range qs {
		a.parts = append(a.parts, q.New())
	}
	return a
}

// add folds in a batch; value finds the value of a quantity's node.
func (a *aggregation) add(examples float64, value func(quantity, node int) (gorgonia.Value, error)) error {
	for i, part := range a.parts {
		values := make([]gorgonia.Value, len(a.of[i].Nodes))
		for j := range values {
			var err error
			if values[j], err = value(i, j); err != nil {
				return errors.WithMessagef(err, "monitoring %q", a.of[i].Name)
			}
		}
		if err := part.Add(values, examples); err != nil {
			return errors.WithMessagef(err, "monitoring %q", a.of[i].Name)
		}
	}
	a.batches++
	return nil
}

// results are the values by the quantities' names.
func (a *aggregation) results() (Row, error) {
	out := Row{}
	for i, part := range a.parts {
		v, err := part.Value()
		if err != nil {
			return nil, errors.WithMessagef(err, "monitoring %q", a.of[i].Name)
		}
		out[a.of[i].Name] = v
	}
	return out, nil
}
