package solvers

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"optimop/graphops"
)

// Muon replaces the momentum of a matrix by the nearest orthogonal matrix, as a few Newton-Schulz iterations find it (Jordan
// et al. 2024, https://kellerjordan.github.io/posts/muon/), in the form of Keras.
//
//	M ← μ·M + g          G = g + μ·M with Nesterov, else M
//	X = G/(‖G‖ + 1e-7)   X ← a·X + (b·A + c·A²)·X with A = X·Xᵀ, NSSteps times (of the transposed matrix if that is wider)
//	step = α · √max(rows, columns)·RMSRate · X          (factor 1 if RMSRate is 0)
//
// The weights decay by w ← (1 − α·λ)·w before. Parameters of another rank than 2, with ExcludeEmbeddings those whose name
// contains "embedding", and those whose name matches one of the regular expressions ExcludeLayers, get Adam's step, in the form
// with epsilon hat, of rate α·AdamLearningRateRatio and decay AdamWeightDecay.
//
// Slots momentum (M), or m and v: zero at the start.
type Muon struct {
	LearningRate          float64  `range:"[0,inf)"` // α, default 0.001
	Momentum              float64  `range:"[0,1]"`   // μ, default 0.95
	NSSteps               float64  `range:"[1,20]"`  // default 5, a whole number
	A                     float64  // a, default 3.4445
	B                     float64  // b, default -4.7750
	C                     float64  // c, default 2.0315
	RMSRate               float64  `range:"[0,inf)"` // default 0.2
	WeightDecay           float64  `range:"[0,inf)"` // λ, default 0.004
	AdamLearningRateRatio float64  `range:"[0,inf)"` // default 1
	AdamBeta1             float64  `range:"[0,1)"`   // default 0.9
	AdamBeta2             float64  `range:"[0,1)"`   // default 0.999
	AdamWeightDecay       float64  `range:"[0,inf)"` // default 0.004
	Epsilon               float64  `range:"[0,inf)"` // of Adam, default 1e-7
	Nesterov              bool     // default true
	ExcludeEmbeddings     bool     // default true
	ExcludeLayers         []string // default none
}

// NewMuon makes a solver of Muon.
func NewMuon(options ...func(*Muon)) *Solver {
	return configured(&Muon{LearningRate: 0.001, Momentum: 0.95, NSSteps: 5, A: 3.4445, B: -4.7750, C: 2.0315, RMSRate: 0.2, WeightDecay: 0.004,
		AdamLearningRateRatio: 1, AdamBeta1: 0.9, AdamBeta2: 0.999, AdamWeightDecay: 0.004, Epsilon: 1e-7, Nesterov: true, ExcludeEmbeddings: true}, options)
}

// Validate implements Validator.
func (r *Muon) Validate() error {
	if r.NSSteps != float64(int(r.NSSteps)) {
		return errors.Errorf("ns_steps is %v; it must be a whole number", r.NSSteps)
	}
	for _, e := range r.ExcludeLayers {
		if _, err := regexp.Compile(e); err != nil {
			return errors.Wrap(err, "exclude_layers")
		}
	}
	return nil
}

// orthogonalises reports whether a parameter is one of Muon's own, and not Adam's.
func (r *Muon) orthogonalises(p Param) bool {
	excluded := slices.ContainsFunc(r.ExcludeLayers, func(e string) bool { return regexp.MustCompile(e).MatchString(p.Name) })
	embedding := r.ExcludeEmbeddings && strings.Contains(strings.ToLower(p.Name), "embedding")
	return p.Node.Dims() == 2 && !excluded && !embedding
}

// Apply implements Rule.
func (r *Muon) Apply(b *Builder, in []Step) ([]Step, error) {
	lr, b1, b2, eps := b.Hyper("learning_rate"), b.Hyper("adam_beta1"), b.Hyper("adam_beta2"), b.Hyper("epsilon")
	ratio, wd, awd := b.Hyper("adam_learning_rate_ratio"), b.Hyper("weight_decay"), b.Hyper("adam_weight_decay")
	mu, rms, coefficients := b.Hyper("momentum"), b.Hyper("rms_rate"), [3]Expr{b.Hyper("a"), b.Hyper("b"), b.Hyper("c")}
	t := b.Count("step")
	c1, c2 := correction(b1, t), correction(b2, t)
	return b.eachStep(in, func(s Step) Step {
		g := s.Delta
		if r.orthogonalises(s.Param) {
			m := b.Slot(s, "momentum")
			x := m.Set(m.Mul(mu).Add(g))
			if r.Nesterov {
				x = g.Add(x.Mul(mu))
			}
			scale := graphops.Const(float64(slices.Max(g.Shape()))).Sqrt().Mul(rms)
			s.Value = s.Value.Mul(one.Sub(lr.Mul(b.decayOf(s, wd))))
			s.Delta = lr.Mul(r.orthogonal(x, coefficients).Mul(rms.Greater(zero).Select(scale, one)))
			return s
		}
		m, v := b.Slot(s, "m"), b.Slot(s, "v")
		m1, v1 := m.Set(average(m.Expr, g, b1)), v.Set(average(v.Expr, g.Square(), b2))
		s.Value = s.Value.Mul(one.Sub(lr.Mul(b.decayOf(s, awd))))
		s.Delta = lr.Mul(ratio).Mul(adaptive(m1, v1, c1, c2, eps, true))
		return s
	})
}

// orthogonal is the orthogonal matrix that a few iterations find near a matrix.
func (r *Muon) orthogonal(x Expr, c [3]Expr) Expr {
	tall := x.Shape()[0] > x.Shape()[1]
	if tall {
		x = x.Transpose()
	}
	x = x.Div(x.Norm().Add(graphops.Const(1e-7)))
	for range int(r.NSSteps) {
		a := x.MatMul(x.Transpose())
		x = x.Mul(c[0]).Add(a.Mul(c[1]).Add(a.MatMul(a).Mul(c[2])).MatMul(x))
	}
	if tall {
		x = x.Transpose()
	}
	return x
}
