// Package solvers has the optimizers. Each is a Rule, written once as a formula, that runs in three hosts:
//
//   - in the graph: Minimize builds the update of a step into the graph of the loss, so that one RunAll is one step;
//   - drop-in: Step has the signature of Gorgonia's solvers, and needs no graph;
//   - in the graph, expanded (option Expanded): the same update as ordinary nodes, to be drawn and differentiated through.
//
// All three give the same weights, bit for bit.
//
// A Solver is a Rule with its state: slots and counters, by name. Solvers are chained with Chain, configured by the exported
// fields of their rules, read and changed between steps with Get and Set, or as functions of the step with Schedule, and found by
// name with Lookup.
//
// Clips, filters and penalties are rules too, Transformations, which prepare the gradients for the optimizer that is chained
// after them. Wrappers are rules around a rule: Lookahead, averages of the weights (EMA, MovingAverage, SWA; see
// Solver.UseAverages), rules for parts of the model (OptimizerMap, MultiOptimizer, Restrict), Accumulate.
//
// To write a rule of your own, declare a struct whose exported float64 fields are the hyperparameters, give it an Apply
// method, and hand it to New. This is AdaGrad with a decay of its sum:
//
//	type Decaying struct {
//		LearningRate float64 `range:"[0,inf)"`
//		Keep         float64 `range:"[0,1]"`
//	}
//
//	func (*Decaying) Apply(b *solvers.Builder, in []solvers.Step) ([]solvers.Step, error) {
//		rate, keep, eps := b.Hyper("learning_rate"), b.Hyper("keep"), graphops.Const(1e-8)
//		return b.Each(in, func(s solvers.Step) solvers.Expr {
//			sum := b.Slot(s, "sum")
//			now := sum.Set(sum.Mul(keep).Add(s.Delta.Square()))
//			return rate.Mul(s.Delta).Div(now.Sqrt().Add(eps))
//		})
//	}
//
//	solver := solvers.New(&Decaying{LearningRate: 0.1, Keep: 0.99})
//
// More examples are in example_test.go.
package solvers
