package solvers

import (
	"gorgonia.org/gorgonia"

	"optimop/graphops"
)

// What steps over rows look like to rules: see graphops.Touched.

// RowPasser is a rule that hands the steps that it gets on to rules that it runs, and does nothing else with those of tables: it
// gets a gradient of rows as it is, so that these rules can make of it what they do (see RowMode).
type RowPasser interface {
	Rule
	PassesRows() bool
}

// formOf is what a step over rows was made with; merged says that its value is rows too.
func formOf(s Step) (t *graphops.Touched, merged bool) {
	if t, merged = s.Delta.Touched(); t != nil {
		return t, merged
	}
	return s.Value.Touched()
}

// rowsOf is the step of a parameter with a gradient of rows.
func rowsOf(s Step, grad *gorgonia.Node) (Step, error) {
	t, err := graphops.Touch(grad)
	if err != nil {
		return s, err
	}
	s.Delta = t.Values()
	return s, nil
}

// rowUse is the form in which a rule gets a gradient of rows.
type rowUse uint8

const (
	useWhole rowUse = iota
	useValues
	useRows
)

// use is the form for a rule in the present mode. Rules that hold others pass on what they get.
func (b *build) use(r Rule) rowUse {
	if p, ok := r.(RowPasser); ok && p.PassesRows() {
		return useValues
	}
	switch r.(type) {
	case *rows, *restrict, *multiOptimizer, *optimizerMap, *LossScale:
		return useValues
	}
	switch b.mode {
	case RowsDense, RowsDecay:
		return useWhole
	case RowsCatchUp:
		return useRows
	}
	switch r.(type) {
	case *ClipByValue, *ClipByNorm, *ClipByGlobalNorm, *FilterNotFinite, *Scale, *NormalizedSGD:
		return useValues
	}
	switch r.(type) {
	case *SGD, *NeuralOptimizer1, *GradVarianceScaled:
		if b.mode != RowsLazy {
			return useValues
		}
	case *Adagrad, *ProximalAdagrad, *ProximalGradientDescent:
		if b.mode == RowsDefault {
			return useRows
		}
	}
	if b.mode == RowsLazy {
		return useRows
	}
	return useWhole
}

// present gives a step the form that a rule takes.
func (b *build) present(r Rule, s Step) Step {
	t, merged := formOf(s)
	if t == nil {
		return s
	}
	switch b.use(r) {
	case useRows:
		return b.merged(s)
	case useWhole:
		if merged {
			s.Value, s.Delta = t.Overlay(s.Param.Node, spread(s, s.Value)), t.Whole(spread(s, s.Delta))
		} else {
			s.Delta = t.Whole(s.Delta)
		}
	}
	return s
}

// merged gives a step the form of rows, if it has that of values.
func (b *build) merged(s Step) Step {
	if t, merged := formOf(s); t != nil && !merged {
		s.Value, s.Delta = t.Rows(spread(s, s.Value)), t.Merge(s.Delta)
	}
	return s
}

// like is the parameter of a step in the form of the step.
func like(s Step) Expr {
	w := graphops.Of(s.Param.Node)
	if t, merged := formOf(s); merged {
		return t.Rows(w)
	}
	return w
}

// summed is a gradient as what slots of whole tensors add up.
func summed(g Expr) Expr {
	if t, merged := g.Touched(); t != nil && !merged {
		return t.Whole(g)
	}
	return g
}

// alike is a whole tensor in the form of a gradient that has it row by row.
func alike(e, g Expr) Expr {
	if t, merged := g.Touched(); t != nil && !merged {
		return t.At(e)
	}
	return e
}

// ofRows is e in the rows of the gradient and zero in the others, in modes in which a rule has more rows than the gradient.
func (b *Builder) ofRows(s Step, e Expr) Expr {
	t := b.sparse[s.Param.Node]
	if of, _ := formOf(s); b.mode != RowsSlots || t == nil || of != nil {
		return e
	}
	return t.Mask().Select(e, zero)
}
