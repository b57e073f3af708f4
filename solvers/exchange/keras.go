package exchange

import (
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"optimop/graphops"
	"optimop/internal/safetensors"
	"optimop/solvers"
)

// kerasSlots are the slots of a rule by its kind, in the order in which Keras has them: group after group, each parameter by
// parameter. What the solver does not have is left out.
var kerasSlots = map[string][][]slot{
	"sgd":      {},
	"momentum": {{{ours: "momentum", negative: true}}},
	"adam":     kerasMoments, "adamw": kerasMoments,
	"adamax":    {{{ours: "m"}, {ours: "u"}}},
	"nadam":     {{{ours: "m"}, {ours: "v"}}, {{ours: "mu_product", scalar: true}}},
	"lamb":      {{{ours: "m"}, {ours: "v"}}},
	"lion":      {{{ours: "m"}}},
	"rmsprop":   {{{ours: "rms"}}, {{ours: "momentum"}}, {{ours: "mg"}}},
	"adagrad":   {{{ours: "accumulator"}}},
	"adadelta":  {{{ours: "accum"}, {ours: "accum_update"}}},
	"adabelief": {{{ours: "m"}, {ours: "s"}, {ours: "shat"}}},
}

var kerasMoments = [][]slot{{{ours: "m"}, {ours: "v"}}, {{ours: "vhat"}}}

// kerasConvention refuses a rule whose slots have another meaning in Keras.
func (x subject) kerasConvention() error {
	switch r := x.Rule(x.rule).(type) {
	case *solvers.Momentum:
		if r.Momentum != 0 && !r.RateInside {
			return errors.New("the velocity of this momentum has the learning rate outside; Keras' has it inside: use keras/sgd")
		}
	case *solvers.RMSprop:
		if r.Momentum != 0 && r.RateOutside {
			return errors.New("the momentum of this RMSprop has the learning rate outside; Keras' has it inside: use keras/rmsprop")
		}
	}
	return x.rawMaximum()
}

// place is one of Keras' variables beside the first.
type place struct {
	st       *graphops.State
	negative bool
}

// kerasOrder are the states in the order of Keras' variables, after iteration: the learning rate, if it is a number; the averages, the
// accumulators, the slots.
func (x subject) kerasOrder() (all []place, err error) {
	groups, ok := kerasSlots[kind(x.rule)]
	if !ok {
		return nil, errors.Errorf("Keras has no %s", x.rule)
	}
	if err := x.kerasConvention(); err != nil {
		return nil, err
	}
	rate := x.rule + "/learning_rate"
	if x.Schedules()[rate] == nil {
		st := x.Store().Lookup(rate)
		if st == nil {
			return nil, errors.Errorf("the solver has no %s", rate)
		}
		all = append(all, place{st: st})
	}
	lookup := func(name string) *graphops.State { return x.Store().Lookup(name) }
	for _, name := range []string{"average", "gradient_accumulator"} {
		for _, p := range x.params {
			if st := lookup(p + "/base/" + name); st != nil {
				all = append(all, place{st: st})
			}
		}
	}
	momentum, isMomentum := x.Rule(x.rule).(*solvers.Momentum)
	for _, g := range groups {
		if isMomentum && momentum.Momentum == 0 {
			break
		}
		if g[0].scalar {
			all = append(all, place{st: x.state("", g[0].ours)})
			continue
		}
		for _, p := range x.params {
			for i, k := range g {
				st := x.state(p, k.ours)
				switch {
				case st != nil:
					all = append(all, place{st, k.negative})
				case i == 0 && x.state(x.params[0], k.ours) != nil:
					return nil, errors.Errorf("the solver has no %s of %q", k.ours, p)
				}
			}
		}
	}
	return all, nil
}

// every is how many runs make an update.
func (x subject) every() int {
	if b, ok := x.Rule("base").(*solvers.Base); ok && b.GradientAccumulationSteps > 1 {
		return b.GradientAccumulationSteps
	}
	return 1
}

// ReadKeras reads what save_own_variables of an optimizer of Keras saves into a solver: tensors that are called by their numbers, "0" and
// so on, in the order of the optimizer's variables. The metadata have an object under names that maps the index of each trainable variable to its
// name, as JSON. params are names to be used instead, in the order of Keras' trainable variables. The learning rate becomes that of
// the solver; other hyperparameters are no variables. All that does not fit is an error, and then nothing is changed.
func ReadKeras(r io.Reader, s *solvers.Solver, params ...string) error {
	return errors.Wrap(readKeras(r, s, params), "exchange: ReadKeras")
}

func readKeras(r io.Reader, s *solvers.Solver, params []string) error {
	c, err := read(r)
	if err != nil {
		return err
	}
	if params, err = c.names(params); err != nil {
		return err
	}
	x, order, err := kerasSubject(s, params)
	if err != nil {
		return err
	}
	var a assignments
	for i, p := range order {
		t, ok := c.take(strconv.Itoa(i + 1))
		if !ok {
			return errors.Errorf("variable %d, %s, is missing", i+1, p.st.Name())
		}
		if err := a.add(p.st, t, p.negative); err != nil {
			return err
		}
	}
	t, ok := c.take("0")
	n, _ := floats(t.Data)
	if !ok || len(n) != 1 {
		return errors.New("variable 0, iteration, is missing")
	}
	if err := x.kerasCounts(&a, n[0]); err != nil {
		return err
	}
	if err := c.rest(); err != nil {
		return err
	}
	return a.run()
}

func kerasSubject(s *solvers.Solver, params []string) (x subject, order []place, err error) {
	if x, err = newSubject(s, params); err != nil {
		return x, nil, err
	}
	if len(params) == 0 {
		return x, nil, errors.New("there are no parameters")
	}
	order, err = x.kerasOrder()
	return x, order, err
}

// kerasCounts sets all counters by Keras' one: the runs, and the updates.
func (x subject) kerasCounts(a *assignments, runs float64) error {
	updates := float64(int(runs) / x.every())
	for _, c := range []struct {
		name string
		v    float64
	}{{"global_step", runs}, {"base/iteration", runs}, {"base/step", updates}, {x.rule + "/step", updates}} {
		if st := x.Store().Lookup(c.name); st != nil {
			if err := a.number(st, c.v); err != nil {
				return err
			}
		}
	}
	for _, st := range x.Store().States() {
		v := 0.0
		switch {
		case strings.HasSuffix(st.Name(), "/seen"):
			v = min(updates, 1)
		case strings.HasSuffix(st.Name(), "/base/group"): // of the last run
			v = math.Floor((runs - 1) / float64(x.every()))
		default:
			continue
		}
		if err := a.number(st, v); err != nil {
			return err
		}
	}
	return nil
}

// WriteKeras writes the state of a solver for an optimizer of Keras with trainable variables in this order: the form that ReadKeras reads. Make the
// optimizer with the same hyperparameters, and build it, before it loads them.
func WriteKeras(w io.Writer, s *solvers.Solver, params ...string) error {
	return errors.Wrap(writeKeras(w, s, params), "exchange: WriteKeras")
}

func writeKeras(w io.Writer, s *solvers.Solver, params []string) error {
	_, order, err := kerasSubject(s, params)
	if err != nil {
		return err
	}
	steps, err := s.GlobalStep()
	if err != nil {
		return err
	}
	tensors := []safetensors.Tensor{{Name: "0", Data: []int64{int64(steps)}}}
	for i, p := range order {
		t, err := asTensor(strconv.Itoa(i+1), p.st, p.negative)
		if err != nil {
			return err
		}
		tensors = append(tensors, t)
	}
	names, err := indexed(params)
	if err != nil {
		return err
	}
	return safetensors.Write(w, tensors, map[string]string{"names": names})
}
