package solvers

import (
	"reflect"
	"regexp"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// Route says which parameters a rule trains: that of this name, or all whose whole names match it as a regular expression.
type Route struct {
	Pattern string
	Rule    Rule
}

// OptimizerMap trains each parameter with the rule of its route, and with fallback where it has none (Keras' MultiOptimizer with an
// OptimizerMap). A route whose pattern is the parameter's name comes first, then those that match it as regular expressions
// (package regexp); if several do, that is an error that names the parameter.
//
//	solvers.OptimizerMap(solvers.NewAdam(), solvers.Route{Pattern: "embedding/.*", Rule: solvers.NewAdagrad()})
//
// Every rule counts its own steps, and none where none of its parameters is trained. A rule object that stands on several routes is
// one rule for all of their parameters. Patterns that are no regular expressions, and the same one twice, are errors.
func OptimizerMap(fallback Rule, routes ...Route) *Solver {
	m := &optimizerMap{Routes: slices.Clone(routes), Fallback: addressable(fallback)}
	for i, r := range routes {
		m.Routes[i].Rule = addressable(r.Rule)
	}
	return New(m)
}

// OptimizerBy is OptimizerMap with a function that chooses one of the rules for each parameter, by its index. It must always
// choose the same.
func OptimizerBy(choose func(Param) int, rules ...Rule) *Solver {
	m := &optimizerMap{choose: choose, by: true}
	for _, r := range rules {
		m.chosen = append(m.chosen, addressable(r))
	}
	return New(m)
}

type optimizerMap struct {
	Routes   []Route
	Fallback Rule
	by       bool // choose, not the routes
	choose   func(Param) int
	chosen   []Rule // by choose
}

// Rules implements Composite: each rule once.
func (m *optimizerMap) Rules() []Rule {
	if m.by {
		return slices.Clone(m.chosen)
	}
	all, _ := m.distinct()
	return all
}

// distinct are the rules, each once, and which of them is that of each route and, last, of the fallback. Functions, which cannot be
// compared, are rules of their own.
func (m *optimizerMap) distinct() (all []Rule, of []int) {
	add := func(r Rule) {
		i := indexOf(all, r)
		if i < 0 {
			i, all = len(all), append(all, r)
		}
		of = append(of, i)
	}
	for _, r := range m.Routes {
		add(r.Rule)
	}
	add(m.Fallback)
	return all, of
}

func indexOf(rules []Rule, r Rule) int {
	return slices.IndexFunc(rules, func(known Rule) bool {
		return known != nil && reflect.TypeOf(known).Comparable() && known == r || known == nil && r == nil
	})
}

// Validate implements Validator.
func (m *optimizerMap) Validate() error {
	if m.by && m.choose == nil {
		return errors.New("the function that chooses rules is nil")
	}
	if m.by && len(m.chosen) == 0 {
		return errors.New("there are no rules to choose from")
	}
	seen := map[string]bool{}
	for _, r := range m.Routes {
		if _, err := entire(r.Pattern); err != nil {
			return errors.Wrapf(err, "the pattern %q", r.Pattern)
		}
		if seen[r.Pattern] {
			return errors.Errorf("there are two routes for %q", r.Pattern)
		}
		seen[r.Pattern] = true
	}
	return nil
}

// Transforms implements Transformation. What the rules within are counts by itself.
func (*optimizerMap) Transforms() {}

// Apply implements Rule.
func (m *optimizerMap) Apply(b *Builder, in []Step) ([]Step, error) {
	of, rules := map[*gorgonia.Node]int{}, m.Rules()
	for _, s := range in {
		i, err := m.route(s.Param)
		if err != nil {
			return nil, err
		}
		of[s.Param.Node] = i
	}
	for i, r := range rules {
		mine := func(p Param) bool { return of[p.Node] == i }
		if !slices.ContainsFunc(in, func(s Step) bool { return mine(s.Param) }) {
			b.skip(r)
			continue
		}
		var err error
		if in, err = b.Partly(in, mine, func(some []Step) ([]Step, error) { return b.Run(r, some) }); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// route is the index of the rule of a parameter.
func (m *optimizerMap) route(p Param) (int, error) {
	if m.by {
		i := m.choose(p)
		if i < 0 || i >= len(m.chosen) {
			return 0, errors.Errorf("solvers: OptimizerBy: rule %d was chosen for %q; there are %d", i, p.Name, len(m.chosen))
		}
		return i, nil
	}
	_, of := m.distinct()
	var hits []int
	for i, r := range m.Routes {
		if r.Pattern == p.Name {
			return of[i], nil
		}
		if e, err := entire(r.Pattern); err == nil && e.MatchString(p.Name) {
			hits = append(hits, i)
		}
	}
	switch len(hits) {
	case 0:
		return of[len(m.Routes)], nil
	case 1:
		return of[hits[0]], nil
	}
	return 0, errors.Errorf("solvers: OptimizerMap: %q and %q both match parameter %q", m.Routes[hits[0]].Pattern, m.Routes[hits[1]].Pattern, p.Name)
}

// entire is a pattern for whole names.
func entire(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // before ")(" becomes one
		return nil, err
	}
	return regexp.Compile("^(?:" + pattern + ")$")
}
