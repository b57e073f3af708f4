package solvers

import (
	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// RowMode says what a rule makes of a gradient of rows: that of a table from which rows are looked up (graphops.Gather,
// gorgonia.ByIndices along axis 0), or a *graphops.Rows that Step gets.
type RowMode string

const (
	// RowsDefault leaves it to each rule within. Those for which a row with a gradient of zero stays as it is (SGD, NormalizedSGD,
	// Adagrad) and those that TensorFlow 1 has so (ProximalAdagrad, ProximalGradientDescent) update the rows of the gradient,
	// NeuralOptimizer1 and GradVarianceScaled do as in RETURNN, all others get the whole tensor. Clips by value, norm and global
	// norm, Scale and FilterNotFinite work on the rows as they come: a row that is named twice counts twice in a norm, as in
	// TensorFlow.
	RowsDefault RowMode = ""

	// RowsDense gives the rule the whole tensor, with zeros in the other rows: all rows decay, and move by their momentum.
	RowsDense RowMode = "dense"

	// RowsLazy updates the rows of the gradient: of the others, neither parameter nor slots are read or written. Duplicates are
	// added up first. A norm, of the parameter too, is that of these rows. A rule that cannot do with rows (one of matrices, of
	// means along an axis) is an error.
	RowsLazy RowMode = "lazy"

	// RowsSlots gives the rule the whole tensor, but of the parameter itself changes the rows of the gradient alone: TensorFlow's Nadam,
	// and AdaBelief, RectifiedAdam and Yogi of its Addons.
	RowsSlots RowMode = "slots"

	// RowsDecay is RowsDense with a weight decay of the rows of the gradient alone: AdamW of TensorFlow's Addons.
	RowsDecay RowMode = "decay"

	// RowsCatchUp has the result of RowsDense at about the cost of RowsLazy: see Solver.CatchUp.
	RowsCatchUp RowMode = "catch_up"
)

// WithRows makes a solver of a rule with a mode for gradients of rows. Gradients that are whole tensors are not concerned. In the
// expanded host, in which everything can be differentiated, every gradient is a whole tensor, and every mode is RowsDense.
//
//	solvers.WithRows(solvers.NewAdam(), solvers.RowsLazy)
//
// The defaults of the families: tf1 and returnn as TensorFlow 1 has them, Momentum, RMSProp, Adadelta and Ftrl lazy; addons and
// keras2 as these; returnn/nadam and returnn/customadam as RETURNN; keras, torch, optax and the others, and the constructors,
// RowsDefault.
func WithRows(rule Rule, mode RowMode) *Solver { return New(&rows{addressable(rule), string(mode)}) }

// NewLazyAdam makes a solver of Adam with RowsLazy and the defaults and the epsilon of LazyAdam in TensorFlow's Addons: Adam for
// tables of which each step reads few rows.
func NewLazyAdam(options ...func(*Adam)) *Solver {
	a := adamHat(1e-7)
	for _, o := range options {
		if o != nil {
			o(a)
		}
	}
	return WithRows(a, RowsLazy)
}

type rows struct {
	Rule Rule
	Mode string
}

// Validate implements Validator.
func (r *rows) Validate() error {
	return choice("mode", r.Mode, "", string(RowsDense), string(RowsLazy), string(RowsSlots), string(RowsDecay), string(RowsCatchUp))
}

// Rules implements Composite.
func (r *rows) Rules() []Rule { return []Rule{r.Rule} }

// Transforms implements Transformation. What the rule within is counts by itself.
func (*rows) Transforms() {}

// Apply implements Rule.
func (r *rows) Apply(b *Builder, in []Step) ([]Step, error) {
	mode, sparse := b.mode, b.sparse
	defer func() { b.mode, b.sparse = mode, sparse }()
	b.mode, b.sparse = RowMode(r.Mode), map[*gorgonia.Node]*graphops.Touched{}
	for _, s := range in { // of which a rule before may have made a whole tensor
		if t, _ := formOf(s); t != nil {
			b.sparse[s.Param.Node] = t
		}
	}
	if b.mode == RowsCatchUp {
		return b.catchUp(r.Rule, in)
	}
	out, err := b.Run(r.Rule, in)
	if err != nil || b.mode != RowsSlots {
		return out, err
	}
	return b.eachStep(out, func(s Step) Step {
		t := b.sparse[s.Param.Node]
		if of, _ := formOf(s); t == nil || of != nil {
			return s
		}
		s.Value, s.Delta = t.Mask().Select(s.Value, graphops.Of(s.Param.Node)), t.Mask().Select(spread(s, s.Delta), zero)
		return s
	})
}
