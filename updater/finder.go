package updater

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/pkg/errors"

	"optimop/internal/textplot"
	"optimop/solvers/schedule"
)

// RangeTestOptions are the settings of FindLearningRate, with their defaults.
type RangeTestOptions struct {
	Min, Max   float64 // the first rate and the last, 0 < Min < Max: 1e-7 and 10
	Steps      int     // the number of steps, 2 or more: 100
	Linear     bool    // rates grow by the same amount from step to step, not by the same factor
	Smoothing  float64 // β ∈ [0, 1), of the average of the losses: 0.9
	Divergence float64 // k > 1, how many times the best smoothed loss a loss may be: 4
}

func (o RangeTestOptions) check() error {
	switch {
	case !(o.Min > 0 && o.Max > o.Min) || math.IsInf(o.Max, 0):
		return errors.Errorf("the rates go from %v to %v; it must be from above 0 to more than that", o.Min, o.Max)
	case o.Steps < 2:
		return errors.Errorf("there are %d steps; it must be 2 or more", o.Steps)
	case !(o.Smoothing >= 0 && o.Smoothing < 1):
		return errors.Errorf("Smoothing is %v; it must be from 0 up to but not 1", o.Smoothing)
	case !(o.Divergence > 1):
		return errors.Errorf("Divergence is %v; it must be above 1", o.Divergence)
	}
	return nil
}

// rate is that of a step, from 0.
func (o RangeTestOptions) rate(step int) float64 {
	part := float64(step) / float64(o.Steps-1)
	switch {
	case step == 0:
		return o.Min
	case step == o.Steps-1:
		return o.Max
	case o.Linear:
		return o.Min + part*(o.Max-o.Min)
	}
	return math.Exp(math.Log(o.Min) + part*(math.Log(o.Max)-math.Log(o.Min)))
}

// RangeTest is what FindLearningRate saw. The rates grow; at the same place are the loss of that step and the smoothed loss
//
//	aᵢ = β·aᵢ₋₁ + (1−β)·lossᵢ,  a₋₁ = 0,  smoothedᵢ = aᵢ / (1 − βⁱ⁺¹)
//
// The step at which the loss diverged is not among them.
type RangeTest struct {
	Rates, Losses, Smoothed []float64
	Diverged                float64 // the rate of the step whose loss was too high or not finite; 0 if there was none
	Minimum                 float64 // the rate at which Smoothed is lowest; 0 if that is where it begins: it never fell
	Steepest                float64 // the rate after whose step Smoothed fell most, up to there; 0 likewise
	Suggestion              float64 // a tenth of Minimum
}

// FindLearningRate is the learning rate range test (Smith 2017, https://arxiv.org/abs/1506.01186; fastai's lr_find): it trains with
// learning rates that grow from step to step, and ends when the loss diverges. Below the rate at which the loss is lowest
// are those that training can use.
//
// step makes one training step with the machine of this updater, which counts one run or more, and returns the loss, mostly that of before
// its update. Where gradients are accumulated over n runs, let it make n. It is called with the same rate for all optimizers, as
// SetLearningRate sets it, but that a decoupled decay stays as strong as it is now.
//
// Afterwards the variables, the whole state of the optimizers, the global step, the random states, the counts of skipped steps and the
// learning rates are, bit for bit, what they were, also if a step fails or panics, which is an error. What only tells of the last run,
// as Summary does, tells of the last one of the test. The optim op is built if there is none. A learning rate
// that follows a schedule, or that dynamic_learning_rate multiplies, cannot be tested; nor can weights that averages stand in for.
func (u *Updater) FindLearningRate(step func() (loss float64, err error), options ...func(*RangeTestOptions)) (*RangeTest, error) {
	r, err := u.findRate(step, options)
	return r, errors.Wrap(err, "updater: FindLearningRate")
}

func (u *Updater) findRate(step func() (float64, error), options []func(*RangeTestOptions)) (r *RangeTest, err error) {
	o := RangeTestOptions{Min: 1e-7, Max: 10, Steps: 100, Smoothing: 0.9, Divergence: 4}
	for _, f := range options {
		if f != nil {
			f(&o)
		}
	}
	switch {
	case step == nil:
		return nil, errors.New("the step is nil")
	case u.cfg.LearningRateSchedule != nil:
		return nil, errors.New("learning_rate follows a schedule")
	case u.cfg.DynamicLearningRate != nil:
		return nil, errors.New("dynamic_learning_rate would change the rates that are to be tested")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if _, err := u.OptimOp(); err != nil {
		return nil, err
	}
	before, err := u.snapshot()
	if err != nil {
		return nil, err
	}
	back, err := u.setRates(o.Min)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range []func() error{u.solver.CatchUp, back, before.restore} {
			if e := f(); err == nil && e != nil {
				r, err = nil, e
			}
		}
	}()
	return u.rangeTest(o, step)
}

// rangeTest makes the steps.
func (u *Updater) rangeTest(o RangeTestOptions, step func() (float64, error)) (*RangeTest, error) {
	r := &RangeTest{}
	average, best := 0.0, math.Inf(1)
	for i := range o.Steps {
		rate := o.rate(i)
		loss, err := u.stepAt(rate, step)
		if err != nil {
			return nil, errors.Wrapf(err, "step %d, with the rate %.4g", i+1, rate)
		}
		switch {
		case !finite(loss) && i == 0:
			return nil, errors.Errorf("the loss of the first step is %v", loss)
		case !finite(loss) || loss > best+(o.Divergence-1)*math.Abs(best): // k·best, and as far above a negative one
			r.Diverged = rate
			return r.suggest(), nil
		}
		average = o.Smoothing*average + (1-o.Smoothing)*loss
		smoothed := average / (1 - math.Pow(o.Smoothing, float64(i+1)))
		best = min(best, smoothed)
		r.Rates, r.Losses, r.Smoothed = append(r.Rates, rate), append(r.Losses, loss), append(r.Smoothed, smoothed)
	}
	return r.suggest(), nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// stepAt makes one step with a rate.
func (u *Updater) stepAt(rate float64, step func() (float64, error)) (loss float64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("the step panicked: %v", p)
		}
	}()
	if _, err := u.setRates(rate); err != nil {
		return 0, err
	}
	before, err := u.solver.GlobalStep()
	if err != nil {
		return 0, err
	}
	if loss, err = step(); err != nil {
		return 0, err
	}
	after, err := u.solver.GlobalStep()
	if err == nil && after <= before {
		err = errors.New("the step ran no optim op")
	}
	return loss, err
}

// suggest reads the rates from the curve.
func (r *RangeTest) suggest() *RangeTest {
	low := slices.Index(r.Smoothed, slices.Min(r.Smoothed))
	if low == 0 {
		return r
	}
	steep := 0
	for i := range low {
		if r.Smoothed[i]-r.Smoothed[i+1] > r.Smoothed[steep]-r.Smoothed[steep+1] {
			steep = i
		}
	}
	r.Minimum, r.Steepest, r.Suggestion = r.Rates[low], r.Rates[steep], r.Rates[low]/10
	return r
}

// Draw writes a plot of the smoothed losses as text, as schedule.Draw does: from the first rate on the left to the last that did not
// diverge. On its axis a ^ is at the last rate that is not above the suggestion. Fewer than 2 steps are an error, and so are
// numbers that are not finite, which FindLearningRate does not make.
func (r *RangeTest) Draw(w io.Writer, options ...func(*schedule.Drawing)) error {
	d := schedule.Drawing{Width: 60, Height: 10}
	for _, f := range options {
		if f != nil {
			f(&d)
		}
	}
	if err := textplot.CheckSize(d.Width, d.Height); err != nil {
		return errors.Wrap(err, "updater: Draw")
	}
	n := len(r.Smoothed)
	if n < 2 || len(r.Rates) != n {
		return errors.Errorf("updater: Draw: there are %d rates and %d losses; it must be as many, 2 or more", len(r.Rates), n)
	}
	axis := textplot.Axis{First: fmt.Sprintf("%.3g", r.Rates[0]), Last: fmt.Sprintf("%.3g", r.Rates[n-1]), Mark: -1}
	var values []float64
	for column, i := range textplot.Columns(n, d.Width) {
		if !finite(r.Smoothed[i]) {
			return errors.Errorf("updater: Draw: a smoothed loss is %v", r.Smoothed[i])
		}
		values = append(values, r.Smoothed[i])
		if r.Rates[i] <= r.Suggestion {
			axis.Mark = column
		}
	}
	_, err := io.WriteString(w, textplot.Text(values, d.Height, axis))
	return errors.Wrap(err, "updater: Draw")
}
