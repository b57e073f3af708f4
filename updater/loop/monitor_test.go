package loop

import (
	"context"
	"testing"

	"github.com/pkg/errors"
	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TDM1.
func TestRecordNames(t *testing.T) {
	for _, test := range []struct {
		names Names
		want  string
	}{
		{Names{}, "name"}, {Names{Prefix: "abc"}, "abc_name"}, {Names{Suffix: "abc"}, "name_abc"}, {Names{"abc", "def"}, "abc_name_def"},
	} {
		require.Equal(t, test.want, test.names.record("name"))
	}
}

// products is the mean over batches of features·targets, as a quantity that needs both.
func products(name string, x, y *G.Node) Quantity {
	return Quantity{Name: name, Nodes: G.Nodes{x, y}, New: func() Aggregator { return &product{} }}
}

type product struct {
	sum [2]float64
	n   float64
}

func (p *product) Add(values []G.Value, _ float64) error {
	x, y := must(arrayOf(values[0])), must(arrayOf(values[1]))
	p.sum[0] += x.data[0] * y.data[0]
	p.sum[1] += x.data[1] * y.data[0]
	p.n++
	return nil
}

func (p *product) Value() (any, error) {
	return dense(tensor.Float64, []int{2}, p.sum[0]/p.n, p.sum[1]/p.n), nil
}

// TDM2: values of each batch and of an epoch, all from before the batch's update, beside an evaluation of the same graph.
func TestMonitorTraining(t *testing.T) {
	ways(t, func(t *testing.T, dt tensor.Dtype, way string) {
		m := newLinear(t, dt, way, .001)
		v := G.NewScalar(m.w.Graph(), dt, G.WithName("V"), G.WithValue(goNumber(dt, 7)))
		sum := named("W_sum", G.Must(G.Sum(m.w)))
		e, err := NewEvaluator(Model{G.Nodes{m.x, m.y}, []Quantity{Last(m.cost).Named("cost")}})
		require.NoError(t, err)
		var weights [][]float64
		l := &Loop{Algorithm: m, Data: examples(dt, [][2]float64{{1, 2}, {3, 5}, {5, 8}}, 1, 2, 3), Callbacks: []Callback{
			func(ev Event) error {
				return MonitorData(e, func() Batches { return Slice(ev.Batch) }, Names{Prefix: "true"}, BeforeBatch)(ev)
			},
			MonitorTraining([]Quantity{Last(sum), Mean(m.cost), Mean(v), Last(m.w), products("ftt1", m.x, m.y)}, Names{Prefix: "train1"}, AfterBatch),
			// A second evaluation, between the batch and the next monitor, which must not notice.
			func(ev Event) error {
				other := func() Batches {
					return Slice(map[string]any{"features": dense(dt, []int{2}, 100, 100), "targets": -100})
				}
				return MonitorData(e, other, Names{Prefix: "other"}, AfterBatch)(ev)
			},
			MonitorTraining([]Quantity{Mean(sum), Mean(m.cost), products("ftt2", m.x, m.y)}, Names{Prefix: "train2"}),
			Do(func(Event) error { weights = append(weights, floats(t, m.w.Value())); return nil }, AfterBatch),
			FinishAfter(AfterEpochs(1)),
		}}
		run(t, l)
		for i, w := range [][]float64{{.002, .004}, {.013844, .02374}, {.0412526, .06759376}} {
			near(t, dt, w, dense(tensor.Float64, []int{2}, weights[i]...))
		}
		require.Equal(t, []any{7., 7., 7.}, values(l.Log, "train1_V"))
		costs, trueCosts := values(l.Log, "train1_cost"), values(l.Log, "true_cost")
		require.Equal(t, trueCosts, costs)
		require.Contains(t, must(l.Log.Row(0)), "true_cost")
		for i, want := range []float64{1, 3.896676, 7.5123135396} {
			near(t, dt, []float64{want}, costs[i])
			near(t, dt, []float64{[]float64{0, .006, .037584}[i]}, values(l.Log, "train1_W_sum")[i])
			near(t, dt, [][]float64{{1, 2}, {6, 10}, {15, 24}}[i], values(l.Log, "train1_ftt1")[i])
		}
		near(t, dt, []float64{.002, .004}, values(l.Log, "train1_W")[1])
		near(t, dt, []float64{4.13632984653}, must(l.Log.Row(3))["train2_cost"])
		near(t, dt, []float64{.014528}, must(l.Log.Row(3))["train2_W_sum"])
		near(t, dt, []float64{22. / 3, 12}, must(l.Log.Row(3))["train2_ftt2"])
		require.Len(t, values(l.Log, "train2_cost"), 1)
		require.Len(t, values(l.Log, "other_cost"), 3)
	})
}

// Means over an interval begin anew, and are weighted by what Examples says; events between batches write nothing.
func TestMonitorIntervals(t *testing.T) {
	m := &observable{value: func(b map[string]any) float64 { return float64(b["data"].(int)) }}
	n := G.NewScalar(G.NewGraph(), tensor.Float64, G.WithName("n"))
	l := &Loop{Algorithm: m, Data: ten, Examples: func(b map[string]any) (float64, error) { return float64(b["data"].(int)), nil },
		Callbacks: []Callback{
			MonitorTraining([]Quantity{Mean(n), Sum(n).Named("sum")}, Names{}, EveryBatches(4)),
			MonitorTraining([]Quantity{Max(n)}, Names{Suffix: "max"}, AfterEpoch, AfterTraining, BeforeTraining, BeforeEpoch),
			FinishAfter(AfterEpochs(2)),
		}}
	run(t, l)
	require.Equal(t, []any{14. / 6, 126. / 22, (64. + 81 + 0 + 1) / 18, (4. + 9 + 16 + 25) / 14, (36. + 49 + 64 + 81) / 30}, values(l.Log, "n"))
	require.Equal(t, []any{6., 22., 18., 14., 30.}, values(l.Log, "sum"))
	require.Equal(t, []any{9., 9.}, values(l.Log, "n_max"))
	require.Equal(t, []bool{true}, m.inTime, "TDM3: observed before Initialize")
}

// observable is an algorithm that shows a number of each batch.
type observable struct {
	nodes  G.Nodes
	inTime []bool
	value  func(map[string]any) float64
	now    float64
}

func (o *observable) Observe(nodes ...*G.Node) error {
	o.nodes = append(o.nodes, nodes...)
	return nil
}

func (o *observable) Initialize() error {
	o.inTime = append(o.inTime, len(o.nodes) > 0)
	return nil
}

func (o *observable) ProcessBatch(b map[string]any) error {
	o.now = o.value(b)
	return nil
}

func (o *observable) Observed(string) (G.Value, error) { return G.NewF64(o.now), nil }

func TestMonitorErrors(t *testing.T) {
	g := G.NewGraph()
	scalar := func(name string) *G.Node { return G.NewScalar(g, tensor.Float64, G.WithName(name)) }
	x := scalar("x")
	twin := named("x", G.Must(G.Square(x)))
	nameless := G.NewScalar(g, tensor.Float64)
	for name, test := range map[string]struct {
		qs  []Quantity
		err string
	}{
		"nothing":            {nil, "nothing to monitor"},
		"nil":                {[]Quantity{Mean(nil).Named("a")}, "nil node"},
		"no aggregator":      {[]Quantity{{Name: "a"}}, `"a" has no New`},
		"nameless":           {[]Quantity{Mean(nameless)}, "must have names"},
		"nameless operation": {[]Quantity{Mean(G.Must(G.Neg(x)))}, "must have names"},
		"two names":          {[]Quantity{Mean(x), Max(x)}, "must be unique"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Loop{Algorithm: &observable{}, Data: ten, Callbacks: []Callback{MonitorTraining(test.qs, Names{})}}
			require.ErrorContains(t, l.Run(context.Background()), test.err)
			_, err := NewEvaluator(Model{Quantities: test.qs})
			require.ErrorContains(t, err, test.err)
		})
	}
	for _, test := range []struct {
		q   Quantity
		err string
	}{{Mean(twin).Named("other"), "must be unique"}, {Mean(nameless).Named("named"), "must have names"}} {
		steps := must(NewSteps(nil, func(...*G.Node) (G.VM, error) { return nil, errors.New("not reached") }))
		l := &Loop{Algorithm: steps, Data: ten, Callbacks: []Callback{
			MonitorTraining([]Quantity{Mean(x)}, Names{}), MonitorTraining([]Quantity{test.q}, Names{})}}
		require.ErrorContains(t, l.Run(context.Background()), test.err)
	}
	l := &Loop{Algorithm: &fake{}, Data: ten, Callbacks: []Callback{MonitorTraining([]Quantity{Mean(x)}, Names{})}}
	require.ErrorContains(t, l.Run(context.Background()), "no updater.Observer")

	l = &Loop{Algorithm: &observable{value: func(map[string]any) float64 { return 1 }}, Data: ten, Callbacks: []Callback{FinishAfter(AfterBatches(1))}}
	run(t, l)
	defer l.Close()
	l.Callbacks = append(l.Callbacks, MonitorTraining([]Quantity{Mean(x)}, Names{}))
	require.ErrorContains(t, l.Run(context.Background()), "must be there when it begins")

	l = &Loop{Algorithm: l.Algorithm, Data: func(int) Batches { return Slice(map[string]any{"a": []int{1}, "b": []int{1, 2}}) },
		Callbacks: []Callback{MonitorTraining([]Quantity{Mean(x)}, Names{})}}
	require.ErrorContains(t, l.Run(context.Background()), "set Examples")
}
