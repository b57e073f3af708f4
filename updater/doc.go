// Package updater builds the one combined optim op from a loss, a list of variables and a config, and owns its life: it is
// built at the first use, rebuilt when the variables change, and reset. The design is that of RETURNN's TensorFlow updater.
//
// To change other hyperparameters than the learning rate between steps, make the *solvers.Solver yourself, give it as
// Config.Optimizer, and call its Set.
package updater
