package updater

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// input is a variable of a graph: a scalar of one number, or a vector.
func input(g *G.ExprGraph, name string, x ...float64) *G.Node {
	if len(x) == 1 {
		return G.NewScalar(g, G.Float64, G.WithName(name), G.WithValue(x[0]))
	}
	return G.NewVector(g, G.Float64, G.WithShape(len(x)), G.WithName(name), G.WithValue(tensor.New(tensor.WithBacking(x))))
}

// weighted is Σ c·w: the gradient of w is c, which can be fed.
func weighted(g *G.ExprGraph, w *G.Node, c ...float64) (loss, feed *G.Node) {
	feed = input(g, "c of "+w.Name(), c...)
	loss = must(G.HadamardProd(w, feed))
	if !loss.IsScalar() {
		loss = must(G.Sum(loss))
	}
	return loss, feed
}

func runs(t testing.TB, vm G.VM, n int) {
	t.Helper()
	for range n {
		require.NoError(t, vm.RunAll())
		vm.Reset()
	}
}

// snapshot is everything that a run can write.
func snapshot(t testing.TB, u *Updater, vars ...*G.Node) map[string][]float64 {
	t.Helper()
	all := map[string][]float64{}
	for _, v := range vars {
		all[v.Name()] = floats(v)
	}
	for _, st := range u.OptimizerVars() {
		v, err := st.Value()
		require.NoError(t, err)
		switch v := v.(type) {
		case *tensor.Dense:
			all[st.Name()] = append([]float64(nil), v.Float64s()...)
		default:
			x, err := graphops.ScalarValue(v)
			require.NoError(t, err)
			all[st.Name()] = []float64{x}
		}
	}
	return all
}

func TestOnNewOptimOp(t *testing.T) {
	_, loss, w, b := model()
	var ops []*G.Node
	var u *Updater
	fails := false
	u = must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "momentum", "momentum": 0.5, "summary_interval": 1}`),
		OnNewOptimOp(nil), OnNewOptimOp(func(op *G.Node) error {
			if fails {
				return errors.New("it does not please")
			}
			ops = append(ops, op)
			return u.InitOptimizerVars() // as RETURNN's engine does
		})))
	require.Empty(t, ops)
	op := must(u.OptimOp())
	vm := must(u.NewMachine())
	_, err := u.LearningRateNode()
	require.NoError(t, err)
	require.Equal(t, []*G.Node{op}, ops)
	runs(t, vm, 2)
	require.NotEqual(t, []float64{0, 0}, floats(u.Slot(w, "momentum")))
	again := must(u.CreateOptimOp())
	require.Equal(t, []*G.Node{op, again}, ops)
	require.Equal(t, []float64{0, 0}, floats(u.Slot(w, "momentum")))
	require.ErrorContains(t, vm.RunAll(), "superseded")

	// an error leaves the old op at work, with its summaries
	vm = must(u.NewMachine())
	runs(t, vm, 1)
	fails = true
	_, err = u.CreateOptimOp()
	require.ErrorContains(t, err, "updater: OnNewOptimOp: it does not please")
	before := floats(w)
	runs(t, vm, 1)
	require.NotEqual(t, before, floats(w))
	_, ok, err := u.Summary()
	require.NoError(t, err)
	require.True(t, ok)
	fails = false
	require.NotSame(t, again, must(u.OptimOp()))
	require.Len(t, ops, 3)
}

// An error while the op is built leaves the old op, and everything that it trains, as it was.
func TestFailedBuild(t *testing.T) {
	_, loss, w, b := model()
	var fail func() Expr
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "adam", "summary_interval": 1, "skip_non_finite_steps": true}`),
		CustomUpdate(b, func(old Expr) Expr {
			if fail != nil {
				return fail()
			}
			return old
		})))
	vm := must(u.NewMachine())
	runs(t, vm, 3)
	before := snapshot(t, u, w, b)
	for want, f := range map[string]func() Expr{
		`the custom update of b panicked: no`: func() Expr { panic("no") },
		`the custom update of b`:              func() Expr { return Expr{} },
		`b`:                                   func() Expr { return graphops.Of(w) }, // its shape is another
	} {
		fail = f
		_, err := u.CreateOptimOp()
		require.ErrorContains(t, err, want)
		require.Equal(t, before, snapshot(t, u, w, b))
	}
	runs(t, vm, 1)
	require.NotEqual(t, before["w"], floats(w))
	fail = nil
	runs(t, must(u.NewMachine(must(u.LearningRateNode()))), 1)
}

// What is refused changes neither variables nor losses nor optimizers.
func TestRefusedChanges(t *testing.T) {
	g, loss, w, b := model()
	unused := input(g, "unused", 1)
	lonely := input(G.NewGraph(), "lonely", 1)
	c := config(t, `{"optimizer": "adam", "updater_opts": [{"match": "w", "optimizer": {"class": "momentum", "momentum": 0.5}}, {"match": "b"}]}`)
	u := must(New(loss, G.Nodes{w, b}, c))
	op, table := must(u.OptimOp()), u.Table()
	vm := must(u.NewMachine())
	runs(t, vm, 2)
	before, nodes, optimizers := snapshot(t, u, w, b), len(g.AllNodes()), u.Optimizers()
	vector := must(G.HadamardProd(w, w))
	for want, f := range map[string]func() error{
		"no variables":                         func() error { return u.SetTrainableVars(nil) },
		"variable 1 is nil":                    func() error { return u.SetTrainableVars(G.Nodes{w, nil}) },
		`"w" is listed twice`:                  func() error { return u.SetTrainableVars(G.Nodes{w, w, b}) },
		"not on the graph":                     func() error { return u.SetTrainableVars(G.Nodes{w, b, lonely}) },
		`updater_opts[1].match: "b" fits none`: func() error { return u.SetTrainableVars(G.Nodes{w}) },
		"only its inputs":                      func() error { return u.SetTrainableVars(G.Nodes{w, b, loss}) },
		"the further loss":                     func() error { return u.AddLoss(nil, w) },
		"not on the graph of the first":        func() error { return u.AddLoss(lonely, lonely) },
		"must be a scalar":                     func() error { return u.AddLoss(vector, w) },
		"depends on none":                      func() error { return u.AddLoss(loss, unused) },
		"there are no variables":               func() error { return u.AddLoss(loss) },
		"learning_rate is -1":                  func() error { return u.SetLearningRate(-1) },
		"loss is nil":                          func() error { _, err := u.On(nil, G.Nodes{w, b}); return err },
		`"w" fits none`:                        func() error { _, err := u.On(loss, G.Nodes{b}); return err },
	} {
		require.ErrorContains(t, f(), want)
		require.Equal(t, before, snapshot(t, u, w, b), want)
		require.Equal(t, optimizers, u.Optimizers(), want)
		require.Equal(t, table, u.Table(), want)
		require.Same(t, op, must(u.OptimOp()), want)
	}
	require.Len(t, g.AllNodes(), nodes+1) // the vector
	runs(t, vm, 1)
	require.NotEqual(t, before, snapshot(t, u, w, b))

	for _, err := range []error{
		(&Updater{}).SetTrainableVars(G.Nodes{w}), (&Updater{}).AddLoss(loss, w), (&Updater{}).InitOptimizerVars(), (&Updater{}).SaveFile("x"), (&Updater{}).LoadFile("x"),
	} {
		require.ErrorContains(t, err, "with New")
	}
	_, err := (&Updater{}).On(loss, G.Nodes{w})
	require.ErrorContains(t, err, "with New")
	_, _, _, err = (&Updater{}).Skipped()
	require.ErrorContains(t, err, "with New")
}

// InitOptimizerVars sets slots and counters back, and nothing else.
func TestInitOptimizerVars(t *testing.T) {
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "adam", "accum_grad_multiple_step": 2, "gradient_noise": 0.1}`)))
	require.NoError(t, u.InitOptimizerVars()) // builds
	fresh := snapshot(t, u)
	vm := must(u.NewMachine())
	runs(t, vm, 5)
	require.NoError(t, u.SetLearningRate(.25))
	after := snapshot(t, u, w, b)
	require.NoError(t, u.InitOptimizerVars())
	want := fresh
	want["global_step"], want["adam/learning_rate"], want["w"], want["b"] = []float64{5}, []float64{.25}, after["w"], after["b"]
	require.Equal(t, want, snapshot(t, u, w, b))
	require.Equal(t, 5, must(u.GlobalStep()))
}

// Optimizers, what they have, and the table.
func TestLookups(t *testing.T) {
	g := G.NewGraph()
	var vars G.Nodes
	var loss *G.Node
	for _, name := range []string{"enc/w", "enc/bias", "dec/w", "dec/bias", "free"} {
		v := input(g, name, 1, 2)
		vars = append(vars, v)
		l, _ := weighted(g, v, 1, 1)
		if loss != nil {
			l = must(G.Add(loss, l))
		}
		loss = l
	}
	u := must(New(loss, vars, config(t, `{
		"optimizer": {"class": "rmsprop"}, "learning_rate": 0.5, "gradient_clip": 3, "grad_norm_to_clip_to_zero": 100,
		"updater_opts": [
			{"match": "enc/*", "optimizer": {"class": "adam", "beta1": 0.5}, "accum_grad_multiple_step": 2, "tags": ["e"]},
			{"match": "/bias$/", "weight_decay_multiplier": 0, "gradient_clip": 0, "tags": "b"},
			{"match": "dec/w", "optimizer": {"beta1": 0.5, "class": "adam"}, "learning_rate_multiplier": 3, "l2": 0.1, "global_norm_tag": "b",
				"gradient_accumulation_steps": 4, "maximize_grad_norm": 0.5},
			{"match": "enc/w", "optimizer": {"beta1": 0.5, "class": "adam"}}]}`), CustomUpdate(vars[4], func(old Expr) Expr { return old })))
	require.Equal(t, `variable  dtype    shape  matched        optimizer                     rate  l2   decay  runs       processing                                                          tags
enc/w     float64  (2)    enc/* enc/w    {"beta1":0.5,"class":"adam"}  ×1    0    ×1     sum of 2   clip 3, grad_norm_to_clip_to_zero 100                               e
enc/bias  float64  (2)    enc/* /bias$/  {"beta1":0.5,"class":"adam"}  ×1    0    ×0     sum of 2   grad_norm_to_clip_to_zero 100                                       b e
dec/w     float64  (2)    dec/w          {"beta1":0.5,"class":"adam"}  ×3    0.1  ×1     mean of 4  maximize_grad_norm 0.5, clip 3, grad_norm_to_clip_to_zero 100 of b
dec/bias  float64  (2)    /bias$/        {"class":"rmsprop"}           ×1    0    ×0     1          grad_norm_to_clip_to_zero 100                                       b
free      float64  (2)                   custom update                                   1
`, u.Table())
	all := u.Optimizers()
	require.Len(t, all, 4) // other multipliers or runs are other optimizers
	_, err := u.DefaultOptimizer()
	require.NoError(t, err)
	def := must(u.DefaultOptimizer())
	require.Equal(t, all[3], def)
	require.Equal(t, all[0], must(u.OptimizerOf(vars[0])))
	require.Equal(t, G.Nodes{vars[3]}, must(u.VarsOf(def, vars[:4])))
	require.Empty(t, must(u.VarsOf(def, nil)))
	require.Empty(t, must(u.VarsOf(Optimizer{}, vars[:4])))
	for _, v := range []*G.Node{vars[4], loss, nil} { // custom, not trained, nil
		_, err := u.OptimizerOf(v)
		require.ErrorContains(t, err, "no optimizer has the variable "+nodeName(v))
		_, err = u.VarsOf(def, G.Nodes{vars[0], v})
		require.ErrorContains(t, err, "no optimizer has the variable")
	}
	for _, o := range append(all, Optimizer{}, Optimizer{Solver: solvers.NewAdam()}) {
		require.Empty(t, u.SlotNamesOf(o))
	}
	require.Empty(t, u.OptimizerVars())
	must(u.OptimOp())
	require.Equal(t, []string{"m", "v"}, u.SlotNamesOf(all[0]))
	require.Equal(t, []string{"rms"}, u.SlotNamesOf(def)[:1])
	require.Empty(t, u.SlotNamesOf(Optimizer{Solver: solvers.NewAdam()}))
	require.Subset(t, u.SlotNames(), []string{"m", "v", "rms", "sum"})
	require.NotNil(t, u.Slot(vars[0], "m"))
	require.Nil(t, u.Slot(vars[3], "m"))
	require.Nil(t, u.Slot(vars[4], "m"))
	require.Nil(t, u.Slot(input(G.NewGraph(), "enc/w", 1), "m"))
}

// All variables have optimizers of their own (an AssertionError of RETURNN's).
func TestNoDefaultOptimizer(t *testing.T) {
	_, loss, w, b := model()
	u := must(New(loss, G.Nodes{w, b}, config(t, `{"optimizer": "adagrad", "learning_rate": 0.1, "updater_opts": [{"match": "*", "optimizer": "sgd"}]}`)))
	_, err := u.DefaultOptimizer()
	require.ErrorContains(t, err, "optimizers of their own")
	require.Len(t, u.Optimizers(), 1)
	require.Equal(t, .1, must(u.LearningRate()))
	runs(t, must(u.NewMachine()), 1)
	require.InDeltaSlice(t, []float64{.8, -.2, 2.4}, append(floats(w), floats(b)...), 1e-15)
	require.Equal(t, []string{`{"class":"sgd"}`}, []string{u.Optimizers()[0].Key})
	require.Empty(t, u.SlotNames())
}

// The learning rate as a number and as a node, which has that of its run.
func TestLearningRate(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []float64
	}{
		"number":  {`{"learning_rate": 0.5}`, []float64{.5, .5, .5, .5}},
		"dynamic": {`{"learning_rate": 0.5, "dynamic_learning_rate": {"interval": 3, "decay": 0.5}}`, []float64{.5, .25, .125, .5}},
		"schedule": {`{"optimizer": "adam", "learning_rate": {"class": "exponential_decay", "initial": 1, "decay_steps": 1, "decay_rate": 0.5}}`,
			[]float64{1, .5, .25, .125}},
		"both": {`{"learning_rate": {"class": "exponential_decay", "initial": 1, "decay_steps": 1, "decay_rate": 0.5},
			"dynamic_learning_rate": {"interval": 2, "decay": 4}}`, []float64{1, 2, .25, .5}},
	} {
		_, loss, w, b := model()
		u := must(New(loss, G.Nodes{w, b}, config(t, c.text)))
		node := must(u.LearningRateNode())
		vm := must(u.NewMachine(node))
		for i, want := range c.want {
			require.Equal(t, want, must(u.LearningRate()), name)
			runs(t, vm, 1)
			require.Equal(t, []float64{want}, floats(node), name)
			require.Equal(t, i+1, must(u.GlobalStep()))
		}
	}
	_, loss, w, _ := model()
	u := must(New(loss, G.Nodes{w}, config(t, `{"learning_rate": {"class": "constant", "value": 0.5}}`)))
	require.ErrorContains(t, u.SetLearningRate(.1), "follows a schedule")
	u = must(New(loss, G.Nodes{w}, config(t, `{"optimizer": "cocob"}`)))
	_, err := u.LearningRate()
	require.ErrorContains(t, err, "no optimizer here has a hyperparameter learning_rate")
	_, err = u.LearningRateNode()
	require.ErrorContains(t, err, "no optimizer here has a hyperparameter learning_rate")
	require.ErrorContains(t, u.SetLearningRate(.1), "no optimizer here has a hyperparameter learning_rate")
}
