package schedule

// PiecewiseConstantDecay has one value up to each boundary, and one after the last.
//
//	value(s) = values[i]        i = the number of boundaries below s; with FromBoundary, of those up to s
//
// Boundaries are finite and increase, and there is one more of the Values, which are any finite numbers. FromBoundary is false by
// default: the run of the boundary itself still has the value before.
//
// It is keras.optimizers.schedules.PiecewiseConstantDecay and tf.train.piecewise_constant; with FromBoundary it is
// optax.piecewise_constant_schedule, whose values are the products of its scales up to there, and torch's ConstantLR (boundary
// total_iters, values base·factor and base). Keras takes boundaries in any order.
type PiecewiseConstantDecay struct {
	Boundaries   []float64 `schedule:"required"`
	Values       []float64 `schedule:"required"`
	FromBoundary bool
}

// NewPiecewiseConstantDecay makes a piecewise constant schedule.
func NewPiecewiseConstantDecay(boundaries, values []float64, options ...func(*PiecewiseConstantDecay)) PiecewiseConstantDecay {
	return configured(PiecewiseConstantDecay{Boundaries: boundaries, Values: values}, options)
}

// Validate checks the fields.
func (d PiecewiseConstantDecay) Validate() error {
	return pieces(d.Boundaries, d.Values)
}

// At is the value in the run of that step.
func (d PiecewiseConstantDecay) At(step Expr) Expr {
	v := number(d.Values[len(d.Boundaries)])
	for i := len(d.Boundaries) - 1; i >= 0; i-- {
		before := step.LessEqual(number(d.Boundaries[i]))
		if d.FromBoundary {
			before = step.Less(number(d.Boundaries[i]))
		}
		v = before.Select(number(d.Values[i]), v)
	}
	return v
}

// pieces is the mistake of lists of boundaries and values.
func pieces(boundaries, values []float64) error {
	return first(increasing("boundaries", boundaries), finiteList("values", values), oneMore("values", values, "boundaries", boundaries))
}

// PiecewiseInterpolate goes from value to value, reaching each but the first at its boundary, and stays at the last.
//
//	value(s) = v + (w − v)·p                 interpolation "linear"; s is between the boundaries a and b of the values v and w,
//	value(s) = w + (v − w)·(½ + ½·cos(π·p))  interpolation "cosine"; and p = (s − a)/(b − a)
//
// Boundaries are finite, increase and are above 0, which is the boundary of the first value; there is one more of the Values,
// which are any finite numbers. Interpolation is "linear" by default.
//
// It is optax.piecewise_interpolate_schedule, whose values are the products of its scales up to there.
type PiecewiseInterpolate struct {
	Boundaries    []float64 `schedule:"required"`
	Values        []float64 `schedule:"required"`
	Interpolation string    `alias:"interpolate_type"` // default "linear"
}

// NewPiecewiseInterpolate makes a schedule of interpolations.
func NewPiecewiseInterpolate(boundaries, values []float64, options ...func(*PiecewiseInterpolate)) PiecewiseInterpolate {
	return configured(PiecewiseInterpolate{Boundaries: boundaries, Values: values, Interpolation: "linear"}, options)
}

// Validate checks the fields.
func (d PiecewiseInterpolate) Validate() error {
	return first(pieces(d.Boundaries, d.Values), must(len(d.Boundaries) == 0 || d.Boundaries[0] > 0, "boundaries", d.Boundaries, "above 0"),
		choice("interpolation", d.Interpolation, "linear", "cosine"))
}

// At is the value in the run of that step.
func (d PiecewiseInterpolate) At(step Expr) Expr {
	return interpolate(step, d.Boundaries, d.Values, d.Interpolation == "cosine")
}

// interpolate goes from values[i] to values[i+1] until ends[i]. Pieces without length are skipped.
func interpolate(step Expr, ends, values []float64, cosine bool) Expr {
	v := number(values[len(ends)])
	for i := len(ends) - 1; i >= 0; i-- {
		begin := 0.0
		if i > 0 {
			begin = ends[i-1]
		}
		if ends[i] <= begin {
			continue
		}
		p := step.Sub(number(begin)).Div(number(ends[i] - begin))
		piece := number(values[i+1] - values[i]).Mul(p).Add(number(values[i]))
		if cosine {
			piece = number(values[i] - values[i+1]).Mul(half(p)).Add(number(values[i+1]))
		}
		v = step.LessEqual(number(ends[i])).Select(piece, v)
	}
	return v
}
