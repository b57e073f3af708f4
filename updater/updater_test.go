package updater

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// model is Σ(v·w)² + b² with w and b to be trained.
func model() (g *G.ExprGraph, loss, w, b *G.Node) {
	g = G.NewGraph()
	vec := func(name string, x ...float64) *G.Node {
		return G.NewVector(g, G.Float64, G.WithShape(len(x)), G.WithName(name), G.WithValue(tensor.New(tensor.WithBacking(x))))
	}
	v := vec("v", 1, 2)
	w = vec("w", 1, -1)
	b = G.NewScalar(g, G.Float64, G.WithName("b"), G.WithValue(3.0))
	loss = must(G.Add(must(G.Sum(must(G.Square(must(G.HadamardProd(v, w)))))), must(G.Square(b))))
	return g, loss, w, b
}

func config(t testing.TB, text string) Config {
	t.Helper()
	c, err := ReadConfig(strings.NewReader(text))
	require.NoError(t, err)
	return c
}

func floats(n *G.Node) []float64 {
	switch v := n.Value().(type) {
	case *G.F64:
		return []float64{float64(*v)}
	case *G.I64:
		return []float64{float64(*v)}
	case *tensor.Dense:
		return append([]float64(nil), v.Float64s()...)
	}
	return nil
}

func TestLifecycle(t *testing.T) {
	g, loss, w, b := model()
	vars := G.Nodes{w, b}
	u, err := New(loss, vars, config(t, `{"optimizer": {"class": "momentum", "momentum": 0.5}, "learning_rate": 0.1}`))
	require.NoError(t, err)
	nodes := len(g.AllNodes())
	require.Empty(t, u.SlotNames())
	require.Nil(t, u.Slot(w, "momentum"))
	require.NoError(t, u.SetTrainableVars(G.Nodes{w, b}))
	require.Len(t, g.AllNodes(), nodes)

	op := must(u.OptimOp())
	require.Same(t, op, must(u.OptimOp()))
	require.Equal(t, []string{"momentum"}, u.SlotNames())
	vm := must(u.NewMachine())
	require.NoError(t, vm.RunAll())
	require.Equal(t, []float64{14}, floats(loss))
	require.InDeltaSlice(t, []float64{.8, -.2, 2.4}, append(floats(w), floats(b)...), 1e-15)
	require.Equal(t, []float64{2, -8}, floats(u.Slot(w, "momentum")))
	require.Equal(t, .1, must(u.LearningRate()))
	require.NoError(t, u.SetLearningRate(0))
	require.NoError(t, vm.RunAll())
	require.InDeltaSlice(t, []float64{.8, -.2, 2.4}, append(floats(w), floats(b)...), 1e-15)
	require.InDeltaSlice(t, []float64{2.6, -5.6}, floats(u.Slot(w, "momentum")), 1e-15)
	require.ErrorContains(t, u.SetLearningRate(-1), "learning_rate is -1")
	require.NoError(t, u.InitOptimizerVars())
	require.Equal(t, []float64{0, 0}, floats(u.Slot(w, "momentum")))
	require.Nil(t, u.Slot(w, "x"))
	require.Nil(t, u.Slot(nil, "momentum"))
	require.Same(t, op, must(u.OptimOp()))

	// another list of variables: a new op, the old one inert, slots of what stays kept
	require.NoError(t, u.SetLearningRate(.1))
	require.NoError(t, vm.RunAll())
	slot := floats(u.Slot(w, "momentum"))
	require.NoError(t, u.SetTrainableVars(G.Nodes{w}))
	op2 := must(u.OptimOp())
	require.NotSame(t, op, op2)
	require.Equal(t, slot, floats(u.Slot(w, "momentum")))
	require.ErrorContains(t, vm.RunAll(), "superseded")
	before := floats(b)
	require.NoError(t, G.NewTapeMachine(g).RunAll()) // the whole graph holds both, and trains once
	require.Equal(t, before, floats(b))
	require.NotEqual(t, slot, floats(u.Slot(w, "momentum")))
	require.Equal(t, []float64{1}, floats(op2))
	u.ResetOptimOp()
	require.NotSame(t, op2, must(u.OptimOp()))
}

// The updater, and a solver by hand, give the same weights; so does the expanded form.
func TestEqualsSolver(t *testing.T) {
	_, loss, w, b := model()
	s := solvers.NewAdam(func(a *solvers.Adam) { a.LearningRate, a.Beta1 = .05, .8 })
	vm := must(graphops.NewMachine(must(s.Minimize(loss, w, b))))
	for range 10 {
		require.NoError(t, vm.RunAll())
	}
	want := append(floats(w), floats(b)...)
	for name, cfg := range map[string]Config{
		"file":  config(t, `{"optimizer": {"class": "Adam", "beta_1": 0.8}, "learning_rate": 0.05}`),
		"map":   {Optimizer: map[string]any{"class": "adam", "beta1": .8}, LearningRate: new(.05)},
		"rule":  {Optimizer: &solvers.Adam{LearningRate: 1, Beta1: .8, Beta2: .999, Epsilon: 1e-8}, LearningRate: new(.05)},
		"chain": {Optimizer: solvers.Chain(solvers.NewAdam(func(a *solvers.Adam) { a.Beta1 = .8 })), LearningRate: new(.05)},
	} {
		for _, opts := range [][]Option{nil, {Expanded()}} {
			_, loss, w, b := model()
			u, err := New(loss, G.Nodes{w, b}, cfg, opts...)
			require.NoError(t, err, name)
			vm := must(u.NewMachine())
			for range 10 {
				require.NoError(t, vm.RunAll())
				vm.Reset()
			}
			require.Equal(t, want, append(floats(w), floats(b)...), name)
		}
	}
	_, loss, w, _ = model()
	u, err := New(loss, G.Nodes{w}, config(t, `{"optimizer": "sgd"}`))
	require.NoError(t, err)
	require.Equal(t, .01, must(u.LearningRate()))
	u, err = New(loss, G.Nodes{w}, config(t, `{}`))
	require.NoError(t, err)
	require.Empty(t, u.SlotNames())
	require.NoError(t, must(u.NewMachine()).RunAll())
	require.InDeltaSlice(t, []float64{.98, -.92}, floats(w), 1e-15)
}

func TestNewRefuses(t *testing.T) {
	g, loss, w, b := model()
	nodes := len(g.AllNodes())
	lonely := G.NewScalar(G.NewGraph(), G.Float64, G.WithName("lonely"))
	for _, c := range []struct {
		loss *G.Node
		vars G.Nodes
		cfg  Config
		want string
	}{
		{nil, G.Nodes{w}, Config{}, "loss is nil"},
		{w, G.Nodes{w}, Config{}, "must be a scalar"},
		{loss, nil, Config{}, "no variables"},
		{loss, G.Nodes{w, w}, Config{}, "listed twice"},
		{loss, G.Nodes{loss}, Config{}, "only its inputs"},
		{loss, G.Nodes{lonely}, Config{}, "not on the graph"},
		{loss, G.Nodes{w}, Config{Optimizer: 3}, "not int"},
		{loss, G.Nodes{w}, Config{Optimizer: "adm"}, `did you mean "adam"?`},
		{loss, G.Nodes{w}, Config{LearningRate: new(math.NaN())}, "learning_rate"},
		{loss, G.Nodes{w}, Config{Optimizer: (*solvers.Solver)(nil)}, "nil"},
		{loss, G.Nodes{w}, Config{Optimizer: solvers.NewCOCOB(), LearningRate: new(.1)}, "no hyperparameter"},
		{loss, G.Nodes{w}, Config{Optimizer: "clip_by_global_norm"}, `optimizer: "clip_by_global_norm" is no optimizer by itself`},
		{loss, G.Nodes{w}, Config{Optimizer: map[string]any{"class": "ClipByNorm"}}, `optimizer: "ClipByNorm" is no optimizer by itself`},
		{loss, G.Nodes{w}, Config{Optimizer: solvers.NewClipByGlobalNorm(1)}, "optimizer: what was given is no optimizer by itself"},
		{loss, G.Nodes{w}, Config{Optimizer: &solvers.Regularize{BatchSize: 1}}, "is no optimizer by itself"},
		{loss, G.Nodes{w}, Config{Optimizer: solvers.Chain(solvers.NewClipByValue(1), solvers.Restrict(solvers.NewClipByNorm(1), "w"))},
			"is no optimizer by itself"},
	} {
		_, err := New(c.loss, c.vars, c.cfg)
		require.ErrorContains(t, err, c.want)
	}
	s := solvers.NewSGD()
	_, err := New(nil, G.Nodes{w}, Config{Optimizer: s, LearningRate: new(.5)})
	require.Error(t, err)
	require.Equal(t, .01, must(s.Get("learning_rate"))) // a refused updater leaves the caller's solver alone
	_, err = (&Updater{}).OptimOp()
	require.Error(t, err)
	u := must(New(loss, G.Nodes{w}, Config{}))
	require.ErrorContains(t, u.SetTrainableVars(G.Nodes{w, lonely}), "not on the graph")
	require.ErrorContains(t, u.SetTrainableVars(nil), "no variables")
	require.Len(t, g.AllNodes(), nodes)
	_, err = u.NewMachine(nil)
	require.Error(t, err)
	run := must(u.NewMachine(b))
	require.NoError(t, run.RunAll())
}

// Hyperparameters are bound in the updater's solver, whatever the form of the update.
func TestBind(t *testing.T) {
	g := G.NewGraph()
	w := G.NewScalar(g, G.Float64, G.WithName("w"), G.WithValue(3.0))
	rate := G.NewScalar(g, G.Float64, G.WithName("rate"), G.WithValue(0.5))
	loss := G.Must(G.Square(w))
	s := solvers.NewSGD()
	require.NoError(t, s.Bind("lr", rate))
	_, err := New(loss, G.Nodes{w}, Config{Optimizer: s}, Expanded())
	require.ErrorContains(t, err, "bound to would be lost")
	u, err := New(loss, G.Nodes{w}, Config{Optimizer: "sgd"}, Expanded())
	require.NoError(t, err)
	require.NoError(t, u.Solver().Bind("lr", rate))
	vm, err := u.NewMachine()
	require.NoError(t, err)
	require.NoError(t, vm.RunAll())
	require.Equal(t, 0.0, w.Value().Data())
}

// A transformation beside an optimizer, restricted or not, is welcome; what the error proposes are optimizers.
func TestTransformationsBesideAnOptimizer(t *testing.T) {
	_, loss, w, _ := model()
	for _, s := range []*solvers.Solver{
		solvers.Chain(solvers.NewClipByValue(1), solvers.NewSGD()),
		solvers.Chain(solvers.NewClipByValue(1), solvers.Restrict(solvers.NewSGD(), "w")),
		solvers.Chain(solvers.NewSGD(), solvers.NewRemoveNotFinite()),
	} {
		_, err := New(loss, G.Nodes{w}, Config{Optimizer: s})
		require.NoError(t, err)
	}
	_, err := ReadConfig(strings.NewReader(`{"optimizer": {}}`))
	require.ErrorContains(t, err, "adam")
	require.NotContains(t, err.Error(), "clip")
	for _, name := range solvers.Names() {
		_, err := New(loss, G.Nodes{w}, Config{Optimizer: name})
		if slices.Contains(solvers.Optimizers(), name) {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "is no optimizer by itself")
		}
	}
}
