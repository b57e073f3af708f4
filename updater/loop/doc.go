// Package loop trains an algorithm of package updater epoch after epoch, monitors it, evaluates it, and stops it in time. It is
// Blocks' main loop with its extensions (https://github.com/mila-iqia/blocks), for Gorgonia.
//
//	l := &loop.Loop{
//		Algorithm: algorithm,                                         // gradient descent, say, or an updater with NewSteps
//		Data:      func(epoch int) loop.Batches { return … },         // any iterator of batches
//		Callbacks: []loop.Callback{
//			loop.MonitorTraining([]loop.Quantity{loop.Mean(cost)}, loop.Names{Prefix: "train"}),
//			loop.MonitorData(evaluator, validation, loop.Names{Prefix: "valid"}),
//			loop.EarlyStopping(loop.Best{Record: "valid_cost", Save: save}, loop.Patience{Epochs: 3}),
//			loop.FinishAfter(loop.AfterEpochs(100)),
//			loop.Print(os.Stdout),
//		},
//	}
//	err := l.Run(ctx)
//
// A Callback is called at every Event of the training, in the order of the list, and acts where a Trigger fires: a Kind of event, or
// EveryEpochs, AfterBatches, OnRecord and so on. Results go as records into the Log, a row for each iteration, where callbacks further
// down the list find them.
//
// A Quantity is what is monitored: nodes, and how their values are folded over batches, in float64. In the training these are always
// the values of before the batch's update. An Evaluator computes quantities over a data set, with dropout off and without a trace
// in the training.
//
// The way of the code: loop.go runs, with source.go for the data of an epoch, and tells events (event.go, trigger.go) to
// callbacks, which write into log.go. callbacks.go and finish.go have the simple callbacks, monitor.go those that monitor quantities
// (quantity.go, aggregate.go, array.go). evaluator.go finds the program (program.go) for a batch, whose values capture.go reads; steps.go
// makes an algorithm of a machine.
package loop
