package main

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops"
	"optimop/updater"
)

// learner trains the model on batches of one size: fill x and y, then step.
type learner struct {
	*graph
	y     []float32 // memory of the one-hot digits
	loss  *gorgonia.Node
	vm    gorgonia.VM
	after func() error // what is left to do after a run of vm: no update if the graph holds it
}

func (t *trainer) learner(batch int) (*learner, error) {
	if l := t.learners[batch]; l != nil {
		return l, nil
	}
	g, err := t.model.graph(batch)
	if err != nil {
		return nil, err
	}
	l := &learner{graph: g, y: make([]float32, batch*classes), after: func() error { return nil }}
	if err := l.addLoss(); err != nil {
		return nil, errors.Wrap(err, "building the loss")
	}
	switch {
	case t.solver == nil:
		err = t.configured(l)
	case t.host == hostStep:
		err = t.stepHost(l)
	default:
		err = t.graphHost(l)
	}
	if err != nil {
		return nil, errors.Wrapf(err, "%s host, batch %d", t.host, batch)
	}
	t.learners[batch] = l
	return l, nil
}

// addLoss builds the cross-entropy −mean(Σ y·log softmax(logits)). LogSoftMax cannot meet the log(0) that Log(SoftMax) can.
func (l *learner) addLoss() error {
	y := tensor.New(tensor.WithShape(l.batch, classes), tensor.WithBacking(l.y))
	digits := gorgonia.NodeFromAny(l.logits.Graph(), y, gorgonia.WithName("digits"))
	logp, err := gorgonia.LogSoftMax(l.logits)
	if err != nil {
		return err
	}
	picked, err := gorgonia.HadamardProd(logp, digits)
	if err != nil {
		return err
	}
	perImage, err := gorgonia.Sum(picked, 1)
	if err != nil {
		return err
	}
	mean, err := gorgonia.Mean(perImage)
	if err != nil {
		return err
	}
	l.loss, err = gorgonia.Neg(mean)
	return err
}

// graphHost makes the solver's update part of the graph: one run computes the loss, the gradients and the new weights.
func (t *trainer) graphHost(l *learner) error {
	op, err := t.solver.Minimize(l.loss, l.vars...)
	if err != nil {
		return err
	}
	l.vm, err = graphops.NewMachine(op, l.loss)
	return err
}

// configured lets the updater make the step. The first learner makes the updater, and those of other batch sizes share its state.
func (t *trainer) configured(l *learner) (err error) {
	var u *updater.Updater
	switch {
	case t.updater != nil:
		u, err = t.updater.On(l.loss, l.vars)
	case t.host == hostExpanded:
		u, err = updater.New(l.loss, l.vars, t.settings, updater.Expanded())
	default:
		u, err = updater.New(l.loss, l.vars, t.settings)
	}
	if err != nil {
		return err
	}
	if l.vm, err = u.NewMachine(); err != nil {
		return err
	}
	l.after = func() error { return t.summaries.write(u) }
	if t.updater == nil {
		t.updater = u
	}
	return nil
}

// stepHost is the way of Gorgonia's own solvers: a run leaves the gradients in the variables and Step uses them up.
func (t *trainer) stepHost(l *learner) error {
	if _, err := gorgonia.Grad(l.loss, l.vars...); err != nil {
		return err
	}
	l.vm = gorgonia.NewTapeMachine(l.loss.Graph(), gorgonia.BindDualValues(l.vars...))
	grads := gorgonia.NodesToValueGrads(l.vars)
	l.after = func() error { return t.solver.Step(grads) }
	return nil
}

// step trains on the batch in x and y and returns its loss from before the update.
func (l *learner) step() (float64, error) {
	defer l.vm.Reset()
	if err := l.vm.RunAll(); err != nil {
		return 0, err
	}
	loss, ok := l.loss.Value().Data().(float32) // before Reset: it gives the memory back
	if !ok {
		return 0, errors.Errorf("the loss is a %T, not a float32", l.loss.Value().Data())
	}
	return float64(loss), l.after()
}

// predictor classifies batches of one size with the model's current weights: fill x, then ask for the digits.
type predictor struct {
	*graph
	vm gorgonia.VM
}

func (t *trainer) predictor(batch int) (*predictor, error) {
	if p := t.predictors[batch]; p != nil {
		return p, nil
	}
	g, err := t.model.graph(batch)
	if err != nil {
		return nil, err
	}
	p := &predictor{graph: g}
	if p.vm, err = graphops.NewEvalMachine(g.logits); err != nil {
		return nil, errors.Wrapf(err, "test machine, batch %d", batch)
	}
	t.predictors[batch] = p
	return p, nil
}

func (p *predictor) digits() ([]int, error) {
	defer p.vm.Reset()
	if err := p.vm.RunAll(); err != nil {
		return nil, err
	}
	logits, ok := p.logits.Value().Data().([]float32)
	if !ok || len(logits) != p.batch*classes {
		return nil, errors.Errorf("the logits are a %T of shape %v", p.logits.Value().Data(), p.logits.Shape())
	}
	digits := make([]int, p.batch)
	for i := range digits {
		row := logits[i*classes : (i+1)*classes]
		for d, v := range row {
			if v > row[digits[i]] {
				digits[i] = d
			}
		}
	}
	return digits, nil
}
