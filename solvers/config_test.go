package solvers

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"

	"optimop/solvers/schedule"
)

// other gives every option of a solver's rules another legal value than its default.
func other(t *testing.T, s *Solver) {
	for _, r := range s.rules {
		require.NoError(t, exported(reflect.ValueOf(r.rule), func(_ reflect.StructField, v reflect.Value) error {
			old := reflect.ValueOf(v.Interface())
			try := func(x any) bool {
				v.Set(reflect.ValueOf(x).Convert(v.Type()))
				if r.validate() == nil {
					return true
				}
				v.Set(old)
				return false
			}
			switch v.Kind() {
			case reflect.Float64:
				f := old.Float()
				if math.IsInf(f, 0) {
					f = 7
				}
				for _, x := range []float64{f*.875 + .0078125, f + .1, f - .1, f + 1} {
					if x != old.Float() && try(x) {
						return nil
					}
				}
			case reflect.Bool:
				try(!old.Bool())
			case reflect.String:
				for _, x := range []string{"direction", "simple", "fixed", "scheduled", "nuclear", "tanh"} {
					if x != old.String() && try(x) {
						return nil
					}
				}
			case reflect.Int:
				try(old.Int() + 3)
			case reflect.Slice:
				require.True(t, try(map[reflect.Type]any{reflect.TypeFor[[]int](): []int{1, 0}, reflect.TypeFor[[]string](): []string{"a", "b"}}[v.Type()]))
			}
			return nil
		}))
	}
}

// settings are all options of a solver's rules, with the rules' names.
func settings(t *testing.T, s *Solver) map[string]any {
	out := map[string]any{}
	for _, r := range s.rules {
		require.NoError(t, exported(reflect.ValueOf(r.rule), func(f reflect.StructField, v reflect.Value) error {
			if !strings.Contains(v.Type().String(), "Rule") && !strings.Contains(v.Type().String(), "Part") && !strings.Contains(v.Type().String(), "Route") { // those have settings of their own
				out[r.name+"/"+f.Name] = v.Interface()
			}
			return nil
		}))
	}
	return out
}

// again is a solver that went through JSON.
func again(t *testing.T, s *Solver) *Solver {
	first, err := s.Config()
	require.NoError(t, err)
	kept := must(json.Marshal(first))
	direct, err := FromConfigMap(first)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(must(json.Marshal(first))), "the config was changed")
	require.Equal(t, first, must(direct.Config()))
	text, err := Marshal(s)
	require.NoError(t, err)
	back, err := Unmarshal(text)
	require.NoError(t, err)
	require.Equal(t, string(text), string(must(Marshal(back))))
	require.Equal(t, settings(t, s), settings(t, direct))
	require.Equal(t, settings(t, s), settings(t, back))
	return back
}

// Every registered solver comes back from its config, through JSON, with values that are not the defaults, alone and within
// others.
func TestConfigOfTheRegistry(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			again(t, must(FromConfig(name, nil)))
			s := must(FromConfig(name, nil))
			before := settings(t, s)
			other(t, s)
			require.True(t, len(before) == 0 || !reflect.DeepEqual(before, settings(t, s)))
			again(t, s)
			nested := Chain(NewClipByNorm(3), Accumulate(4, Chain(Restrict(s, "w0", "w1"), AccumulateMean(2, must(FromConfig(name, nil))))), s)
			require.Equal(t, ruleNames(nested), ruleNames(again(t, nested)))
			wrapped := scheduledAll(t, wrappedIn(s))
			back := again(t, wrapped)
			require.Equal(t, ruleNames(wrapped), ruleNames(back))
			require.Len(t, back.schedule, len(wrapped.schedule))
		})
	}
}

// wrappedIn puts a rule into all wrappers, with options that are not the defaults.
func wrappedIn(r Rule) *Solver {
	slow := look(ema1(moving(swa1(r, 2, 3), func(m *MovingAverageOptions) { m.StartStep = 3 }), .5, 7), 5, .25)
	both := MultiOptimizer(Part{OptimizerMap(slow, Route{"w.*", NewLion()}), []string{"w0", "b"}}, Part{NewAdam(), []string{"w1"}})
	return dynamic(WithBase(both, all2, func(b *Base) { b.GradientAccumulationSteps, b.EMAOverwriteFrequency = 3, 2 }), 8, 3)
}

// scheduledAll lets every hyperparameter follow a schedule, of kinds in turn, whose value is always what the hyperparameter is.
func scheduledAll(t *testing.T, s *Solver) *Solver {
	for i, r := range s.rules {
		for k, f := range r.fields {
			v := *f.value
			c := schedule.NewConstant(v)
			sch := []schedule.Schedule{c, schedule.NewProduct(c, schedule.NewConstant(1)), schedule.NewSequential([]schedule.Schedule{c, c}, 3),
				schedule.NewPiecewiseConstantDecay([]float64{2}, []float64{v, v}), schedule.NewCyclic(v, v, 5),
				schedule.NewLinear(v, v, 9, func(l *schedule.Linear) { l.Begin = 3 })}[(i+k)%6]
			if err := s.Schedule(r.name+"/"+f.name, sch); math.IsInf(v, 0) { // which no schedule can be
				require.Error(t, err)
			} else {
				require.NoError(t, err)
			}
		}
	}
	return s
}

// register makes a rule known for the time of a test.
func register(t *testing.T, name string, factory func() Rule) {
	require.NoError(t, Register(name, factory))
	t.Cleanup(func() {
		registry.Lock()
		defer registry.Unlock()
		delete(registry.factory, fold(name))
		delete(registry.name, fold(name))
	})
}

// Every rule that holds others comes back, with all that it holds and values that are not the defaults.
func TestConfigOfHolders(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []*Solver{
		Accumulate(3, NewSGD()),
		WithBase(NewSGD(), func(b *Base) {
			b.WeightDecay, b.ClipNorm, b.LossScaleFactor, b.GradientAccumulationSteps, b.UseEMA, b.EMAMomentum = .5, 2, 8, 4, true, .5
			b.ExcludeFromWeightDecay, b.OverwriteWithGradient, b.Constraints, b.KerasStrict = []string{"bias"}, []string{"s*"}, []Rule{NewNonNegative()}, true
		}),
		Chain(NewSGD(), NewScale()),
		EMA(NewAdam(), func(e *EMAOptions) { e.EMAMomentum, e.EMAOverwriteFrequency = .5, 7 }),
		Lookahead(NewRAdam(), func(l *LookaheadOptions) { l.SyncPeriod, l.SlowStepSize = 3, .25 }),
		WithLossScale(NewLion(), func(l *LossScale) { l.InitialScale, l.DynamicGrowthSteps = 8, 3 }),
		MovingAverage(NewSGD(), func(m *MovingAverageOptions) {
			m.AverageDecay, m.NumUpdates, m.StartStep, m.DynamicDecay = .5, 3, 2, true
		}),
		MultiOptimizer(Part{NewSGD(), []string{"w0"}}, Part{NewAdam(), []string{"w1", "w2"}}),
		OptimizerMap(NewSGD(), Route{"w.*", NewAdam()}, Route{"b", NewLion()}),
		Restrict(NewMuon(), "w"),
		SWA(NewSGD(), func(s *SWAOptions) { s.StartAveraging, s.AveragePeriod = 5, 3 }),
		WithRows(NewAdam(), RowsLazy),
	} {
		back := again(t, s)
		require.Equal(t, ruleNames(s), ruleNames(back))
		name, _, err := classOf(s.rule)
		require.NoError(t, err)
		seen[name] = true
		again(t, WithBase(Lookahead(Accumulate(2, s)), func(b *Base) { b.WeightDecay = .5 }))
	}
	for _, h := range holders {
		require.True(t, seen[h.name], h.name)
	}
	_, err := OptimizerBy(func(Param) int { return 0 }, NewSGD()).Config()
	require.ErrorContains(t, err, "not exported")
}

func ruleNames(s *Solver) (names []string) {
	for _, r := range s.rules {
		names = append(names, r.name)
	}
	return names
}

// group is a rule that holds others in every way that a config knows.
type group struct {
	First  Rule
	Rest   []Rule
	Named  map[string]Rule
	Factor schedule.Schedule
	Limits struct{ Low, High float64 }
	Most   *float64
	Table  map[string][]int
	Kind   kind
	Big    int64
	Single float32
	Hook   func() // nil
}

type kind string

func (g *group) Rules() []Rule {
	all := append([]Rule{g.First}, g.Rest...)
	for _, name := range sortedKeys(map[string]any{"a": 1, "b": 1}) {
		if r := g.Named[name]; r != nil {
			all = append(all, r)
		}
	}
	return all
}

func (g *group) Apply(b *Builder, in []Step) (out []Step, err error) {
	for _, r := range g.Rules() {
		if in, err = b.Run(r, in); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func TestConfigOfAnyRule(t *testing.T) {
	register(t, "test/group", func() Rule { return &group{First: NewSGD(), Kind: "old"} })
	most := math.Inf(-1)
	g := &group{First: &scale{}, Rest: []Rule{Chain(NewClipByValue(2), NewScale()), NewLion()}, Named: map[string]Rule{"b": NewZeroByGlobalNorm(inf)},
		Factor: schedule.NewNoam(8, 20), Most: &most, Table: map[string][]int{"x": {1, 2}, "y": nil}, Kind: "new", Big: math.MaxInt64, Single: .1}
	g.Limits.High = 3
	_, err := New(g).Config()
	require.ErrorContains(t, err, "solvers.scale has no config: make its type known with Register")
	g.First = NewAdam()
	s := New(g, Expanded(), SkipMissing())
	require.NoError(t, s.Schedule("adam/beta1", schedule.NewExponentialDecay(.95, 7, .9)))
	require.NoError(t, s.Schedule("lion/learning_rate", schedule.NewConstant(.25)))
	back := again(t, s)
	require.Equal(t, ruleNames(s), ruleNames(back))
	require.True(t, back.expanded && back.missing)
	require.Equal(t, .95, must(back.Get("adam/beta1")))
	require.NoError(t, back.Schedule("adam/beta1", nil))
	require.Equal(t, .9, must(back.Get("adam/beta1")), "the value beneath the schedule")

	s = must(FromConfigMap(map[string]any{"class": "test/group", "first": "RMSprop", "rest": []any{&Lion{Beta1: .5}, map[string]any{"class": "keras/sgd"}}}))
	require.Equal(t, []string{"group", "rmsprop", "lion", "momentum"}, ruleNames(s))
	s = must(FromConfig("restrict", map[string]any{"rule": map[string]any{"class": "adam", "lr": 2}, "names": "w"}))
	require.Equal(t, 2.0, must(s.Get("learning_rate")))

	list := []string{"w"}
	config := map[string]any{"class": "restrict", "rule": "sgd", "names": list}
	s = must(FromConfigMap(config))
	list[0] = "v"
	require.Equal(t, []string{"w"}, s.rule.(*restrict).Names)
	require.Equal(t, map[string]any{"class": "restrict", "rule": "sgd", "names": []string{"v"}}, config)
}

// What gorgonia.Let gave a node, and Set, is in the config.
func TestConfigHasPresentValues(t *testing.T) {
	w := vector(G.NewGraph(), "w", 1, 2)
	s := NewAdam()
	_, err := s.Minimize(squares(w), w)
	require.NoError(t, err)
	require.NoError(t, s.Set("beta1", .5))
	require.NoError(t, G.Let(must(s.HyperNode("learning_rate", w.Graph())), .25))
	config, err := s.Config()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"class": "adam", "learning_rate": .25, "beta1": .5, "beta2": .999, "epsilon": 1e-8, "epsilon_hat": false,
		"ams_grad": false, "max_corrected": false}, config)
}

// secretive has a state that its exported fields do not show.
type secretive struct {
	Rate float64
	n    int
}

func (*secretive) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }

// titled has a field for which a config has no place.
type titled struct {
	Class     string
	Schedules float64
}

func (*titled) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }

// hooked has a function for a field.
type hooked struct{ Hook func() }

func (*hooked) Apply(_ *Builder, in []Step) ([]Step, error) { return in, nil }

func TestNoConfig(t *testing.T) {
	register(t, "test/hooked", func() Rule { return &hooked{} })
	register(t, "test/secretive", func() Rule { return &secretive{n: 1} })
	register(t, "test/titled", func() Rule { return &titled{} })
	again(t, New(&secretive{Rate: 2, n: 1}))
	bound, scheduled := NewSGD(), NewSGD()
	require.NoError(t, bound.Bind("lr", number(G.NewGraph(), "x", 1)))
	require.NoError(t, scheduled.Schedule("lr", schedule.Func(func(s schedule.Expr) schedule.Expr { return s })))
	for want, s := range map[string]*Solver{
		"solver is nil":         nil,
		"beta1 is 2":            NewAdam(func(a *Adam) { a.Beta1 = 2 }),
		"a function has no":     New(RuleFunc(func(_ *Builder, in []Step) ([]Step, error) { return in, nil })),
		"not exported":          New(&secretive{n: 2}),
		"called class":          New(&titled{}),
		"bound to a node":       bound,
		"Func has no config":    scheduled,
		`option "hook": a func`: New(&hooked{Hook: func() {}}),
	} {
		_, err := s.Config()
		require.ErrorContains(t, err, want)
		_, err = Marshal(s)
		require.ErrorContains(t, err, want)
	}
	loop := &group{First: NewSGD()}
	s := New(loop)
	loop.Rest = []Rule{loop}
	register(t, "test/group", func() Rule { return &group{First: NewSGD()} })
	_, err := s.Config()
	require.ErrorContains(t, err, "nested more than")
}

func TestBadConfigs(t *testing.T) {
	loop := map[string]any{"class": "accumulate", "n": 2}
	loop["rule"] = loop
	for want, config := range map[string]map[string]any{
		`needs a "class"`:                 {},
		"not 3":                           {"class": 3},
		`did you mean "adam"`:             {"class": "adamm"},
		`did you mean "beta1"`:            {"class": "adam", "beta3": .5},
		"already sets":                    {"class": "adam", "lr": .5, "learning_rate": .5},
		`want a float64, not "much"`:      {"class": "adam", "lr": "much"},
		"want a float64, not null":        {"class": "adam", "lr": nil},
		"beta1 is 1":                      {"class": "adam", "beta1": 1},
		"learning_rate is +Inf":           {"class": "adam", "lr": "inf"},
		"a chain of no rules":             {"class": "chain"},
		"the rule is nil":                 {"class": "restrict", "rule": nil},
		`did you mean "rule"`:             {"class": "restrict", "rules": "sgd"},
		"want a rule, {":                  {"class": "restrict", "rule": 3},
		"element 1: want a rule":          {"class": "chain", "rules": []any{"sgd", 1}},
		"n is 0":                          {"class": "accumulate", "rule": "sgd"},
		"want an int, not 1.5":            {"class": "accumulate", "rule": "sgd", "n": 1.5},
		"nested more than":                loop,
		"schedules are 1":                 {"class": "sgd", "schedules": 1},
		`{"class": …}`:                    {"class": "sgd", "schedules": map[string]any{"lr": .1}},
		"no schedule is called":           {"class": "sgd", "schedules": map[string]any{"lr": map[string]any{"class": "x"}}},
		`no hyperparameter is called "b"`: {"class": "sgd", "schedules": map[string]any{"b": map[string]any{"class": "constant", "value": 1}}},
		"not an object":                   {"class": "sgd", "schedules": map[string]any{"lr": map[string]any{"class": loop}}},
		"must be true or false":           {"class": "sgd", "expanded": 1},
	} {
		_, err := FromConfigMap(config)
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		"":                              "no JSON object",
		"[1]":                           "no JSON object",
		"null":                          `needs a "class"`,
		`{"class": "sgd"} {}`:           "something follows",
		`{"class": "sgd", "lr": 1e999}`: "want a float64, not 1e999",
		`{"class": "clip_by_norm", "max_norm": {"a": 1}}`:                "want a float64",
		`{"class": "variable_clipping", "axes": 0.5}`:                    "want an int, not 0.5",
		`{"class": "variable_clipping", "axes": [18446744073709551615]}`: "want an int, not 18446744073709551615",
	} {
		_, err := Unmarshal([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
	require.ErrorContains(t, Register("Chain", func() Rule { return NewSGD() }), "holds others")
	register(t, "test/nothing", func() Rule { return nil })
	_, err := FromConfig("test/nothing", nil)
	require.ErrorContains(t, err, "made nothing")
}

// Any JSON is read or refused, and what is read can be written.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range []string{
		`{"class": "adam", "lr": 0.1, "schedules": {"beta1": {"class": "constant", "value": 0.5}}}`,
		`{"class": "chain", "rules": ["sgd", {"class": "restrict", "rule": {"class": "muon", "exclude_layers": ["a"]}, "names": ["w"]}]}`,
		`{"class": "accumulate", "n": 2, "mean": true, "rule": {"class": "torch/adam", "betas": [0.5, 0.6]}, "expanded": true}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Unmarshal(text)
		if err != nil {
			return
		}
		config, err := s.Config()
		require.NoError(t, err)
		require.Equal(t, config, must(must(FromConfigMap(config)).Config()))
	})
}
