package solvers

// Gorgonia's own solvers, with the options that they have there and its defaults, giving its numbers where it is right. Where
// it is not, they do what its documentation says: Momentum decays the weight and not the velocity and keeps the velocity of
// scalars, AdaGrad heeds its options, RMSProp clips before it squares and multiplies its L2 term by the learning rate like
// everything else, AdamW changes the weights, Barzilai-Borwein works on float32 and scalars.

// NewGorgoniaVanilla is gorgonia.NewVanillaSolver: SGD of rate 0.001.
func NewGorgoniaVanilla(options ...func(*Regularize, *SGD)) *Solver {
	return prepared(&SGD{LearningRate: 0.001}, options)
}

// NewGorgoniaMomentum is gorgonia.NewMomentum: Momentum with RateInside, of rate 0.001 and momentum 0.9.
func NewGorgoniaMomentum(options ...func(*Regularize, *Momentum)) *Solver {
	return prepared(&Momentum{LearningRate: 0.001, Momentum: 0.9, RateInside: true}, options)
}

// NewGorgoniaRMSProp is gorgonia.NewRMSPropSolver: RMSprop with EpsilonInside, of rate 0.001, rho 0.999 and epsilon 1e-8.
func NewGorgoniaRMSProp(options ...func(*Regularize, *RMSprop)) *Solver {
	return prepared(&RMSprop{LearningRate: 0.001, Rho: 0.999, Epsilon: 1e-8, EpsilonInside: true}, options)
}

// NewGorgoniaAdaGrad is gorgonia.NewAdaGradSolver: Adagrad with EpsilonInside, of rate 0.001 and epsilon 1e-8.
func NewGorgoniaAdaGrad(options ...func(*Regularize, *Adagrad)) *Solver {
	return prepared(&Adagrad{LearningRate: 0.001, Epsilon: 1e-8, EpsilonInside: true}, options)
}

// NewGorgoniaAdam is gorgonia.NewAdamSolver: Adam with its usual defaults.
func NewGorgoniaAdam(options ...func(*Regularize, *Adam)) *Solver {
	a := adamDefaults()
	return prepared(&a, options)
}

// NewGorgoniaAdamW is what gorgonia.NewAdamW is meant to be: AdamW with its usual defaults.
func NewGorgoniaAdamW(options ...func(*Regularize, *AdamW)) *Solver {
	return prepared(&AdamW{Adam: adamDefaults(), WeightDecay: 0.01}, options)
}

// NewGorgoniaBarzilaiBorwein is gorgonia.NewBarzilaiBorweinSolver. Its clip bounds the rate: Clip of the rule.
func NewGorgoniaBarzilaiBorwein(options ...func(*Regularize, *BarzilaiBorwein)) *Solver {
	return prepared(&BarzilaiBorwein{LearningRate: 0.001}, options)
}

// prepared makes a solver of a rule after Regularize.
func prepared[R Rule](r R, options []func(*Regularize, R)) *Solver {
	p := &Regularize{BatchSize: 1}
	for _, o := range options {
		if o != nil {
			o(p, r)
		}
	}
	return Chain(p, r)
}
