// Package solvers has the optimizers. Each is a Rule, written once as a formula, that runs in three hosts:
//
//   - in the graph: Minimize builds the update of a step into the graph of the loss, so that one RunAll is one step;
//   - drop-in: Step has the signature of Gorgonia's solvers, and needs no graph;
//   - in the graph, expanded (option Expanded): the same update as ordinary nodes, to be drawn and differentiated through.
//
// All three give the same weights, bit for bit.
//
// A Solver is a Rule with its state: slots and counters, by name. Solvers are chained with Chain, configured by the exported
// fields of their rules, read and changed between steps with Get and Set, and found by name with Lookup.
//
// To write a rule of your own, declare a struct whose exported float64 fields are the hyperparameters, give it an Apply
// method, and hand it to New.
package solvers
