package updater

import (
	"gorgonia.org/gorgonia"

	"optimop/solvers/schedule"
)

// Config says how to train. Its JSON and YAML forms have the same keys, those of RETURNN's TensorFlow updater
// (https://github.com/rwth-i6/returnn) where that has them:
//
//	{"optimizer": {"class": "adam", "beta1": 0.8}, "learning_rate": 0.002, "gradient_clip_global_norm": 5}
//
// The zero Config is plain gradient descent with its own learning rate. A number that is 0 switches its option off.
//
// Gradients are processed in this order, with whatever is switched on: MaximizeGradNorm, accumulation, GradientNoise, GradientClip,
// GradientClipNorm, GradientClipAvgNorm, GradientClipGlobalNorm (or ClipNorm, GlobalClipNorm, ClipValue), GradientNanInfFilter, GradNormToClipToZero; then the L2 penalty if
// it is decoupled, and the optimizer. What concerns one variable can be changed for some of them by UpdaterOpts.
type Config struct {
	// Optimizer is the registered name of an optimizer ("adam"), or a map[string]any with the name under "class" and options
	// beside it, named as the fields of the rule in snake case (see solvers.FromConfig), but for the learning rate; an option may be
	// a schedule, {"class": "exponential_decay", …}. The key learning_rate_multiplier multiplies the learning rate. In Go it may
	// also be a solvers.Rule, such as a chain or a solver, of which the rule is used: updaters of one rule share its
	// hyperparameters, but no state. Absent, it is "sgd", plain gradient descent. What only transforms gradients is no optimizer.
	Optimizer any `json:"optimizer"`

	// Preset is the library whose optimizers plain names mean first: "keras", "torch", "tf1", …; the names in solvers.Names before "/".
	Preset string `json:"preset"`

	// OptimizerEpsilon is the epsilon of every optimizer that has one and does not give its own. Absent, it is the optimizer's
	// default. (RETURNN always sets 1e-16.)
	OptimizerEpsilon *float64 `json:"optimizer_epsilon"`

	// OptimizerUseLocking has no meaning here: an update is one transaction.
	OptimizerUseLocking bool `json:"optimizer_use_locking"`

	// Momentum is the momentum of every optimizer that has one and does not give its own.
	Momentum float64 `json:"momentum"`

	// LearningRate replaces the learning rate of all optimizers, also in a rule or solver that was given. Absent, that is each
	// optimizer's own default.
	LearningRate *float64 `json:"learning_rate"`

	// LearningRateSchedule is the learning rate as a function of the global step; in files, learning_rate as an object.
	LearningRateSchedule schedule.Schedule `json:"-"`

	// DynamicLearningRate multiplies the learning rate, whatever SetLearningRate makes that, by a function of the global step. In
	// files {"interval": n, "decay": d}, that is d^(s mod n), or a schedule with its class.
	DynamicLearningRate schedule.Schedule `json:"dynamic_learning_rate"`

	// DecoupleConstraints takes the L2 penalties of UpdaterOpts out of the loss: w ← w − 2·L2·w, before the optimizer's update of
	// the decayed value, with the gradient at the old one. Otherwise 2·L2·w is a part of the gradient.
	DecoupleConstraints bool `json:"decouple_constraints"`

	// DecoupleConstraintsFactor, if given, makes that w ← w − f·2·L2·w·(learning rate)/(first learning rate). RETURNN documents it
	// with 0.025 and does not use it.
	DecoupleConstraintsFactor *float64 `json:"decouple_constraints_factor"`

	// AccumGradMultipleStep = n updates once in n runs, with the sum of their gradients (see solvers.Accumulate). Global norms are
	// those of the last run alone.
	AccumGradMultipleStep int `json:"accum_grad_multiple_step"`

	// GradientAccumulationSteps = n, at least 2, does the same with the mean, as Keras. Only one of the two can be given.
	GradientAccumulationSteps int `json:"gradient_accumulation_steps"`

	// GradientNoise is the standard deviation of noise that is added: normal, cut at two deviations. Seed seeds it.
	GradientNoise float64 `json:"gradient_noise"`

	// GradientClip bounds every element (see solvers.ClipByValue), GradientClipNorm the Euclidean norm of each gradient (ClipByNorm),
	// GradientClipAvgNorm that norm over the number of elements (ClipByAverageNorm), GradientClipGlobalNorm that of all gradients
	// together, or of those with a tag, as they were before all processing (ClipByGlobalNorm).
	GradientClip           float64 `json:"gradient_clip"`
	GradientClipNorm       float64 `json:"gradient_clip_norm"`
	GradientClipAvgNorm    float64 `json:"gradient_clip_avg_norm"`
	GradientClipGlobalNorm float64 `json:"gradient_clip_global_norm"`

	// ClipNorm, GlobalClipNorm and ClipValue are Keras' clips, of which only one can be set, and none beside the four above: each gradient by its
	// norm, all of them by their joint norm, and each element. They bound what is updated, the mean of accumulated gradients. The joint norm is
	// that of all variables with the same bound that are updated in the same runs, whatever optimizer they have.
	ClipNorm       float64 `json:"clipnorm"`
	GlobalClipNorm float64 `json:"global_clipnorm"`
	ClipValue      float64 `json:"clipvalue"`

	// WeightDecay is that of every optimizer that does not give its own: w ← w − w·WeightDecay·(learning rate) before its step, as in Keras, or, for
	// an optimizer with a weight_decay (adamw), what that makes of it. Variables whose short names, after the last "/", one of the regular
	// expressions of ExcludeFromWeightDecay fits have none; one that fits no variable is a warning of log/slog.
	WeightDecay            *float64 `json:"weight_decay"`
	ExcludeFromWeightDecay []string `json:"exclude_from_weight_decay"`

	// UseEMA keeps exponential averages of the weights, see solvers.EMA for their formula and the two other options. They are the slot
	// "average"; Updater.UseAverages puts them in the place of the weights. EMAMomentum is by default 0.99.
	UseEMA                bool     `json:"use_ema"`
	EMAMomentum           *float64 `json:"ema_momentum"`
	EMAOverwriteFrequency int      `json:"ema_overwrite_frequency"`

	// Constraints change what variables become by their updates, in order: names or maps with "class" ("non_negative", "unit_norm", "max_norm",
	// "min_max_norm", "box", "simplex", "l1_ball", "l2_ball"), in Go also rules. Averages are of weights before the constraints.
	Constraints []any `json:"constraints"`

	// LossScaleFactor multiplies the loss before, and divides the gradients after the backward pass, so that small ones do not vanish in
	// float32. DynamicLossScale finds that factor by itself. The losses that can be read are not multiplied.
	LossScaleFactor  float64           `json:"loss_scale_factor"`
	DynamicLossScale *DynamicLossScale `json:"dynamic_loss_scale"`

	// OverwriteWithGradient are patterns, as Match in VarOptions, of variables whose gradient is their new value: of accumulated runs the
	// greatest, at least 0. Nothing else concerns them.
	OverwriteWithGradient []string `json:"overwrite_with_gradient"`

	// KerasStrict lets each optimizer accumulate and clip by itself, exactly as in Keras, see solvers.Base: averages and constraints then act in runs that only
	// accumulate, too. With GradientAccumulationSteps no other processing of gradients can be switched on.
	KerasStrict bool `json:"keras_strict"`

	// GlobalNormTag lets the global norms be those of the variables with a tag (see VarOptions.Tags). GradientClipGlobalNormTag is the
	// one for GradientClipGlobalNorm; absent, or here empty, GlobalNormTag. In VarOptions an empty tag means all variables.
	GlobalNormTag             string `json:"global_norm_tag"`
	GradientClipGlobalNormTag string `json:"gradient_clip_global_norm_tag"`

	// GradientNanInfFilter makes elements zero that are not finite (FilterNotFinite), GradNormToClipToZero the whole gradient
	// where the global norm is above it or not finite (ZeroByGlobalNorm).
	GradientNanInfFilter bool    `json:"gradient_nan_inf_filter"`
	GradNormToClipToZero float64 `json:"grad_norm_to_clip_to_zero"`

	// MaximizeGradNorm = f subtracts f times the global norm of the gradients from the loss. It may be negative. Every operation
	// between the variables and the loss must have a second derivative.
	MaximizeGradNorm float64 `json:"maximize_grad_norm"`

	// LogGradNorm puts the global norm into the summaries; true or, in files, 2.
	LogGradNorm bool `json:"log_grad_norm"`

	// DebugGradSummaries puts mean, standard deviation, root mean square, norm, maximum and minimum of gradients (after
	// accumulation, before noise and clips) and of variables into the summaries.
	DebugGradSummaries bool `json:"debug_grad_summaries"`

	// SummaryInterval = k computes the summaries in every k-th run, from the first; 0: in none, and in every run if LogGradNorm or
	// DebugGradSummaries is set. With an accumulation over n whose n divides k these runs only accumulate, so that no update ratio is
	// seen: take a k without a common divisor, such as 101.
	SummaryInterval int `json:"summary_interval"`

	// DebugAddCheckNumericsOps checks what can make NaN or infinity out of numbers of moderate size (see graphops.CheckNumerics), and all new
	// values, where an overflow of sums and products shows: a run in which it does fails, names it, and writes nothing; it is not skipped, so
	// that a DynamicLossScale that is too large stays. DebugAddCheckNumericsOnOutput checks the losses, and the nodes of the option Outputs.
	DebugAddCheckNumericsOps      bool `json:"debug_add_check_numerics_ops"`
	DebugAddCheckNumericsOnOutput bool `json:"debug_add_check_numerics_on_output"`

	// DebugSaveUpdaterVars has no meaning here: SaveFile always saves the state of the optimizers.
	DebugSaveUpdaterVars bool `json:"debug_save_updater_vars"`

	// DeterministicTrain has no meaning here: results never depend on timing or on the number of workers.
	DeterministicTrain bool `json:"deterministic_train"`

	// SkipNonFiniteSteps skips steps as a whole whose loss or gradients are not finite: nothing but the global step and the
	// counters of Updater.Skipped is written. Slots are not looked at. MaxSkippedSteps = k lets the k-th such step in a row fail instead; 0: none does.
	SkipNonFiniteSteps bool `json:"skip_non_finite_steps"`
	MaxSkippedSteps    int  `json:"max_skipped_steps"`

	// ResetUpdaterVarsModStep = n gives the state of the optimizers its initial values before every n-th run of an epoch, its
	// first among them; see Updater.StartEpoch. They stay so where that run is skipped or fails. With accumulation it empties the
	// accumulators, too: the group of that run has the sum of its remaining runs. DynamicLossScale begins anew.
	ResetUpdaterVarsModStep int `json:"reset_updater_vars_mod_step"`

	// Seed is where the random numbers of GradientNoise begin, in [0, 2⁵³).
	Seed int64 `json:"seed"`

	// UpdaterOpts are settings of some variables. Where several concern a variable the last one that has a setting wins; tags add up.
	UpdaterOpts []VarOptions `json:"updater_opts"`
}

// VarOptions are settings of the variables that it matches. What is nil is that of the Config.
type VarOptions struct {
	// Match is a pattern for names as in path.Match, "decoder/*", or a regular expression between slashes, "/bias$/", that fits anywhere
	// in the name. A pattern that fits no variable is an error.
	Match string `json:"match"`

	// Vars are variables that are meant by themselves, in Go; on another graph (see Updater.On) those of their names.
	Vars gorgonia.Nodes `json:"-"`

	// Tags are groups of variables for the tagged global norms.
	Tags []string `json:"tags"`

	// L2 is the factor of the penalty L2·Σw², which is in no loss that can be read; see Config.DecoupleConstraints.
	L2 *float64 `json:"l2"`

	// LearningRateMultiplier and WeightDecayMultiplier multiply the optimizer's learning_rate and weight_decay, and the latter L2.
	LearningRateMultiplier *float64 `json:"learning_rate_multiplier"`
	WeightDecayMultiplier  *float64 `json:"weight_decay_multiplier"`

	// Optimizer is as in Config. Variables with equal settings share one optimizer and its counters. A map without
	// "class" means the class of the Config's optimizer, with its defaults and these options.
	Optimizer any `json:"optimizer"`

	// WeightDecay, UseEMA, EMAMomentum, EMAOverwriteFrequency and Constraints count more than those of the optimizer's own map.
	WeightDecay           *float64 `json:"weight_decay"`
	UseEMA                *bool    `json:"use_ema"`
	EMAMomentum           *float64 `json:"ema_momentum"`
	EMAOverwriteFrequency *int     `json:"ema_overwrite_frequency"`
	Constraints           []any    `json:"constraints"`

	AccumGradMultipleStep     *int     `json:"accum_grad_multiple_step"`
	GradientAccumulationSteps *int     `json:"gradient_accumulation_steps"`
	GradientNoise             *float64 `json:"gradient_noise"`
	GradientClip              *float64 `json:"gradient_clip"`
	GradientClipNorm          *float64 `json:"gradient_clip_norm"`
	GradientClipAvgNorm       *float64 `json:"gradient_clip_avg_norm"`
	GradientClipGlobalNorm    *float64 `json:"gradient_clip_global_norm"`
	GlobalNormTag             *string  `json:"global_norm_tag"`
	GradientClipGlobalNormTag *string  `json:"gradient_clip_global_norm_tag"`
	ClipNorm                  *float64 `json:"clipnorm"`
	GlobalClipNorm            *float64 `json:"global_clipnorm"`
	ClipValue                 *float64 `json:"clipvalue"`
	GradientNanInfFilter      *bool    `json:"gradient_nan_inf_filter"`
	GradNormToClipToZero      *float64 `json:"grad_norm_to_clip_to_zero"`
	MaximizeGradNorm          *float64 `json:"maximize_grad_norm"`
	DebugGradSummaries        *bool    `json:"debug_grad_summaries"`
}
