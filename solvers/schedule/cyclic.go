package schedule

// Cyclic goes up and down in a straight line between two values, again and again (Smith 2017, "Cyclical Learning Rates for
// Training Neural Networks", https://arxiv.org/abs/1506.01186).
//
//	value(s) = initial + (max − initial)·h·scale(x)
//
// h rises from 0 to 1 in step_size runs and falls to 0 in step_size_down runs. x is the number of the cycle, from 1, with ScaleMode
// "cycle", and s with "iterations". The scale is by Mode
//
//	"triangular"   1
//	"triangular2"  ½^(x−1)
//	"exp_range"    gamma^x
//
// Initial and Max are any finite numbers, StepSize is finite and above 0; they have no defaults. StepSizeDown is finite and not
// negative; 0, the default, is StepSize. Mode is "triangular" by default; Gamma is finite and not negative, default 1. ScaleMode ""
// (default) is "iterations" for "exp_range", else "cycle". Scale is a schedule of x that takes the place of Mode; there is none by
// default.
//
// It is the CyclicalLearningRate family of TensorFlow Addons (https://github.com/tensorflow/addons): Triangular…, Triangular2…,
// and Exponential…, which is "exp_range"; scale_fn is Scale. It is also torch.optim.lr_scheduler.CyclicLR, of which it has the
// learning rate; for the momentum, which goes the other way, give that hyperparameter another one with Max below Initial.
type Cyclic struct {
	Initial      float64 `schedule:"required" alias:"initial_learning_rate,base_lr"`
	Max          float64 `schedule:"required" alias:"maximal_learning_rate,max_lr"`
	StepSize     float64 `schedule:"required" alias:"step_size_up"`
	StepSizeDown float64
	Mode         string  // default "triangular"
	Gamma        float64 // default 1
	ScaleMode    string
	Scale        Schedule `alias:"scale_fn"`
}

// NewCyclic makes a cyclic schedule.
func NewCyclic(initial, max, stepSize float64, options ...func(*Cyclic)) Cyclic {
	return configured(Cyclic{Initial: initial, Max: max, StepSize: stepSize, Mode: "triangular", Gamma: 1}, options)
}

// Validate checks the fields.
func (c Cyclic) Validate() error {
	err := first(isFinite("initial", c.Initial), isFinite("max", c.Max), positive("step_size", c.StepSize),
		notNegative("step_size_down", c.StepSizeDown), choice("mode", c.Mode, "triangular", "triangular2", "exp_range"),
		notNegative("gamma", c.Gamma), choice("scale_mode", c.ScaleMode, "", "cycle", "iterations"))
	if c.Scale != nil {
		err = first(err, part("scale", c.Scale))
	}
	return err
}

// At is the value in the run of that step.
func (c Cyclic) At(step Expr) Expr {
	up, down := c.StepSize, c.StepSizeDown
	if down == 0 {
		down = up
	}
	period := number(up + down)
	cycle := step.Div(period).Floor()
	since := step.Sub(cycle.Mul(period))
	h := since.Div(number(up)).Min(period.Sub(since).Div(number(down))).Max(number(0))
	x := cycle.Add(one)
	if c.ScaleMode == "iterations" || c.ScaleMode == "" && c.Mode == "exp_range" {
		x = step
	}
	return number(c.Initial).Add(number(c.Max - c.Initial).Mul(h).Mul(c.scale(x)))
}

func (c Cyclic) scale(x Expr) Expr {
	switch {
	case c.Scale != nil:
		return c.Scale.At(x)
	case c.Mode == "triangular2":
		return number(.5).Pow(x.Sub(one))
	case c.Mode == "exp_range":
		return number(c.Gamma).Pow(x)
	}
	return one
}
