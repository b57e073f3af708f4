package solvers

// CentralizeGradients takes from the gradient of each output its mean (gradient centralisation, Yong et al. 2020,
// https://arxiv.org/abs/2004.01461).
//
//	step = g − the mean of g over all axes but the first, where g is of rank 2 or more
//
// The first axis counts the outputs, as in torch; with KeepLast the last one does, as in x·W and in TensorFlow. With ConvOnly
// only gradients of rank 4 or more change. Where a mean would be of one element, the gradient stays; it would be zero for ever.
// A bias of shape (1, n) is of rank 2: Restrict the rule to the weights. It has no slots. Put it before the optimizer.
type CentralizeGradients struct {
	ConvOnly bool // default false
	KeepLast bool // default false
}

// NewCentralizeGradients makes a solver of CentralizeGradients, to be chained.
func NewCentralizeGradients(options ...func(*CentralizeGradients)) *Solver {
	return configured(&CentralizeGradients{}, options)
}

// Transforms implements Transformation.
func (*CentralizeGradients) Transforms() {}

// Apply implements Rule.
func (r *CentralizeGradients) Apply(b *Builder, in []Step) ([]Step, error) {
	return b.Each(in, func(s Step) Expr { return r.centralized(s.Delta) })
}

func (r *CentralizeGradients) centralized(g Expr) Expr {
	shape := g.Shape()
	rank := len(shape)
	if rank < 2 || r.ConvOnly && rank < 4 {
		return g
	}
	kept := 0
	if r.KeepLast {
		kept = rank - 1
	}
	var axes []int
	for a := range rank {
		if a != kept {
			axes = append(axes, a)
		}
	}
	if shape.TotalSize() == shape[kept] {
		return g
	}
	return g.Sub(g.MeanAlong(axes...).BroadcastTo(shape))
}
