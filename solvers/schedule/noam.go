package schedule

// Noam rises linearly for WarmupSteps runs and then falls with the inverse root of the step, as in the Transformer (Vaswani
// et al. 2017, "Attention is all you need", section 5.3, https://arxiv.org/abs/1706.03762).
//
//	value(s) = factor · d_model^−½ · min(n^−½, n · warmup_steps^−³ᐟ²)        n = s+1
//
// The paper counts steps from 1 and the global step s counts runs from 0, hence n = s+1: the first run has the value
// factor·d_model^−½·warmup_steps^−³ᐟ², and the peak factor·(d_model·warmup_steps)^−½ is that of run s = warmup_steps−1. With
// ZeroBased, n = s, as in the example of RETURNN's documentation: the first run then has the value 0 and trains nothing.
//
// DModel, the width of the model, and WarmupSteps are 1 or more and have no defaults (the paper's are 512 and 4000). Factor is
// any finite number, default 1; it takes the place of RETURNN's learning rate. ZeroBased is false by default.
type Noam struct {
	DModel      int     `schedule:"required"`
	WarmupSteps int     `schedule:"required" alias:"warmup"`
	Factor      float64 // default 1
	ZeroBased   bool
}

// NewNoam makes a Noam schedule of factor 1.
func NewNoam(dModel, warmupSteps int, options ...func(*Noam)) Noam {
	return configured(Noam{DModel: dModel, WarmupSteps: warmupSteps, Factor: 1}, options)
}

// Validate checks the fields.
func (s Noam) Validate() error {
	return first(atLeast1("d_model", s.DModel), atLeast1("warmup_steps", s.WarmupSteps), isFinite("factor", s.Factor))
}

// At is the value in the run of that step.
func (s Noam) At(step Expr) Expr {
	n := step.Add(one)
	if s.ZeroBased {
		n = step // 0^−½ is +Inf, and the other operand of Min is 0
	}
	fall, rise := number(-.5), number(-1.5)
	width, warmup := number(float64(s.DModel)), number(float64(s.WarmupSteps))
	return number(s.Factor).Mul(width.Pow(fall)).Mul(n.Pow(fall).Min(n.Mul(warmup.Pow(rise))))
}
