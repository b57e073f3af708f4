package graphops

import (
	"fmt"
	"sync"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"optimop/graphops/internal/kernel"
)

// product is a matrix product of which either operand may be transposed. Gradients makes it in the place of the two that
// Gorgonia makes for a product, since Gorgonia makes both whenever one is wanted: the gradient of the input batch, which nobody
// reads, costs as much as that of the first weights. The numbers are the same.
type product struct {
	op
	transposed [2]bool
	dt         tensor.Dtype
	shapes     [2]tensor.Shape
	m, n, k    int

	mu    sync.Mutex // machines share the operation
	bound [2]binding
	f32   []float32 // the first operand, transposed
	f64   []float64
}

// newProduct is a·b with the given ones of the two transposed.
func newProduct(a, b *gorgonia.Node, ta, tb bool) (*gorgonia.Node, error) {
	p := &product{transposed: [2]bool{ta, tb}, dt: a.Dtype(), shapes: [2]tensor.Shape{a.Shape(), b.Shape()}}
	inner := p.shapes[1][0]
	p.m, p.k, p.n = p.shapes[0][0], p.shapes[0][1], p.shapes[1][1]
	name := "product A"
	if ta {
		p.m, p.k = p.k, p.m
		name += "ᵀ"
	}
	name += "·B"
	if tb {
		p.n, inner = inner, p.n
		name += "ᵀ"
	}
	if inner != p.k || a.Dtype() != b.Dtype() {
		return nil, errors.Errorf("graphops: %s of %v %v and %v %v", name, a.Dtype(), a.Shape(), b.Dtype(), b.Shape())
	}
	shape := tensor.Shape{p.m, p.n}
	p.op = newOp(name, gorgonia.Nodes{a, b}, typeOf(p.dt, shape), shape)
	return apply(p, &p.op, true, a, b)
}

// productOf recognises a product of two matrices, ours or Gorgonia's.
func productOf(n *gorgonia.Node, kids gorgonia.Nodes) (transposed [2]bool, ok bool) {
	if p, ok := n.Op().(*product); ok {
		return p.transposed, true
	}
	if len(kids) != 2 || fmt.Sprintf("%T", n.Op()) != "gorgonia.linAlgBinOp" {
		return transposed, false
	}
	for _, k := range kids {
		if k.Dims() != 2 || k.Dtype() != tensor.Float32 && k.Dtype() != tensor.Float64 {
			return transposed, false
		}
	}
	for i, s := range []string{"A × B", "Aᵀ × B", "A × Bᵀ", "Aᵀ × Bᵀ"} {
		if n.Op().String() == s {
			return [2]bool{i&1 > 0, i&2 > 0}, true
		}
	}
	return transposed, false
}

// productDiff gives the wanted ones of the gradients of a product's two operands.
func productDiff(kids gorgonia.Nodes, transposed [2]bool, grad *gorgonia.Node, wanted []bool) (ds gorgonia.Nodes, err error) {
	ds = make(gorgonia.Nodes, 2)
	ta, tb := transposed[0], transposed[1]
	switch {
	case !wanted[0]:
	case ta:
		ds[0], err = newProduct(kids[1], grad, tb, true)
	default:
		ds[0], err = newProduct(grad, kids[1], false, !tb)
	}
	switch {
	case !wanted[1] || err != nil:
	case tb:
		ds[1], err = newProduct(grad, kids[0], true, ta)
	default:
		ds[1], err = newProduct(kids[0], grad, !ta, false)
	}
	return ds, err
}

func (p *product) DiffWRT(int) []bool { return []bool{true, true} }

// SymDiff builds the derivatives, as products too.
func (p *product) SymDiff(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	return productDiff(in, p.transposed, grad, []bool{true, true})
}

// Do multiplies with the BLAS that Gorgonia uses.
func (p *product) Do(in ...gorgonia.Value) (out gorgonia.Value, err error) {
	defer p.rescue(&err, in)
	p.mu.Lock()
	defer p.mu.Unlock()
	var x [2]kernel.Array
	for i, v := range in {
		if x[i], err = p.bound[i].bind(v, p.dt, p.shapes[i]); err != nil {
			return nil, p.wrong(err, i)
		}
	}
	c := tensor.New(tensor.Of(p.dt), tensor.WithShape(p.dims...))
	use := gorgonia.WhichBLAS()
	if p.dt == tensor.Float32 {
		multiply(p, kernel.Elements[float32](x[0]), kernel.Elements[float32](x[1]), c.Float32s(), &p.f32, use.Sgemm)
	} else {
		multiply(p, kernel.Elements[float64](x[0]), kernel.Elements[float64](x[1]), c.Float64s(), &p.f64, use.Dgemm)
	}
	return c, nil
}

type gemm[T any] func(ta, tb blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)

func multiply[T float32 | float64](p *product, a, b, c []T, scratch *[]T, mul gemm[T]) {
	ta, tb := p.transposed[0], p.transposed[1]
	if _, slow := gorgonia.WhichBLAS().(gonum.Implementation); slow && ta && !tb {
		// Gonum takes nearly twice as long for Aᵀ·B as for A·B, and adds the terms of an element in the same order for both.
		if len(*scratch) != len(a) {
			*scratch = make([]T, len(a))
		}
		kernel.Transposed(p.k, p.m, *scratch, a)
		a, ta = *scratch, false
	}
	flag, lda, ldb := [2]blas.Transpose{blas.NoTrans, blas.NoTrans}, p.k, p.n
	if ta {
		flag[0], lda = blas.Trans, p.m
	}
	if tb {
		flag[1], ldb = blas.Trans, p.k
	}
	mul(flag[0], flag[1], p.m, p.n, p.k, 1, a, lda, b, ldb, 0, c, p.n)
}
