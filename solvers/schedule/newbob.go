package schedule

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/pkg/errors"
)

// Newbob lets the rate fall when the error has not fallen enough from epoch to epoch, and else grow.
//
//	relative error of an epoch:  e = (new − old)/|new|        of the last two epochs' scores; /|old| with DivByOld;
//	                                                          then divided by rate/first rate with RelativeToRate
//	form "relative":     fall if e > threshold, else grow
//	form "absolute":     fall if new − old > threshold, else grow
//	form "multi_epoch":  m = the mean of e over the last NumEpochs epochs; fall if m > threshold, grow if m < GrowThreshold;
//	                     only in epochs 1, 1 + UpdateInterval, … from 1
//	fall:                rate ← max(rate·decay, min_rate)
//	grow:                rate ← rate·growth
//
// Scores are errors: lower is better. While there are no two of them the rate stays, as it does where one that is needed is NaN or
// infinite.
//
// Form is "relative" by default, or "constant", which leaves all to Rates. Decay is finite and not negative, default 0.5; Growth
// the same, default 1; DecayFunc and GrowthFunc compute the new rate instead. Threshold is finite, default −0.01. GrowThreshold,
// not above it, is Threshold by default (nil). NumEpochs is 1 or more, default 5, UpdateInterval 1 or more, or 0, the default,
// for NumEpochs. MinRate is finite and not negative, default 0. With MinEpochsPerRate above 1 (default 0) a rate stays until so
// many epochs had it. Rates has the rates of some epochs, counted from 1, whatever the scores are.
//
// It is RETURNN's learning_rate_control (https://github.com/rwth-i6/returnn): newbob, newbob_abs, newbob_multi_epoch and constant.
// Differences: RETURNN fails where the score that it divides by is 0, here (new − old)/0 is infinite, and 0/0 is 0; a NaN lets the
// rate grow there.
type Newbob struct {
	Form                  string
	Decay, Growth         float64
	DecayFunc, GrowthFunc func(rate float64) float64
	Threshold             float64
	GrowThreshold         *float64
	NumEpochs             int
	UpdateInterval        int
	MinRate               float64
	DivByOld              bool
	RelativeToRate        bool
	MinEpochsPerRate      int
	Rates                 map[int]float64

	initial float64
	state   newbobState
}

// newbobState has the rates of all epochs, the one that runs included, and the scores of those that ended.
type newbobState struct {
	Rates  []float64  `json:"rates"`
	Scores []*float64 `json:"scores"` // nil: none that counts
}

// NewNewbob makes a controller that begins with a rate, finite and above 0.
func NewNewbob(rate float64, options ...func(*Newbob)) (*Newbob, error) {
	n := configured(Newbob{Form: "relative", Decay: .5, Growth: 1, Threshold: -.01, NumEpochs: 5}, options)
	if err := first(positive("rate", rate), n.Validate()); err != nil {
		return nil, errors.Wrap(err, "schedule: newbob")
	}
	n.initial = rate
	if r, ok := n.Rates[1]; ok {
		rate = r
	}
	n.state.Rates = []float64{rate}
	return &n, nil
}

// Validate checks the options.
func (n *Newbob) Validate() error {
	return first(choice("form", n.Form, "relative", "absolute", "multi_epoch", "constant"), notNegative("decay", n.Decay),
		notNegative("growth", n.Growth), isFinite("threshold", n.Threshold),
		must(n.growThreshold() <= n.Threshold, "grow_threshold", n.growThreshold(), "not above threshold"),
		atLeast1("num_epochs", n.NumEpochs), atLeast0("update_interval", n.UpdateInterval), notNegative("min_rate", n.MinRate),
		atLeast0("min_epochs_per_rate", n.MinEpochsPerRate), n.checkRates())
}

func (n *Newbob) checkRates() error {
	for epoch, r := range n.Rates {
		if epoch < 1 || r < 0 || !finite(r) {
			return &OptionError{"rates", "has an epoch below 1 or a rate that is negative or not finite"}
		}
	}
	return nil
}

func (n *Newbob) growThreshold() float64 {
	if n.GrowThreshold != nil {
		return *n.GrowThreshold
	}
	return n.Threshold
}

// Rate is the rate of the epoch that runs.
func (n *Newbob) Rate() float64 { return n.state.Rates[len(n.state.Rates)-1] }

// Observe ends an epoch. It is an error if options have been changed to bad ones, or if DecayFunc or GrowthFunc panics or gives
// a rate that is negative or not finite.
func (n *Newbob) Observe(score float64) (rate float64, err error) {
	old := n.state
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("a function panicked: %v", p)
		}
		if err != nil {
			n.state = old
			rate, err = n.Rate(), errors.Wrap(err, "schedule: newbob")
		}
	}()
	if err := n.Validate(); err != nil {
		return 0, err
	}
	if finite(score) {
		n.state.Scores = append(n.state.Scores, &score)
	} else {
		n.state.Scores = append(n.state.Scores, nil)
	}
	rate, ok := n.Rates[len(n.state.Rates)+1]
	if !ok {
		rate = n.next()
	}
	n.state.Rates = append(n.state.Rates, rate)
	return rate, notNegative("rate", rate)
}

// next is the rate of the next epoch.
func (n *Newbob) next() float64 {
	rate, epochs := n.Rate(), len(n.state.Rates)
	if k := n.MinEpochsPerRate; k > 1 {
		for i := range k {
			if i >= epochs || n.state.Rates[epochs-1-i] != rate {
				return rate
			}
		}
	}
	switch n.Form {
	case "relative":
		if e, ok := n.relative(epochs - 1); ok {
			return n.changed(rate, e > n.Threshold, e <= n.Threshold)
		}
	case "absolute":
		if d, ok := n.difference(epochs - 1); ok {
			return n.changed(rate, d > n.Threshold, d <= n.Threshold)
		}
	case "multi_epoch":
		interval := n.UpdateInterval
		if interval == 0 {
			interval = n.NumEpochs
		}
		if m, ok := n.mean(); ok && epochs%interval == 0 { // the next epoch is one of 1, 1 + interval, …
			return n.changed(rate, m > n.Threshold, m < n.growThreshold())
		}
	}
	return rate
}

func (n *Newbob) changed(rate float64, fall, grow bool) float64 {
	switch {
	case fall && n.DecayFunc != nil:
		return max(n.DecayFunc(rate), n.MinRate)
	case fall:
		return max(rate*n.Decay, n.MinRate)
	case grow && n.GrowthFunc != nil:
		return n.GrowthFunc(rate)
	case grow:
		return rate * n.Growth
	}
	return rate
}

// difference is how much the score of epoch i, counted from 0, is above that of the one before.
func (n *Newbob) difference(i int) (float64, bool) {
	if i < 1 || n.state.Scores[i] == nil || n.state.Scores[i-1] == nil {
		return 0, false
	}
	return *n.state.Scores[i] - *n.state.Scores[i-1], true
}

func (n *Newbob) relative(i int) (float64, bool) {
	d, ok := n.difference(i)
	if !ok || d == 0 {
		return 0, ok
	}
	by := *n.state.Scores[i]
	if n.DivByOld {
		by = *n.state.Scores[i-1]
	}
	e := d / math.Abs(by)
	if r := n.state.Rates[i]; n.RelativeToRate && r > 0 {
		e /= r / n.initial
	}
	return e, true
}

// mean is that of the relative errors of the last epochs.
func (n *Newbob) mean() (float64, bool) {
	epochs, sum := len(n.state.Scores), 0.0
	from := max(1, epochs-n.NumEpochs)
	for i := from; i < epochs; i++ {
		e, ok := n.relative(i)
		if !ok {
			return 0, false
		}
		sum += e
	}
	return sum / float64(epochs-from), epochs > from
}

// State is the history: the rates and the scores of all epochs.
func (n *Newbob) State() ([]byte, error) {
	b, err := json.Marshal(n.state)
	return b, errors.Wrap(err, "schedule: newbob")
}

// Restore brings back a state.
func (n *Newbob) Restore(state []byte) error {
	var s newbobState
	err := unmarshal(state, &s)
	if err == nil {
		err = first(oneMore("rates", s.Rates, "scores", s.Scores), finiteList("rates", s.Rates),
			must(len(s.Rates) == 0 || slices.Min(s.Rates) >= 0, "rates", s.Rates, "0 or more"))
	}
	if err != nil {
		return errors.Wrap(err, "schedule: newbob: the state")
	}
	n.state = s
	return nil
}
