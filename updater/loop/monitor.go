package loop

import (
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/updater"
)

// Names are put before and after the names of quantities, with an underscore between: the prefix "train" makes "train_cost" of "cost".
type Names struct{ Prefix, Suffix string }

func (n Names) record(name string) string {
	if n.Prefix != "" {
		name = n.Prefix + "_" + name
	}
	if n.Suffix != "" {
		name += "_" + n.Suffix
	}
	return name
}

func (n Names) write(row, results Row) {
	for name, v := range results {
		row[n.record(name)] = v
	}
}

// MonitorTraining folds quantities over the batches of the training, with the values from before each batch's update, and writes
// them into the log where a trigger fires, by default AfterEpoch; then it begins anew. With the trigger AfterBatch it writes
// those of each batch. Where there was no batch since the last time it writes nothing. The algorithm must be an updater.Observer.
func MonitorTraining(qs []Quantity, names Names, triggers ...Trigger) Callback {
	m := &trainingMonitor{quantities: qs, names: names, trigger: orElse(triggers, AfterEpoch)}
	return m.on
}

type trainingMonitor struct {
	quantities []Quantity
	names      Names
	trigger    Trigger
	algorithm  updater.Observer
	sums       *aggregation // nil before the training
}

func (m *trainingMonitor) on(e Event) error {
	switch {
	case e.Kind == BeforeTraining:
		return m.begin(e.Loop)
	case m.sums == nil && e.Kind == OnError: // of what came before it began
		return nil
	case m.sums == nil:
		return errors.New("loop: a monitor of the training must be there when it begins")
	case e.Kind == AfterBatch:
		examples, err := e.Loop.examples()
		if err != nil {
			return err
		}
		if err := m.sums.add(examples, func(quantity, node int) (gorgonia.Value, error) {
			return m.algorithm.Observed(m.quantities[quantity].Nodes[node].Name())
		}); err != nil {
			return err
		}
	}
	if m.sums.batches == 0 || !m.trigger.Fires(e) {
		return nil
	}
	results, err := m.sums.results()
	if err != nil {
		return err
	}
	m.sums = newAggregation(m.quantities)
	m.names.write(e.Row(), results)
	return nil
}

func (m *trainingMonitor) begin(l *Loop) error {
	if err := check(m.quantities); err != nil {
		return err
	}
	var ok bool
	if m.algorithm, ok = l.Algorithm.(updater.Observer); !ok {
		return errors.Errorf("loop: a %T is no updater.Observer: it does not show values of its batches", l.Algorithm)
	}
	for _, q := range m.quantities {
		if err := m.algorithm.Observe(q.Nodes...); err != nil {
			return errors.WithMessagef(err, "loop: monitoring %q", q.Name)
		}
	}
	m.sums = newAggregation(m.quantities)
	return nil
}

// MonitorData evaluates a data set and writes the results into the log where a trigger fires, by default before the first epoch and
// after every epoch. data gives a new pass over the data set.
func MonitorData(e *Evaluator, data func() Batches, names Names, triggers ...Trigger) Callback {
	return Do(func(event Event) error {
		results, err := e.Evaluate(event.Context(), data())
		if err != nil {
			return errors.WithMessage(err, strings.TrimSpace("evaluating "+names.Prefix))
		}
		names.write(event.Row(), results)
		return nil
	}, orElse(triggers, BeforeFirstEpoch{}, AfterEpoch))
}
