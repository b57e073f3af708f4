package schedule

// Constant is the schedule that does not change. It is for configs where another schedule could stand, and as a part of
// schedules that are made of others.
//
//	value(s) = value
//
// There is no default. Any finite value is legal; the hyperparameter it is for may allow less.
type Constant struct {
	Value float64 `schedule:"required"`
}

// NewConstant makes a constant schedule.
func NewConstant(value float64) Constant { return Constant{value} }

// Validate checks the fields.
func (c Constant) Validate() error { return isFinite("value", c.Value) }

// At is the value.
func (c Constant) At(Expr) Expr { return number(c.Value) }
