package solvers

import (
	"gorgonia.org/tensor"

	"optimop/graphops"
)

// Adafactor keeps of the second moment of a matrix only the means of its rows and columns (Shazeer & Stern 2018,
// https://arxiv.org/abs/1804.04235), in the form of Keras, without a first moment.
//
//	ρ = min(α, 1/√t)             β = 1 − t^Beta2Decay          G = g² + ε₁
//	r ← β·r + (1−β)·mean of G over the last axis          c ← β·c + (1−β)·mean over the last but one
//	v = r/mean(r) ⊗ c            (rank < 2: v ← β·v + (1−β)·G)
//	u = g/√v                     u ← u / max(1, RMS(u)/ClipThreshold)
//	step = max(ε₂, RMS(w))·ρ·u
//
// Slots row and column, of the shape of the parameter with the averaged axis at length 1, or v: zero at the start.
type Adafactor struct {
	LearningRate  float64 `range:"[0,inf)"`  // α, default 0.001
	Beta2Decay    float64 `range:"(-inf,0]"` // default -0.8
	Epsilon1      float64 `range:"[0,inf)"`  // ε₁, default 1e-30
	Epsilon2      float64 `range:"[0,inf)"`  // ε₂, default 1e-3
	ClipThreshold float64 `range:"(0,inf)"`  // default 1
}

// NewAdafactor makes a solver of Adafactor.
func NewAdafactor(options ...func(*Adafactor)) *Solver {
	return configured(&Adafactor{LearningRate: 0.001, Beta2Decay: -0.8, Epsilon1: 1e-30, Epsilon2: 1e-3, ClipThreshold: 1}, options)
}

// Apply implements Rule.
func (r *Adafactor) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, e1, e2, clip := b.Hyper("learning_rate"), b.Hyper("epsilon1"), b.Hyper("epsilon2"), b.Hyper("clip_threshold")
	t := b.Count("step")
	rho := lr.Min(one.Div(t.Sqrt()))
	beta := one.Sub(t.Pow(b.Hyper("beta2_decay")))
	return b.Each(in, func(s Step) Expr {
		g := s.Delta
		square := g.Square().Add(e1)
		var v Expr
		if shape := g.Shape(); len(shape) < 2 {
			slot := b.Slot(s, "v")
			v = slot.Set(average(slot.Expr, square, beta))
		} else {
			rows, columns := shape.Clone(), shape.Clone()
			rows[len(shape)-1], columns[len(shape)-2] = 1, 1
			row, column := b.Slot(s, "row", OfShape(rows)), b.Slot(s, "column", OfShape(columns))
			row1 := row.Set(average(row.Expr, square.MeanAlong(-1), beta))
			column1 := column.Set(average(column.Expr, square.MeanAlong(-2), beta))
			v = outer(row1.Div(row1.MeanAlong(-2).BroadcastTo(rows)), column1, shape)
		}
		u := g.Div(v.Sqrt())
		size := e2.Max(rms(s.Value))
		return u.Mul(size.Mul(rho).Div(one.Max(rms(u).Div(clip))))
	})
}

func outer(a, b Expr, shape tensor.Shape) Expr { return a.BroadcastTo(shape).Mul(b.BroadcastTo(shape)) }

// rms is the root of the mean square, a scalar.
func rms(x Expr) Expr {
	return x.SumSquares().Div(graphops.Const(float64(x.Shape().TotalSize()))).Sqrt()
}
