package schedule

import (
	"encoding/json"

	"github.com/pkg/errors"
)

// Controller finds the learning rate, or another hyperparameter, of each epoch by the scores of the epochs before. It is no
// Schedule: the caller feeds it and sets what it says.
//
//	rate, err := controller.Observe(devLoss) // at the end of an epoch
//	err = solver.Set("learning_rate", rate)
type Controller interface {
	// Rate is the rate of the epoch that runs.
	Rate() float64
	// Observe ends the epoch with its score and gives the rate of the next one. After an error nothing has changed.
	Observe(score float64) (rate float64, err error)
	// State is what the controller remembers, without its options, as JSON, and Restore brings it back.
	State() ([]byte, error)
	Restore(state []byte) error
}

// ReduceOnPlateau multiplies the rate by a factor when the score has stopped to improve.
//
// A score improves on the best one so far if it is better by the threshold:
//
//	                        mode "min"                     mode "max"
//	threshold_mode "rel"    score < best·(1 − threshold)   score > best·(1 + threshold)
//	threshold_mode "abs"    score < best − threshold       score > best + threshold
//
// The first score always does, one that is NaN or infinite never. (With "rel" the bound is on the wrong side of a negative best
// score, as in torch: take "abs" for these.) With Form "torch" the rate falls to max(rate·factor, min_rate)
// in the first epoch after Patience epochs in a row without improvement, unless it would change by no more than Epsilon; epochs
// do not count during the next Cooldown ones. With Form "keras" it falls in the last of Patience such epochs, if it is above
// MinRate, and an epoch counts again one epoch earlier: the last of the cooldown.
//
// Factor is in [0, 1), default 0.1; Patience 0 or more, default 10; Threshold finite and not negative, default 1e-4; ThresholdMode
// "rel" by default; Mode "min"; Cooldown 0 or more, default 0; MinRate finite and not negative, default 0; Epsilon the same,
// default 1e-8; Form "torch".
//
// It is torch.optim.lr_scheduler.ReduceLROnPlateau, whose defaults it has, and keras.callbacks.ReduceLROnPlateau, whose
// min_delta is Threshold with ThresholdMode "abs". Keras rounds the rate to float32 and has a mode "auto", which guesses by the
// score's name.
type ReduceOnPlateau struct {
	Factor        float64
	Patience      int
	Threshold     float64
	ThresholdMode string
	Mode          string
	Cooldown      int
	MinRate       float64
	Epsilon       float64
	Form          string

	state plateauState
}

type plateauState struct {
	Rate     float64  `json:"rate"`
	Best     *float64 `json:"best"` // nil: none yet
	Bad      int      `json:"bad_epochs"`
	Cooldown int      `json:"cooldown"`
}

// NewReduceOnPlateau makes a controller that begins with a rate, finite and not negative.
func NewReduceOnPlateau(rate float64, options ...func(*ReduceOnPlateau)) (*ReduceOnPlateau, error) {
	r := configured(ReduceOnPlateau{Factor: .1, Patience: 10, Threshold: 1e-4, ThresholdMode: "rel", Mode: "min", Epsilon: 1e-8,
		Form: "torch"}, options)
	r.state = plateauState{Rate: rate}
	if err := first(notNegative("rate", rate), r.Validate()); err != nil {
		return nil, errors.Wrap(err, "schedule: reduce on plateau")
	}
	return &r, nil
}

// Validate checks the options.
func (r *ReduceOnPlateau) Validate() error {
	return first(must(r.Factor >= 0 && r.Factor < 1, "factor", r.Factor, "0 or more and below 1"), atLeast0("patience", r.Patience),
		notNegative("threshold", r.Threshold), choice("threshold_mode", r.ThresholdMode, "rel", "abs"),
		choice("mode", r.Mode, "min", "max"), atLeast0("cooldown", r.Cooldown), notNegative("min_rate", r.MinRate), notNegative("epsilon", r.Epsilon),
		choice("form", r.Form, "torch", "keras"))
}

// Rate is the rate of the epoch that runs.
func (r *ReduceOnPlateau) Rate() float64 { return r.state.Rate }

// Observe ends an epoch. There is an error only if the options have been changed to bad ones.
func (r *ReduceOnPlateau) Observe(score float64) (float64, error) {
	if err := r.Validate(); err != nil {
		return r.state.Rate, errors.Wrap(err, "schedule: reduce on plateau")
	}
	s := &r.state
	better := r.better(score)
	if better {
		s.Best = &score
	}
	if r.Form == "keras" {
		r.keras(better)
	} else {
		r.torch(better)
	}
	return s.Rate, nil
}

func (r *ReduceOnPlateau) torch(better bool) {
	s := &r.state
	s.Bad++
	if better || s.Cooldown > 0 {
		s.Bad = 0
	}
	s.Cooldown = max(s.Cooldown-1, 0)
	if s.Bad > r.Patience {
		if rate := r.reduced(); s.Rate-rate > r.Epsilon {
			s.Rate = rate
		}
		s.Bad, s.Cooldown = 0, r.Cooldown
	}
}

func (r *ReduceOnPlateau) keras(better bool) {
	s := &r.state
	if better || s.Cooldown > 0 {
		s.Bad = 0
	}
	s.Cooldown = max(s.Cooldown-1, 0)
	if better || s.Cooldown > 0 {
		return
	}
	s.Bad++
	if s.Bad >= r.Patience && s.Rate > r.MinRate {
		s.Rate, s.Bad, s.Cooldown = r.reduced(), 0, r.Cooldown
	}
}

func (r *ReduceOnPlateau) reduced() float64 { return max(r.state.Rate*r.Factor, r.MinRate) }

func (r *ReduceOnPlateau) better(score float64) bool {
	if !finite(score) || r.state.Best == nil {
		return finite(score)
	}
	bound, margin := *r.state.Best, r.Threshold
	if r.ThresholdMode == "rel" {
		if r.Mode == "max" {
			return score > bound*(1+margin)
		}
		return score < bound*(1-margin)
	}
	if r.Mode == "max" {
		return score > bound+margin
	}
	return score < bound-margin
}

// State is the rate, the best score, and the epochs counted without improvement and left of the cooldown.
func (r *ReduceOnPlateau) State() ([]byte, error) {
	b, err := json.Marshal(r.state)
	return b, errors.Wrap(err, "schedule: reduce on plateau")
}

// Restore brings back a state.
func (r *ReduceOnPlateau) Restore(state []byte) error {
	s := plateauState{Rate: -1} // refused where the state has none
	err := unmarshal(state, &s)
	if err == nil {
		err = first(notNegative("rate", s.Rate), atLeast0("bad_epochs", s.Bad), atLeast0("cooldown", s.Cooldown))
	}
	if err != nil {
		return errors.Wrap(err, "schedule: reduce on plateau: the state")
	}
	r.state = s
	return nil
}
