// Package graphops adds to Gorgonia's graph what training inside the graph needs.
//
//   - Store and State: named values (slots, counters, hyperparameters) that graphs read and write through nodes.
//   - Expr: symbolic expressions of nodes, evaluated in one pass per parameter, or expanded into ordinary nodes.
//   - Gradients: reverse mode that leaves no marks, so that several costs on one graph are right.
//   - Gather, Rows and Touched: look-ups in tables, whose gradients are rows, and updates of rows alone.
//   - Commit: a list of updates as one operation that acts as a transaction; Refuse and Before go with it.
//   - CheckNumerics: nodes that fail a run where a value is not finite.
//   - Generator, Dropout and Expr.TruncatedNormal: random numbers that are a function of a saved state, so that a run can be
//     repeated, and training goes on after a restart as if it had never stopped.
//   - NewMachine and NewEvalMachine: machines over just what training or evaluation needs; NewProfile times
//     their operations.
//
// The rules of optimizers are in package solvers.
package graphops
