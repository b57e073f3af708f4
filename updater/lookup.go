package updater

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"optimop/graphops"
	"optimop/solvers"
)

// Optimizers are the updater's optimizers, in the order in which its variables first needed them.
func (u *Updater) Optimizers() (all []Optimizer) {
	for _, o := range u.needed() {
		all = append(all, o.Optimizer)
	}
	return all
}

// needed are the optimizers of the present variables.
func (u *Updater) needed() (all []*optimizer) {
	for _, s := range u.settings {
		if s.ordinary() && !slices.Contains(all, s.opt) {
			all = append(all, s.opt)
		}
	}
	return all
}

// DefaultOptimizer is that of the Config, for variables that no UpdaterOpts give another. It is an error if there are none.
func (u *Updater) DefaultOptimizer() (Optimizer, error) {
	for _, o := range u.needed() {
		if o.choice == choiceOf(u.cfg.Optimizer, identity) {
			return o.Optimizer, nil
		}
	}
	return Optimizer{}, errors.New("updater: all variables have optimizers of their own")
}

// OptimizerOf is the optimizer of a variable.
func (u *Updater) OptimizerOf(v *gorgonia.Node) (Optimizer, error) {
	s := u.of(v)
	if s == nil || !s.ordinary() {
		return Optimizer{}, errors.Errorf("updater: no optimizer has the variable %s", nodeName(v))
	}
	return s.opt.Optimizer, nil
}

func nodeName(v *gorgonia.Node) string {
	if v == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", v.Name())
}

// VarsOf are those of the given variables that an optimizer updates, in their order; one that the updater does not have is an error.
func (u *Updater) VarsOf(o Optimizer, vars gorgonia.Nodes) (out gorgonia.Nodes, err error) {
	for _, v := range vars {
		own, err := u.OptimizerOf(v)
		if err != nil {
			return nil, err
		}
		if own.Solver == o.Solver {
			out = append(out, v)
		}
	}
	return out, nil
}

// SlotNamesOf are the names of the slots that an optimizer keeps for its variables, sorted: m and v of Adam. There are none before the optim
// op is built.
func (u *Updater) SlotNamesOf(o Optimizer) []string {
	rules, err := u.solver.RuleNames(o.Solver)
	if err != nil {
		return nil
	}
	return u.slotNames(func(st *graphops.State) bool {
		path := strings.Split(strings.TrimPrefix(st.Name(), st.Param()+"/"), "/")
		return slices.Contains(rules, path[0])
	})
}

// OptimizerVars are all states of the optimizers, in the order of their making: slots, counters and hyperparameters.
func (u *Updater) OptimizerVars() []*graphops.State { return slices.Clone(u.solver.Store().States()) }

// Table says how each variable is trained: one line for each, with the patterns of UpdaterOpts that fit it.
func (u *Updater) Table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "variable\tdtype\tshape\tmatched\toptimizer\trate\tl2\tdecay\truns\tprocessing\ttags")
	for _, s := range u.settings {
		fmt.Fprintf(w, "%s\t%v\t%v\t%s\t", s.name, s.node.Dtype(), s.node.Shape(), strings.Join(s.matched, " "))
		if s.custom { // nothing else concerns it
			fmt.Fprintln(w, "custom update\t\t\t\t1\t\t")
			continue
		}
		if s.idle {
			fmt.Fprintln(w, "not trained: no loss depends on it\t\t\t\t\t\t")
			continue
		}
		if s.overwrite {
			fmt.Fprintf(w, "overwritten with its gradient\t\t\t\t%s\t\t%s\n", s.runs(), strings.Join(s.Tags, " "))
			continue
		}
		fmt.Fprintf(w, "%s\t×%v\t%v\t×%v\t%s\t%s\t%s\n", s.opt.Key, s.opt.rate, *s.L2, s.decay(), s.runs(), s.processing(), strings.Join(s.Tags, " "))
	}
	_ = w.Flush() // to memory
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// decay is what multiplies the weight decay of the variable's optimizer.
func (s *setting) decay() float64 {
	if slices.ContainsFunc(s.opt.Solver.Bases(), func(b *solvers.Base) bool { return b.Excludes(s.name) }) {
		return 0
	}
	return s.opt.decay
}

func (s *setting) runs() string {
	switch g := s.steps(); {
	case g.overwrite && g.n > 1:
		return fmt.Sprintf("greatest of %d", g.n)
	case s.strict && *s.GradientAccumulationSteps > 1:
		return fmt.Sprintf("mean of %d", *s.GradientAccumulationSteps)
	case g.mean:
		return fmt.Sprintf("mean of %d", g.n)
	case g.n > 1:
		return fmt.Sprintf("sum of %d", g.n)
	}
	return "1"
}

// processing lists what is switched on, in its order.
func (s *setting) processing() string {
	var on []string
	if f := *s.MaximizeGradNorm; f != 0 {
		on = append(on, fmt.Sprintf("maximize_grad_norm %v", f))
	}
	for _, st := range stages {
		v, tag := st.of(s)
		if v == 0 {
			continue
		}
		what := fmt.Sprintf("%s %v", strings.TrimPrefix(st.name, "gradient_"), v)
		if tag != "" {
			what += " of " + tag
		}
		on = append(on, what)
	}
	return strings.Join(on, ", ")
}

// Slot is the node of a variable's slot, such as "m"; nil if there is none, or the optim op has not been built.
func (u *Updater) Slot(v *gorgonia.Node, name string) *gorgonia.Node {
	if v == nil || len(u.losses) == 0 || v.Graph() != u.losses[0].loss.Graph() {
		return nil
	}
	return u.solver.Slot(v, name)
}

// SlotNames are the names of the slots that variables have, sorted; none before the optim op is built.
func (u *Updater) SlotNames() []string {
	return u.slotNames(func(*graphops.State) bool { return true })
}

func (u *Updater) slotNames(of func(*graphops.State) bool) []string {
	var names []string
	if u.solver == nil {
		return nil
	}
	for _, st := range u.solver.Store().States() {
		if st.Kind() == graphops.Slot && st.Param() != "" && of(st) {
			names = append(names, st.Name()[strings.LastIndexByte(st.Name(), '/')+1:])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
