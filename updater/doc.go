// Package updater builds the one combined optim op from a loss, a list of variables and a config, and owns its life: it is
// built at the first use, rebuilt when the variables change, and reset. It is RETURNN's TensorFlow updater, for Gorgonia.
//
//	cfg, err := updater.ReadConfig(file)        // JSON or YAML
//	u, err := updater.New(loss, vars, cfg)      // checks everything, and touches nothing
//	vm, err := u.NewMachine()                   // each RunAll is one step
//	fmt.Print(u.Table())                        // how each variable is trained
//	err = u.SaveFile("state.safetensors")       // everything: see Snapshot, LoadFile, Checkpoints
//
// One run of the optim op, in this order, all of it from the values of before the run:
//
//	gradients of all losses, L2 penalties → accumulation → noise → clips → filters → decoupled L2 → optimizers
//	→ extra and custom updates → checks → commit → global step + 1
//
// The package also has Blocks' training algorithms, which train on batches of named data. GradientDescent makes the steps of any rule,
// from a cost or from gradients of your own; UpdatesAlgorithm makes a list of updates; Batched is gradient descent on batches of different
// shapes.
//
//	a, err := updater.NewGradientDescent(updater.Descent{Cost: cost, Parameters: gorgonia.Nodes{w, b}, StepRule: solvers.NewAdam()})
//	err = a.Observe(cost, a.TotalGradientNorm())             // to be read after each batch
//	err = a.Initialize()                                     // compiles
//	err = a.ProcessBatch(map[string]any{"x": images, "y": labels})
//
// The way of the code: read.go and write.go turn files into a Config (config.go) and back; settings.go checks it and finds the settings of
// each variable; optimizers.go makes the optimizers that choice.go tells apart, with Keras' arguments of base.go; pipeline.go is the rule that runs them all; build.go makes the optim op of it, with what
// custom.go, loss_scale.go, skip.go and summaries.go add; updater.go, rate.go, finder.go, averages.go, lookup.go, file.go and between.go are what a program calls.
// snapshot.go, load.go and checkpoints.go are the files of Updater, algorithms (algorithm_file.go) and solvers (training.go). Package
// summary writes the summaries to files. Of the algorithms, algorithm.go is what all have in common, algorithm_compile.go makes the commit and
// its machine, source.go looks at the sources of a batch; gradient_descent.go with gradient_descent_nodes.go, and batched.go, are on top of that;
// roles.go says what nodes and states are for, modifier.go changes hyperparameters between batches. Package loop trains them, and monitors and stops the training.
package updater
