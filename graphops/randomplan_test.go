package graphops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// choices turns fuzzed bytes into choices; when they run out all choices are 0.
type choices struct{ data []byte }

func (c *choices) pick(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func of[T any](c *choices, list []T) T { return list[c.pick(len(list))] }

// seeded are 300 random bytes.
func seeded(seed int) *choices {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	c := &choices{make([]byte, 300)}
	for i := range c.data {
		c.data[i] = byte(rng.Uint32())
	}
	return c
}

var planShapes = []tensor.Shape{{3}, {}, {0}, {1}, {2, 3}, {63}, {64}, {65}, {1, 1}, {0, 4}, {1, 7}, {5, 1}, {8, 8}, {13, 5}, {16, 16}, {2, 3, 4}, {255}, {256},
	{257}, {5, 1, 13}, {3, 3, 7, 1}, {2, 2, 8, 8}, {2, 0, 3}, {4, 64}, {17, 31}, {32767}, {32768}, {32769}, {181, 181}}

// sort is the expressions of one dtype and shape.
type sort struct {
	dt             tensor.Dtype
	shape          tensor.Shape
	cells          []*cell
	tensors, conds []Expr
}

// randomPlan is random updates of nodes with values.
type randomPlan struct {
	g              *G.ExprGraph
	cells          []*cell
	sorts          []*sort
	scalars, conds []Expr
	updates        []Update
	opts           []CommitOpt
	when           []Expr // by update
	slow           bool
}

func newRandomPlan(c *choices) *randomPlan {
	r := &randomPlan{g: G.NewGraph(), slow: c.pick(3) == 2}
	share := c.pick(4) == 3
	for i := range 1 + c.pick(3) {
		s := &sort{dt: dtypes[c.pick(2)], shape: of(c, planShapes)}
		for k := range 1 + c.pick(5) {
			n := G.NewTensor(r.g, s.dt, len(s.shape), G.WithShape(s.shape...), G.WithName(fmt.Sprint("t", i, "_", k)))
			l := newCell(n, c.pick(4))
			if k > 0 && share && c.pick(2) == 1 {
				l = of(c, s.cells).shared(n, c.pick(3))
			}
			s.cells, s.tensors, r.cells = append(s.cells, l), append(s.tensors, Of(n)), append(r.cells, l)
		}
		r.sorts = append(r.sorts, s)
	}
	r.fill(c)
	for i, dt := range []tensor.Dtype{tensor.Float64, tensor.Float32, tensor.Int64} {
		n := G.NewScalar(r.g, dt, G.WithName(fmt.Sprint("s", i)))
		r.cells = append(r.cells, scalarCell(n, c.pick(2) == 1, []float64{.1, 3, 7}[i]))
		r.scalars = append(r.scalars, ScalarOf(n))
	}
	r.scalars = append(r.scalars, Const(0), Const(-.75))
	r.conds = append(r.conds, r.scalars[0].Less(r.scalars[3]))
	for range c.pick(40) {
		r.grow(c, of(c, r.sorts))
	}
	r.update(c)
	return r
}

// fill gives tensors whole numbers, numbers, or numbers with special ones.
func (r *randomPlan) fill(c *choices) {
	kind, rng := c.pick(3), rand.New(rand.NewPCG(uint64(c.pick(256)), 0))
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, 5e-324, 3e38, -1e300, 1e-8}
	for _, l := range r.cells {
		for i := range l.all() {
			x := rng.NormFloat64()
			switch {
			case kind == 0:
				x = math.Floor(4 * x)
			case kind == 2 && rng.IntN(6) == 0:
				x = special[rng.IntN(len(special))]
			}
			l.set(i, x)
		}
	}
}

func (r *randomPlan) update(c *choices) {
	add := func(n *G.Node, e Expr) {
		if !slices.ContainsFunc(r.updates, func(u Update) bool { return u.Target == n }) {
			r.updates, r.when = append(r.updates, Update{n, e}), append(r.when, Expr{})
		}
	}
	for range 1 + c.pick(5) {
		s := of(c, r.sorts)
		switch c.pick(5) {
		case 0:
			add(r.cells[len(r.cells)-3+c.pick(2)].node, of(c, r.scalars))
		case 1:
			add(r.cells[len(r.cells)-1].node, []Expr{r.scalars[2].Add(Const(1)), of(c, r.scalars).Floor()}[c.pick(2)])
		default:
			add(of(c, s.cells).node, s.tensors[len(s.tensors)-1-c.pick(min(5, len(s.tensors)))])
		}
	}
	for range c.pick(3) {
		cond, k := of(c, r.conds), c.pick(len(r.updates))
		r.opts = append(r.opts, When(cond, r.updates[k].Target))
		if r.when[k].x == nil {
			r.when[k] = cond
		} else {
			r.when[k] = r.when[k].And(cond)
		}
	}
}

// grow adds an expression of what is there, mostly of what is new.
func (r *randomPlan) grow(c *choices, s *sort) {
	tensor := func() Expr {
		if c.pick(3) == 0 {
			return of(c, s.tensors)
		}
		return s.tensors[len(s.tensors)-1-c.pick(min(3, len(s.tensors)))]
	}
	any := func() Expr {
		if c.pick(3) == 0 {
			return of(c, r.scalars)
		}
		return tensor()
	}
	switch c.pick(16) {
	case 0:
		s.tensors = append(s.tensors, r.unary(c, tensor()))
	case 1:
		s.conds = append(s.conds, compared(c, tensor(), any()))
	case 2:
		if len(s.conds) > 0 {
			x := of(c, s.conds)
			switch c.pick(5) {
			case 0:
				s.conds = append(s.conds, x.Not())
			case 1:
				s.conds = append(s.conds, x.And(of(c, s.conds)))
			case 2:
				s.conds = append(s.conds, of(c, r.conds).Or(x))
			case 3:
				r.conds = append(r.conds, x.All())
			case 4:
				s.tensors = append(s.tensors, x)
			}
		}
	case 3, 4:
		if len(s.conds) > 0 {
			s.tensors = append(s.tensors, of(c, s.conds).Select(any(), tensor()))
		}
	case 5:
		s.tensors = append(s.tensors, of(c, r.conds).Select(tensor(), any()))
	case 6:
		x := tensor()
		r.scalars = append(r.scalars, []Expr{x.Sum(), x.SumSquares(), x.MaxAll(), x.Norm(), x.Mean()}[c.pick(5)])
	case 7:
		r.conds = append(r.conds, compared(c, of(c, r.scalars), of(c, r.scalars)))
	case 8:
		r.scalars = append(r.scalars, r.binary(c, of(c, r.scalars), of(c, r.scalars)))
	case 9:
		r.scalars = append(r.scalars, of(c, r.conds).Select(of(c, r.scalars), r.unary(c, of(c, r.scalars))))
	case 10, 11:
		x, k := tensor(), of(c, r.scalars)
		s.tensors = append(s.tensors, []Expr{x.Mul(k).Add(tensor()), x.Mul(k).Add(tensor().Mul(of(c, r.scalars))), tensor().Sub(x.Mul(k)),
			tensor().Div(x.Sqrt().Add(k)), tensor().Mul(k).Div(x.Mul(k).Sqrt().Add(of(c, r.scalars)))}[c.pick(5)])
	case 12:
		s.tensors = append(s.tensors, rearranged(c, s, tensor()))
	default:
		x, y := tensor(), any()
		if c.pick(2) == 0 {
			x, y = y, x
		}
		if !x.IsScalar() || !y.IsScalar() {
			s.tensors = append(s.tensors, r.binary(c, x, y))
		}
	}
}

func (r *randomPlan) unary(c *choices, x Expr) Expr {
	list := []func(Expr) Expr{Expr.Neg, Expr.Square, Expr.Sqrt, Expr.Abs, Expr.Sign, Expr.Floor, Expr.Exp, Expr.Log, Expr.Tanh, Expr.Cos}
	if !r.slow {
		list = list[:6]
	}
	return of(c, list)(x)
}

func (r *randomPlan) binary(c *choices, x, y Expr) Expr {
	list := []func(Expr, Expr) Expr{Expr.Add, Expr.Sub, Expr.Mul, Expr.Div, Expr.Min, Expr.Max, Expr.Mul, Expr.Add, Expr.Pow}
	if !r.slow {
		list = list[:8]
	}
	return of(c, list)(x, y)
}

func compared(c *choices, x, y Expr) Expr {
	switch c.pick(7) {
	case 0:
		return x.IsFinite()
	case 1:
		return x.Less(y)
	case 2:
		return x.LessEqual(y)
	case 3:
		return x.Greater(y)
	case 4:
		return x.GreaterEqual(y)
	case 5:
		return x.Equal(y)
	}
	return x.NotEqual(y)
}

// rearranged mixes the elements of x, and gives the result the shape of x again.
func rearranged(c *choices, s *sort, x Expr) Expr {
	rank := len(s.shape)
	if rank == 0 {
		return x.SumAlong().BroadcastTo(s.shape)
	}
	if rank == 2 {
		switch c.pick(3) {
		case 0:
			return x.Transpose().Abs().Transpose()
		case 1:
			if s.shape[0]*s.shape[1]*s.shape[0] < 1<<13 {
				return x.MatMul(of(c, s.tensors).Transpose()).SumAlong(-1).BroadcastTo(s.shape)
			}
		}
	}
	return []Expr{x.SumAlong(c.pick(rank)), x.MeanAlong(c.pick(rank), c.pick(rank))}[c.pick(2)].BroadcastTo(s.shape)
}
