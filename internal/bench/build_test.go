package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/solvers"
)

// BenchmarkBuild is what has to be done once before the first step, for models of many parameters. The time of the machine is
// Gorgonia's, and goes with the square of the number of nodes.
func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct {
		name   string
		shapes []tensor.Shape
	}{
		{"tensors=1000x10", repeated(1000, tensor.Shape{10})},
		{"scalars=10000", append(repeated(scalars, tensor.Shape{}), tensor.Shape{million})},
	} {
		timed := func(name string, build func(*testing.B, *gorgonia.Node, gorgonia.Nodes)) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					loss, vars := model(b, tensor.Float32, c.shapes...)
					b.StartTimer()
					build(b, loss, vars)
				}
			})
		}
		timed("minimize", func(b *testing.B, loss *gorgonia.Node, vars gorgonia.Nodes) {
			_, err := solvers.NewAdam().Minimize(loss, vars...)
			require.NoError(b, err)
		})
		timed("compile", func(b *testing.B, loss *gorgonia.Node, vars gorgonia.Nodes) {
			s := solvers.NewAdam()
			updates, err := s.Updates(loss, vars...)
			require.NoError(b, err)
			_, err = graphops.Compile(updates, graphops.From(s.Store()))
			require.NoError(b, err)
		})
		timed("step", func(b *testing.B, _ *gorgonia.Node, _ gorgonia.Nodes) {
			u := &subject{}
			for _, shape := range c.shapes {
				u.params, u.grads = append(u.params, newValue(tensor.Float32, shape)), append(u.grads, newValue(tensor.Float32, shape))
			}
			require.NoError(b, solvers.NewAdam().Step(u.model()))
		})
		if len(c.shapes) > 1000 {
			continue
		}
		timed("machine", func(b *testing.B, loss *gorgonia.Node, vars gorgonia.Nodes) {
			b.StopTimer()
			op, err := solvers.NewAdam().Minimize(loss, vars...)
			require.NoError(b, err)
			b.StartTimer()
			_, err = graphops.NewMachine(op)
			require.NoError(b, err)
		})
	}
}
