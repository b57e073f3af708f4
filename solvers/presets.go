package solvers

// preset is a registered name. Names with a family are the rules with that library's defaults and conventions.
type preset struct {
	name    string
	factory func() Rule
}

// own are the rules by their own names, with our documented defaults.
var own = []preset{
	{"adabelief", func() Rule { return NewAdaBelief() }},
	{"adadelta", func() Rule { return NewAdadelta() }},
	{"adafactor", func() Rule { return NewAdafactor() }},
	{"adagrad", func() Rule { return NewAdagrad() }},
	{"adagrad_da", func() Rule { return NewAdagradDA() }},
	{"adam", func() Rule { return NewAdam() }},
	{"adamax", func() Rule { return NewAdamax() }},
	{"adamw", func() Rule { return NewAdamW() }},
	{"amsgrad", func() Rule { return NewAMSGrad() }},
	{"barzilai_borwein", func() Rule { return NewBarzilaiBorwein() }},
	{"basic_momentum", func() Rule { return NewBasicMomentum() }},
	{"basic_rmsprop", func() Rule { return NewBasicRMSprop() }},
	{"blocks_adam", func() Rule { return NewBlocksAdam() }},
	{"blocks_adam_old_betas", func() Rule { return NewBlocksAdamOldBetas() }},
	{"box", func() Rule { return NewBox(-1, 1) }},
	{"centralize_gradients", func() Rule { return NewCentralizeGradients() }},
	{"clip_by_average_norm", func() Rule { return NewClipByAverageNorm(1) }},
	{"clip_by_global_norm", func() Rule { return NewClipByGlobalNorm(1) }},
	{"clip_by_norm", func() Rule { return NewClipByNorm(1) }},
	{"clip_by_value", func() Rule { return NewClipByValue(1) }},
	{"cocob", func() Rule { return NewCOCOB() }},
	{"conditional_gradient", func() Rule { return NewConditionalGradient() }},
	{"coupled_decay", func() Rule { return NewCoupledDecay(0) }},
	{"filter_not_finite", func() Rule { return NewFilterNotFinite() }},
	{"ftrl", func() Rule { return NewFtrl() }},
	{"grad_variance_scaled", func() Rule { return NewGradVarianceScaled() }},
	{"gradient_noise", func() Rule { return NewGradientNoise(1) }},
	{"l1_ball", func() Rule { return NewL1Ball(1) }},
	{"l2_ball", func() Rule { return NewL2Ball(1) }},
	{"lamb", func() Rule { return NewLAMB() }},
	{"lazy_adam", func() Rule { return NewLazyAdam() }},
	{"lion", func() Rule { return NewLion() }},
	{"max_norm", func() Rule { return NewMaxNorm(2) }},
	{"min_max_norm", func() Rule { return NewMinMaxNorm(0, 1) }},
	{"momentum", func() Rule { return NewMomentum() }},
	{"muon", func() Rule { return NewMuon() }},
	{"nadam", func() Rule { return NewNadam() }},
	{"nesterov", func() Rule { return NewNesterov() }},
	{"neural_optimizer1", func() Rule { return NewNeuralOptimizer1() }},
	{"non_negative", func() Rule { return NewNonNegative() }},
	{"normalized_sgd", func() Rule { return NewNormalizedSGD() }},
	{"novograd", func() Rule { return NewNovoGrad() }},
	{"proximal_adagrad", func() Rule { return NewProximalAdagrad() }},
	{"proximal_gradient_descent", func() Rule { return NewProximalGradientDescent() }},
	{"radam", func() Rule { return NewRAdam() }},
	{"ranger", func() Rule { return NewRanger() }},
	{"ranger_adabelief", func() Rule { return NewRangerAdaBelief() }},
	{"regularize", func() Rule { return NewRegularize() }},
	{"remove_not_finite", func() Rule { return NewRemoveNotFinite() }},
	{"rmsprop", func() Rule { return NewRMSprop() }},
	{"scale", func() Rule { return NewScale() }},
	{"schedule_free_adamw", func() Rule { return NewScheduleFreeAdamW() }},
	{"sgd", func() Rule { return NewSGD() }},
	{"sgdw", func() Rule { return NewSGDW() }},
	{"simplex", func() Rule { return NewSimplex(1) }},
	{"step_clipping", func() Rule { return NewStepClipping(0) }},
	{"unit_norm", func() Rule { return NewUnitNorm() }},
	{"variable_clipping", func() Rule { return NewVariableClipping(1) }},
	{"yogi", func() Rule { return NewYogi() }},
	{"zero_by_global_norm", func() Rule { return NewZeroByGlobalNorm(inf) }},
}

// adamLike fills the fields that most presets of the Adam family share.
func adamLike(lr, eps float64) Adam {
	return Adam{LearningRate: lr, Beta1: 0.9, Beta2: 0.999, Epsilon: eps}
}

func adamHat(eps float64) *Adam {
	a := adamLike(0.001, eps)
	a.EpsilonHat = true
	return &a
}

// inMode is an optimizer with a mode for gradients of rows.
func inMode(mode RowMode, factory func() Rule) func() Rule {
	return func() Rule { return WithRows(factory(), mode) }
}

// lazy is an optimizer of which only the rows of the gradient are updated.
func lazy(factory func() Rule) func() Rule { return inMode(RowsLazy, factory) }

// coupled is a torch optimizer with its weight_decay.
func coupled(r Rule) Rule { return Chain(&CoupledDecay{}, r) }

// tensorflow1 are the optimizers of tf.train by name, also reachable by RETURNN's configs.
var tensorflow1 = []preset{
	{"adadelta", lazy(func() Rule { return &Adadelta{0.001, 0.95, 1e-8} })},
	{"adagrad", func() Rule { return &Adagrad{LearningRate: 0.001, InitialAccumulatorValue: 0.1} }},
	{"adagradda", func() Rule { return NewAdagradDA() }},
	{"adam", func() Rule { return adamHat(1e-8) }},
	{"ftrl", lazy(func() Rule { return NewFtrl() })},
	{"gradientdescent", func() Rule { return NewSGD() }},
	{"momentum", lazy(func() Rule { return NewMomentum() })},
	{"proximaladagrad", func() Rule { return NewProximalAdagrad() }},
	{"proximalgradientdescent", func() Rule { return NewProximalGradientDescent() }},
	{"rmsprop", lazy(func() Rule {
		return &RMSprop{LearningRate: 0.001, Rho: 0.9, Epsilon: 1e-10, InitialValue: 1, EpsilonInside: true}
	})},
}

func adamax() Rule { return &Adamax{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7} }

// keras2 are the optimizers of Keras 2 that RETURNN's configs reach by name.
var keras2 = []preset{
	{"adamax", lazy(adamax)},
	{"nadam", inMode(RowsSlots, func() Rule {
		return &Nadam{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7, MomentumDecay: 0.004, Form: "scheduled"}
	})},
	{"sgd", lazy(func() Rule { return &Momentum{LearningRate: 0.01, RateInside: true} })},
}

// families are the libraries by name.
var families = map[string][]preset{
	"tf1":    tensorflow1,
	"keras2": keras2,
	"returnn": append([]preset{
		{"adamax", keras2[0].factory},
		{"amsgrad", func() Rule { return NewAMSGrad(func(a *AMSGrad) { a.Epsilon = 0 }) }},
		{"customadam", lazy(func() Rule { return adamHat(1e-8) })},
		{"customgradientdescent", func() Rule { return NewSGD() }},
		{"grad_norm_to_clip_to_zero", func() Rule { return NewZeroByGlobalNorm(0, func(z *ZeroByGlobalNorm) { z.Raw = true }) }},
		{"gradient_clip", func() Rule { return NewClipByValue(0) }},
		{"gradient_clip_avg_norm", func() Rule { return NewClipByAverageNorm(0) }},
		{"gradient_clip_global_norm", func() Rule { return NewClipByGlobalNorm(0, func(c *ClipByGlobalNorm) { c.Raw = true }) }},
		{"gradient_clip_norm", func() Rule { return NewClipByNorm(0) }},
		{"gradient_nan_inf_filter", func() Rule { return NewFilterNotFinite() }},
		{"gradient_noise", func() Rule { return NewGradientNoise(0) }},
		{"gradvariancescaled", func() Rule { return NewGradVarianceScaled() }},
		{"nadam", inMode(RowsSlots, func() Rule {
			return &Nadam{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, MomentumDecay: 0.004, Form: "tensorflow"}
		})},
		{"nadamkeras", keras2[1].factory},
		{"neuraloptimizer1", func() Rule { return NewNeuralOptimizer1() }},
		{"normalizedsgd", func() Rule { return NewNormalizedSGD() }},
		{"sgd", keras2[2].factory},
	}, tensorflow1...),
	"keras": {
		{"adabelief", func() Rule { return NewAdaBelief() }},
		{"adadelta", func() Rule { return &Adadelta{0.001, 0.95, 1e-7} }},
		{"adafactor", func() Rule { return NewAdafactor() }},
		{"adagrad", func() Rule {
			return &Adagrad{LearningRate: 0.001, InitialAccumulatorValue: 0.1, Epsilon: 1e-7, EpsilonInside: true}
		}},
		{"adam", func() Rule { return adamHat(1e-7) }},
		{"adamax", adamax},
		{"adamw", func() Rule { return &AdamW{Adam: *adamHat(1e-7), WeightDecay: 0.004} }},
		{"ftrl", func() Rule { return NewFtrl() }},
		{"lamb", func() Rule {
			return &LAMB{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7, Decoupled: true}
		}},
		{"lion", func() Rule { return NewLion() }},
		{"muon", func() Rule { return NewMuon() }},
		{"nadam", func() Rule {
			return &Nadam{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7, MomentumDecay: 1, Form: "scheduled"}
		}},
		{"rmsprop", func() Rule { return &RMSprop{LearningRate: 0.001, Rho: 0.9, Epsilon: 1e-7, EpsilonInside: true} }},
		{"schedulefreeadamw", func() Rule { return NewScheduleFreeAdamW() }},
		{"sgd", func() Rule { return &Momentum{LearningRate: 0.01, RateInside: true} }},
	},
	"addons": {
		{"adabelief", inMode(RowsSlots, func() Rule { return NewAdaBelief(func(a *AdaBelief) { a.Decay = "direction" }) })},
		{"adamw", inMode(RowsDecay, func() Rule {
			return &AdamW{Adam: *adamHat(1e-7), WeightDecay: 0.01, RateIndependent: true}
		})},
		{"cocob", func() Rule { return NewCOCOB() }},
		{"conditionalgradient", lazy(func() Rule { return NewConditionalGradient() })},
		{"lamb", func() Rule { return NewLAMB() }},
		{"lazyadam", func() Rule { return NewLazyAdam() }},
		{"novograd", lazy(func() Rule { return NewNovoGrad() })},
		{"proximaladagrad", func() Rule { return NewProximalAdagrad() }},
		{"rectifiedadam", inMode(RowsSlots, func() Rule { return NewRAdam(func(r *RAdam) { r.Epsilon = 1e-7 }) })},
		{"sgdw", lazy(func() Rule { return NewSGDW() })},
		{"yogi", inMode(RowsSlots, func() Rule { return NewYogi() })},
	},
	"torch": {
		{"adabelief", func() Rule {
			return NewAdaBelief(func(a *AdaBelief) { a.Epsilon, a.EpsilonHat, a.IgnoreMaxWhenRectified = 1e-16, true, true })
		}},
		{"adadelta", func() Rule { return coupled(NewAdadelta()) }},
		{"adagrad", func() Rule { return coupled(NewAdagrad()) }},
		{"adam", func() Rule { return coupled(NewAdam()) }},
		{"adamax", func() Rule { return coupled(NewAdamax(func(a *Adamax) { a.EpsilonInsideMax = true })) }},
		{"adamw", func() Rule { return NewAdamW() }},
		{"nadam", func() Rule { return coupled(NewNadam()) }},
		{"radam", func() Rule {
			return NewRAdam(func(r *RAdam) { r.EpsilonHat, r.Coupled = true, true })
		}},
		{"rmsprop", func() Rule {
			return coupled(&RMSprop{LearningRate: 0.01, Rho: 0.99, Epsilon: 1e-8, RateOutside: true})
		}},
		{"sgd", func() Rule { return coupled(&Momentum{LearningRate: 0.001}) }},
	},
	"optax": {
		{"adabelief", func() Rule {
			return NewAdaBelief(func(a *AdaBelief) { a.Epsilon, a.Rectify = 1e-16, false })
		}},
		{"adadelta", func() Rule { return NewAdadelta() }},
		{"adagrad", func() Rule {
			return &Adagrad{LearningRate: 0.01, InitialAccumulatorValue: 0.1, Epsilon: 1e-7, EpsilonInside: true}
		}},
		{"adam", func() Rule { return NewAdam() }},
		{"adamax", func() Rule { return NewAdamax(func(a *Adamax) { a.EpsilonInsideMax = true }) }},
		{"adamw", func() Rule { return &AdamW{Adam: adamDefaults(), WeightDecay: 1e-4} }},
		{"amsgrad", func() Rule {
			return NewAdam(func(a *Adam) { a.AMSGrad, a.MaxCorrected = true, true })
		}},
		{"lamb", func() Rule { return NewLAMB() }},
		{"lion", func() Rule { return NewLion(func(l *Lion) { l.WeightDecay = 1e-3 }) }},
		{"nadam", func() Rule { return NewNadam(func(n *Nadam) { n.Form = "simple" }) }},
		{"novograd", func() Rule { return NewNovoGrad(func(n *NovoGrad) { n.Beta2, n.Epsilon = 0.25, 1e-6 }) }},
		{"radam", func() Rule { return NewRAdam() }},
		{"rmsprop", func() Rule { return &RMSprop{LearningRate: 0.001, Rho: 0.9, Epsilon: 1e-8, EpsilonInside: true} }},
		{"sgd", func() Rule { return &Momentum{LearningRate: 0.01} }},
		{"yogi", func() Rule { return NewYogi(func(y *Yogi) { y.EpsilonHat, y.InitialMomentum = false, 1e-6 }) }},
	},
	"blocks": {
		{"adadelta", func() Rule { return &Adadelta{1, 0.95, 1e-6} }},
		{"adagrad", func() Rule { return &Adagrad{LearningRate: 0.002, Epsilon: 1e-6} }},
		{"adam", func() Rule { return NewBlocksAdam() }},
		{"adam_old_betas", func() Rule { return NewBlocksAdamOldBetas() }},
		{"basicmomentum", func() Rule { return NewBasicMomentum() }},
		{"basicnesterovmomentum", func() Rule { return &BasicMomentum{Nesterov: true} }},
		{"basicrmsprop", func() Rule { return NewBasicRMSprop() }},
		{"momentum", func() Rule { return &Momentum{LearningRate: 1, RateInside: true} }},
		{"nesterovmomentum", func() Rule { return &Momentum{LearningRate: 1, RateInside: true, Nesterov: true} }},
		{"removenotfinite", func() Rule { return NewRemoveNotFinite() }},
		{"rmsprop", func() Rule { return NewBasicRMSprop() }},
		{"scale", func() Rule { return NewScale() }},
		{"stepclipping", func() Rule { return NewStepClipping(0) }},
		{"variableclipping", func() Rule { return NewVariableClipping(1) }},
	},
	"lasagne": {
		{"adadelta", func() Rule { return &Adadelta{1, 0.95, 1e-6} }},
		{"adagrad", func() Rule { return &Adagrad{LearningRate: 1, Epsilon: 1e-6, EpsilonInside: true} }},
		{"adam", func() Rule { return adamHat(1e-8) }},
		{"adamax", func() Rule { return NewAdamax() }},
		{"amsgrad", func() Rule { a := adamHat(1e-8); a.AMSGrad = true; return a }},
		{"apply_momentum", func() Rule { return &BasicMomentum{Momentum: 0.9} }},
		{"apply_nesterov_momentum", func() Rule { return &BasicMomentum{Momentum: 0.9, Nesterov: true} }},
		{"momentum", func() Rule { return &Momentum{LearningRate: 0.01, Momentum: 0.9, RateInside: true} }},
		{"nesterov_momentum", func() Rule {
			return &Momentum{LearningRate: 0.01, Momentum: 0.9, RateInside: true, Nesterov: true}
		}},
		{"rmsprop", func() Rule { return &RMSprop{LearningRate: 1, Rho: 0.9, Epsilon: 1e-6, EpsilonInside: true} }},
		{"sgd", func() Rule { return NewSGD() }},
	},
	"gorgonia": {
		{"adagrad", func() Rule { return NewGorgoniaAdaGrad() }},
		{"adam", func() Rule { return NewGorgoniaAdam() }},
		{"adamw", func() Rule { return NewGorgoniaAdamW() }},
		{"barzilaiborwein", func() Rule { return NewGorgoniaBarzilaiBorwein() }},
		{"momentum", func() Rule { return NewGorgoniaMomentum() }},
		{"rmsprop", func() Rule { return NewGorgoniaRMSProp() }},
		{"vanilla", func() Rule { return NewGorgoniaVanilla() }},
	},
}
