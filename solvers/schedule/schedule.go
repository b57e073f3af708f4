// Package schedule has hyperparameters that change during training: pure functions of the global step, which counts the runs
// of a solver from 0. Give one to solvers.Solver.Schedule:
//
//	err := solver.Schedule("learning_rate", schedule.NewNoam(512, 4000))
//
// A schedule is written once, as an expression of the step. That expression is built into the update, so that a restored
// step counter is all that a restored schedule needs; Value and Compile give its numbers, from the same expression.
//
// A schedule of your own is a struct with an At method, or a Func. Register makes it known to configs (see FromConfig).
//
// What depends on the scores of the epochs, and not on the step alone, is a Controller.
package schedule

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// Expr is the type of the expressions that schedules are written in. All of them here are scalars: float64 numbers.
type Expr = graphops.Expr

// Schedule gives a hyperparameter its value in each run. At must be pure: it depends on the step and on the schedule's own
// fields only, and reads no other node. The step counts runs from 0, and is that of before the run.
type Schedule interface {
	At(step Expr) Expr
}

// Validator is a schedule with conditions on its fields.
type Validator interface{ Validate() error }

// Func is a function as a schedule. It has no JSON form.
type Func func(step Expr) Expr

// At calls f.
func (f Func) At(step Expr) Expr { return f(step) }

// Check reports what is wrong with a schedule: what its Validate says, or that At gives no scalar made of the step alone.
func Check(s Schedule) error {
	_, err := Compile(s)
	return err
}

// Value is the schedule's number at a step; NaN if Check finds something wrong with it. Where many are wanted, Compile first.
func Value(s Schedule, step int) float64 {
	at, err := Compile(s)
	if err != nil {
		return math.NaN()
	}
	return at(step)
}

// Compile makes a Go function of a schedule: the same numbers as in a graph, bit for bit, without a graph or allocations.
// The function owns memory, so use it from one goroutine at a time.
func Compile(s Schedule) (at func(step int) float64, err error) {
	defer func() { // of a schedule of the user's
		if p := recover(); p != nil {
			err = errors.Errorf("schedule: %T panicked: %v", s, p)
		}
	}()
	if s == nil {
		return nil, errors.New("schedule: the schedule is nil")
	}
	if v, ok := s.(Validator); ok {
		if err := v.Validate(); err != nil {
			return nil, errors.Wrapf(err, "schedule: %s", title(s))
		}
	}
	g := gorgonia.NewGraph()
	from := gorgonia.NewScalar(g, gorgonia.Int64, gorgonia.WithName("step"))
	to := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("value"))
	plan, err := graphops.Compile([]graphops.Update{{Target: to, Value: s.At(graphops.ScalarOf(from))}})
	if err != nil {
		return nil, errors.Wrapf(err, "schedule: %s", title(s))
	}
	step, value := gorgonia.NewI64(0), gorgonia.NewF64(0)
	values := make([]gorgonia.Value, len(plan.Leaves()))
	for i, n := range plan.Leaves() {
		switch n {
		case from:
			values[i] = step
		case to:
			values[i] = value
		}
	}
	return func(n int) float64 {
		*step = gorgonia.I64(n)
		if err := plan.Run(values); err != nil {
			return math.NaN() // cannot be: all values are there, and fit
		}
		return float64(*value)
	}, nil
}

// The pieces that several schedules share.

var one = graphops.Const(1)

func number(v float64) Expr { return graphops.Const(v) }

// half is half a wave of the cosine: 1 for u = 0, 0 for 1.
func half(u Expr) Expr { return number(.5).Mul(one.Add(u.Mul(number(math.Pi)).Cos())) }

// since counts the runs from a later one, which is 0 as all before.
func since(step Expr, begin int) Expr {
	if begin == 0 {
		return step
	}
	return step.Sub(number(float64(begin))).Max(number(0))
}

// first is the first of several mistakes.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// must is the mistake of a field that is out of its range; NaN always is.
func must(ok bool, field string, got any, want string) error {
	if ok {
		return nil
	}
	return &OptionError{field, errors.Errorf("is %v; it must be %s", got, want).Error()}
}

func isFinite(field string, v float64) error {
	return must(finite(v), field, v, "a finite number")
}

func notNegative(field string, v float64) error {
	return must(v >= 0 && finite(v), field, v, "finite and not negative")
}

func positive(field string, v float64) error {
	return must(v > 0 && finite(v), field, v, "finite and above 0")
}

func atLeast1(field string, v int) error { return must(v >= 1, field, v, "1 or more") }

func atLeast0(field string, v int) error { return must(v >= 0, field, v, "0 or more") }

func choice(field, v string, of ...string) error {
	return must(slices.Contains(of, v), field, strconv.Quote(v), fmt.Sprintf("one of %q", of))
}

// finiteList is the mistake of a list with a number that is not finite, increasing also that of one that does not increase.
func finiteList(field string, list []float64) error {
	return must(!slices.ContainsFunc(list, func(v float64) bool { return !finite(v) }), field, list, "a list of finite numbers")
}

func increasing[T int | float64](field string, list []T) error {
	ok := !slices.ContainsFunc(list, func(v T) bool { return !finite(float64(v)) })
	for i := 1; i < len(list); i++ {
		ok = ok && list[i] > list[i-1]
	}
	return must(ok, field, list, "a list of finite numbers that increase")
}

// oneMore is the mistake of two lists the first of which is not longer by 1.
func oneMore[A, B any](longer string, a []A, shorter string, b []B) error {
	want := fmt.Sprintf("longer by 1 than %s, a list of %d", shorter, len(b))
	return must(len(a) == len(b)+1, longer, fmt.Sprintf("a list of %d", len(a)), want)
}

// part is the mistake of a schedule in another.
func part(field string, s Schedule) error {
	if s == nil {
		return &OptionError{field, "is missing"}
	}
	if v, ok := s.(Validator); ok {
		if err := v.Validate(); err != nil {
			return inside(field, err)
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
