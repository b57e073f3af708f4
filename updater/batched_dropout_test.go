package updater

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// droppedModel makes models of any number of rows with dropout, over one state of random numbers.
func droppedModel(t *testing.T, dt tensor.Dtype) func(map[string]tensor.Shape) (Descent, error) {
	gen, err := graphops.NewGenerator(graphops.NewStore(), "dropout", 3)
	require.NoError(t, err)
	return func(shapes map[string]tensor.Shape) (Descent, error) {
		d := meanModel(dt, shapes["x"][0])
		w := d.Parameters[0]
		dropped, err := graphops.Dropout(w, .5, gen)
		if err != nil {
			return Descent{}, err
		}
		d.Cost = G.Must(G.Add(d.Cost, G.Must(G.Sum(G.Must(G.Square(dropped))))))
		G.WithName("loss")(d.Cost)
		d.StepRule = solvers.NewAdam(func(a *solvers.Adam) { a.LearningRate = .05 })
		return d, nil
	}
}

// Dropout goes on with its random numbers from graph to graph, also where graphs are let go and built again: with a bound
// of one or two graphs the training is the same, bit for bit, as with all of them, and batches that fail draw no numbers.
func TestBatchedDropout(t *testing.T) {
	for _, dt := range bothTypes {
		var want []float64
		for _, graphs := range []int{8, 1, 2} {
			b := must(NewBatched(droppedModel(t, dt), func(o *BatchedOptions) { o.Graphs = graphs }))
			b.ObserveNames("loss")
			require.NoError(t, b.Initialize())
			var got []float64
			for i, rows := range []int{1, 2, 3, 1, 1, 2, 3, 2, 1, 4} {
				if graphs < 8 {
					bad := rowsOf(dt, 1, rows+1)
					bad["id"] = "text"
					require.ErrorContains(t, b.ProcessBatch(bad), "no inputs", fmt.Sprint(i))
				}
				require.NoError(t, b.ProcessBatch(rowsOf(dt, float64(i), rows)))
				got = append(got, numbers(must(b.Observed("loss")))[0])
				got = append(got, numbers(b.Value("w"))...)
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "%d graphs", graphs)
		}
	}
}
