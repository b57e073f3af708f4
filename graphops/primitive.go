package graphops

import (
	"math"
	"sync"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// primitive is one operation of an expanded expression. It runs the same kernel as the fused form, so that both agree bit
// for bit, and it is differentiable to any order. Gorgonia's own operations are not used: their division by zero is always
// +Inf, some refuse scalars or 0-d tensors, some differ in the last bit, and an elementwise one may overwrite its operand.
//
// All operands have one dtype; scalars are broadcast. A reduction gives a float64 scalar. Leaf is the conversion of a scalar
// to another dtype.
type primitive struct {
	op
	kernel kernel.Op
	dt     tensor.Dtype // of the result
	matrix string       // kernel.Dims of a rearranging operation
	shapes []tensor.Shape
	dts    []tensor.Dtype

	mu   sync.Mutex // machines share the operation
	prog *kernel.Program
	in   []binding
	vals []kernel.Array
}

func newPrimitive(k kernel.Op, dt tensor.Dtype, kids gorgonia.Nodes, dims string, shape tensor.Shape) *primitive {
	p := &primitive{kernel: k, dt: dt, matrix: dims, in: make([]binding, len(kids)), vals: make([]kernel.Array, len(kids)+1)}
	p.op = newOp(k.String(), kids, dt, tensor.ScalarShape())
	if k.Rearranges() {
		p.name, p.dims, p.out = k.String()+" "+dims, shape, typeOf(dt, shape)
	}
	if k == kernel.Leaf {
		p.name = "to " + dt.String()
	}
	for _, c := range kids {
		p.shapes, p.dts = append(p.shapes, c.Shape()), append(p.dts, c.Dtype())
		if !c.IsScalar() && !k.Reduces() && !k.Rearranges() {
			p.dims, p.out = c.Shape(), c.Type()
		}
	}
	p.prog = p.compile()
	return p
}

func (p *primitive) compile() *kernel.Program {
	var b kernel.Builder
	n := kernel.Node{Op: p.kernel, Elem: !p.kernel.Reduces(), Type: kernelType(p.dt), Len: p.dims.TotalSize(), Dims: p.matrix}
	for i, s := range p.shapes {
		arg := kernel.Node{Op: kernel.Leaf, Leaf: i, Type: kernelType(p.dts[i]), Len: s.TotalSize(), Elem: true}
		if s.IsScalar() && (!p.dims.IsScalar() || p.kernel == kernel.Leaf || p.kernel == kernel.TruncatedNormal) { // not elementwise
			arg = kernel.Node{Op: kernel.Leaf, Leaf: i}
		}
		n.Args[i] = b.Add(arg)
	}
	value := n.Args[0]
	if p.kernel != kernel.Leaf {
		value = b.Add(n)
	}
	return b.Program([]kernel.Store{{Leaf: len(p.shapes), Node: value, Cond: -1}}, gorgonia.WhichBLAS())
}

func kernelType(dt tensor.Dtype) kernel.DType {
	if dt == tensor.Float32 {
		return kernel.Float32
	}
	return kernel.Float64
}

// Do evaluates the primitive into a new value.
func (p *primitive) Do(in ...gorgonia.Value) (out gorgonia.Value, err error) {
	defer p.rescue(&err, in)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, v := range in {
		if p.vals[i], err = p.in[i].bind(v, p.dts[i], p.shapes[i]); err != nil {
			return nil, p.wrong(err, i)
		}
	}
	out = p.newValue(p.dt)
	m, err := memoryOf(out)
	if err != nil {
		return nil, err
	}
	p.vals[len(in)] = m.Array
	return out, p.prog.Run(p.vals, nil)
}

// DiffWRT says which operands have a derivative. Comparisons, Sign and Floor count as constants.
func (p *primitive) DiffWRT(n int) []bool {
	d := make([]bool, n)
	for i := range d {
		switch k := p.kernel; {
		case k.IsCondition(), k == kernel.Sign, k == kernel.Floor, k == kernel.SingularPair, k == kernel.TruncatedNormal, k == kernel.Select && i == 0:
		case k == kernel.Leaf && p.dts[0] != tensor.Float32 && p.dts[0] != tensor.Float64:
		default:
			d[i] = true
		}
	}
	return d
}

// SymDiff builds the derivatives, as primitives too.
func (p *primitive) SymDiff(in gorgonia.Nodes, out, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	x := newExpander(in[0])
	ds := make(gorgonia.Nodes, len(in))
	if p.kernel == kernel.Leaf {
		n, err := x.convert(grad, p.dts[0])
		ds[0] = n
		return ds, err
	}
	lift := func(n *gorgonia.Node, scalar bool) Expr {
		if n.IsScalar() && scalar {
			return ScalarOf(n)
		}
		return Of(n)
	}
	broadcast := !out.IsScalar() || p.kernel.Reduces()
	xs := make([]Expr, len(in))
	for i, n := range in {
		xs[i] = lift(n, !out.IsScalar())
	}
	diff := p.DiffWRT(len(in))
	for i, d := range p.kernelDerivatives(xs, lift(out, broadcast), lift(grad, broadcast)) {
		if !diff[i] {
			continue
		}
		if in[i].IsScalar() && !d.IsScalar() && !out.IsScalar() { // a broadcast operand collects from every element
			d = d.Sum()
		}
		n, err := x.expand(d)
		if err == nil && in[i].IsScalar() {
			n, err = x.convert(n, p.dts[i])
		}
		if err != nil {
			return nil, errors.Wrapf(err, "graphops: derivative of %s", p.name)
		}
		ds[i] = n
	}
	return ds, nil
}

// kernelDerivatives are the products of grad with the partial derivatives of the result y.
func (p *primitive) kernelDerivatives(x []Expr, y, grad Expr) []Expr {
	zero, two := Const(0), Const(2)
	switch a := x[0]; p.kernel {
	case kernel.Neg:
		return []Expr{grad.Neg()}
	case kernel.Square:
		return []Expr{grad.Mul(a).Mul(two)}
	case kernel.Sqrt:
		return []Expr{grad.Div(y.Mul(two))}
	case kernel.Abs:
		return []Expr{grad.Mul(a.Sign())}
	case kernel.Exp:
		return []Expr{grad.Mul(y)}
	case kernel.Log:
		return []Expr{grad.Div(a)}
	case kernel.Tanh:
		return []Expr{grad.Mul(Const(1).Sub(y.Square()))}
	case kernel.Cos: // the sine is the cosine of π/2 less
		return []Expr{grad.Mul(a.Sub(Const(math.Pi / 2)).Cos()).Neg()}
	case kernel.Add:
		return []Expr{grad, grad}
	case kernel.Sub:
		return []Expr{grad, grad.Neg()}
	case kernel.Mul:
		return []Expr{grad.Mul(x[1]), grad.Mul(a)}
	case kernel.Div:
		return []Expr{grad.Div(x[1]), grad.Mul(y).Div(x[1]).Neg()}
	case kernel.Min:
		first := a.LessEqual(x[1])
		return []Expr{first.Select(grad, zero), first.Select(zero, grad)}
	case kernel.Max:
		first := a.GreaterEqual(x[1])
		return []Expr{first.Select(grad, zero), first.Select(zero, grad)}
	case kernel.Pow:
		base := grad.Mul(x[1]).Mul(a.Pow(x[1].Sub(Const(1))))
		return []Expr{x[1].NotEqual(zero).Select(base, zero), a.Greater(zero).Select(grad.Mul(y).Mul(a.Log()), zero)}
	case kernel.Select:
		cond := a.NotEqual(zero)
		return []Expr{zero, cond.Select(grad, zero), cond.Select(zero, grad)}
	case kernel.Sum:
		return []Expr{a.Equal(a).Or(a.NotEqual(a)).Select(grad, zero)} // grad for every element
	case kernel.SumSquares:
		return []Expr{a.Mul(grad.Mul(two))}
	case kernel.MatMul:
		return []Expr{grad.MatMul(x[1].Transpose()), a.Transpose().MatMul(grad)}
	case kernel.Transpose:
		return []Expr{grad.Transpose()}
	case kernel.SumAlong:
		return []Expr{grad.BroadcastTo(p.shapes[0])}
	case kernel.BroadcastTo:
		return []Expr{grad.sumTo(p.shapes[0])}
	case kernel.MaxAll:
		return []Expr{a.Equal(y).Select(grad, zero)}
	}
	return make([]Expr, len(x))
}
